import { nodeHint } from "../../config/problem.ts";
import type { StoreResult } from "../../contracts/cluster.ts";
import type { KubeApi, KubeObject } from "../../contracts/kube-api.ts";
import { holdMarkIn, holdOf, type NodeFacts } from "../../core/cluster/node.ts";
import { type DepartRequest, type DepartStep, departStep } from "../../core/departure/decision.ts";
import { type Departure, isLive } from "../../core/departure/departure.ts";
import { selectPolicy } from "../../core/policy/policy.ts";
import {
  between,
  formatInstant,
  type Instant,
  type Millis,
  minutes,
} from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import { connect } from "../cluster/connect.ts";
import { type CommandRun, printData } from "../command-line/command.ts";
import { type FleetSnapshot, readFleet, type SnapshotSource } from "../input/fleet-snapshot.ts";

type Depart = Parameters<CommandRun<"depart">>[0];

interface Written {
  readonly node: string;
  readonly step: DepartStep;
  /** The object as it is in the cluster; with `--dry-run` as it would be. */
  readonly object: KubeObject;
}

/**
 * Creates a Departure for each node, which the controller carries out. Checks all nodes before
 * anything is written. Attempts every write, and throws the first error at the end.
 */
export const runDepart: CommandRun<"depart"> = async (input) => {
  if (input.options.onlyActions) {
    const { runOnlyActions } = await import("./depart-actions.ts");
    return runOnlyActions(input);
  }
  if (input.options.cause !== "Manual") {
    const problem = "Cannot use --cause: it chooses among actions, add --only-actions";
    throw new LastcallError("USAGE", problem);
  }
  const { options, io } = input;
  const fleet = await readFleet(wholeCluster(options), {}, io);
  const request = requestOf(input, fleet.readAt);
  const steps = stepsFor(input.words, request, fleet);
  const warnings = [
    ...holdWarnings(steps, request),
    ...lateWarnings(steps, request, fleet),
    ...ignoredWarnings(steps, input),
  ];
  if (!options.quiet) for (const text of warnings) io.err(text);
  const { written, faults } = await carryOut(steps, input);
  await show(written, input);
  for (const fault of faults.slice(1)) io.err(`lastcall: ${fault.message}\n`);
  if (faults[0] !== undefined) throw faults[0];
  return 0;
};

function wholeCluster({ kubeconfig, context }: Depart["options"]): SnapshotSource {
  return { kubeconfig, context, from: [], filename: [] };
}

/**
 * A script's `--at` that means now is slightly in the past when it is read. Anything older is a
 * mistake.
 */
const lateMs: Millis = minutes(1);

function requestOf({ options }: Depart, now: Instant): DepartRequest {
  const { at: departAt = now, by } = options;
  if (between(departAt, now) > lateMs) {
    throw new LastcallError(
      "USAGE",
      `Cannot use --at ${formatInstant(departAt)}: it is in the past, expected a future time, or no --at to start now`,
    );
  }
  if (by !== undefined && by <= departAt) {
    throw new LastcallError(
      "USAGE",
      `Cannot use --by ${formatInstant(by)}: the departure starts at ${formatInstant(departAt)}, expected a later time`,
    );
  }
  return { departAt, deadlineAt: by };
}

type Steps = readonly { readonly node: NodeFacts; readonly step: DepartStep }[];

function stepsFor(names: readonly string[], request: DepartRequest, fleet: FleetSnapshot): Steps {
  const nodes = new Map(fleet.nodes.map((node) => [node.name, node]));
  return [...new Set(names)].map((name) => {
    const node = nodes.get(name);
    if (node === undefined) {
      const hint = nodeHint(name, [...nodes.keys()]);
      throw new LastcallError(
        "NOT_FOUND",
        `Cannot make ${name} depart: there is no such node${hint}, list them with: kubectl get nodes`,
      );
    }
    const policy = selectPolicy(node, fleet.policies)?.policy.name;
    return { node, step: departStep(node, { ...request, policy }, fleet.departures) };
  });
}

/** A user's request takes precedence over a hold: the person who held the node may be another. */
function holdWarnings(steps: Steps, { departAt }: DepartRequest): readonly string[] {
  return steps.flatMap(({ node, step }) => {
    const hold = holdOf(node);
    if (step.kind === "Leave" || hold.kind === "None") return [];
    if (hold.kind === "Until" && hold.until <= departAt) return [];
    const until = hold.kind === "Until" ? ` until ${formatInstant(hold.until)}` : "";
    const told = `${node.name} is on hold${until} by its annotation ${holdMarkIn(node.annotations)}`;
    return [`lastcall: ${told}, which applies only to planned departures: it leaves anyway\n`];
  });
}

