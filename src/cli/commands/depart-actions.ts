import type { ActionPorts, ActionRunner } from "../../contracts/action-runner.ts";
import { type ActionEnd, carryOut, taskFor } from "../../controller/action/action-attempt.ts";
import { actionRecords } from "../../core/action/action-plan.ts";
import type { NodeFacts } from "../../core/cluster/node.ts";
import {
  type ActionRecord,
  type Departure,
  departureName,
} from "../../core/departure/departure.ts";
import type { Fields } from "../../core/json/json-field.ts";
import { type Action, type ActionPoint, causes } from "../../core/policy/action.ts";
import { type Policy, selectPolicy } from "../../core/policy/policy.ts";
import { formatInstant } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import { actionHosts, actionPorts } from "../assemble/controller-ports.ts";
import { connect } from "../cluster/connect.ts";
import { missingNode } from "../cluster/meant-nodes.ts";
import { printData } from "../command-line/command.ts";
import { type FleetSnapshot, readFleet } from "../input/fleet-snapshot.ts";
import type { DepartInput } from "./depart-times.ts";

/** A node, and a departure of it that exists only in memory. */
interface ActionSubject {
  readonly departure: Departure;
  readonly policy: Policy;
}

interface ActionRun {
  readonly node: string;
  readonly policy: string;
  /** Newer ones replace those of the points before. */
  actions: readonly ActionRecord[];
}

const points: readonly ActionPoint[] = ["AtNotice", "BeforeDrain", "AfterDrain", "AtEnd"];

/**
 * `depart NODE… --only-actions`: runs the actions of the nodes' policies, one point after another,
 * without cordon, drain or Departure. Prints what is needed to undo an action to stderr before
 * running it, because no status keeps it. If it is interrupted, it prints what has ended so far.
 * Returns 1 if an action has failed.
 */
export async function runOnlyActions(input: DepartInput): Promise<number> {
  const { options, io, words } = input;
  refuseTimes(input);
  const allowed = await actionHosts(options.actionHosts);
  const { kubeconfig, context } = options;
  const fleet = await readFleet({ kubeconfig, context, from: [], filename: [] }, {}, io);
  const subjects = [...new Set(words)].map((name) => subjectOf(name, fleet, input));
  const { api, namespace, close } = await connect(options, io);
  const ports = actionPorts({
    ...{ api, namespace: options.namespace ?? namespace, allowed },
    ...{ clock: io.clock, rng: io.rng, env: io.env },
    nodesUnlabelled: true,
    machines: () => subjects.flatMap(({ departure }) => departure.node.providerID ?? []),
    onError: ({ message }) => io.err(`lastcall: ${message}\n`),
  });
  try {
    const written: ActionRun[] = [];
    try {
      for (const subject of subjects) await carryOutAll(subject, { ports, input, written });
    } finally {
      await show(written, input);
    }
    return written.some(({ actions }) => actions.some(({ state }) => state === "Failed")) ? 1 : 0;
  } finally {
    close();
  }
}

function refuseTimes({ options }: DepartInput): void {
  if (options.at === undefined && options.by === undefined) return;
  const found = options.at === undefined ? "--by" : "--at";
  const problem = `Cannot use ${found} with --only-actions: actions are carried out immediately, remove ${found}`;
  throw new LastcallError("USAGE", problem);
}

function subjectOf(
  name: string,
  fleet: FleetSnapshot,
  { options, io }: DepartInput,
): ActionSubject {
  const { nodes, policies } = fleet;
  const node: NodeFacts | undefined = nodes.find((one) => one.name === name);
  const policy = node && selectPolicy(node, policies)?.policy;
  if (node === undefined || policy === undefined) {
    const found = node === undefined ? missingNode(name, fleet) : "no policy selects it";
    throw new LastcallError("NOT_FOUND", `Cannot carry out the actions of ${name}: ${found}`);
  }
  const { uid, providerID, bootID } = node;
  const cause = causes.find((one) => one === options.cause);
  if (cause === undefined) {
    const found = JSON.stringify(options.cause);
    const problem = `Cannot use --cause ${found}: expected one of ${causes.join(", ")}`;
    throw new LastcallError("USAGE", problem);
  }
  const result = "Actions carried out by hand.";
  const timeline = [{ at: io.clock.now(), step: "Preparing", result }];
  const departure: Departure = {
    ...{ name: departureName(node), uid, resourceVersion: "", hold: false },
    ...{ node: { name, uid, providerID, bootID }, cause, policy: policy.name },
    status: { phase: "Preparing", timeline },
  };
  return { policy, departure };
}

async function carryOutAll(
  { departure, policy }: ActionSubject,
  how: { readonly ports: ActionPorts; readonly input: DepartInput; readonly written: ActionRun[] },
): Promise<void> {
  const { cause, node } = departure;
  const { actions, dryRun } = policy;
  const records = actionRecords(actions, { cause, phase: "Preparing", records: [], dryRun });
  const result: ActionRun = { node: node.name, policy: policy.name, actions: records };
  how.written.push(result);
  const put = (ended: ActionRecord): void => {
    result.actions = result.actions.map((one) => (one.name === ended.name ? ended : one));
  };
  for (const point of points) {
    const isOpen = new Map(result.actions.map(({ name, state }) => [name, state === "Pending"]));
    const due = policy.actions.filter(({ at, name }) => at === point && isOpen.get(name));
    const status = { ...departure.status, actions: result.actions };
    const subject = { departure: { ...departure, status }, policy };
    const running = due.map(async (action) => {
      const { name, at, how: spec } = action;
      if (!how.input.options.dryRun) {
        put({ name, kind: spec.kind, at, state: "Running", attempts: 0, detail: interrupted });
      }
      put(await carryOutOne(action, subject, how));
    });
    await Promise.all(running);
  }
}

