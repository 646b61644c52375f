import type { ActionPorts, ActionProblem } from "../contracts/action-runner.ts";
import { type Clock, Wakeup } from "../contracts/clock.ts";
import type { Fleet, FleetView, PolicyStatusSink } from "../contracts/cluster.ts";
import type { Telemetry } from "../contracts/telemetry.ts";
import type {
  AuditTarget,
  WorkloadAuditor,
  WorkloadVerdict,
} from "../contracts/workload-auditor.ts";
import type { PolicyCondition } from "../core/plan/plan-status.ts";
import type { Action } from "../core/policy/action.ts";
import { type Policy, selectPolicy } from "../core/policy/policy.ts";
import { type Instant, type Millis, minutes, plus, seconds } from "../core/time/time.ts";
import { isLastcallError, messageOf } from "../errors.ts";

export interface ActionCheckOptions {
  readonly fleet: Fleet;
  /** Unset if this process cannot run actions. */
  readonly actionPorts: ActionPorts | undefined;
  readonly policyStatus: PolicyStatusSink;
  readonly telemetry: Telemetry;
  readonly clock: Clock;
}

/** Recheck interval of valid actions: a permission or a Secret may be removed. */
const againMs: Millis = minutes(10);

/** Recheck interval of actions that could not be checked, such as without a node. */
const unknownAgainMs: Millis = minutes(1);

/** The timeout of a check. */
const checkMs: Millis = seconds(10);

interface Checked {
  readonly actions: string;
  readonly againAtMs: number;
}

/** The result of a check: valid, a problem, or that it could not be checked. */
type ActionFinding = "Well" | { readonly kind: "Wrong" | "Unchecked"; readonly told: string };

type ReadyState = Pick<PolicyCondition, "status" | "reason" | "message">;

const well: ReadyState = { status: "True", reason: "Understood", message: "" };

const notYet: ReadyState = {
  status: "Unknown",
  reason: "ActionsUnchecked",
  message: "The actions of the policy have not been checked yet.",
};

/**
 * Reports problems with the actions of a policy before the first notice: an unknown ARN, a missing
 * permission or Secret, a host that is not allowed. The policy applies even before that, and
 * becomes Ready once its actions have been checked. The checks also load the code that runs the
 * actions.
 */
export class ActionChecks {
  readonly #options: ActionCheckOptions;
  readonly #checked = new Map<string, Checked>();
  readonly #told = new Map<string, ReadyState>();

  constructor(options: ActionCheckOptions) {
    this.#options = options;
  }

  /** Runs until the signal aborts, then rejects with its reason. */
  async run(signal: AbortSignal): Promise<void> {
    const { fleet, clock } = this.#options;
    const wakeup = new Wakeup(clock);
    const stop = fleet.onChange(({ policies }) => {
      if (policies) wakeup.wake();
    });
    try {
      for (;;) {
        const policies = fleet.policies();
        await Promise.all(policies.map((policy) => this.#announce(policy)));
        for (const policy of policies) await this.#look(policy, signal);
        await wakeup.sleepUntil(plus(clock.now(), unknownAgainMs), signal);
      }
    } finally {
      stop();
    }
  }

  /** Marks new actions as unchecked until they have been checked, which may take a while. */
  async #announce({ name, actions }: Policy): Promise<void> {
    if (actions.length === 0) return;
    if (this.#checked.get(name)?.actions !== JSON.stringify(actions))
      await this.#tell(name, notYet);
  }

  async #look(policy: Policy, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const actions = JSON.stringify(policy.actions);
    const before = this.#checked.get(policy.name);
    if (before === undefined && policy.actions.length === 0) return;
    if (before?.actions === actions && clock.monotonic() < before.againAtMs) return;
    const found = await Promise.all(
      policy.actions.map((action, index) => this.#check({ policy, action, index }, signal)),
    );
    signal.throwIfAborted();
    const state = stateOf(found);
    const isSoon = hasUnchecked(found) || !this.#hasNode(policy);
    const againAtMs = clock.monotonic() + (isSoon ? unknownAgainMs : againMs);
    this.#checked.set(policy.name, { actions, againAtMs });
    await this.#tell(policy.name, state);
  }

  /** Whether the policy has a node, without which some permissions cannot be checked. */
  #hasNode({ name }: Policy): boolean {
    const { nodes, policies } = this.#options.fleet.view();
    return nodes.some((node) => selectPolicy(node, policies)?.policy.name === name);
  }

  async #check(
    about: { readonly policy: Policy; readonly action: Action; readonly index: number },
    signal: AbortSignal,
  ): Promise<ActionFinding> {
    const { policy, action, index } = about;
    const { metrics, log } = this.#options.telemetry;
    const place = `spec.actions[${index}]`;
    try {
      const problem = await this.#ask(action, signal);
      if (problem === undefined) return "Well";
      const { code, field, found, wanted } = problem;
      metrics.count("lastcall_errors_total", { code });
      const told = `${place}.${field}: found ${found}, expected ${wanted} (${code})`;
      return { kind: "Wrong", told };
    } catch (error) {
      signal.throwIfAborted();
      const code = isLastcallError(error) ? error.code : "UNEXPECTED";
      metrics.count("lastcall_errors_total", { code });
      log.warn("action-not-checked", {
        ...{ policy: policy.name, action: action.name, code },
        error: messageOf(error),
      });
      const told = `${place}.${action.how.kind} could not be checked: ${messageOf(error)} (${code})`;
      return { kind: "Unchecked", told };
    }
  }

