import type { Clock } from "../../contracts/clock.ts";
import { type Instant, type Millis, millis, minutes, seconds } from "../../core/time/time.ts";

/** From most to least urgent. */
const lanes = ["First", "Now", "Soon", "Later"] as const;
type RequestLane = (typeof lanes)[number];
/** The share of all places that only `First` takes: other requests may all hang. */
const keptShare = 1 / 8;

/**
 * How many requests of a lane may be in flight beside a few more urgent ones, and beside many. A
 * server with a few cores is saturated by a few requests: more would slow down all of them,
 * including the urgent ones. Beside a few, it is still four of a lane, so that a hanging one does
 * not block the rest.
 */
const besideFew = { First: Number.POSITIVE_INFINITY, Now: 8, Soon: 4, Later: 4 } as const;
const besideCrowd = { ...besideFew, Soon: 1, Later: 1 } as const;
const crowd = 16;
/**
 * Beside a crowd, one request of a lane starts for so many more urgent ones that have ended: in a
 * burst of notices each record takes time of the API server that an eviction waits for. A notice
 * with five pods has seven urgent ones, so half of the records of deregistrations are sent before
 * the last eviction.
 */
const urgentPerOne = { First: 0, Now: 0, Soon: 12, Later: 32 } as const;
/** How long more urgent requests hang, none of them ending, until a `Soon` one is `Now`. */
const longestHangMs: Millis = seconds(3);

interface LaneRequest {
  readonly urgency: RequestLane;
  readonly hurry?: AbortSignal | undefined;
  readonly dueAt?: Instant | undefined;
}

/**
 * Limits the requests in flight: urgent ones first, and within a lane in order of `dueAt`. While
 * more urgent requests exist, only a few of a lane run beside them, because a server that receives
 * everything at once responds to everything late.
 */
