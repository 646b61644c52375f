import type { InstanceRef } from "../../cloud/aws/ec2-machine.ts";
import type { ActionRunners, ActionTarget } from "../../contracts/action-runner.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { Log } from "../../contracts/telemetry.ts";
import { withinTime } from "../../contracts/time-limit.ts";
import { type ActionEnd, carryOut, failed } from "../../controller/action/action-attempt.ts";
import { departureSummary, templateFacts } from "../../core/action/action-plan.ts";
import { renderAction } from "../../core/action/template.ts";
import type { Rng } from "../../core/chance/chance.ts";
import type { ActionRecord, Departure } from "../../core/departure/departure.ts";
import type { Fields } from "../../core/json/json-field.ts";
import type { Action, ActionKind, ActionPoint, Cause } from "../../core/policy/action.ts";
import {
  between,
  earliest,
  type Instant,
  type Millis,
  millis,
  minus,
  seconds,
} from "../../core/time/time.ts";
import { messageOf } from "../../errors.ts";

export interface ResponderOptions {
  readonly actions: readonly Action[];
  readonly runners: ActionRunners;
  /** Looks up instances in EC2. */
  readonly lookUp: MachineLookUp;
  /** Restricts events to machines with this tag. Default: all machines. */
  readonly fleet?: ResponderFleet | undefined;
  readonly clock: Clock;
  readonly rng: Rng;
  readonly log: Log;
}

export interface ResponderFleet {
  /** For messages: `the tag team=spot`. */
  readonly mark: string;
  /**
   * Rejects if that is unknown: the event may be about any machine of the account, and acting on
   * another cluster's is worse than acting a minute later, when Lambda runs the function again.
   */
  has(machine: InstanceRef): Promise<boolean>;
}

export interface MachineLookUp {
  /**
   * The instance's private DNS name, which is its Node's name; undefined if the instance is gone.
   */
  nodeName(machine: InstanceRef, signal: AbortSignal): Promise<string | undefined>;
  /**
   * All addresses of the instance's network interfaces: its own, and those that its pods got from
   * them.
   */
  addresses(machine: InstanceRef, signal: AbortSignal): Promise<readonly string[]>;
}

/** The responder's answer; scripts depend on it. */
export interface ResponderAnswer {
  readonly instanceId: string;
  readonly actions: readonly AnsweredAction[];
  readonly summary: string;
}

interface AnsweredAction {
  readonly name: string;
  readonly state: ActionRecord["state"];
  /** `Done`, or the code of the error; undefined if the action was skipped. */
  readonly result?: string | undefined;
  readonly seconds: number;
  readonly detail: string;
  readonly undo?: Fields | undefined;
}

/** The responder does not drain: actions after the drain only wait for those before it. */
const stages: readonly (readonly ActionPoint[])[] = [
  ["AtNotice", "BeforeDrain"],
  ["AfterDrain"],
  ["AtEnd"],
];

/** Actions on the instance itself, which notify nobody: they need not wait for the Node's name. */
const byInstance: ReadonlySet<ActionKind> = new Set([
  "deregisterTargets",
  "replaceSecurityGroups",
  "detach",
]);

/**
 * How long messages wait for the Node's name before they use the instance id. A cold function also
 * loads the EC2 client in this time.
 */
const nameLimitMs: Millis = seconds(10);

/**
 * How much of the function's time is kept from hanging actions, for the actions at the end that
 * announce the departure; at most a third.
 */
const tellingMs: Millis = seconds(5);

const functionOver = "the function ran out of time, set a longer timeout";

/** One machine, and the results of its actions so far. */
interface Case {
  readonly machine: DepartingMachine;
  /** The instance id until the name is known, or for good if it comes too late. */
  node: string;
  readonly records: Map<string, ActionRecord>;
  /** When this invocation must end. */
  readonly endsAt: Instant | undefined;
  /** Until when it may make changes: the time after that is for the messages. */
  readonly actsUntil: Instant | undefined;
}

/**
 * Runs the actions of a policy around a machine's departure, without a cluster. Lambda may run it
 * again for the same event: it recognizes completed actions, and only messages are sent twice.
 */
export class Responder {
  readonly #options: ResponderOptions;

