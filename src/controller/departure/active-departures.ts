import type { Fleet, FleetChange } from "../../contracts/cluster.ts";
import { isToFinish } from "../../core/action/action-plan.ts";
import { backoffMs } from "../../core/chance/chance.ts";
import {
  type Departure,
  type DepartureStatus,
  isLive,
  isNoticed,
} from "../../core/departure/departure.ts";
import { isKnownPhase } from "../../core/departure/ledger.ts";
import type { Policy } from "../../core/policy/policy.ts";
import { type Millis, minutes, seconds } from "../../core/time/time.ts";
import { isLastcallError, messageOf } from "../../errors.ts";
import { DepartureTelemetry } from "./departure-telemetry.ts";
import { DepartureRun } from "./run.ts";
import type { RunOptions } from "./step.ts";

type First = Parameters<DepartureRun["run"]>[1];

/** How long a failed planned run rests before it is resumed. */
const restMs: Millis = minutes(1);

/** After how many failures a refusal is told again: half an hour of a planned departure. */
const tellEvery = 30;

/** The longest rest under a notice, where the backoff applies. */
const noticedRestMs: Millis = seconds(1);

/** The rest of a failed run: its end (monotonic) and the number of failures so far. */
interface Rest {
  readonly untilMs: number;
  readonly failures: number;
}

/** Called when a run has ended, and when a failed one has to be resumed. */
export type RecheckListener = (uid: string) => void;

/** The departures under way. Each has its own run, and none waits for another. */
export class ActiveDepartures {
  readonly #options: RunOptions;
  readonly #runs = new Map<string, DepartureRun>();
  /** The uids of the departures with a run, by the name of their node. */
  readonly #byNode = new Map<string, Set<string>>();
  readonly #rests = new Map<string, Rest>();
  /** How departures have ended, by uid, until the watch shows it. */
  readonly #ended = new Map<string, DepartureStatus>();
  readonly #onRecheck = new Set<RecheckListener>();
  readonly #running = new Set<Promise<void>>();
  readonly #fleet: Pick<Fleet, "node" | "departure">;

  constructor(fleet: Pick<Fleet, "node" | "departure">, options: RunOptions) {
    this.#fleet = fleet;
    this.#options = options;
  }

