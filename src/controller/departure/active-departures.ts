import type { Fleet, FleetChange } from "../../contracts/cluster.ts";
import { isToFinish } from "../../core/action/action-plan.ts";
import { backoffMs } from "../../core/chance/chance.ts";
import {
  type Departure,
  type DepartureStatus,
  isLive,
  isNoticed,
} from "../../core/departure/departure.ts";
import type { RunningDrain } from "../../core/departure/drain-reason.ts";
import { isKnownPhase, type PhaseResult } from "../../core/departure/ledger.ts";
import { drainsUnderWay } from "../../core/plan/conflict-hold.ts";
import type { Policy } from "../../core/policy/policy.ts";
import { type Millis, minutes, seconds } from "../../core/time/time.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import type { DepartureOptions } from "./departure-options.ts";
import { DepartureTelemetry } from "./departure-telemetry.ts";
import { type Closing, OpenDeparture } from "./open-departure.ts";

/** How long a departure that could not start rests before it is planned again. */
const restMs: Millis = minutes(1);

/** After how many failures a refusal is told again: half an hour of a planned departure. */
const tellEvery = 30;

/** The longest rest under a notice, where the backoff applies. */
const noticedRestMs: Millis = seconds(1);

/** The rest of a departure that failed: its end (monotonic) and the number of failures so far. */
interface Rest {
  readonly untilMs: number;
  readonly failures: number;
}

/** Called when a departure has ended here, and when one that failed may be opened again. */
export type RecheckListener = (uid: string) => void;

/** The departures under way, each evaluated by itself. None waits for another. */
export class ActiveDepartures {
  readonly #options: DepartureOptions;
  readonly #fleet: Pick<Fleet, "node" | "departure">;
  readonly #open = new Map<string, OpenDeparture>();
  /** The uids of open departures, by the name of their node. */
  readonly #byNode = new Map<string, Set<string>>();
  readonly #rests = new Map<string, Rest>();
  /** How departures have ended, by uid, until the watch shows it. */
  readonly #ended = new Map<string, DepartureStatus>();
  readonly #onRecheck = new Set<RecheckListener>();
  readonly #underWay = new Set<Promise<void>>();

  constructor(fleet: Pick<Fleet, "node" | "departure">, options: DepartureOptions) {
    this.#fleet = fleet;
    this.#options = options;
  }

