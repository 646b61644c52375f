import { endBefore } from "../../board/act/act-says.ts";
import { type NodeEnd, nodeEnd } from "../../board/act/node-end.ts";
import type { StoreResult } from "../../contracts/cluster.ts";
import type { KubeApi, KubeObject } from "../../contracts/kube-api.ts";
import type { NodeFacts } from "../../core/cluster/node.ts";
import {
  type DepartRequest,
  type DepartStep,
  deadlineAfter,
  departStep,
} from "../../core/departure/decision.ts";
import { type Departure, isNoticed, isUnderWay } from "../../core/departure/departure.ts";
import { selectPolicy } from "../../core/policy/policy.ts";
import { formatInstant, type Instant } from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import { dryRunApi } from "../../kube/dry-run.ts";
import { type Connection, connect } from "../cluster/connect.ts";
import { checkNodes, meantNodes, missingNode } from "../cluster/meant-nodes.ts";
import { type CommandRun, printData } from "../command-line/command.ts";
import { type FleetSnapshot, readFleet, type SnapshotSource } from "../input/fleet-snapshot.ts";
import { type DepartInput, requestOf, timeNotes, timesFor } from "./depart-times.ts";
import type { Awaited } from "./depart-wait.ts";
import {
  droppedWarnings,
  endWarnings,
  holdWarnings,
  ignoredWarnings,
  type NodeStep,
  type Steps,
} from "./depart-warnings.ts";

interface WrittenDeparture extends NodeStep {
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

async function departNodes(input: DepartInput, { api, namespace }: Connection): Promise<number> {
  const { options, io } = input;
  const fleet = await readFleet(wholeCluster(options), { api }, io);
  const request = requestOf(input, fleet.readAt);
  const steps = stepsFor(input, request, fleet);
  const warnings = [
    ...timeNotes(input, { request, now: fleet.readAt }),
    ...holdWarnings(steps, request),
    ...endWarnings(steps, request, fleet),
    ...droppedWarnings(steps),
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

function wholeCluster({ kubeconfig, context }: DepartInput["options"]): SnapshotSource {
  return { kubeconfig, context, from: [], filename: [] };
}

/** Throws NOT_FOUND, and USAGE for times that a node's earlier request does not allow. */
function stepsFor(
  { words, options }: DepartInput,
  request: DepartRequest,
  fleet: FleetSnapshot,
): Steps {
  const nodes = new Map(fleet.nodes.map((node) => [node.name, node]));
  return words.map((name) => {
    const node = nodes.get(name);
    if (node === undefined) {
      throw new LastcallError(
        "NOT_FOUND",
        `Cannot make ${name} depart: ${missingNode(name, fleet)}, list them with: kubectl get nodes`,
      );
    }
    const policy = selectPolicy(node, fleet.policies)?.policy.name;
    const times = timesFor(node, { request, options, fleet });
    const step = departStep(node, { ...times, policy }, fleet.departures);
    return { node, step, end: nodeEnd(node, fleet) };
  });
}

async function writeAll(
  steps: Steps,
  api: KubeApi,
): Promise<{
  readonly written: readonly WrittenDeparture[];
  readonly faults: readonly LastcallError[];
}> {
  const { departureObject } = await import("../../kube/object/translate-departure.ts");
  const written: WrittenDeparture[] = [];
  const faults: LastcallError[] = [];
  for (const one of steps) {
    try {
      const { name, uid, source = "", ...rest } = await write(one.step, api);
      const object = departureObject({ ...rest, name, source });
      written.push({ ...one, object, uid });
    } catch (error) {
      if (!isLastcallError(error)) throw error;
      faults.push(faultOf(one.node, error));
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

function awaitedOf({ node, object, uid }: WrittenDeparture): Awaited {
  return { node: node.name, name: object.metadata?.name ?? "", uid };
}

/** How each departure ended; for one that has not, or was deleted, its last known state. */
async function showEnd(
  written: readonly WrittenDeparture[],
  about: { readonly input: DepartInput; readonly departures: ReadonlyMap<string, Departure> },
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

async function show(
  written: readonly WrittenDeparture[],
  { options, io }: DepartInput,
): Promise<void> {
  if (options.output !== "table") {
    const items = written.map(({ object }) => object);
    await printData({ apiVersion: "v1", kind: "List", items }, options.output, io);
    return;
  }
  for (const one of written) io.out(`${lineOf(one)}${options.dryRun ? " (dry run)" : ""}\n`);
}

function lineOf({ node, step, end, object }: WrittenDeparture): string {
  const { name = "" } = object.metadata ?? {};
  const { departAt } = object.spec as { departAt?: string };
  const by = byText(deadlineAfter(step), end);
  switch (step.kind) {
    case "Create":
      return `departure/${name} created: ${node.name} leaves at ${departAt}${by}`;
    case "Move":
      return `departure/${name} moved: ${node.name} leaves at ${departAt}${by}`;
    case "Leave":
      return `departure/${name} unchanged: ${standing(node.name, step.departure)}${by}`;
  }
}

function byText(deadlineAt: Instant | undefined, end: NodeEnd): string {
  if (deadlineAt === undefined) return "";
  const endAt = endBefore(deadlineAt, end);
  const note = endAt === undefined ? "" : ` (its machine may end at ${formatInstant(endAt)})`;
  return `, by ${formatInstant(deadlineAt)}${note}`;
}

function standing(node: string, departure: Departure): string {
  const { phase } = departure.status;
  if (isNoticed(departure)) return `${node} is leaving on a notice, phase ${phase}`;
  const how = isUnderWay(departure) ? "is already leaving" : "has been requested to leave";
  return `${node} ${how}, phase ${phase}`;
}