  /** Starts or resumes a departure. Does nothing if it is running already. */
  open(departure: Departure, how: { policy: Policy; signal: AbortSignal; first?: First }): void {
    if (this.has(departure) || this.#isResting(departure) || this.#isOutdated(departure)) return;
    if (!isKnownPhase(departure.status.phase)) return;
    const node = this.#fleet.node(departure.node.name);
    const newRun = new DepartureRun({ departure, policy: how.policy, node }, this.#options);
    this.#runs.set(departure.uid, newRun);
    this.#enter(departure);
    const run = newRun
      .run(how.signal, how.first)
      .then(() => {
        this.#forgetRest(departure, how.signal);
        if (!isLive(newRun.departure)) this.#ended.set(departure.uid, newRun.departure.status);
      })
      .catch((error: unknown) => this.#failed(newRun.departure, error, how.signal))
      .finally(() => {
        this.#runs.delete(departure.uid);
        this.#leave(departure);
        this.#running.delete(run);
        if (!how.signal.aborted) this.#tell(departure.uid);
      });
    this.#running.add(run);
  }

  /** Whether a departure has a run, whose state is newer than the watch's. */
  has({ uid }: Departure): boolean {
    return this.#runs.has(uid);
  }

  /**
   * Whether the run of a deleted departure of this node is still undoing its actions. Until then
   * the node stays cordoned.
   */
  isUndoingOn(node: string): boolean {
    const uids = [...(this.#byNode.get(node) ?? [])];
    return uids.some((uid) => this.#fleet.departure(uid) === undefined);
  }

  /** Passes the watch's state to every run, and forgets deleted departures. */
  observe(): void {
    this.#options.runningDrains.forget(this.#options.view().departures);
    for (const uid of this.#rests.keys()) {
      if (this.#fleet.departure(uid) === undefined) this.#rests.delete(uid);
    }
    for (const uid of this.#ended.keys()) {
      const seen = this.#fleet.departure(uid);
      if (seen === undefined || !this.#isOutdated(seen)) this.#ended.delete(uid);
    }
    for (const uid of this.#runs.keys()) this.#observeOne(uid);
  }

  /**
   * Whether the watch still shows a departure as it was before its run ended. A run that resumed it
   * would evict pods from a node that is in use again, or repeat its last actions.
   */
  #isOutdated(seen: Departure): boolean {
    return this.#ended.has(seen.uid) && (isLive(seen) || isToFinish(seen));
  }

  /** Does the same only for runs that a change concerns, since in a burst that is one of many. */
  observeChanged({ nodes, departures }: FleetChange): void {
    const touched = [...nodes].flatMap((name) => [...(this.#byNode.get(name) ?? [])]);
    for (const uid of new Set([...touched, ...departures])) this.#observeOne(uid);
  }

  #observeOne(uid: string): void {
    const open = this.#runs.get(uid);
    if (open === undefined) return;
    const departure = this.#fleet.departure(uid);
    // The watch had shown the departure when its run was opened: if it is missing, it was deleted.
    if (departure === undefined) open.abandon();
    else open.observe(departure, this.#fleet.node(departure.node.name));
  }

  /**
   * Returns the departures with the state of their runs, so that no decision is based on a state
   * older than our own last write, and with what could not be written: that its start failed.
   */
  overlay(departures: readonly Departure[]): readonly Departure[] {
    if (this.#runs.size + this.#ended.size + this.#rests.size === 0) return departures;
    return departures.map((one) => {
      const ended = this.#isOutdated(one) ? this.#ended.get(one.uid) : undefined;
      const status = this.#runs.get(one.uid)?.newestStatus ?? ended;
      if (status !== undefined) return { ...one, status };
      return this.#isResting(one) ? { ...one, isResting: true } : one;
    });
  }

  /** Resolves when every run has ended, for a clean shutdown. */
  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  #enter({ uid, node }: Departure): void {
    const there = this.#byNode.get(node.name);
    if (there === undefined) this.#byNode.set(node.name, new Set([uid]));
    else there.add(uid);
  }

  #leave({ uid, node }: Departure): void {
    const there = this.#byNode.get(node.name);
    there?.delete(uid);
    if (there?.size === 0) this.#byNode.delete(node.name);
  }

  #tell(uid: string): void {
    for (const listener of this.#onRecheck) listener(uid);
  }

  /**
   * Calls the listener when a failed run has to be resumed, under a notice within a second, so that
   * a transient error does not use up its time; and when a run has ended, because what it has left
   * behind, marks or the finalizer, can be removed then.
   */
  onRecheck(listener: RecheckListener): () => void {
    this.#onRecheck.add(listener);
    return () => this.#onRecheck.delete(listener);
  }

  #isResting(departure: Departure): boolean {
    const rest = this.#rests.get(departure.uid);
    const leftMs = (rest?.untilMs ?? 0) - this.#options.clock.monotonic();
    // A run that failed before a notice arrived stops resting.
    return rest !== undefined && leftMs > 0 && !(isNoticed(departure) && leftMs > noticedRestMs);
  }

  #forgetRest({ uid }: Departure, signal: AbortSignal): void {
    if (!signal.aborted) this.#rests.delete(uid);
  }

  #failed(departure: Departure, error: unknown, signal: AbortSignal): void {
    if (signal.aborted) return;
    const { log, metrics } = this.#options;
    const code = isLastcallError(error) ? error.code : "UNEXPECTED";
    // The new leader resumes the run from the Departure.
    if (code === "LEASE_LOST") return;
    metrics.count("lastcall_errors_total", { code });
    log.error("run-failed", { departure: departure.name, code, error: messageOf(error) });
    this.#tellRefusal(departure, messageOf(error));
    this.#rest(departure, signal);
  }

  /** The status may be what is refused. Told when it begins, and again before the Event expires. */
  #tellRefusal(departure: Departure, detail: string): void {
    const failures = this.#rests.get(departure.uid)?.failures ?? 0;
    if (failures % tellEvery !== 0) return;
    new DepartureTelemetry(this.#options, this.#options.clock).refused(departure, detail);
  }

  #rest(departure: Departure, signal: AbortSignal): void {
    const { uid } = departure;
    const { clock, rng } = this.#options;
    const failures = (this.#rests.get(uid)?.failures ?? 0) + 1;
    const forMs = isNoticed(departure)
      ? backoffMs(failures, rng, { mostMs: noticedRestMs })
      : restMs;
    this.#rests.set(uid, { untilMs: clock.monotonic() + forMs, failures });
    clock.sleep(forMs, signal).then(
      () => this.#tell(uid),
      () => undefined,
    );
  }
}
