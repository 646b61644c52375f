import { nodeHint } from "../../config/problem.ts";
import type { StoreResult } from "../../contracts/cluster.ts";
import type { KubeApi, KubeObject } from "../../contracts/kube-api.ts";
import { holdMarkIn, holdOf, type NodeFacts } from "../../core/cluster/node.ts";
import { type DepartRequest, type DepartStep, departStep } from "../../core/departure/decision.ts";
import { type Departure, isLive } from "../../core/departure/departure.ts";
import { selectPolicy } from "../../core/policy/policy.ts";
import {
  instantOfNamedTime,
  type LocalNow,
  type NamedTime,
  sayLocally,
} from "../../core/time/named-time.ts";
import {
  between,
  formatInstant,
  type Instant,
  type Millis,
  minutes,
} from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import { dryRunApi } from "../../kube/dry-run.ts";
import { type Connection, connect } from "../cluster/connect.ts";
import { checkNodes, meantNodes } from "../cluster/meant-nodes.ts";
import { type CommandRun, printData } from "../command-line/command.ts";
import { type FleetSnapshot, readFleet, type SnapshotSource } from "../input/fleet-snapshot.ts";
import type { Awaited } from "./depart-wait.ts";

type Depart = Parameters<CommandRun<"depart">>[0];

interface Written {
  readonly node: string;
  readonly step: DepartStep;
  /** The object as it is in the cluster; with `--dry-run` as it would be. */
  readonly object: KubeObject;
  readonly uid: string;
}

/**
 * Creates a Departure for each node, which the controller carries out. Checks all nodes before
 * anything is written. Attempts every write, and throws the first error at the end.
 */
export const runDepart: CommandRun<"depart"> = async (input) => {
  const { options, io } = input;
  const asked = { command: "depart", words: input.words, selector: options.selector };
  checkNodes(asked);
  if (!options.onlyActions && options.cause !== "Manual") {
    const problem = "Cannot use --cause: it chooses among actions, add --only-actions";
    throw new LastcallError("USAGE", problem);
  }
  const connection = await connect({ ...options, signal: io.signal }, io);
  try {
    const words = await meantNodes(asked, connection.api);
    if (!options.onlyActions) return await departNodes({ ...input, words }, connection);
    const { runOnlyActions } = await import("./depart-actions.ts");
    return await runOnlyActions({ ...input, words });
  } finally {
    connection.close();
  }
};

async function departNodes(input: Depart, { api, namespace }: Connection): Promise<number> {
  const { options, io } = input;
  const fleet = await readFleet(wholeCluster(options), { api }, io);
  const request = requestOf(input, fleet.readAt);
  const steps = stepsFor(input.words, request, fleet);
  const warnings = [
    ...timeNotes(input, { request, now: fleet.readAt }),
    ...holdWarnings(steps, request),
    ...lateWarnings(steps, request, fleet),
    ...ignoredWarnings(steps, { input, request }),
  ];
  if (!options.quiet) for (const text of warnings) io.err(text);
  const { written, faults } = await writeAll(steps, options.dryRun ? dryRunApi(api) : api);
  if (!options.wait || faults.length > 0) {
    await show(written, input);
    for (const fault of faults.slice(1)) io.err(`lastcall: ${fault.message}\n`);
    if (faults[0] !== undefined) throw faults[0];
    return 0;
  }
  if (options.output === "table") await show(written, input);
  const { waitForEnd } = await import("./depart-wait.ts");
  const waitSource = { api, io, quiet: options.quiet, timeout: options.timeout };
  const namespaceOf = options.namespace ?? namespace;
  const end = await waitForEnd(written.map(awaitedOf), { ...waitSource, namespace: namespaceOf });
  await showEnd(written, { input, departures: end.departures });
  return end.exitCode;
}

function wholeCluster({ kubeconfig, context }: Depart["options"]): SnapshotSource {
  return { kubeconfig, context, from: [], filename: [] };
}

/**
 * A script's `--at` that means now is slightly in the past when it is read. Anything older is a
 * mistake.
 */
const lateMs: Millis = minutes(1);

