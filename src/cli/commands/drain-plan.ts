import type { OptionsOf } from "../../config/options/options.ts";
import type { ClusterCapacity } from "../../contracts/cluster.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import { findUnplacedPods } from "../../controller/capacity-search.ts";
import { loadsOf } from "../../core/capacity/capacity-fit.ts";
import { bornAt, type NodeFacts } from "../../core/cluster/node.ts";
import type { PodFacts } from "../../core/cluster/pod.ts";
import { returningPods } from "../../core/drain/placeholder-plan.ts";
import { planDrain, warnOfCapacity } from "../../core/drain-plan/drain-plan.ts";
import { type DrainPlanReport, drainPlanReport } from "../../core/drain-plan/drain-plan-report.ts";
import { defaultPolicy, selectPolicy } from "../../core/policy/policy.ts";
import { plus } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import { connect } from "../cluster/connect.ts";
import { missingNode } from "../cluster/meant-nodes.ts";
import { type CommandIo, type CommandRun, printData } from "../command-line/command.ts";
import { formatTable } from "../command-line/terminal.ts";
import { type FleetSnapshot, readFleet } from "../input/fleet-snapshot.ts";
import { plannedInstant } from "../input/planned-instant.ts";
import { unknownNodeMarks, unknownPodMarks } from "../input/unknown-mark.ts";

/** Shows how one node's pods would leave, planned or under a notice. */
export const runDrainPlan: CommandRun<"drain-plan"> = async ({ options, words, io }) => {
  const name = words[0] as string;
  const plan = options.from.length > 0 ? planFromFiles : planFromCluster;
  const { report, node } = await plan({ name, options, io });
  if (options.output !== "table") {
    await printData(report, options.output, io);
    return 0;
  }
  if (!options.quiet && bornAt(node) === undefined)
    io.err(`lastcall: ${name} has no launch time\n`);
  io.out(tableOf(report));
  return 0;
};

interface NodeDrain {
  readonly name: string;
  readonly options: OptionsOf<"drain-plan">;
  readonly io: CommandIo;
}

interface NodeDrainPlan {
  readonly node: NodeFacts;
  readonly report: DrainPlanReport;
}

async function planFromFiles(asked: NodeDrain): Promise<NodeDrainPlan> {
  const fleet = await readFleet(asked.options, {}, asked.io);
  if (fleet.pods.length === 0 && !asked.options.quiet) {
    const wanted = "expected the output of kubectl get nodes,pods,pdb -A -o json";
    asked.io.err(`lastcall: The input contains no Pods, so none are planned, ${wanted}\n`);
  }
  return planWith(fleet, { asked, capacity: capacityInFiles(fleet), everyPod: fleet.pods });
}

async function planFromCluster(asked: NodeDrain): Promise<NodeDrainPlan> {
  const { name, options, io } = asked;
  const { api, close } = await connect({ ...options, signal: io.signal }, io);
  try {
    const fleet = await readFleet(options, { podsOfNode: name, api }, io);
    const { capacity, clear } = await capacityInCluster(api, { io, quiet: options.quiet });
    return await planWith(fleet, { asked, capacity }).finally(clear);
  } finally {
    close();
  }
}

async function planWith(
  fleet: FleetSnapshot,
  about: {
    readonly asked: NodeDrain;
    readonly capacity: ClusterCapacity;
    readonly everyPod?: readonly PodFacts[];
  },
): Promise<NodeDrainPlan> {
  const { name, options, io } = about.asked;
  const node = nodeNamed(name, { fleet, options });
  const policy = selectPolicy(node, fleet.policies)?.policy ?? defaultPolicy;
  const own = fleet.pods.filter(({ nodeName }) => nodeName === name);
  const marks = [...unknownNodeMarks([node]), ...unknownPodMarks(own)];
  if (!options.quiet) for (const mark of marks) io.err(`lastcall: ${mark}\n`);
  const pods = await about.capacity.withVolumes(own);
  const now = plannedInstant(options, { io, now: fleet.readAt });
  const plan = planDrain({
    node,
    pods,
    budgets: fleet.budgets,
    rule: policy.drain,
    ...{ now, deadlineAt: options.notice && plus(now, options.notice) },
    everyPod: about.everyPod,
    terminatingNamespaces: fleet.terminatingNamespaces,
    daemonSets: fleet.daemonSets,
  });
  const unplaced = await findUnplacedPods(
    returningPods(plan.pods, pods),
    { scene: { ...fleet, node: name }, capacity: about.capacity },
    io.signal,
  );
  return { node, report: drainPlanReport(warnOfCapacity(plan, unplaced)) };
}