  /** Starts or resumes a departure. Does nothing if it is open already. */
  open(
    departure: Departure,
    how: { policy: Policy; signal: AbortSignal; first?: PhaseResult | undefined },
  ): void {
    if (this.has(departure) || this.#isResting(departure) || this.#isOutdated(departure)) return;
    if (!isKnownPhase(departure.status.phase) || how.signal.aborted) return;
    const { policy, signal, first } = how;
    const one = new OpenDeparture({ departure, policy, first, signal }, this.#options, {
      fleet: this.#fleet,
      drainsBeside: (uid) => this.#drainsBeside(uid),
      onClosed: (how) => this.#closed(departure, one, { ...how, signal }),
    });
    this.#open.set(departure.uid, one);
    this.#enter(departure);
    const over = one.done.finally(() => this.#underWay.delete(over));
    this.#underWay.add(over);
    one.evaluate();
  }

  /** Whether a departure is open, so that its state here is newer than the watch's. */
  has({ uid }: Departure): boolean {
    return this.#open.has(uid);
  }

  /**
   * Whether a deleted departure of this node is still undoing its actions. Until then the node
   * stays cordoned.
   */
  isUndoingOn(node: string): boolean {
    const uids = [...(this.#byNode.get(node) ?? [])];
    return uids.some((uid) => this.#fleet.departure(uid) === undefined);
  }

  /** Passes the watch's state to every open departure, and forgets deleted ones. */
  observe(): void {
    for (const uid of this.#rests.keys()) {
      if (this.#fleet.departure(uid) === undefined) this.#rests.delete(uid);
    }
    for (const uid of this.#ended.keys()) {
      const seen = this.#fleet.departure(uid);
      if (seen === undefined || !this.#isOutdated(seen)) this.#ended.delete(uid);
    }
    for (const uid of this.#open.keys()) this.#observeOne(uid);
  }

  /** Does the same only for those that a change concerns, since in a burst that is one of many. */
  observeChanged({ nodes, departures }: FleetChange): void {
    const touched = [...nodes].flatMap((name) => [...(this.#byNode.get(name) ?? [])]);
    for (const uid of new Set([...touched, ...departures])) this.#observeOne(uid);
  }

  #observeOne(uid: string): void {
    // The watch had shown it when it was opened: if it is missing, it was deleted.
    this.#open.get(uid)?.observe(this.#fleet.departure(uid));
  }

  /**
   * Returns the departures with their state here, so that no decision is based on a state older
   * than our own last write, and with what could not be written: that its start failed.
   */
  overlay(departures: readonly Departure[]): readonly Departure[] {
    if (this.#open.size + this.#ended.size + this.#rests.size === 0) return departures;
    return departures.map((one) => {
      const ended = this.#isOutdated(one) ? this.#ended.get(one.uid) : undefined;
      const status = this.#open.get(one.uid)?.newestStatus ?? ended;
      if (status !== undefined) return { ...one, status };
      return this.#isResting(one) ? { ...one, isResting: true } : one;
    });
  }

  /** Resolves when all are closed, and nothing of them is on its way, for a clean shutdown. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  /**
   * Calls the listener when one that failed may be opened again, and when one is closed, because
   * what it has left behind, marks or the finalizer, can be removed then.
   */
  onRecheck(listener: RecheckListener): () => void {
    this.#onRecheck.add(listener);
    return () => this.#onRecheck.delete(listener);
  }

  /**
   * Whether the watch still shows a departure as it was before it ended here. Opened again, it
   * would evict pods from a node that is in use again, or repeat its last actions.
   */
  #isOutdated(seen: Departure): boolean {
    return this.#ended.has(seen.uid) && (isLive(seen) || isToFinish(seen));
  }

  #drainsBeside(uid: string): readonly RunningDrain[] {
    const all = this.overlay(this.#options.view().departures);
    return drainsUnderWay(all.filter((other) => other.uid !== uid));
  }

  #closed(
    departure: Departure,
    one: OpenDeparture,
    { fault, isGone, signal }: Closing & { readonly signal: AbortSignal },
  ): void {
    const { uid } = departure;
    this.#open.delete(uid);
    this.#leave(departure);
    if (signal.aborted) return;
    const status = one.newestStatus;
    if (fault !== undefined) this.#failed({ ...departure, status }, fault, signal);
    else if (isGone) this.#gone({ ...departure, status }, signal);
    else this.#rests.delete(uid);
    if (!isLive({ status })) this.#ended.set(uid, status);
    this.#tell(uid);
  }

  /** The watch shows that soon, unless it is silent or something else has answered. */
  #gone(departure: Departure, signal: AbortSignal): void {
    if (!this.#rests.has(departure.uid)) {
      this.#rest(departure, signal);
      return;
    }
    const found = "the API server answers that it does not exist, and its watch shows it";
    const problem = `Cannot write the Departure ${departure.name}: ${found}`;
    this.#failed(departure, new LastcallError("NOT_FOUND", problem), signal);
  }

  #tell(uid: string): void {
    for (const listener of this.#onRecheck) listener(uid);
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

  #isResting(departure: Departure): boolean {
    const rest = this.#rests.get(departure.uid);
    const leftMs = (rest?.untilMs ?? 0) - this.#options.clock.monotonic();
    // One that failed before a notice arrived stops resting.
    return rest !== undefined && leftMs > 0 && !(isNoticed(departure) && leftMs > noticedRestMs);
  }

  #failed(departure: Departure, error: unknown, signal: AbortSignal): void {
    const { log, metrics, clock } = this.#options;
    const code = isLastcallError(error) ? error.code : "UNEXPECTED";
    metrics.count("lastcall_errors_total", { code });
    log.error("departure-failed", { departure: departure.name, code, error: messageOf(error) });
    const failures = this.#rests.get(departure.uid)?.failures ?? 0;
    if (failures % tellEvery === 0) {
      new DepartureTelemetry(this.#options, clock).refused(departure, messageOf(error));
    }
    this.#rest(departure, signal);
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