function requestOf({ options, io }: Depart, now: Instant): DepartRequest {
  const timeZone = io.timeZone ?? "UTC";
  const departAt =
    options.at === undefined ? now : instantOfNamedTime(options.at, { now, timeZone });
  const by = options.by && deadlineOf(options.by, { now, timeZone, departAt });
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

/** `--at 22:00 --by 06:00`: the morning after. */
function deadlineOf(
  by: NamedTime,
  { departAt, ...context }: LocalNow & { readonly departAt: Instant },
): Instant {
  return instantOfNamedTime(by, by.kind === "Clock" ? { ...context, now: departAt } : context);
}

/** What a time relative to now, or to this computer's time zone, was taken for. */
function timeNotes(
  { options, io }: Depart,
  { request, now }: { readonly request: DepartRequest; readonly now: Instant },
): readonly string[] {
  const context = { now, timeZone: io.timeZone ?? "UTC" };
  const times = [
    { option: "--at", time: options.at, at: request.departAt },
    { option: "--by", time: options.by, at: request.deadlineAt },
  ];
  return times.flatMap(({ option, time, at }) =>
    time === undefined || time.kind === "At" || at === undefined
      ? []
      : [`lastcall: ${option} is ${sayLocally(at, context)}\n`],
  );
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
function ignoredWarnings(
  steps: Steps,
  { input, request }: { readonly input: Depart; readonly request: DepartRequest },
): readonly string[] {
  const { options } = input;
  const given = [
    ...(options.at === undefined ? [] : ["--at"]),
    ...(options.by === undefined ? [] : ["--by"]),
  ].join(" and ");
  return steps.flatMap(({ node, step }) => {
    if (given === "" || step.kind !== "Leave") return [];
    const { departAt, deadlineAt, status } = step.departure;
    const isKept = options.at === undefined || request.departAt === departAt;
    if (isKept && (options.by === undefined || request.deadlineAt === deadlineAt)) return [];
    return [
      `lastcall: ${node.name} is already leaving (${status.phase}): ${given} is not applied\n`,
    ];
  });
}

function isPlanOf(departure: Departure, { uid }: NodeFacts): boolean {
  return departure.node.uid === uid && departure.cause === "Planned" && isLive(departure);
}

async function writeAll(
  steps: Steps,
  api: KubeApi,
): Promise<{ readonly written: readonly Written[]; readonly faults: readonly LastcallError[] }> {
  const { departureObject } = await import("../../kube/object/translate-departure.ts");
  const written: Written[] = [];
  const faults: LastcallError[] = [];
  for (const { node, step } of steps) {
    try {
      const { name, uid, source = "", ...rest } = await write(step, api);
      const object = departureObject({ ...rest, name, source });
      written.push({ node: node.name, step, object, uid });
    } catch (error) {
      if (!isLastcallError(error)) throw error;
      faults.push(faultOf(node, error));
    }
  }
  return { written, faults };
}

/** Of several nodes, the one whose request failed has to be requested again. */
function faultOf({ name }: NodeFacts, cause: LastcallError): LastcallError {
  const why = cause.message.replace(/^Cannot /, "cannot ");
  const { code, retryable, details } = cause;
  return new LastcallError(code, `Cannot make ${name} depart: ${why}`, {
    ...{ cause, retryable, details },
  });
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

function awaitedOf({ node, object, uid }: Written): Awaited {
  return { node, name: object.metadata?.name ?? "", uid };
}

/** How each departure ended; for one that has not, or was deleted, its last known state. */
async function showEnd(
  written: readonly Written[],
  about: { readonly input: Depart; readonly departures: ReadonlyMap<string, Departure> },
): Promise<void> {
  const { options, io } = about.input;
  const { departureObject } = await import("../../kube/object/translate-departure.ts");
  const { statusObject } = await import("../../kube/object/translate-departure.ts");
  const last = written.flatMap(({ uid }) => about.departures.get(uid) ?? []);
  if (options.output !== "table") {
    const items = last.map(({ source = "", ...rest }) => ({
      ...departureObject({ ...rest, source }),
      status: statusObject(rest.status),
    }));
    await printData({ apiVersion: "v1", kind: "List", items }, options.output, io);
    return;
  }
  for (const one of last) {
    if (one.status.outcome === undefined) continue;
    const { outcome, message } = one.status;
    io.out(
      `departure/${one.name} ended: ${outcome}${message === undefined ? "" : `: ${message}`}\n`,
    );
  }
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
