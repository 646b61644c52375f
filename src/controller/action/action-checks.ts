import type { ActionPorts, ActionProblem } from "../../contracts/action-runner.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { Fleet, PolicyStatusSink } from "../../contracts/fleet.ts";
import type { Telemetry } from "../../contracts/telemetry.ts";
import { Wakeup } from "../../contracts/wakeup.ts";
import type { Action } from "../../core/policy/action.ts";
import type { Policy } from "../../core/policy/policy.ts";
import { type Millis, minutes, plus, seconds } from "../../core/time/time.ts";
import { isLastcallError, messageOf } from "../../errors.ts";

export interface ActionCheckTools {
  readonly fleet: Fleet;
  readonly actionPorts: ActionPorts;
  readonly policyStatus: PolicyStatusSink;
  readonly telemetry: Telemetry;
  readonly clock: Clock;
  /** Says what is wrong, and writes nothing. */
  readonly dryRun: boolean;
}

/** A permission or a Secret may be taken away: what was right is looked at again after this. */
const againMs: Millis = minutes(10);
/** And what nobody could say. */
const unknownAgainMs: Millis = minutes(1);
/** One that does not answer is asked again another time. */
const checkMs: Millis = seconds(10);

interface Checked {
  readonly actions: string;
  readonly againAtMs: number;
}

/**
 * Says before the first notice what is wrong with the actions of a policy: an unknown ARN, a
 * missing permission or Secret, a host that is not allowed. The policy is in force all the same.
 * Whatever carries out its actions is loaded by then, too.
 */
export class ActionChecks {
  readonly #tools: ActionCheckTools;
  readonly #checked = new Map<string, Checked>();
  readonly #told = new Map<string, string>();

  constructor(tools: ActionCheckTools) {
    this.#tools = tools;
  }

  /** Until the signal aborts, which it rejects with. */
  async run(signal: AbortSignal): Promise<void> {
    const { fleet, clock } = this.#tools;
    const wakeup = new Wakeup(clock);
    const stop = fleet.onChange(({ policies }) => {
      if (policies) wakeup.wake();
    });
    try {
      for (;;) {
        for (const policy of fleet.policies()) await this.#look(policy, signal);
        await wakeup.sleepUntil(plus(clock.now(), unknownAgainMs), signal);
      }
    } finally {
      stop();
    }
  }

  async #look(policy: Policy, signal: AbortSignal): Promise<void> {
    const { clock } = this.#tools;
    const actions = JSON.stringify(policy.actions);
    const before = this.#checked.get(policy.name);
    if (before === undefined && policy.actions.length === 0) return;
    if (before?.actions === actions && clock.monotonic() < before.againAtMs) return;
    const found = await Promise.all(
      policy.actions.map((action, index) => this.#check({ policy, action, index }, signal)),
    );
    signal.throwIfAborted();
    const isKnown = found.every((one) => one !== "Unknown");
    const againAtMs = clock.monotonic() + (isKnown ? againMs : unknownAgainMs);
    this.#checked.set(policy.name, { actions, againAtMs });
    const problems = found.filter((one) => typeof one === "string" && one !== "Unknown");
    await this.#tell(policy, problems.join("; "));
  }

  /** A sentence where something is wrong. */
  async #check(
    about: { readonly policy: Policy; readonly action: Action; readonly index: number },
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { action, index } = about;
    try {
      const problem = await this.#ask(action, signal);
      if (problem === undefined) return undefined;
      this.#tools.telemetry.metrics.count("lastcall_errors_total", { code: problem.code });
      const { code, field, found, wanted } = problem;
      return `spec.actions[${index}].${field}: found ${found}, expected ${wanted} (${code})`;
    } catch (error) {
      signal.throwIfAborted();
      this.#tools.telemetry.log.warn("action-not-checked", {
        ...{ policy: about.policy.name, action: action.name },
        code: isLastcallError(error) ? error.code : "UNEXPECTED",
        error: messageOf(error),
      });
      return "Unknown";
    }
  }

  async #ask({ how }: Action, signal: AbortSignal): Promise<ActionProblem | undefined> {
    const { actionPorts, clock } = this.#tools;
    const runner = await actionPorts.runners(how.kind);
    if (runner === undefined) {
      const field = how.kind === "unknown" ? how.field : how.kind;
      const found = "a type of action that this version does not know";
      return { code: "ACTION_UNSUPPORTED", field, found, wanted: "another, or a newer Lastcall" };
    }
    const done = new AbortController();
    const late = new AbortController();
    clock.sleep(checkMs, done.signal).then(
      () => late.abort(new Error(`no answer within ${checkMs / 1000} s`)),
      () => undefined,
    );
    try {
      return await runner.check(how, AbortSignal.any([signal, late.signal]));
    } finally {
      done.abort();
    }
  }

  async #tell({ name }: Policy, problem: string): Promise<void> {
    const { telemetry, policyStatus, dryRun } = this.#tools;
    const before = this.#told.get(name) ?? "";
    this.#told.set(name, problem);
    if (problem !== "" && problem !== before) {
      telemetry.log.warn("actions-invalid", { policy: name, problem });
    }
    if (dryRun || problem === before) return;
    const status = problem === "" ? "True" : "False";
    const reason = problem === "" ? "Understood" : "ActionInvalid";
    await policyStatus
      .add(name, { type: "Ready", status, reason, message: problem })
      .catch((error: unknown) =>
        telemetry.log.warn("policy-status-not-written", { error: messageOf(error) }),
      );
  }
}
