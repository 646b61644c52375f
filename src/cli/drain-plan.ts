import { isLive } from "../core/departure.ts";
import { isUnderWay } from "../core/departure-index.ts";
import { planDrain } from "../core/drain-plan.ts";
import { drainPlanReport } from "../core/drain-plan-report.ts";
import { bornAt } from "../core/node.ts";
import { defaultPolicy } from "../core/policy-default.ts";
import { loadsOf, type NodeRoom, roomsOf } from "../core/room.ts";
import { selectPolicy } from "../core/selector.ts";
import { LastcallError } from "../errors.ts";
import type { CommandRun } from "./command-spec.ts";
import { type FleetSnapshot, readFleet } from "./fleet-snapshot.ts";
import { printData } from "./print-data.ts";
import { formatTable } from "./table.ts";

/** How one node's pods would leave, planned or under a notice. */
export const runDrainPlan: CommandRun<"drain-plan"> = async ({ options, words, io }) => {
  const name = words[0] as string;
  const fleet = await readFleet(options, { podsOfNode: name }, io);
  const node = fleet.nodes.find((one) => one.name === name);
  if (node === undefined) {
    const known = fleet.nodes.length === 0 ? "there are none" : `there are ${fleet.nodes.length}`;
    throw new LastcallError(
      options.from.length > 0 ? "INPUT_INVALID" : "NOT_FOUND",
      `Cannot plan the drain of ${name}: no node has that name (${known}), an existing one is wanted`,
    );
  }
  const policy = selectPolicy(node, fleet.policies)?.policy ?? defaultPolicy;
  const now = options.at ?? io.clock.now();
  const report = drainPlanReport(
    planDrain({
      node,
      pods: fleet.pods,
      budgets: fleet.budgets,
      rule: policy.drain,
      notice: options.notice === undefined ? undefined : { leftMs: options.notice },
      now,
      everyPod: options.from.length > 0 ? fleet.pods : undefined,
      rooms: options.from.length > 0 ? otherRooms(fleet, name) : undefined,
    }),
  );
  if (options.output !== "table") {
    await printData(report, options.output, io);
    return 0;
  }
  if (!options.quiet && bornAt(node) === undefined) io.err(`lastcall: ${name} has no birth\n`);
  io.out(tableOf(report));
  return 0;
};

/** What other nodes have left; undefined where the files say of no other node how large it is. */
function otherRooms(fleet: FleetSnapshot, name: string): readonly NodeRoom[] | undefined {
  const { nodes, pods, departures } = fleet;
  const known = nodes.some((node) => node.name !== name && node.allocatable !== undefined);
  if (!known) return undefined;
  const underWay = departures.filter((one) => isLive(one) && isUnderWay(one));
  const leaving = new Set([name, ...underWay.map((one) => one.node.name)]);
  return roomsOf({ nodes, loads: loadsOf(pods), leaving });
}

function tableOf(report: ReturnType<typeof drainPlanReport>): string {
  const rows = report.pods.map((pod) => [
    pod.namespace,
    pod.name,
    pod.action,
    String(pod.tier),
    `${pod.startSeconds}s`,
    pod.cut ? `${pod.graceSeconds}s of ${pod.wantedGraceSeconds}s` : `${pod.graceSeconds}s`,
    pod.forceAtSeconds === null ? "" : `${pod.forceAtSeconds}s`,
    pod.budget ?? "",
    pod.explain,
  ]);
  const heads = ["NAMESPACE", "POD", "ACTION", "TIER", "START", "GRACE", "FORCE", "BUDGET", "WHY"];
  const table = rows.length === 0 ? "No pod has to leave.\n" : formatTable(heads, rows);
  const skipped = report.skipped.map((pod) => `${pod.namespace}/${pod.name} (${pod.reason})`);
  const homeless = report.warnings.filter(({ reason }) => reason === "NoRoomElsewhere");
  return [
    table,
    ...(skipped.length === 0 ? [] : [`\nLeft alone: ${skipped.join(", ")}\n`]),
    ...homeless.map((pod) => `\n${pod.namespace}/${pod.name} ${pod.explain}.`),
    ...(homeless.length === 0 ? [] : ["\n"]),
  ].join("");
}
