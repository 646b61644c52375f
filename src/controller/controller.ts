import type { Clock } from "../contracts/clock.ts";
import type { Fleet } from "../contracts/fleet.ts";
import type { GateSource } from "../contracts/gate-source.ts";
import type { Leadership } from "../contracts/leadership.ts";
import type { MachineBirths } from "../contracts/machine-births.ts";
import type { NoticeFeed } from "../contracts/notice-feed.ts";
import type { PolicyStatusSink } from "../contracts/policy-status-sink.ts";
import { metricNames } from "../contracts/telemetry.ts";
import type { WorkloadAuditor } from "../contracts/workload-auditor.ts";
import type { Rng } from "../core/chance/rng.ts";
import { TerminationMemory } from "../core/drain/termination-time.ts";
import type { Millis } from "../core/time/time.ts";
import { messageOf } from "../errors.ts";
import { CaseBook } from "./case-book.ts";
import { DrainTurns } from "./drain-turns.ts";
import { Executor, type Hands, type Voice } from "./executor.ts";
import { listenToFeeds } from "./feed-listening.ts";
import { Health } from "./health.ts";
import { HookDesk } from "./hook-desk.ts";
import { followInterruptions } from "./interruption.ts";
import { NoticeDesk } from "./notice-desk.ts";
import { PlaceholderSweep } from "./placeholder-sweep.ts";
import { Rotation } from "./rotation.ts";
import { WorkloadWatch } from "./workload-watch.ts";

export interface ControllerOptions {
  readonly fleet: Fleet;
  readonly gates: GateSource;
  /** Where the cloud can be asked how old its machines are. */
  readonly births?: MachineBirths | undefined;
  /** Where else notices come from; heard while this replica leads. */
  readonly feeds?: readonly NoticeFeed[] | undefined;
  readonly hands: Hands;
  readonly policyStatus: PolicyStatusSink;
  /** Absent: workloads are not audited. */
  readonly audit?: { readonly auditor: WorkloadAuditor; readonly everyMs: Millis } | undefined;
  readonly voice: Voice;
  readonly leadership: Leadership;
  readonly clock: Clock;
  readonly rng: Rng;
  /** The uid of the pod that runs this controller, where it is one. */
  readonly self?: string | undefined;
  /** Says every decision, writes nothing. */
  readonly dryRun: boolean;
}

/**
 * The controller: watches all the time, acts only while it leads. All state is in the cluster, so
 * that taking the lead is nothing but beginning to act on what is there.
 */
export class Controller {
  readonly #options: ControllerOptions;
  readonly health: Health;

  constructor(options: ControllerOptions) {
    this.#options = options;
    this.health = new Health(options.clock);
  }

  /** Runs until the signal aborts; rejects when watching has become pointless (Fleet.run). */
  async run(signal: AbortSignal): Promise<void> {
    const { fleet, leadership } = this.#options;
    const own = new AbortController();
    const stop = AbortSignal.any([signal, own.signal]);
    const watching = fleet.run(stop);
    try {
      await Promise.race([fleet.synced(stop), watching]);
      this.health.watchesSynced();
      const leading = leadership.run(
        {
          onLeading: (lead) => this.#lead(lead),
          onHolder: (holder) => this.#options.voice.log.info("leader", { holder }),
        },
        stop,
      );
      await Promise.race([watching, leading]);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      own.abort(signal.reason);
      await Promise.allSettled([watching]);
    }
  }

  /** One time of leading: ends when its signal aborts, after the cases have let go. */
  async #lead(signal: AbortSignal): Promise<void> {
    const { fleet, gates, hands, policyStatus, voice, clock, rng } = this.#options;
    const { self, dryRun, leadership, births, feeds = [] } = this.#options;
    const mayAct = () => !signal.aborted && !dryRun && leadership.isLeader();
    const executor = new Executor({ hands, voice, mayAct });
    const readNode = (name: string) => hands.marks.read(name);
    const cases = new CaseBook(fleet, {
      ...hands,
      executor,
      clock,
      rng,
      self,
      readNode,
      turns: new DrainTurns(),
      terminations: new TerminationMemory(),
      view: () => fleet.view(),
    });
    const desk = new NoticeDesk({ fleet, executor, clock });
    const stopFollowing = dryRun
      ? () => {}
      : followInterruptions({ fleet, cases, executor, desk, clock }, signal);
    const over = new AbortController();
    const leading = AbortSignal.any([signal, over.signal]);
    const hookDesk = new HookDesk({ fleet, executor, clock });
    const listening = dryRun ? [] : listenToFeeds(feeds, { desk, hookDesk, voice, clock }, leading);
    const auditing = this.#watchWorkloads(leading);
    const rotation = new Rotation({
      fleet,
      gates,
      births,
      cases,
      executor,
      sweep: new PlaceholderSweep({ placeholders: hands.placeholders, executor, clock }),
      clock,
      policyStatus,
      dryRun,
      health: this.health,
    });
    try {
      await rotation.run(signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      stopFollowing();
      over.abort();
      await Promise.all([...listening, auditing]);
      await cases.settled();
      // What is now is the next leader's to show.
      for (const name of metricNames.gauges) voice.metrics.set(name, []);
      this.health.stoodDown();
    }
  }

  /** Beside the rotation and never in its way: whatever ends it, departures go on. */
  async #watchWorkloads(signal: AbortSignal): Promise<void> {
    const { audit, fleet, policyStatus, voice, clock, dryRun } = this.#options;
    if (audit === undefined) return;
    const watch = new WorkloadWatch({ ...audit, fleet, policyStatus, voice, clock, dryRun });
    await watch.run(signal).catch((error: unknown) => {
      if (!signal.aborted) voice.log.error("audit-ended", { error: messageOf(error) });
    });
  }
}
