import type { Clock } from "../contracts/clock.ts";
import type { FeedListener, LaunchTimes, NoticeFeed } from "../contracts/cloud.ts";
import type { ClusterPorts, Fleet, GateSource, PolicyStatusSink } from "../contracts/cluster.ts";
import type { LeaderDuty, Leadership } from "../contracts/leadership.ts";
import { metricNames, type Telemetry } from "../contracts/telemetry.ts";
import type { WorkloadAuditor } from "../contracts/workload-auditor.ts";
import { type Rng, Sampler } from "../core/chance/chance.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import { TerminationMemory } from "../core/drain/drain-time.ts";
import { drainObstacle } from "../core/drain-plan/drain-obstacle.ts";
import { planDrain } from "../core/drain-plan/drain-plan.ts";
import { unheardOf } from "../core/limits/stale-watch.ts";
import type { Policy } from "../core/policy/policy.ts";
import { type Millis, seconds } from "../core/time/time.ts";
import { isLastcallError, LastcallError, messageOf } from "../errors.ts";
import { ActiveDepartures } from "./departure/active-departures.ts";
import { PendingCordons } from "./departure/pending-cordons.ts";
import { DepartureCache } from "./departure-cache.ts";
import { DepartureWriter } from "./departure-writer.ts";
import { fencedPorts, type TermPorts } from "./fence.ts";
import { FailedPodSweep, PlaceholderSweep } from "./leftovers.ts";
import { followInterruptions } from "./notice/interruptions.ts";
import { LifecycleHookCompleter } from "./notice/lifecycle-hook-completer.ts";
import { NoticeReconciler } from "./notice/notice-reconciler.ts";
import { PlanReconciler } from "./plan-reconciler.ts";
import { Health } from "./plan-reporter.ts";
import { ActionChecks, WorkloadWatch } from "./policy-checks.ts";
import { type DrainObstacle, ReleaseChecks } from "./release-checks.ts";

/** How long the pods of a node may take to be listed before its departure starts without that. */
const podsWithinMs: Millis = seconds(5);

/** In a dry run, nothing is written about policies. */
const unwritten: PolicyStatusSink = {
  write: async () => {},
  unplanned: async () => {},
  add: async () => {},
};

export interface ControllerOptions extends TermPorts {
  readonly fleet: Fleet;
  readonly gates: GateSource;
  /** Looks up launch times in the cloud; unset if that is not possible. */
  readonly launchTimes?: LaunchTimes | undefined;
  /** Sources of notices outside the cluster, used while this replica leads. */
  readonly feeds?: readonly NoticeFeed[] | undefined;
  /** The launch hook of a machine that is not a node after this is abandoned; unset: never. */
  readonly joinWithinMs?: Millis | undefined;
  /** If unset, workloads are not audited. */
  readonly audit?: { readonly auditor: WorkloadAuditor; readonly everyMs: Millis } | undefined;
  readonly telemetry: Telemetry;
  readonly leadership: Leadership;
  readonly clock: Clock;
  readonly rng: Rng;
  /** The uid of the controller's own pod, if it runs in one. */
  readonly self?: string | undefined;
  /** How long before its departure a node gets the `PreferNoSchedule` taint; unset: never. */
  readonly departingSoonMs?: Millis | undefined;
  /** Keeps the Failed pods of machines that are gone. */
  readonly keepsFailedPods?: boolean | undefined;
  /** Logs every decision and writes nothing. */
  readonly dryRun: boolean;
}

/**
 * The controller. It always watches, and acts only while it leads. All state is in the cluster, so
 * a new leader continues from what it finds there.
 */
export class Controller {
  readonly #options: ControllerOptions;
  readonly health: Health;

  constructor(options: ControllerOptions) {
    this.#options = options;
    this.health = new Health(options.clock);
  }