/** A user's request takes precedence over the plan, but not over the node's deadline. */
function lateWarnings(
  steps: Steps,
  { departAt }: DepartRequest,
  { departures }: FleetSnapshot,
): readonly string[] {
  return steps.flatMap(({ node, step }) => {
    const plan = departures.find((one) => isPlanOf(one, node));
    if (step.kind === "Leave" || plan?.deadlineAt === undefined || departAt <= plan.deadlineAt) {
      return [];
    }
    const told = `${node.name} was requested to leave after its deadline of ${formatInstant(plan.deadlineAt)}`;
    return [
      `lastcall: ${told}, so it leaves as planned before that; to choose the time, set an earlier --at\n`,
    ];
  });
}

/** A departure that is under way keeps its times, whatever is requested now. */
function ignoredWarnings(steps: Steps, { options }: Depart): readonly string[] {
  const given = [
    ...(options.at === undefined ? [] : ["--at"]),
    ...(options.by === undefined ? [] : ["--by"]),
  ].join(" and ");
  return steps.flatMap(({ node, step }) => {
    if (given === "" || step.kind !== "Leave") return [];
    const { departAt, deadlineAt, status } = step.departure;
    const isKept = options.at === undefined || options.at === departAt;
    if (isKept && (options.by === undefined || options.by === deadlineAt)) return [];
    return [
      `lastcall: ${node.name} is already leaving (${status.phase}): ${given} is not applied\n`,
    ];
  });
}

function isPlanOf(departure: Departure, { uid }: NodeFacts): boolean {
  return departure.node.uid === uid && departure.cause === "Planned" && isLive(departure);
}

/** A dry run contacts no cluster. */
async function carryOut(steps: Steps, { options, io }: Depart) {
  if (options.dryRun) return writeAll(steps);
  const { api, close } = await connect({ ...options, signal: io.signal }, io);
  try {
    return await writeAll(steps, api);
  } finally {
    close();
  }
}

async function writeAll(
  steps: Steps,
  api?: KubeApi,
): Promise<{ readonly written: readonly Written[]; readonly faults: readonly LastcallError[] }> {
  const { departureObject } = await import("../../kube/object/translate-departure.ts");
  const written: Written[] = [];
  const faults: LastcallError[] = [];
  for (const { node, step } of steps) {
    try {
      const departure = api === undefined ? planned(step) : await write(step, api);
      const { name, source = "", ...rest } = departure;
      const object = departureObject({ ...rest, name, source });
      written.push({ node: node.name, step, object });
    } catch (error) {
      if (!isLastcallError(error)) throw error;
      faults.push(error);
    }
  }
  return { written, faults };
}

/** The object as it would have been written. */
function planned(step: DepartStep) {
  if (step.kind === "Create") return step.made;
  if (step.kind === "Leave") return step.departure;
  const { departAt, deadlineAt = step.departure.deadlineAt } = step.to;
  return { ...step.departure, departAt, deadlineAt: deadlineAt ?? undefined };
}

async function write(step: DepartStep, api: KubeApi): Promise<Departure> {
  const { KubeDepartureStore } = await import("../../kube/departure-store.ts");
  const store = new KubeDepartureStore(api);
  switch (step.kind) {
    case "Create":
      return doneOr(step.made.name, await store.create(step.made));
    case "Move":
      return doneOr(step.departure.name, await store.move(step.departure, step.to));
    case "Leave":
      return step.departure;
  }
}

function doneOr(name: string, result: StoreResult): Departure {
  if (result.kind === "Done") return result.departure;
  const found = result.kind === "Gone" ? "it is gone" : "somebody else changed it at the same time";
  throw new LastcallError(
    "CONFLICT",
    `Cannot write Departure ${name}: ${found}, run the command again`,
  );
}

async function show(written: readonly Written[], { options, io }: Depart): Promise<void> {
  if (options.output !== "table") {
    const items = written.map(({ object }) => object);
    await printData({ apiVersion: "v1", kind: "List", items }, options.output, io);
    return;
  }
  for (const one of written) io.out(`${lineOf(one)}${options.dryRun ? " (dry run)" : ""}\n`);
}

function lineOf({ node, step, object }: Written): string {
  const { name = "" } = object.metadata ?? {};
  const { departAt, deadlineAt } = object.spec as { departAt?: string; deadlineAt?: string };
  const by = deadlineAt === undefined ? "" : `, by ${deadlineAt}`;
  switch (step.kind) {
    case "Create":
      return `departure/${name} created: ${node} leaves at ${departAt}${by}`;
    case "Move":
      return `departure/${name} moved: ${node} leaves at ${departAt}${by}`;
    case "Leave":
      return `departure/${name} unchanged: ${standing(node, step.departure)}`;
  }
}

function standing(node: string, { status }: Departure): string {
  const { phase } = status;
  const isWaiting = phase === "Held" || phase === "Scheduled";
  return `${node} ${isWaiting ? "has been requested to leave" : "is already leaving"}, phase ${phase}`;
}
