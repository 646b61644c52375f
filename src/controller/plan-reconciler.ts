import { type Clock, Wakeup } from "../contracts/clock.ts";
import type { LaunchTimes } from "../contracts/cloud.ts";
import type { ClusterPorts, Fleet, GateSource } from "../contracts/cluster.ts";
import type { Telemetry } from "../contracts/telemetry.ts";
import { Sampler } from "../core/chance/chance.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import { decide } from "../core/decide.ts";
import type { Decision, Snapshot } from "../core/departure/decision.ts";
import type { Departure, DepartureStatus } from "../core/departure/departure.ts";
import { statusAfter } from "../core/departure/ledger.ts";
import { gatesToAsk } from "../core/limits/gate.ts";
import { unheardOf } from "../core/limits/stale-watch.ts";
import { policyFor } from "../core/notice/interruption.ts";
import type { FleetPlan } from "../core/plan/fleet-plan.ts";
import { policyStatuses } from "../core/plan/plan-status.ts";
import { defaultPolicy, type Policy } from "../core/policy/policy.ts";
import { isReleaseReason } from "../core/policy/release-answer.ts";
import {
  between,
  earlier,
  earliest,
  type Instant,
  later,
  type Millis,
  millis,
  minutes,
  plus,
} from "../core/time/time.ts";
import { isLastcallError, messageOf } from "../errors.ts";
import { aboutWhom, gistOf } from "./decision-gist.ts";
import { DeletedDepartures } from "./deleted-departures.ts";
import type { ActiveDepartures } from "./departure/active-departures.ts";
import { DepartureTelemetry } from "./departure/departure-telemetry.ts";
import type { DepartureWriter } from "./departure-writer.ts";
import { FleetHealthReporter } from "./fleet-health-reporter.ts";
import { LaunchTimeCache } from "./launch-time-cache.ts";
import { clearOrphan, type PlaceholderSweep } from "./leftovers.ts";
import { DryRunNotices } from "./notice/dry-run-notices.ts";
import { againAfter, gatherAfter, isQuick, timedAfter } from "./pass-pace.ts";
import { type Health, PlanReporter, SoonTaints } from "./plan-reporter.ts";
import type { ReleaseChecks } from "./release-checks.ts";
import { TakenNames } from "./taken-names.ts";
import { UnbegunEnds } from "./unbegun-end.ts";

export interface PlanReconcilerOptions
  extends Pick<ClusterPorts, "marks" | "store" | "releaserFor" | "policyStatus"> {
  readonly fleet: Fleet;
  readonly gates: GateSource;
  /** Looks up launch times in the cloud; unset if that is not possible. */
  readonly launchTimes?: LaunchTimes | undefined;
  readonly activeDepartures: ActiveDepartures;
  readonly writer: DepartureWriter;
  readonly telemetry: Telemetry;
  readonly checks: ReleaseChecks;
  readonly sweep: PlaceholderSweep;
  readonly clock: Clock;
  readonly readNode: (name: string) => Promise<NodeFacts | undefined>;
  /** Logs every decision and performs none. */
  readonly dryRun: boolean;
  /** How long before its departure a node gets the `PreferNoSchedule` taint; unset: never. */
  readonly departingSoonMs?: Millis | undefined;
  readonly health: Health;
}

/** How many decisions of a pass are performed concurrently. */
const actsAtOnce = 16;
/** A failed pass is retried after this, or when something changes. */
const failedAgainMs = minutes(1);
/** Resync interval of a fleet without changes. */
const quietMs: Millis = millis(10 * 60_000);

/**
 * Reconciles planned departures: observe, decide, act. A pass runs when something has changed or an
 * instant of the plan is reached; no state is kept in between. Each write checks again
 * what it is about.
 */
export class PlanReconciler {
  readonly #options: PlanReconcilerOptions;
  readonly #wakeup: Wakeup;
  readonly #reporter: PlanReporter;
  readonly #healthReporter: FleetHealthReporter;
  readonly #launchTimes: LaunchTimeCache | undefined;
  readonly #soonTaints: SoonTaints;
  readonly #deleted: DeletedDepartures;
  readonly #names: TakenNames;
  readonly #dryRunNotices: DryRunNotices | undefined;
  readonly #faults = new Sampler();
  /** The decisions without effect that the last pass logged. */
  #logged: ReadonlySet<string> = new Set();
  /** The duration of the last pass's decision. */
  #decidingMs: Millis = millis(0);
  #didActFail = false;
  /** Of the current pass. */
  #unbegunEnds: UnbegunEnds;
  /** Whether the last pass has moved planned departures. */
  #hasMoved = false;
  /** How many passes in a row had an act that failed. */
  #failedPasses = 0;