function nodeNamed(
  name: string,
  about: { readonly fleet: FleetSnapshot; readonly options: { readonly from: readonly string[] } },
): NodeFacts {
  const { nodes } = about.fleet;
  const node = nodes.find((one) => one.name === name);
  if (node !== undefined) return node;
  const known = nodes.length === 1 ? "1 node" : `${nodes.length} nodes`;
  throw new LastcallError(
    about.options.from.length > 0 ? "INPUT_INVALID" : "NOT_FOUND",
    `Cannot plan the drain of ${name}: ${missingNode(name, about.fleet, ` among ${known}`)}, list them with: kubectl get nodes`,
  );
}

function tableOf(report: DrainPlanReport): string {
  // A planned drain never overrules a budget.
  const isNotice = report.noticeSeconds !== null;
  const rows = report.pods.map((pod) => [
    pod.namespace,
    pod.name,
    pod.action,
    String(pod.tier),
    `${pod.startSeconds}s`,
    pod.cut ? `${pod.graceSeconds}s of ${pod.wantedGraceSeconds}s` : `${pod.graceSeconds}s`,
    ...(isNotice ? [pod.forceAtSeconds === null ? "" : `${pod.forceAtSeconds}s`] : []),
    pod.budget ?? "",
    pod.explain,
  ]);
  const heads = [
    ...["NAMESPACE", "POD", "ACTION", "TIER", "START", "GRACE"],
    ...(isNotice ? ["FORCE"] : []),
    ...["BUDGET", "WHY"],
  ];
  const table = rows.length === 0 ? "No pods to evict.\n" : formatTable(heads, rows);
  const skipped = report.skipped.map((pod) => `${pod.namespace}/${pod.name} (${pod.reason})`);
  const unplaced = report.warnings.filter(({ reason }) => reason === "NoCapacityElsewhere");
  return [
    table,
    ...(skipped.length === 0 ? [] : [`\nSkipped: ${skipped.join(", ")}\n`]),
    ...unplaced.map((pod) => `\n${pod.namespace}/${pod.name} ${pod.explain}.`),
    ...(unplaced.length === 0 ? [] : ["\n"]),
  ].join("");
}

/** The free capacity and the volumes according to the files. */
function capacityInFiles({
  pods,
  volumes,
}: Pick<FleetSnapshot, "pods" | "volumes">): ClusterCapacity {
  const loads = loadsOf(pods);
  return {
    loadOn: (nodeName) => Promise.resolve(loads.get(nodeName) ?? {}),
    loads: () => Promise.resolve(loads),
    withVolumes: async (some) => {
      const { withVolumeSpecs } = await import("../../kube/object/translate-pod.ts");
      return some.map((pod) => withVolumeSpecs(pod, volumes.get(pod.namespace) ?? new Map()));
    },
  };
}

/** Work shorter than this shows no progress. */
const silentMs = 2000;

/**
 * The free capacity of the cluster. Shows progress on a terminal if listing all pods takes long.
 */
export async function capacityInCluster(
  api: KubeApi,
  about: { readonly io: CommandIo; readonly quiet: boolean },
): Promise<{ readonly capacity: ClusterCapacity; readonly clear: () => void }> {
  const { KubeClusterCapacity } = await import("../../kube/cluster-capacity.ts");
  const { io, quiet } = about;
  const startedMs = io.clock.monotonic();
  let seen = 0;
  let shown = "";
  const onPage = (pods: number): void => {
    seen += pods;
    if (quiet || !io.isTerminal || io.clock.monotonic() - startedMs < silentMs) return;
    shown = `looking for capacity: ${seen} pods read`;
    io.err(`\r${shown}`);
  };
  const clear = (): void => {
    if (shown !== "") io.err(`\r${" ".repeat(shown.length)}\r`);
  };
  return { capacity: new KubeClusterCapacity(api, onPage), clear };
}