export class RequestLanes {
  readonly #most: number;
  readonly #underWay = { First: 0, Now: 0, Soon: 0, Later: 0 };
  readonly #waiting = {
    First: new WaitQueue<() => void>(),
    Now: new WaitQueue<() => void>(),
    Soon: new WaitQueue<() => void>(),
    Later: new WaitQueue<() => void>(),
  };

  /** How many more urgent requests have ended since one of a lane started. */
  readonly #endedSince: Record<RequestLane, number> = { ...urgentPerOne };
  /** How many requests have ended. */
  #ended = 0;
  readonly #clock: Pick<Clock, "sleep">;
  readonly #onRush: (() => void) | undefined;

  /** `onRush` is called repeatedly while requests of `First` or `Now` have to wait. */
  constructor(most: number, clock: Pick<Clock, "sleep">, onRush?: () => void) {
    this.#most = most;
    this.#clock = clock;
    this.#onRush = onRush;
  }

  /**
   * Resolves when the request may start, with the lane to `leave` afterwards, or rejects with the
   * signal's reason. A queued `Later` request moves to `Soon` when `hurry` aborts.
   */
  async enter(asked: LaneRequest, signal: AbortSignal): Promise<RequestLane> {
    signal.throwIfAborted();
    const isHurried = asked.urgency === "Later" && asked.hurry?.aborted === true;
    const urgency = isHurried ? "Soon" : asked.urgency;
    // A request never overtakes others that wait in its lane.
    if (this.#waiting[urgency].size > 0 || !this.#hasCapacity(urgency)) {
      if (urgency === "First" || urgency === "Now") this.#onRush?.();
      return this.#wait({ ...asked, urgency }, signal);
    }
    this.#start(urgency);
    return urgency;
  }

  leave(urgency: RequestLane): void {
    this.#underWay[urgency] -= 1;
    this.#ended += 1;
    for (const less of lanes.slice(lanes.indexOf(urgency) + 1)) this.#endedSince[less] += 1;
    this.#startAll();
    if (this.#waiting.First.size > 0 || this.#waiting.Now.size > 0) this.#onRush?.();
  }

  #wait({ urgency, hurry, dueAt }: LaneRequest, signal: AbortSignal): Promise<RequestLane> {
    return new Promise((resolve, reject) => {
      let lane = urgency;
      const waited = new AbortController();
      const start = (): void => {
        waited.abort(over);
        this.#start(lane);
        resolve(lane);
      };
      const join = () => this.#waiting[lane].join(start, dueAt ?? Number.NEGATIVE_INFINITY);
      let leaveLine = join();
      const moveTo = (more: RequestLane): void => {
        if (waited.signal.aborted) return;
        leaveLine();
        lane = more;
        leaveLine = join();
        this.#startAll();
      };
      const hasten = (): void => {
        const hanging = this.#untilAllHang(waited.signal);
        hanging.then(() => moveTo("Now")).catch(() => undefined);
        if (lane !== "Soon") moveTo("Soon");
      };
      const abort = (): void => {
        waited.abort(over);
        leaveLine();
        reject(signal.reason);
        // Others may start if this was the last urgent one.
        this.#startAll();
      };
      const once = { once: true, signal: waited.signal };
      signal.addEventListener("abort", abort, once);
      if (lane === "Later") hurry?.addEventListener("abort", hasten, once);
      if (lane === "Soon") hasten();
    });
  }

  async #untilAllHang(signal: AbortSignal): Promise<void> {
    for (let before = -1; before !== this.#ended; ) {
      before = this.#ended;
      await this.#clock.sleep(longestHangMs, signal);
    }
  }

  #start(urgency: RequestLane): void {
    this.#underWay[urgency] += 1;
    this.#endedSince[urgency] = 0;
  }

  #startAll(): void {
    for (const urgency of lanes) {
      const line = this.#waiting[urgency];
      while (line.size > 0 && this.#hasCapacity(urgency)) line.shift()?.();
    }
  }

  #hasCapacity(urgency: RequestLane): boolean {
    const { First, Now, Soon, Later } = this.#underWay;
    const kept = urgency === "First" ? 0 : Math.floor(this.#most * keptShare);
    if (First + Now + Soon + Later >= this.#most - kept) return false;
    let ahead = 0;
    for (const one of lanes.slice(0, lanes.indexOf(urgency))) {
      ahead += this.#underWay[one] + this.#waiting[one].size;
    }
    if (ahead === 0) return true;
    if (ahead < crowd) return this.#underWay[urgency] < besideFew[urgency];
    if (this.#endedSince[urgency] < urgentPerOne[urgency]) return false;
    return this.#underWay[urgency] < besideCrowd[urgency];
  }
}

interface QueuePlace<T> {
  readonly item: T;
  readonly rank: number;
  /** The order of arrival within a rank. */
  readonly order: number;
}

/** A priority queue: lowest rank first, then in order of arrival. */
class WaitQueue<T> {
  readonly #places: QueuePlace<T>[] = [];
  #joined = 0;

  get size(): number {
    return this.#places.length;
  }

  /** Adds an item. Returns the function that removes it, which may be called repeatedly. */
  join(item: T, rank: number): () => void {
    this.#joined += 1;
    const place = { item, rank, order: this.#joined };
    this.#places.splice(this.#indexOf(place), 0, place);
    return () => {
      const index = this.#indexOf(place);
      if (this.#places[index] === place) this.#places.splice(index, 1);
    };
  }

  /** Removes and returns the first item. */
  shift(): T | undefined {
    return this.#places.shift()?.item;
  }

  /** The index of a place, existing or not. */
  #indexOf({ rank, order }: QueuePlace<T>): number {
    let [from, to] = [0, this.#places.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      const there = this.#places[middle] as QueuePlace<T>;
      const isBefore = there.rank < rank || (there.rank === rank && there.order < order);
      if (isBefore) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}

/** A constant abort reason: the default one captures a stack trace each time. */
const over = "over";

export interface DeadlineOptions {
  readonly clock: Clock;
  readonly limitMs: Millis;
  /** Creates the reason to abort with when time is up. */
  readonly onTime: (limitMs: Millis) => Error;
  /** The caller's signal; `onAbort` converts its reason. */
  readonly signal?: AbortSignal | undefined;
  readonly onAbort: (reason: unknown) => Error;
}

/** A signal that aborts when time is up or the caller's signal aborts. `end` releases both. */
export class Deadline {
  readonly signal: AbortSignal;
  readonly #stop = new AbortController();
  #over = new AbortController();
  #isUp = false;
  readonly #options: DeadlineOptions;

  constructor(options: DeadlineOptions) {
    this.#options = options;
    this.signal = this.#stop.signal;
    if (options.signal?.aborted) this.#aborted();
    options.signal?.addEventListener("abort", this.#aborted);
    this.#count(options.limitMs);
  }

  /** Whether time is up. */
  get isUp(): boolean {
    return this.#isUp;
  }

  /** Aborts early. */
  giveUp(reason: Error): void {
    this.#stop.abort(reason);
  }

  /** Restarts with another limit. */
  renew(limitMs: Millis): void {
    this.#over.abort(over);
    this.#over = new AbortController();
    this.#count(limitMs);
  }

  end(): void {
    this.#options.signal?.removeEventListener("abort", this.#aborted);
    this.#over.abort(over);
  }

  #count(limitMs: Millis): void {
    const { clock, onTime } = this.#options;
    clock.sleep(limitMs, this.#over.signal).then(
      () => {
        this.#isUp = !this.signal.aborted;
        this.#stop.abort(onTime(limitMs));
      },
      () => {},
    );
  }

  readonly #aborted = () => {
    this.#stop.abort(this.#options.onAbort(this.#options.signal?.reason));
  };
}

const shortestAttemptMs: Millis = millis(2500);
const longestAttemptMs: Millis = seconds(30);
/** How long a limit stays raised. */
const raisedForMs: Millis = minutes(1);

/**
 * The timeout of one attempt of an urgent request. It starts short, because a silently dead
 * connection must not use up a notice's time. A merely slow server has to be able to respond, so
 * the limit is twice the slowest response of the last minute, and doubles after a timeout.
 */
export class AttemptLimit {
  readonly #clock: Pick<Clock, "monotonic">;
  #raised = { ms: shortestAttemptMs, atMs: 0 };

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  get ms(): Millis {
    const { ms, atMs } = this.#raised;
    return this.#clock.monotonic() - atMs < raisedForMs ? ms : shortestAttemptMs;
  }

  /** Records a timeout. Concurrent ones count once. */
  unanswered(limitMs: Millis): void {
    this.#raiseTo(limitMs * 2);
  }

  answered(tookMs: number): void {
    if (tookMs * 2 > shortestAttemptMs) this.#raiseTo(tookMs * 2);
  }

  #raiseTo(ms: number): void {
    const now = this.#clock.monotonic();
    this.#raised = { ms: millis(Math.min(longestAttemptMs, Math.max(this.ms, ms))), atMs: now };
  }
}