  async #ask({ how }: Action, signal: AbortSignal): Promise<ActionProblem | undefined> {
    const { actionPorts, clock } = this.#options;
    const field = how.kind === "unknown" ? how.field : how.kind;
    if (actionPorts === undefined) {
      const found = "an action that this controller does not carry out";
      const wanted = "no actions, or the controller of lastcall run";
      return { code: "ACTION_UNSUPPORTED", field, found, wanted };
    }
    const runner = await actionPorts.runners(how.kind);
    if (runner === undefined) {
      const found = "a type of action that this version does not know";
      return {
        code: "ACTION_UNSUPPORTED",
        field,
        found,
        wanted: "a known type, or a newer Lastcall",
      };
    }
    const done = new AbortController();
    const late = new AbortController();
    clock.sleep(checkMs, done.signal).then(
      () => late.abort(new Error(`no response within ${checkMs / 1000} s`)),
      () => undefined,
    );
    try {
      return await runner.check(how, AbortSignal.any([signal, late.signal]));
    } finally {
      done.abort();
    }
  }

  async #tell(policy: string, state: ReadyState): Promise<void> {
    const { telemetry, policyStatus } = this.#options;
    const before = this.#told.get(policy) ?? well;
    const isNews = before.status !== state.status || before.message !== state.message;
    if (!isNews) return;
    this.#told.set(policy, state);
    const { status, message } = state;
    if (status === "False") telemetry.log.warn("actions-invalid", { policy, problem: message });
    await policyStatus
      .add(policy, { type: "Ready", ...state })
      .catch((error: unknown) =>
        telemetry.log.warn("policy-status-not-written", { error: messageOf(error) }),
      );
  }
}

/** The state of a policy: problems come first, because somebody can fix them. */
function stateOf(found: readonly ActionFinding[]): ReadyState {
  const told = (kind: "Wrong" | "Unchecked") =>
    found.flatMap((one) => (one !== "Well" && one.kind === kind ? one.told : []));
  const wrong = told("Wrong");
  const message = [...wrong, ...told("Unchecked")].join("; ");
  if (message === "") return well;
  return wrong.length > 0
    ? { status: "False", reason: "ActionInvalid", message }
    : { ...notYet, message };
}

function hasUnchecked(found: readonly ActionFinding[]): boolean {
  return found.some((one) => one !== "Well" && one.kind === "Unchecked");
}

export interface WorkloadWatchOptions {
  readonly auditor: WorkloadAuditor;
  /** The pause between the end of one audit and the start of the next. */
  readonly everyMs: Millis;
  readonly fleet: Fleet;
  readonly policyStatus: PolicyStatusSink;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/**
 * The delay of the first audit: a controller that has just started has more urgent work, and one in
 * a crash loop must not list all workloads.
 */
const firstAfterMs: Millis = minutes(10);

/** The shortest pause between audits, even if a new policy triggers one early. */
const leastGapMs: Millis = minutes(15);

/** How often to check whether a policy has got its first node, since nodes change all the time. */
const gatherMs: Millis = seconds(30);

/**
 * Audits the workloads periodically, and shows the result as metrics and as the condition
 * `SpotReady` of each policy. Only the leader audits, at a slow pace and without delaying
 * departures.
 */
export class WorkloadWatch {
  readonly #options: WorkloadWatchOptions;
  readonly #wakeup: Wakeup;

