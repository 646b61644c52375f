import { type Clock, Wakeup } from "../contracts/clock.ts";
import type { Fleet } from "../contracts/fleet.ts";
import { answersByName, type HasReleaser } from "../core/policy/release-answer.ts";
import { type Instant, type Millis, millis, seconds } from "../core/time/time.ts";
import type { EndedDepartures } from "./outcome/ended-departures.ts";
import { boardPicture } from "./picture.ts";
import { PictureChanges } from "./picture-change.ts";
import type { BoardChange, BoardClock, FleetState, StreamMessage } from "./stream.ts";

export interface BoardFeedOptions {
  readonly fleet: Pick<Fleet, "view" | "onChange">;
  /** The time of the cluster, which in a demo goes faster than the clock on the wall. */
  readonly cluster: { now(): Instant; rate(): number };
  /** The clock on the wall: how often a picture is made is measured on it. */
  readonly clock: Clock;
  /** What there is to say beside the fleet itself. */
  readonly state: () => Omit<FleetState, "days">;
  readonly hasReleaser: HasReleaser;
  /** Remembers what has ended for longer than the cluster does; absent: it does not. */
  readonly ended?: EndedDepartures | undefined;
  /** Tells this run of the server from any other. */
  readonly run: string;
}

export type PictureListener = (message: StreamMessage) => void;

/** Between two pictures; a fleet that takes long to look at is looked at less often. */
const leastPauseMs = millis(250);
const pausePerWork = 4;
/** Without any change: so often the time is told, and the plan looked at again. */
const quietMs = seconds(10);
/** Where the cluster's time runs fast. */
const quietFastMs = seconds(1);

/**
 * One picture of the fleet for however many pages: looked at again when something has changed, a
 * few times a second at most, and told as numbered changes. A page that comes back is told what it
 * has missed, once.
 */
export class BoardFeed {
  readonly #options: BoardFeedOptions;
  readonly #wakeup: Wakeup;
  readonly #listeners = new Set<PictureListener>();
  readonly #changes = new PictureChanges();
  #tookMs = 0;

  constructor(options: BoardFeedOptions) {
    this.#options = options;
    this.#wakeup = new Wakeup(options.clock);
  }

  /** Looks until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { fleet, clock } = this.#options;
    const stop = fleet.onChange(() => this.#wakeup.wake());
    try {
      while (!signal.aborted) {
        const startMs = clock.monotonic();
        this.#look();
        await clock
          .sleep(this.#pauseMs(clock.monotonic() - startMs), signal)
          .catch(() => undefined);
        await this.#wakeup.sleep(this.#quietMs(), signal);
      }
    } finally {
      stop();
    }
  }

  /** Looks again soon, for what is not of the fleet. */
  refresh(): void {
    this.#wakeup.wake();
  }

  /**
   * Tells the listener where things stand, and every change from then on; gives the way to stop it.
   * `after` is the id of the last message that it has had before.
   */
  subscribe(listener: PictureListener, after?: string): () => void {
    for (const message of this.#missed(after) ?? this.#whole()) listener(message);
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  /** A look that took long but once, as while the machine stood still, holds up none after it. */
  #pauseMs(tookMs: number): Millis {
    const workMs = Math.min(tookMs, this.#tookMs);
    this.#tookMs = tookMs;
    return millis(Math.max(leastPauseMs, workMs * pausePerWork));
  }

  #quietMs() {
    const { rate } = this.#options.cluster;
    return rate() === 1 ? quietMs : quietFastMs;
  }

  #look(): void {
    const { fleet, cluster, state, hasReleaser, ended } = this.#options;
    const view = fleet.view();
    const releaseAnswers = answersByName(view.nodes, hasReleaser);
    const now = cluster.now();
    const picture = boardPicture(view, { now, state: state(), releaseAnswers, ended });
    const after = this.#id();
    const change = this.#changes.of(picture);
    if (change === undefined) {
      this.#tell({ kind: "Clock", clock: this.#clock() });
      return;
    }
    this.#tell(this.#changed(change, after));
  }

  #tell(message: StreamMessage): void {
    for (const listener of [...this.#listeners]) listener(message);
  }

  /** Undefined where it is not known what came after. */
  #missed(after: string | undefined): readonly StreamMessage[] | undefined {
    const [run, number] = after?.split(".") ?? [];
    const seq = Number(number);
    const last = this.#changes.seq;
    if (run !== this.#options.run || !Number.isInteger(seq) || seq > last) return undefined;
    if (seq === last) return [{ kind: "Clock", clock: this.#clock() }];
    const change = this.#changes.since(seq);
    return change && [this.#changed(change, this.#id(seq))];
  }

  #whole(): readonly StreamMessage[] {
    if (this.#changes.picture() === undefined) this.#look();
    const picture = this.#changes.picture();
    if (picture === undefined) return [];
    return [{ kind: "Picture", id: this.#id(), clock: this.#clock(), picture }];
  }

  #changed(change: BoardChange, after: string): StreamMessage {
    return { kind: "Change", id: this.#id(), after, clock: this.#clock(), change };
  }

  #id(seq = this.#changes.seq): string {
    return `${this.#options.run}.${seq}`;
  }

  #clock(): BoardClock {
    const { cluster } = this.#options;
    return { at: cluster.now(), rate: cluster.rate() };
  }
}
