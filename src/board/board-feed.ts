import { type Clock, Wakeup } from "../contracts/clock.ts";
import type { Fleet } from "../contracts/cluster.ts";
import { answersByName, type HasReleaser } from "../core/policy/release-answer.ts";
import { type Instant, type Millis, millis, seconds } from "../core/time/time.ts";
import type { EndedDepartures } from "./outcome/ended-departures.ts";
import { boardPicture } from "./picture.ts";
import type {
  BoardChange,
  BoardClock,
  BoardPicture,
  FleetFacts,
  FleetState,
  Identified,
  ListChange,
  StreamMessage,
} from "./stream.ts";

export interface BoardFeedOptions {
  readonly fleet: Pick<Fleet, "view" | "onChange">;
  /** The cluster's time, which in a demo runs faster than real time. */
  readonly cluster: { now(): Instant; rate(): number };
  /** Real time, by which the interval between pictures is measured. */
  readonly clock: Clock;
  /** What to show in addition to the fleet itself. */
  readonly state: () => FleetFacts;
  readonly hasReleaser: HasReleaser;
  /** Remembers ended departures for longer than the cluster does; absent: only the cluster does. */
  readonly ended?: EndedDepartures | undefined;
  /** Identifies this run of the server. */
  readonly run: string;
}

export type PictureListener = (message: StreamMessage) => void;

/** The pause between two pictures; a fleet that takes long to compute is computed less often. */
const leastPauseMs = millis(250);
const pausePerWork = 4;
/** Without any change: how often the time is sent and the plan is recomputed. */
const quietMs = seconds(10);
/** The same if the cluster's time runs fast. */
const quietFastMs = seconds(1);

/**
 * One picture of the fleet for any number of pages: computed when something has changed, a few
 * times a second at most, and sent as numbered changes. A page that reconnects gets what it has
 * missed, once.
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

  /** Computes pictures until the signal aborts. */
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

  /** Computes a picture soon, for what is not part of the fleet. */
  refresh(): void {
    this.#wakeup.wake();
  }

  /**
   * Sends the listener the current picture, and every change from then on; returns the function
   * that unsubscribes it. `after` is the id of the last message that it received before.
   */
  subscribe(listener: PictureListener, after?: string): () => void {
    for (const message of this.#missed(after) ?? this.#whole()) listener(message);
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  /**
   * A picture that took long only once, for example while the machine was suspended, does not delay
   * those after it.
   */
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

  /** Undefined if it is not known what came after. */
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

/** The least number of removed items that are remembered, however few rows there are. */
const smallFleet = 500;

/**
 * The latest picture, and since when each of its parts is new: each part is compared in its
 * serialized form, and what is unchanged is neither sent nor stored again. A page that reconnects
 * gets everything that has changed meanwhile, in its current state.
 */
export class PictureChanges {
  readonly #rows = new NumberedItems<BoardPicture["rows"][number]>();
  readonly #past = new NumberedItems<BoardPicture["past"][number]>();
  readonly #policies = new NumberedItems<BoardPicture["policies"][number]>();
  #fleet: { readonly state: FleetState; readonly seq: number } | undefined;
  #seq = 0;

  /** The number of the last change. */
  get seq(): number {
    return this.#seq;
  }

  /** The last picture; undefined before the first. */
  picture(): BoardPicture | undefined {
    if (this.#fleet === undefined) return undefined;
    return {
      fleet: this.#fleet.state,
      rows: this.#rows.all(),
      past: this.#past.all(),
      policies: this.#policies.all(),
    };
  }

  /** Undefined if nothing is new. */
  of(picture: BoardPicture): BoardChange | undefined {
    const seq = this.#seq + 1;
    const { fleet, rows, past, policies } = picture;
    if (!isSameJson(fleet, this.#fleet?.state)) this.#fleet = { state: fleet, seq };
    this.#rows.take(rows, seq);
    this.#past.take(past, seq);
    this.#policies.take(policies, seq);
    const change = this.since(this.#seq);
    if (change !== undefined && Object.keys(change).length > 0) this.#seq = seq;
    return this.#seq === seq ? change : undefined;
  }

  /** What is new since the change with that number; undefined if that is no longer known. */
  since(seq: number): BoardChange | undefined {
    const lists = [this.#rows, this.#past, this.#policies];
    if (seq < Math.max(...lists.map((list) => list.knownSince))) return undefined;
    const fleet = this.#fleet !== undefined && this.#fleet.seq > seq && this.#fleet.state;
    const rows = this.#rows.since(seq);
    const past = this.#past.since(seq);
    const policies = this.#policies.since(seq);
    return {
      ...(fleet && { fleet }),
      ...(rows && { rows }),
      ...(past && { past }),
      ...(policies && { policies }),
    };
  }
}

interface NumberedItem<T> {
  readonly item: T;
  /** By the number of the change that last updated it. */
  readonly seq: number;
}

class NumberedItems<T extends Identified> {
  #items: ReadonlyMap<string, NumberedItem<T>> = new Map();
  /** By the number of the change that removed it, oldest first. */
  readonly #gone = new Map<string, number>();
  #knownSince = 0;

  /** What came after an earlier change than this one is no longer known. */
  get knownSince(): number {
    return this.#knownSince;
  }

  all(): readonly T[] {
    return [...this.#items.values()].map(({ item }) => item);
  }

  take(items: readonly T[], seq: number): void {
    // Comes first, because every page still has to receive what is removed below.
    this.#forget(Math.max(smallFleet, items.length));
    const before = this.#items;
    const now = new Map<string, NumberedItem<T>>();
    for (const item of items) {
      const known = before.get(item.id);
      const isKnown = known !== undefined && isSameJson(known.item, item);
      now.set(item.id, isKnown ? known : { item, seq });
      this.#gone.delete(item.id);
    }
    for (const id of before.keys()) if (!now.has(id)) this.#gone.set(id, seq);
    this.#items = now;
  }

  since(seq: number): ListChange<T> | undefined {
    const set = [...this.#items.values()].filter((one) => one.seq > seq).map(({ item }) => item);
    const gone = [...this.#gone].filter(([, goneAt]) => goneAt > seq).map(([id]) => id);
    return set.length + gone.length === 0 ? undefined : { set, gone };
  }

  /** For a page that has missed that much, a whole picture is smaller. */
  #forget(most: number): void {
    for (const [id, seq] of this.#gone) {
      if (this.#gone.size <= most) return;
      this.#gone.delete(id);
      this.#knownSince = seq;
    }
  }
}

/** Whether both are equal in their serialized form. */
function isSameJson(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== "object" || typeof other !== "object") return false;
  if (one === null || other === null || Array.isArray(one) !== Array.isArray(other)) return false;
  const [entries, others] = [Object.entries(one), other as Readonly<Record<string, unknown>>];
  return (
    entries.length === Object.keys(others).length &&
    entries.every(([key, value]) => key in others && isSameJson(value, others[key]))
  );
}
