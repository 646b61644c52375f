import type { Clock } from "../contracts/clock.ts";
import type { NodeMarks } from "../contracts/cluster.ts";
import type { GaugeSample, Log, MetricLabels, Telemetry } from "../contracts/telemetry.ts";
import type { Snapshot } from "../core/departure/decision.ts";
import { type Departure, isLive, policyNameOf } from "../core/departure/departure.ts";
import type { FleetPlan, PolicyPlan } from "../core/plan/fleet-plan.ts";
import { type SoonChange, soonChanges } from "../core/plan/plan-status.ts";
import { counted, isOrAre } from "../core/reason/counted.ts";
import { earliest, type Instant, type Millis } from "../core/time/time.ts";
import { messageOf } from "../errors.ts";

interface Sample {
  readonly labels: MetricLabels;
  readonly value: number;
}

/**
 * Reports the plan as gauges (nodes managed, departures by reason and by phase, spacing, the next
 * deadline), and policies that cannot be read.
 */
export class PlanReporter {
  readonly #telemetry: Telemetry;
  readonly #clock: Clock;
  /** The reported problem of each policy, which is reported again only when it changes. */
  #told: ReadonlyMap<string, string> = new Map();

  constructor(telemetry: Telemetry, clock: Clock) {
    this.#telemetry = telemetry;
    this.#clock = clock;
  }