  constructor(options: PlanReconcilerOptions) {
    this.#options = options;
    this.#wakeup = new Wakeup(options.clock);
    this.#deleted = new DeletedDepartures(options.clock);
    this.#names = new TakenNames(options.clock);
    this.#unbegunEnds = new UnbegunEnds(options);
    const { launchTimes, clock, telemetry, marks } = options;
    const { events, log } = telemetry;
    this.#reporter = new PlanReporter(telemetry, clock);
    this.#healthReporter = new FleetHealthReporter(telemetry);
    this.#dryRunNotices = options.dryRun ? new DryRunNotices({ events, clock }) : undefined;
    const onNews = () => this.#wakeup.wake();
    const leadMs = options.departingSoonMs;
    this.#soonTaints = new SoonTaints({ marks, log, clock, leadMs, wake: onNews });
    this.#launchTimes =
      launchTimes && new LaunchTimeCache({ launchTimes, clock, telemetry, onNews });
  }

  async run(signal: AbortSignal): Promise<void> {
    const { fleet, activeDepartures, checks, clock, telemetry } = this.#options;
    const wake = () => this.#wakeup.wake();
    const stops = [fleet.onChange(wake), activeDepartures.onRecheck(wake), checks.onNews(wake)];
    let quickPasses = 0;
    try {
      for (;;) {
        signal.throwIfAborted();
        const askAgainAt = await this.#pass(signal).catch((error: unknown) =>
          this.#passFailed(error, signal),
        );
        const restsSince = clock.monotonic();
        const now = clock.now();
        const quietUntil = plus(now, quietMs);
        const wantedAt = earlier(askAgainAt ?? quietUntil, quietUntil);
        quickPasses = isQuick(between(now, wantedAt)) ? quickPasses + 1 : 0;
        const askAt = later(wantedAt, plus(now, timedAfter(quickPasses)));
        if ((await this.#wakeup.sleepUntil(askAt, signal)) !== "Woken") continue;
        const restedMs = millis(clock.monotonic() - restsSince);
        const pause = gatherAfter({
          ...{ decidingMs: this.#decidingMs, restedMs, hasMoved: this.#hasMoved, quickPasses },
          nextInMs: between(clock.now(), askAt),
        });
        await clock.sleep(pause, signal);
      }
    } finally {
      for (const stop of stops) stop();
      telemetry.metrics.set("lastcall_plan_failing", []);
    }
  }

  /**
   * A defect or an unexpected input must not end the process: notices are handled independently of
   * the plan, and a restart would fail in the same way.
   */
  #passFailed(error: unknown, signal: AbortSignal): Instant {
    signal.throwIfAborted();
    const { clock, telemetry, health } = this.#options;
    const { log, metrics } = telemetry;
    const code = isLastcallError(error) ? error.code : "UNEXPECTED";
    metrics.count("lastcall_errors_total", { code });
    const said = this.#faults.admit(code, clock.monotonic());
    if (said) log.error("plan-failed", { code, error: messageOf(error), ...said });
    metrics.set("lastcall_plan_failing", [{ labels: {}, value: 1 }]);
    this.#showFailure(error);
    health.passEnded();
    return plus(clock.now(), failedAgainMs);
  }

  async #pass(signal: AbortSignal): Promise<Instant | undefined> {
    const { fleet, activeDepartures, checks, clock, gates, health } = this.#options;
    health.passBegan();
    const before = fleet.view();
    const [gateAnswers] = await Promise.all([
      gates.ask(gatesToAsk(before, clock.now()), signal),
      this.#launchTimes?.learn(before, signal),
    ]);
    // The responses may have taken a while: looks up new nodes, and decides on the newest state.
    await this.#launchTimes?.learn(fleet.view(), signal);
    health.passMoved();
    const decidesSince = clock.monotonic();
    const view = fleet.view();
    activeDepartures.observe();
    const nodes = this.#launchTimes?.withKnownLaunchTimes(view.nodes) ?? view.nodes;
    const departures =
      this.#dryRunNotices?.look({ ...view, nodes }) ??
      this.#deleted.with(activeDepartures.overlay(view.departures));
    const releaseAnswers = checks.answers(nodes);
    const unheard = unheardOf(fleet.silences());
    const snapshot = { ...view, nodes, departures, gateAnswers, releaseAnswers, unheard };
    const verdict = decide(snapshot, clock.now());
    checks.ask({ ...verdict, departures }, signal);
    this.#reporter.show(verdict.plan, snapshot.departures);
    this.#decidingMs = millis(clock.monotonic() - decidesSince);
    this.#didActFail = false;
    this.#unbegunEnds = new UnbegunEnds(this.#options);
    await this.#carryOutAll(verdict.decisions, snapshot, signal);
    const soonAt = this.#options.dryRun
      ? undefined
      : this.#soonTaints.follow(verdict.plan, snapshot, signal);
    this.#reporter.tellInvalid(verdict.plan);
    this.#healthReporter.tell(verdict.plan);
    this.#showStatus(verdict.plan, snapshot);
    await this.#sweep(signal);
    health.passEnded();
    return earliest(earliest(verdict.askAgainAt, soonAt), this.#actAgainAt());
  }

  /** When acts that have failed are tried again, unless something changes before. */
  #actAgainAt(): Instant | undefined {
    this.#failedPasses = this.#didActFail ? this.#failedPasses + 1 : 0;
    if (!this.#didActFail) return undefined;
    return plus(this.#options.clock.now(), againAfter(this.#failedPasses));
  }

  /** Writes the status in the background. It is informational, so an error stops nothing. */
  #showStatus(plan: FleetPlan, { departures }: Snapshot): void {
    const { policyStatus } = this.#options;
    policyStatus
      .write(policyStatuses(plan, departures))
      .catch((error: unknown) => this.#statusNotWritten(error));
  }

  #statusNotWritten(error: unknown): void {
    const { log } = this.#options.telemetry;
    log.warn("policy-status-not-written", { error: messageOf(error) });
  }

  #showFailure(error: unknown): void {
    const { fleet, policyStatus } = this.#options;
    const fromCluster = fleet.policies().filter(({ generation }) => generation !== undefined);
    policyStatus
      .unplanned(
        fromCluster.map(({ name }) => name),
        messageOf(error),
      )
      .catch((fault: unknown) => this.#statusNotWritten(fault));
  }

  /**
   * Sweeps by the newest state, so that a departure that has just started keeps its placeholders.
   */
  async #sweep(signal: AbortSignal): Promise<void> {
    const { fleet, activeDepartures, sweep, dryRun } = this.#options;
    if (dryRun) return;
    const newest = () => activeDepartures.overlay(fleet.view().departures);
    await sweep.run(newest).catch((error: unknown) => this.#failed(error, signal));
  }

  async #carryOutAll(
    decisions: readonly Decision[],
    snapshot: Snapshot,
    signal: AbortSignal,
  ): Promise<void> {
    const logged = new Set<string>();
    const queue = decisions.filter((decision) => this.#doesSomething(decision, logged));
    this.#hasMoved = queue.some(({ kind }) => kind === "Move");
    this.#logged = logged;
    const worker = async (): Promise<void> => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        await this.#carryOut(next, snapshot, signal).catch((error: unknown) =>
          this.#failed(error, signal),
        );
        this.#options.health.passMoved();
      }
    };
    await Promise.all(Array.from({ length: actsAtOnce }, worker));
  }

  /**
   * Whether to perform the decision. Logs any other (one without effect, or in a dry run) once
   * until it changes.
   */
  #doesSomething(decision: Decision, logged: Set<string>): boolean {
    if (decision.kind !== "Skip" && !this.#options.dryRun) return true;
    const about = aboutWhom(decision);
    const key = `${about} ${gistOf(decision)}`;
    logged.add(key);
    if (this.#logged.has(key)) return false;
    this.#options.telemetry.log.info(
      decision.kind === "Skip" ? "skipped" : `would-${decision.kind.toLowerCase()}`,
      {
        about,
        reason: decision.reason,
        message: decision.explain,
        actions: this.#actionsOf(decision),
      },
    );
    if (decision.kind === "Note") this.#sayProblem(decision);
    return false;
  }

  /** The actions that would run around a departure that a decision creates or starts. */
  #actionsOf(decision: Decision): string | undefined {
    if (decision.kind !== "Schedule" && decision.kind !== "Begin") return undefined;
    const { policy: name, cause } =
      decision.kind === "Schedule" ? decision.order : decision.departure;
    const policy = this.#options.fleet.policies().find((one) => one.name === name);
    const due = policy?.actions.filter(({ causes }) => causes?.includes(cause) ?? true) ?? [];
    return due.map((action) => `${action.name} (${action.how.kind}, ${action.at})`).join(", ");
  }

  async #carryOut(decision: Decision, snapshot: Snapshot, signal: AbortSignal): Promise<void> {
    const { writer, store, activeDepartures } = this.#options;
    switch (decision.kind) {
      case "Schedule":
        return this.#names.whileFree(decision.order.name, () => writer.schedule(decision.order));
      case "Move":
        await store.move(decision.departure, decision);
        return;
      case "Note":
        return this.#note(decision, snapshot, signal);
      case "Begin":
        return activeDepartures.open(decision.departure, {
          policy: this.#policyFor(decision.departure, snapshot),
          signal,
          first: decision,
        });
      case "Continue":
        if (activeDepartures.has(decision.departure)) return;
        return activeDepartures.open(decision.departure, {
          policy: decision.end ? defaultPolicy : this.#policyFor(decision.departure, snapshot),
          signal,
          first: decision.end,
        });
      case "ClearOrphan":
        if (activeDepartures.isUndoingOn(decision.node.name)) return;
        return clearOrphan(decision.node, decision.departure, this.#options);
      case "Finalize":
        // What its actions did may still have to be written.
        if (activeDepartures.has(decision.departure)) return;
        this.#deleted.remember(decision.departure);
        return writer.removeFinalizer(decision.departure);
      case "Forget":
        return writer.forget(decision.departure);
      case "Skip":
        return;
    }
  }

  async #note(
    asked: Extract<Decision, { kind: "Note" }>,
    snapshot: Snapshot,
    signal: AbortSignal,
  ): Promise<void> {
    const { writer, telemetry, clock } = this.#options;
    const { departure } = asked;
    const policy = this.#policyFor(departure, snapshot);
    const decision = await this.#unbegunEnds.confirmed(asked, policy, signal);
    if (decision === undefined) return;
    let written: DepartureStatus | undefined;
    // If somebody has changed it since, such as a notice, the next pass decides again.
    await writer.record(departure, (fresh) => {
      const isSame = fresh === departure;
      written = isSame ? statusAfter(fresh, { ...decision, at: clock.now() }) : undefined;
      return written;
    });
    if (written?.outcome === "Preempted") {
      const its = new DepartureTelemetry(telemetry, clock);
      its.lostUnbegun({ ...departure, status: written });
    }
    this.#sayProblem(decision);
  }

  /**
   * Emits an Event for a problem that only people can fix: a machine that cannot be released, or a
   * node that is requested to leave after its deadline.
   */
  #sayProblem({ event, departure, reason, explain }: Extract<Decision, { kind: "Note" }>): void {
    if (event !== "Blocked") return;
    if (!isReleaseReason(reason) && reason !== "DeadlineFirst") return;
    const { name, uid } = departure.node;
    const about = { kind: "Node", name, uid } as const;
    this.#options.telemetry.events.emit({ type: "Warning", reason, message: explain, about });
  }

  #policyFor(departure: Departure, { policies }: Snapshot): Policy {
    return policyFor(departure, this.#nodeOf(departure), policies);
  }

  #nodeOf({ node: { name, uid } }: Departure): NodeFacts | undefined {
    const node = this.#options.fleet.node(name);
    return node?.uid === uid ? node : undefined;
  }

  #failed(error: unknown, signal: AbortSignal): void {
    if (signal.aborted) return;
    const { log, metrics } = this.#options.telemetry;
    const code = isLastcallError(error) ? error.code : "UNEXPECTED";
    metrics.count("lastcall_errors_total", { code });
    log.warn("act-failed", { code, error: messageOf(error) });
    this.#didActFail = true;
  }
}
