import type { Clock } from "../contracts/clock.ts";
import type { Fleet } from "../contracts/fleet.ts";
import { Wakeup } from "../contracts/wakeup.ts";
import { answersByName, type HasReleaser } from "../core/policy/release-answer.ts";
import { type Instant, type Millis, millis, seconds } from "../core/time/time.ts";
import type { EndedDepartures } from "./outcome/ended-departures.ts";
import { boardPicture } from "./picture.ts";
import type {
  BoardChange,
  BoardClock,
  BoardPicture,
  FleetState,
  Identified,
  ListChange,
  StreamMessage,
} from "./stream.ts";

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
/** So many items of changes are kept however few rows there are. */
const smallFleet = 500;

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
  readonly #kept = new KeptChanges();
  #seq = 0;
  #tookMs = 0;
  #picture: BoardPicture | undefined;

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
    const change = this.#changes.of(picture);
    this.#picture = picture;
    if (change === undefined) {
      this.#tell({ kind: "Clock", clock: this.#clock() });
      return;
    }
    this.#seq += 1;
    const message = { kind: "Change", id: this.#id(), clock: this.#clock(), change } as const;
    this.#kept.add(this.#seq, message, itemsIn(picture));
    this.#tell(message);
  }

  #tell(message: StreamMessage): void {
    for (const listener of [...this.#listeners]) listener(message);
  }

  /** Undefined where it is not known what came after. */
  #missed(after: string | undefined): readonly StreamMessage[] | undefined {
    const [run, number] = after?.split(".") ?? [];
    const seq = Number(number);
    if (run !== this.#options.run || !Number.isInteger(seq) || seq > this.#seq) return undefined;
    const missed = seq === this.#seq ? [] : this.#kept.after(seq);
    // The clocks in them are of then.
    return missed && [...missed, { kind: "Clock", clock: this.#clock() }];
  }

  #whole(): readonly StreamMessage[] {
    if (this.#picture === undefined) this.#look();
    const picture = this.#picture;
    if (picture === undefined) return [];
    return [{ kind: "Picture", id: this.#id(), clock: this.#clock(), picture }];
  }

  #id(): string {
    return `${this.#options.run}.${this.#seq}`;
  }

  #clock(): BoardClock {
    const { cluster } = this.#options;
    return { at: cluster.now(), rate: cluster.rate() };
  }
}

type ChangeMessage = Extract<StreamMessage, { kind: "Change" }>;

interface KeptChange {
  readonly seq: number;
  readonly message: ChangeMessage;
  readonly items: number;
}

/**
 * The latest changes, for pages that come back: as many as have no more items than the picture,
 * since a page that has missed more is told less by a whole one. In a large fleet one change of a
 * policy or a hold may move thousands of rows.
 */
class KeptChanges {
  #changes: KeptChange[] = [];
  #items = 0;

  add(seq: number, message: ChangeMessage, pictureItems: number): void {
    const { rows, past, policies } = message.change;
    // The state of the fleet counts as one.
    const items = 1 + sizeOf(rows) + sizeOf(past) + sizeOf(policies);
    this.#changes.push({ seq, message, items });
    this.#items += items;
    let dropped = 0;
    for (const one of this.#changes) {
      if (this.#items <= pictureItems) break;
      this.#items -= one.items;
      dropped += 1;
    }
    this.#changes.splice(0, dropped);
  }

  /** Those that came after a number; undefined where not all of them are here. */
  after(seq: number): readonly ChangeMessage[] | undefined {
    const first = this.#changes[0]?.seq;
    if (first === undefined || seq + 1 < first) return undefined;
    return this.#changes.filter((one) => one.seq > seq).map(({ message }) => message);
  }
}

function sizeOf(list: ListChange<Identified> | undefined): number {
  return list === undefined ? 0 : list.set.length + list.gone.length;
}

function itemsIn({ rows, past, policies }: BoardPicture): number {
  return Math.max(smallFleet, rows.length + past.length + policies.length);
}

/**
 * Finds what is new in a picture, against the one before: each part is compared by what would be
 * sent of it, and what is as it was is not sent again.
 */
export class PictureChanges {
  readonly #rows = new KnownItems();
  readonly #past = new KnownItems();
  readonly #policies = new KnownItems();
  #fleet = "";

  /** Undefined where nothing is new. */
  of(picture: BoardPicture): BoardChange | undefined {
    const fleet = this.#newFleet(picture.fleet);
    const rows = this.#rows.changeTo(picture.rows);
    const past = this.#past.changeTo(picture.past);
    const policies = this.#policies.changeTo(picture.policies);
    const change: BoardChange = {
      ...(fleet && { fleet }),
      ...(rows && { rows }),
      ...(past && { past }),
      ...(policies && { policies }),
    };
    return Object.keys(change).length === 0 ? undefined : change;
  }

  #newFleet(fleet: FleetState): FleetState | undefined {
    const text = JSON.stringify(fleet);
    if (text === this.#fleet) return undefined;
    this.#fleet = text;
    return fleet;
  }
}

class KnownItems {
  #texts = new Map<string, string>();

  changeTo<T extends Identified>(items: readonly T[]): ListChange<T> | undefined {
    const before = this.#texts;
    const texts = new Map<string, string>();
    const set: T[] = [];
    for (const item of items) {
      const text = JSON.stringify(item);
      texts.set(item.id, text);
      if (before.get(item.id) !== text) set.push(item);
    }
    const gone = [...before.keys()].filter((id) => !texts.has(id));
    this.#texts = texts;
    return set.length + gone.length === 0 ? undefined : { set, gone };
  }
}