  constructor(options: ResponderOptions) {
    this.#options = options;
  }

  /**
   * Resolves whatever the results of the actions are: the answer lists each of them. Rejects, and
   * does nothing, only if it is unknown whether the machine is one to act on.
   */
  async respond(
    machine: DepartingMachine,
    { endsAt, signal }: { readonly endsAt: Instant | undefined; readonly signal: AbortSignal },
  ): Promise<ResponderAnswer> {
    const { actions, log, fleet } = this.#options;
    const { instanceId, cause, node = instanceId } = machine;
    if (fleet !== undefined && machine.byEvent && !(await fleet.has(machine))) {
      const summary = `${instanceId} does not have ${fleet.mark}: skipped.`;
      log.info("not-managed", { instance: instanceId, cause, mark: fleet.mark });
      return { instanceId, actions: [], summary };
    }
    log.info("departure", { instance: instanceId, node, cause });
    for (const problem of machine.problems) log.warn("event-unclear", { node, problem });
    const actsUntil = this.#actsUntil(endsAt);
    const open: Case = { machine, node, records: new Map(), endsAt, actsUntil };
    const named = machine.node === undefined ? this.#learnName(open, signal) : undefined;
    for (const points of stages) {
      const due = actions.filter(({ at }) => points.includes(at));
      await Promise.all(
        due.map(async (action) => {
          if (!byInstance.has(action.how.kind)) await named;
          await this.#carryOut(action, open, signal);
        }),
      );
    }
    await named;
    const records = actions.flatMap(({ name }) => open.records.get(name) ?? []);
    const summary = departureSummary(departureOf(open));
    log.info("summary", { instance: instanceId, node: open.node, summary });
    return { instanceId, actions: records.map(answerOf), summary };
  }

  #actsUntil(endsAt: Instant | undefined): Instant | undefined {
    const { actions, clock } = this.#options;
    if (endsAt === undefined || actions.every(({ at }) => at !== "AtEnd")) return endsAt;
    const thirdMs = between(clock.now(), endsAt) / 3;
    return minus(endsAt, millis(Math.min(tellingMs, thirdMs)));
  }

  /** Never rejects: the name is only for readers, and comes in time or not at all. */
  async #learnName(open: Case, signal: AbortSignal): Promise<void> {
    const { lookUp, clock, log } = this.#options;
    const { machine } = open;
    const leftMs = open.actsUntil && between(clock.now(), open.actsUntil);
    const limitMs = millis(Math.max(0, Math.min(nameLimitMs, leftMs ?? nameLimitMs)));
    const late = () => new Error(`no response within ${limitMs / 1000} s`);
    const ask = (until: AbortSignal) => lookUp.nodeName(machine, until);
    try {
      const name = await withinTime(ask, { clock, limitMs, late }, signal);
      open.node = name ?? machine.instanceId;
    } catch (error) {
      log.warn("node-unknown", { instance: machine.instanceId, error: messageOf(error) });
    }
  }

  async #carryOut(action: Action, open: Case, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    const { machine, records } = open;
    const { name, at, how } = action;
    const known = { name, at, kind: how.kind, attempts: 0 };
    const skipped = skipReason(action, machine);
    if (skipped !== undefined) {
      records.set(name, { ...known, state: "Skipped", detail: skipped });
      return;
    }
    const about = { instance: machine.instanceId, node: open.node, action: action.name };
    const begun: ActionRecord = { ...known, state: "Running", startedAt: clock.now() };
    records.set(name, begun);
    log.info("action-begun", { ...about, kind: how.kind });
    const startedMs = clock.monotonic();
    // A module that cannot be loaded, or a bug in an action, must not keep the others from running.
    const end = await this.#attempt(action, open, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      return failed(error, 0);
    });
    const seconds = Math.round(clock.monotonic() - startedMs) / 1000;
    const ended = { ...(records.get(name) ?? begun), ...resultOf(end), seconds };
    records.set(name, ended);
    const { state, result, detail } = ended;
    log[state === "Done" ? "info" : "warn"]("action-ended", {
      ...about,
      state,
      result,
      detail,
      seconds,
    });
  }

  async #attempt(action: Action, open: Case, signal: AbortSignal): Promise<ActionEnd> {
    const { runners, clock, rng, log } = this.#options;
    const { machine, node, records } = open;
    const { name } = action;
    const runner = await runners(action.how.kind);
    if (runner === undefined) {
      const detail = `Cannot carry out the action: found ${action.how.kind}, expected a type of action that the function supports`;
      return { kind: "Failed", code: "ACTION_UNSUPPORTED", detail, attempts: 0 };
    }
    const departure = departureOf(open);
    const facts = { ...templateFacts(departure, ""), outcome: "Noticed" };
    const task = {
      name,
      how: renderAction(action.how, facts),
      target: this.#targetOf(open),
      departure: departure.name,
      // The same for each of Lambda's attempts, but different for the interruption that follows a
      // recommendation: a receiver that drops duplicates should get both.
      key: `${departure.name}/${machine.cause}/${name}`,
      earlier: [],
    };
    // An action after the drain is still useful after the deadline.
    const isBound = action.at === "AtNotice" || action.at === "BeforeDrain";
    const untilAt = action.at === "AtEnd" ? open.endsAt : open.actsUntil;
    const deadlineAt = earliest(untilAt, isBound ? machine.deadlineAt : undefined);
    return carryOut({ ...action, how: task.how }, task, {
      ...{ runner, clock, rng, signal, kept: undefined },
      deadlineAt: () => deadlineAt,
      ...(deadlineAt === untilAt && { whyOver: functionOver }),
      keep: async (undo) => {
        // Only the log line of the first run has it: a repeated run finds the change already made.
        log.info("undo-recorded", {
          ...{ instance: machine.instanceId, node, action: name },
          undo: JSON.stringify(undo),
        });
        const record = records.get(name);
        if (record !== undefined) records.set(name, { ...record, undo });
      },
    });
  }

  #targetOf({ machine, node }: Case): ActionTarget {
    const { instanceId, providerID, region } = machine;
    return {
      ...{ node, nodeUid: "", providerID, instanceId, region },
      addresses: async (signal) => ({
        node: await this.#options.lookUp.addresses(machine, signal),
        pods: [],
      }),
    };
  }
}