  constructor(options: WorkloadWatchOptions) {
    this.#options = options;
    this.#wakeup = new Wakeup(options.clock);
  }

  /**
   * Runs until the signal aborts. Errors are counted and logged. Retryable ones are retried after
   * `leastGapMs`; any other, such as a missing permission, at the next regular audit.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, fleet, everyMs, telemetry } = this.#options;
    const stop = fleet.onChange(() => this.#wakeup.wake());
    try {
      await clock.sleep(shorter(firstAfterMs, everyMs), signal);
      for (;;) {
        const judged = policiesOf(fleet.view());
        const result = await this.#audit(signal);
        const doneAt = clock.now();
        await clock.sleep(shorter(leastGapMs, everyMs), signal);
        if (result === "TryAgain") continue;
        await this.#untilDue({ dueAt: plus(doneAt, everyMs), judged }, signal);
      }
    } finally {
      stop();
      telemetry.metrics.set("lastcall_audit_findings", []);
      telemetry.metrics.set("lastcall_audit_workloads", []);
    }
  }

  /** Waits until the next audit is due, or until other policies have nodes than those judged. */
  async #untilDue(
    { dueAt, judged }: { readonly dueAt: Instant; readonly judged: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, fleet } = this.#options;
    while (clock.now() < dueAt && policiesOf(fleet.view()) === judged) {
      const woken = await this.#wakeup.sleepUntil(dueAt, signal);
      if (woken === "Woken") await clock.sleep(gatherMs, signal);
    }
  }

  async #audit(signal: AbortSignal): Promise<"Done" | "TryAgain"> {
    const { auditor, fleet, telemetry } = this.#options;
    try {
      const verdicts = await auditor.judge(targetsOf(fleet.view()), signal);
      this.#show(verdicts);
      await this.#write(verdicts);
      return "Done";
    } catch (error) {
      signal.throwIfAborted();
      const code = isLastcallError(error) ? error.code : "UNEXPECTED";
      telemetry.metrics.count("lastcall_errors_total", { code });
      telemetry.log.warn("audit-failed", { code, error: messageOf(error) });
      return isLastcallError(error) && error.retryable ? "TryAgain" : "Done";
    }
  }

  #show(verdicts: readonly WorkloadVerdict[]): void {
    const { metrics, log } = this.#options.telemetry;
    metrics.set(
      "lastcall_audit_findings",
      verdicts.flatMap(({ policy, findings }) =>
        findings.map(({ rule, severity, count }) => ({
          labels: { policy, rule, severity },
          value: count,
        })),
      ),
    );
    metrics.set(
      "lastcall_audit_workloads",
      verdicts.flatMap(({ policy, workloads }) =>
        workloads.flatMap(({ platform, cut, whole }) => [
          { labels: { policy, platform, grace: "Cut" }, value: cut },
          { labels: { policy, platform, grace: "Whole" }, value: whole },
        ]),
      ),
    );
    for (const { policy, condition } of verdicts) {
      log.info("audited", { policy, reason: condition.reason, message: condition.message });
    }
  }

  async #write(verdicts: readonly WorkloadVerdict[]): Promise<void> {
    const { policyStatus } = this.#options;
    // Together, so that a refusal for one policy does not keep the condition from the others.
    await Promise.all(verdicts.map(({ policy, condition }) => policyStatus.add(policy, condition)));
  }
}

function targetsOf({ nodes, policies }: FleetView): readonly AuditTarget[] {
  const owned = Map.groupBy(nodes, (node) => selectPolicy(node, policies)?.policy.name);
  return policies.map(({ name }) => ({ policy: name, nodes: owned.get(name) ?? [] }));
}

/** Identifies the existing policies, and which of them have nodes. */
function policiesOf(view: FleetView): string {
  return JSON.stringify(targetsOf(view).map(({ policy, nodes }) => [policy, nodes.length > 0]));
}

function shorter(a: Millis, b: Millis): Millis {
  return a < b ? a : b;
}
