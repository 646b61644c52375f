import { type Clock, Wakeup } from "../contracts/clock.ts";
import type { Fleet, FleetView, PolicyStatusSink } from "../contracts/fleet.ts";
import type { Telemetry } from "../contracts/telemetry.ts";
import type {
  AuditTarget,
  WorkloadAuditor,
  WorkloadVerdict,
} from "../contracts/workload-auditor.ts";
import { selectPolicy } from "../core/policy/policy.ts";
import { type Instant, type Millis, minutes, plus, seconds } from "../core/time/time.ts";
import { isLastcallError, messageOf } from "../errors.ts";

export interface WorkloadWatchOptions {
  readonly auditor: WorkloadAuditor;
  /** The pause between the end of one audit and the start of the next. */
  readonly everyMs: Millis;
  readonly fleet: Fleet;
  readonly policyStatus: PolicyStatusSink;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Updates the metrics and writes no condition. */
  readonly dryRun: boolean;
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
    if (this.#options.dryRun) return;
    for (const { policy, condition } of verdicts) {
      await this.#options.policyStatus.add(policy, condition);
    }
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