  /** Runs until the signal aborts. Rejects if watching becomes pointless (`Fleet.run`). */
  async run(signal: AbortSignal): Promise<void> {
    const { fleet, leadership } = this.#options;
    const own = new AbortController();
    const stop = AbortSignal.any([signal, own.signal]);
    const watching = fleet.run(stop);
    let leading: Promise<void> | undefined;
    try {
      await Promise.race([fleet.synced(stop), watching]);
      this.health.watchesSynced();
      leading = leadership.run(
        {
          onLeading: (lead) => this.#lead(lead),
          onHolder: (holder) => this.#options.telemetry.log.info("leader", { holder }),
        },
        stop,
      );
      await Promise.race([watching, leading]);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      own.abort(signal.reason);
      // Keeps the connection open until the lead is released, since the watches end first.
      await Promise.allSettled([watching, leading]);
    }
  }

  /** One term as leader. Ends when the signal aborts and all runs have stopped. */
  async #lead(signal: AbortSignal): Promise<void> {
    const { gates, telemetry, clock, rng } = this.#options;
    const cache = new DepartureCache(this.#options.fleet, this.#options.clock);
    const { fleet } = cache;
    const { self, dryRun, leadership, launchTimes, joinWithinMs, feeds = [] } = this.#options;
    const mayAct = () => !signal.aborted && !dryRun && leadership.isLeader();
    const fenced = fencedPorts(this.#options, mayAct);
    const policyStatus = dryRun ? unwritten : fenced.policyStatus;
    const ports = { ...fenced, policyStatus, store: cache.storing(fenced.store) };
    const writer = new DepartureWriter(ports.store, telemetry);
    const readNode = (name: string) => ports.marks.read(name);
    const checks = new ReleaseChecks({
      ...{ releaserFor: ports.releaserFor, telemetry, clock, view: () => fleet.view() },
      drainObstacle: (node, policy) => this.#drainObstacle(node, policy, { fleet, ...ports }),
    });
    const activeDepartures = new ActiveDepartures(fleet, {
      ...ports,
      ...telemetry,
      ...{ writer, gates, clock, rng, self, readNode },
      askAboutRelease: (question, until) => checks.askNow(question, until),
      cordons: new PendingCordons(clock),
      terminations: new TerminationMemory(),
      view: () => fleet.view(),
      unheard: () => unheardOf(fleet.silences()),
    });
    const noticeReconciler = new NoticeReconciler({ fleet, writer, telemetry, clock });
    const stopFollowing = dryRun
      ? () => {}
      : followInterruptions(
          { fleet, activeDepartures, writer, telemetry, noticeReconciler, clock },
          signal,
        );
    const over = new AbortController();
    const leading = AbortSignal.any([signal, over.signal]);
    const hookCompleter = new LifecycleHookCompleter({
      ...{ fleet, hooks: ports.hooks, telemetry, clock, joinWithinMs },
    });
    const listening = dryRun
      ? []
      : listenToFeeds(feeds, { noticeReconciler, hookCompleter, telemetry, clock }, leading);
    const auditing = this.#watchWorkloads(ports, leading);
    const checking = this.#checkActions(ports, leading);
    const sweeping = this.#sweepFailedPods(ports, leading);
    const planReconciler = new PlanReconciler({
      ...{ fleet, gates, launchTimes, activeDepartures },
      ...ports,
      writer,
      telemetry,
      checks,
      sweep: new PlaceholderSweep({ ...ports, log: telemetry.log, clock }),
      clock,
      readNode,
      dryRun,
      departingSoonMs: this.#options.departingSoonMs,
      health: this.health,
    });
    try {
      await planReconciler.run(signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      stopFollowing();
      over.abort();
      await Promise.all([...listening, auditing, checking, sweeping]);
      await activeDepartures.settled();
      // From now on the next leader reports the gauges.
      for (const name of metricNames.gauges) telemetry.metrics.set(name, []);
      this.health.stoodDown();
    }
  }

  /**
   * Before a planned start. What cannot be read does not hold it, since the API enforces budgets,
   * unless a pod kept the last drain.
   */
  async #drainObstacle(
    node: NodeFacts,
    policy: Policy | undefined,
    { fleet, pods: nodePods }: Pick<ClusterPorts, "pods"> & { readonly fleet: Fleet },
  ): Promise<DrainObstacle> {
    const { telemetry, clock, self } = this.#options;
    if (policy === undefined || policy.drain.onTimeout !== "RollBack") return "None";
    const over = new AbortController();
    const { departures } = fleet.view();
    const former = departures.filter((one) => one.node.uid === node.uid);
    const rule = policy.drain;
    const late = clock.sleep(podsWithinMs, over.signal).then(() => {
      throw new LastcallError("API_UNREACHABLE", `no response within ${podsWithinMs} ms`);
    });
    try {
      const listed = Promise.all([nodePods.list(node.name), nodePods.budgets()]);
      const [pods, budgets] = await Promise.race([listed, late]);
      const plan = planDrain({ node, pods, budgets, rule, now: clock.now(), self });
      const detail = drainObstacle(plan, { rule, former });
      return detail === undefined ? "None" : { detail };
    } catch (error) {
      telemetry.log.warn("look-ahead-failed", { node: node.name, error: messageOf(error) });
      const detail = drainObstacle("Unlisted", { rule, former });
      return detail === undefined ? "Unknown" : { detail, isFormer: true };
    } finally {
      over.abort();
      late.catch(() => undefined);
    }
  }

  /** Checks the actions, so that problems are reported before the first notice. */
  async #checkActions(
    { actionPorts, policyStatus }: ClusterPorts,
    signal: AbortSignal,
  ): Promise<void> {
    const { fleet, telemetry, clock } = this.#options;
    const checks = new ActionChecks({
      ...{ fleet, actionPorts, policyStatus, telemetry, clock },
    });
    await checks.run(signal).catch((error: unknown) => {
      if (!signal.aborted) telemetry.log.error("checks-ended", { error: messageOf(error) });
    });
  }