function skipReason({ causes, how }: Action, { cause }: DepartingMachine): string | undefined {
  if (causes !== undefined && !causes.includes(cause)) return `not for ${cause}`;
  return how.kind === "lambda" ? "only the controller invokes functions" : undefined;
}

function resultOf(end: ActionEnd): Pick<ActionRecord, "state" | "result" | "detail" | "attempts"> {
  const { attempts } = end;
  if (end.kind === "Failed") {
    return { state: "Failed", result: end.code, detail: end.detail, attempts };
  }
  return { state: "Done", result: "Done", detail: end.done.detail, attempts };
}

function answerOf(record: ActionRecord): AnsweredAction {
  const { name, state, result, seconds = 0, detail = "", undo } = record;
  return { name, state, ...(result && { result }), seconds, detail, ...(undo && { undo }) };
}

/** The departure for templates and the summary. No such object exists in a cluster. */
function departureOf({ machine, node, records }: Case): Departure {
  // Without a zone if it is unknown: only the instance id matters then.
  const { instanceId, providerID = `aws:////${instanceId}` } = machine;
  const { cause, deadlineAt, noticedAt } = machine;
  return {
    ...{ name: instanceId, uid: instanceId, resourceVersion: "", hold: false },
    node: { name: node, uid: instanceId, providerID },
    ...{ cause, deadlineAt, noticedAt },
    status: { phase: "Preparing", timeline: [], actions: [...records.values()] },
  };
}

/** A machine that is leaving, as the invocation describes it. */
export interface DepartingMachine extends InstanceRef {
  /** If the invocation names it instead of the instance id. */
  readonly providerID?: string | undefined;
  /** The Node's name, if the invocation gives it. */
  readonly node?: string | undefined;
  readonly cause: Cause;
  readonly deadlineAt?: Instant | undefined;
  readonly noticedAt: Instant;
  /** Whether it came from EventBridge, which reports every machine of the account. */
  readonly byEvent: boolean;
  /** Parts of the invocation that could not be parsed. */
  readonly problems: readonly string[];
}