  show(plan: FleetPlan, departures: readonly Departure[]): void {
    const { metrics } = this.#telemetry;
    metrics.set(
      "lastcall_nodes_managed",
      plan.policies.map(({ policy, matched }) => ({
        labels: { policy: policy.name },
        value: matched,
      })),
    );
    metrics.set("lastcall_fleet_unhealthy", plan.policies.map(unhealthySample));
    metrics.set("lastcall_nodes_missing", plan.policies.map(missingSample));
    metrics.set("lastcall_plan_failing", [{ labels: {}, value: 0 }]);
    metrics.set("lastcall_plan_departures", plan.policies.flatMap(reasonSamples));
    metrics.set("lastcall_plan_unreleasable", plan.policies.flatMap(unreleasableSamples));
    metrics.set("lastcall_plan_spacing_seconds", plan.policies.flatMap(spacingSamples));
    metrics.set("lastcall_departures", phaseSamples(departures));
    metrics.set("lastcall_next_deadline_seconds", this.#deadlineSamples(plan, departures));
  }

  /** The time left until a deadline changes without a pass. */
  #deadlineSamples(plan: FleetPlan, departures: readonly Departure[]): GaugeSample[] {
    const next = new Map<string, Instant>();
    for (const { policy, deadlineAt } of deadlinesOf(plan, departures)) {
      next.set(policy, earliest(next.get(policy), deadlineAt) ?? deadlineAt);
    }
    return [...next].map(([policy, deadlineAt]) => ({
      labels: { policy },
      value: () => (deadlineAt - this.#clock.now()) / 1000,
    }));
  }

  /** Logs the problem and emits an Event. A change in the number of nodes alone is not reported. */
  tellInvalid({ bad }: FleetPlan): void {
    const { log, events } = this.#telemetry;
    for (const { policy, nodes } of bad) {
      const { name, uid, problem } = policy;
      if (this.#told.get(name) === problem) continue;
      log.warn("policy-invalid", { policy: name, problem, nodes });
      if (uid === undefined) continue;
      const message = `The policy cannot be read, ${counted(nodes, "node")} that it might own ${isOrAre(nodes)} held back: ${problem}`;
      const about = { kind: "DeparturePolicy", name, uid } as const;
      events.emit({ type: "Warning", reason: "PolicyInvalid", message, about });
    }
    this.#told = new Map(bad.map(({ policy }) => [policy.name, policy.problem]));
  }
}

function unhealthySample({ policy, health }: PolicyPlan): Sample {
  return { labels: { policy: policy.name }, value: health.hold === undefined ? 0 : 1 };
}

function missingSample({ policy, health }: PolicyPlan): Sample {
  return { labels: { policy: policy.name }, value: health.missing.length };
}

function reasonSamples({ policy, departures }: PolicyPlan): Sample[] {
  const byReason = Map.groupBy(departures, ({ reason }) => reason);
  return [...byReason].map(([reason, those]) => ({
    labels: { policy: policy.name, reason },
    value: those.length,
  }));
}

function unreleasableSamples({ policy, release }: PolicyPlan): Sample[] {
  if (release === undefined) return [];
  const { reason, nodes } = release;
  return [{ labels: { policy: policy.name, reason }, value: nodes.length }];
}

function spacingSamples({ policy, spacing }: PolicyPlan): Sample[] {
  const { wantedMs, reachedMs, bestMs } = spacing;
  const kinds = { wanted: wantedMs, reached: reachedMs, best: bestMs };
  return Object.entries(kinds).flatMap(([kind, spanMs]) =>
    spanMs === null ? [] : [{ labels: { policy: policy.name, kind }, value: spanMs / 1000 }],
  );
}

interface PolicyDeadline {
  readonly policy: string;
  readonly deadlineAt: Instant;
}

function deadlinesOf(
  { policies }: FleetPlan,
  departures: readonly Departure[],
): readonly PolicyDeadline[] {
  const planned = policies.flatMap(({ policy, departures: entries }) =>
    entries.map(({ deadlineAt }) => ({ policy: policy.name, deadlineAt })),
  );
  const underWay = departures.filter(isLive).flatMap((departure) => {
    const { deadlineAt } = departure;
    const policy = policyNameOf(departure) ?? "";
    return deadlineAt === undefined ? [] : [{ policy, deadlineAt }];
  });
  return [...planned, ...underWay];
}

function phaseSamples(departures: readonly Departure[]): Sample[] {
  const counts = new Map<string, { labels: MetricLabels; value: number }>();
  for (const departure of departures.filter(isLive)) {
    const labels = { policy: policyNameOf(departure) ?? "", phase: departure.status.phase };
    const key = `${labels.policy}/${labels.phase}`;
    counts.set(key, { labels, value: (counts.get(key)?.value ?? 0) + 1 });
  }
  return [...counts.values()];
}

export interface SoonTaintsOptions {
  readonly marks: Pick<NodeMarks, "markSoon">;
  readonly log: Pick<Log, "warn">;
  readonly clock: Clock;
  /** How long before its departure a node gets the taint; undefined: never. */
  readonly leadMs: Millis | undefined;
  /** Requests another pass. */
  readonly wake: () => void;
}

/**
 * Manages the soft taint of the nodes that depart next (docs/adr/0011-soft-taint.md). It is best
 * effort: nodes are patched one after another in the background, and neither the plan nor a notice
 * waits for it.
 */
export class SoonTaints {
  readonly #options: SoonTaintsOptions;
  #isWriting = false;
  #isOutdated = false;

  constructor(options: SoonTaintsOptions) {
    this.#options = options;
  }

  /** Starts writing what has changed. Returns the instant of the next change. */
  follow(plan: FleetPlan, snapshot: Snapshot, signal: AbortSignal): Instant | undefined {
    const { clock, leadMs } = this.#options;
    const { changes, askAgainAt } = soonChanges({ ...snapshot, plan, at: clock.now(), leadMs });
    if (this.#isWriting) this.#isOutdated = true;
    else if (changes.length > 0) void this.#write(changes, signal);
    return askAgainAt;
  }

  async #write(changes: readonly SoonChange[], signal: AbortSignal): Promise<void> {
    const { marks, log, wake } = this.#options;
    this.#isWriting = true;
    this.#isOutdated = false;
    for (const { node, to } of changes) {
      if (signal.aborted) break;
      try {
        await marks.markSoon(node, to);
      } catch (error) {
        // The next pass retries.
        const told = { node: node.name, error: messageOf(error) };
        if (!signal.aborted) log.warn("soft-taint-not-written", told);
      }
    }
    this.#isWriting = false;
    if (this.#isOutdated) wake();
  }
}

/** A pass without progress for longer than this counts as hung. */
const stillLimitMs = 2 * 60_000;

/**
 * A loop that has started no pass for longer than this counts as stopped: it resyncs every ten
 * minutes.
 */
const idleLimitMs = 15 * 60_000;

/** Whether the loops are alive. A replica that does not lead has none and is healthy. */
export class Health {
  readonly #clock: Clock;
  #beganMs: number | undefined;
  #movedMs = 0;
  #endedMs: number | undefined;
  #synced = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  passBegan(): void {
    this.#beganMs = this.#clock.monotonic();
    this.#movedMs = this.#beganMs;
    this.#endedMs = undefined;
  }

  /**
   * Records progress: a request has ended, even if it failed. A slow API server makes a pass long,
   * which a restart would not fix.
   */
  passMoved(): void {
    this.#movedMs = this.#clock.monotonic();
  }

  passEnded(): void {
    this.#endedMs = this.#clock.monotonic();
  }

  /** We no longer lead, so no pass is due. */
  stoodDown(): void {
    this.#beganMs = undefined;
    this.#endedMs = undefined;
  }

  watchesSynced(): void {
    this.#synced = true;
  }

  /** The problem in a sentence; undefined if healthy. */
  problem(): string | undefined {
    const nowMs = this.#clock.monotonic();
    if (this.#beganMs === undefined) return undefined;
    if (this.#endedMs === undefined && nowMs - this.#movedMs > stillLimitMs) {
      return `a pass of the controller has been stuck for ${Math.round((nowMs - this.#movedMs) / 1000)} s`;
    }
    if (this.#endedMs !== undefined && nowMs - this.#endedMs > idleLimitMs) {
      return `the controller has started no pass for ${Math.round((nowMs - this.#endedMs) / 1000)} s`;
    }
    return undefined;
  }

  ready(): boolean {
    return this.#synced;
  }
}