  async #sweepFailedPods({ pods }: ClusterPorts, signal: AbortSignal): Promise<void> {
    const { fleet, telemetry, clock, dryRun, keepsFailedPods } = this.#options;
    if (dryRun || keepsFailedPods) return;
    const sweep = new FailedPodSweep({ fleet, pods, log: telemetry.log, clock });
    await sweep.run(signal).catch(() => undefined);
  }

  /** Audits workloads in the background. A failed audit does not affect departures. */
  async #watchWorkloads({ policyStatus }: ClusterPorts, signal: AbortSignal): Promise<void> {
    const { audit, fleet, telemetry, clock } = this.#options;
    if (audit === undefined) return;
    const watch = new WorkloadWatch({ ...audit, fleet, policyStatus, telemetry, clock });
    await watch.run(signal).catch((error: unknown) => {
      if (!signal.aborted) telemetry.log.error("audit-ended", { error: messageOf(error) });
    });
  }
}

/**
 * Starts every feed. Errors are counted, and logged once a minute for each kind. A feed that
 * rejects, which none should, counts as an error and stops neither the other feeds nor the
 * controller.
 */
function listenToFeeds(
  feeds: readonly NoticeFeed[],
  tools: {
    readonly noticeReconciler: NoticeReconciler;
    readonly hookCompleter: LifecycleHookCompleter;
    readonly telemetry: Telemetry;
    readonly clock: Clock;
  },
  signal: AbortSignal,
): readonly Promise<void>[] {
  const { noticeReconciler, hookCompleter, telemetry, clock } = tools;
  const sampler = new Sampler();
  const onError = (error: unknown): void => {
    if (signal.aborted) return;
    const code = isLastcallError(error) ? error.code : "UNEXPECTED";
    telemetry.metrics.count("lastcall_errors_total", { code });
    const said = sampler.admit(code, clock.monotonic());
    if (said) telemetry.log.warn("feed-error", { code, error: messageOf(error), ...said });
  };
  const listener: FeedListener = {
    onNotice: (instanceNotice) => noticeReconciler.handle(instanceNotice),
    onHook: (hook) => hookCompleter.handle(hook, signal),
    onError,
  };
  return feeds.map((feed) => feed.run(listener, signal).catch(onError));
}

/**
 * `--leader-elect=false`: this process leads for as long as it runs; it must be the only replica.
 */
export class AlwaysLeading implements Leadership {
  run(duty: LeaderDuty, signal: AbortSignal): Promise<void> {
    return duty.onLeading(signal);
  }

  isLeader(): boolean {
    return true;
  }
}