/** Shown only if the command is interrupted while an action runs. */
const interrupted = "interrupted, whether it was carried out is unknown";

async function carryOutOne(
  action: Action,
  { departure, policy }: ActionSubject,
  { ports, input }: { readonly ports: ActionPorts; readonly input: DepartInput },
): Promise<ActionRecord> {
  const { clock, rng, signal, err } = input.io;
  const addresses = (until: AbortSignal) => ports.addresses(departure.node.name, until);
  const task = taskFor(action, departure, { policy: policy.name, addresses });
  const record = { name: action.name, kind: action.how.kind, at: action.at } as const;
  const runner = await ports.runners(action.how.kind);
  if (runner === undefined) {
    const detail = "this version cannot carry out such an action";
    return { ...record, state: "Failed", attempts: 0, result: "ACTION_UNSUPPORTED", detail };
  }
  if (input.options.dryRun) {
    let undo: Fields | undefined;
    const onFound = (found: Fields | undefined) => {
      undo = found;
    };
    const looking = { clock, rng, signal, runner: lookingRunner(runner, action, onFound) };
    const bounds = { keep: async () => {}, deadlineAt: () => undefined };
    const end = await carryOut(action, task, { ...looking, ...bounds });
    if (end.kind === "Failed") return { ...record, ...outcomeOf(end), attempts: 0 };
    return { ...record, state: "Pending", attempts: 0, detail: end.done.detail, undo };
  }
  const startedAt = clock.now();
  let undo: Fields | undefined;
  const keep = async (kept: Fields) => {
    undo = kept;
    err(`lastcall: to undo ${action.name} of ${task.target.node}: ${JSON.stringify(kept)}\n`);
  };
  const tools = { clock, rng, runner, keep, signal, deadlineAt: () => undefined };
  const end = await carryOut(action, task, tools);
  const seconds = (clock.now() - startedAt) / 1000;
  return { ...record, startedAt, seconds, undo, ...outcomeOf(end) };
}

/** The runner of a dry run: it does all the reads of the action, and none of its changes. */
function lookingRunner(
  runner: ActionRunner,
  { how }: Action,
  onFound: (undo: Fields | undefined) => void,
): ActionRunner {
  return {
    check: (spec, signal) => runner.check(spec, signal),
    prepare: (task, signal) => runner.prepare(task, signal),
    apply: async (task, signal) => {
      const problem = await runner.check(how, signal);
      if (problem === undefined) {
        // The check has read everything, including what a departure on a notice does not wait for.
        onFound(await runner.prepare(task, signal));
        return { detail: JSON.stringify(task.how) };
      }
      const { code, field, found, wanted } = problem;
      throw new LastcallError(code, `${field}: found ${found}, expected ${wanted}`);
    },
    undo: async () => ({ detail: "nothing was changed" }),
  };
}

type ActionOutcome = Pick<ActionRecord, "state" | "attempts" | "result" | "detail" | "reference">;

function outcomeOf(end: ActionEnd): ActionOutcome {
  const { attempts } = end;
  return end.kind === "Done"
    ? { ...end.done, state: "Done", attempts, result: "Done" }
    : { state: "Failed", attempts, result: end.code, detail: end.detail };
}

async function show(written: readonly ActionRun[], { options, io }: DepartInput): Promise<void> {
  const { output, dryRun } = options;
  if (output !== "table") {
    const items = written.map(({ actions, ...one }) => ({
      ...one,
      actions: actions.map(asWritten),
    }));
    const report = { apiVersion: "lastcall.dev/v1alpha1", kind: "ActionReport", dryRun, items };
    await printData(report, output, io);
    return;
  }
  for (const { node, policy, actions } of written) {
    if (actions.length === 0) io.out(`${node}: policy ${policy} has no actions\n`);
    for (const record of actions) {
      io.out(`${node} ${lineOf(record)}${dryRun ? " (dry run)" : ""}\n`);
    }
  }
}

function asWritten({ startedAt, ...record }: ActionRecord): object {
  return startedAt === undefined ? record : { ...record, startedAt: formatInstant(startedAt) };
}

function lineOf({ name, kind, at, state, seconds, detail, result, undo }: ActionRecord): string {
  const code = state === "Failed" ? ` ${result}` : "";
  const took = seconds === undefined ? "" : ` in ${seconds.toFixed(1)}s`;
  const about = detail === undefined ? "" : `: ${detail}`;
  // The record of what was changed is on stderr, printed before the change.
  const back = state === "Pending" && undo ? `, to undo it: ${JSON.stringify(undo)}` : "";
  return `${at} ${name} (${kind}) ${state}${code}${took}${about}${back}`;
}
