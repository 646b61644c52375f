import type { Clock } from "../contracts/clock.ts";
import type { DepartureStore, Fleet, FleetView, StoreResult } from "../contracts/cluster.ts";
import type { Departure } from "../core/departure/departure.ts";
import { hours } from "../core/time/time.ts";

/**
 * For so long, an answer counts that a watch which receives something does not show. After a
 * restore of etcd versions start again lower, and it never would. What a silent watch shows is
 * older than the answer.
 */
const answersLastMs = hours(1);

interface KnownAnswer {
  readonly departure: Departure;
  /** When it was given (monotonic). */
  readonly sinceMs: number;
}

/**
 * The watched Departures, each as the newest answer of the API server has shown it, until the watch
 * shows as much: nothing is decided on a state older than what this process has written or read
 * itself. client-go's MutationCache does the same (`tools/cache/mutation_cache.go`).
 */
export class DepartureCache {
  readonly #watched: Fleet;
  readonly #clock: Pick<Clock, "monotonic">;
  /** By uid, the oldest first; only of those that the watch shows, perhaps in an older version. */
  readonly #answers = new Map<string, KnownAnswer>();
  #view: { readonly watched: FleetView; readonly newest: FleetView } | undefined;

  constructor(watched: Fleet, clock: Pick<Clock, "monotonic">) {
    this.#watched = watched;
    this.#clock = clock;
  }

  get fleet(): Fleet {
    const watched = this.#watched;
    const newest = (some: readonly Departure[]) => some.flatMap((one) => this.#newest(one) ?? []);
    return {
      run: (signal) => watched.run(signal),
      synced: (signal) => watched.synced(signal),
      view: () => this.#newestView(watched.view(), newest),
      node: (name) => watched.node(name),
      departure: (uid) => this.#newest(watched.departure(uid)),
      policies: () => watched.policies(),
      nodesOf: (machine) => watched.nodesOf(machine),
      departuresOf: (nodeUid) => newest(watched.departuresOf(nodeUid)),
      departureNamed: (name) => this.#newest(watched.departureNamed(name)),
      onChange: (listener) => watched.onChange(listener),
      silences: () => watched.silences(),
    };
  }

  /** The store, whose answers are remembered. A conflict comes with the newest one, if it helps. */
  storing(store: DepartureStore): DepartureStore {
    const learned = async (answer: Promise<StoreResult>): Promise<StoreResult> => {
      const result = await answer;
      // Only the watch shows that one is gone: a 404 may come from something in between.
      if (result.kind === "Done") this.#learn(result.departure);
      return result;
    };
    const written = async (sent: Departure, answer: Promise<StoreResult>): Promise<StoreResult> => {
      const result = await learned(answer);
      const newest = this.#newest(this.#watched.departure(sent.uid));
      const helps = newest !== undefined && isNewer(newest, sent);
      return result.kind === "Conflict" && helps ? { ...result, newer: newest } : result;
    };
    return {
      create: (departure) => learned(store.create(departure)),
      read: (name) => learned(store.read(name)),
      move: (departure, to) => written(departure, store.move(departure, to)),
      notice: (departure, update) => written(departure, store.notice(departure, update)),
      dropInstant: (departure) => written(departure, store.dropInstant(departure)),
      withdraw: (departure, at) => written(departure, store.withdraw(departure, at)),
      record: (departure, write) => written(departure, store.record(departure, write)),
      finalize: (departure, change, hurry) =>
        written(departure, store.finalize(departure, change, hurry)),
      remove: (departure) => written(departure, store.remove(departure)),
    };
  }

  /** One that the watch does not show is not learned: it may have been deleted since the answer. */
  #learn(departure: Departure): void {
    const shown = this.#watched.departure(departure.uid);
    const known = this.#newest(shown);
    if (known === undefined || !isNewer(departure, known)) return;
    this.#answers.delete(departure.uid);
    this.#answers.set(departure.uid, { departure, sinceMs: this.#clock.monotonic() });
    this.#view = undefined;
  }

  #newest(shown: Departure | undefined): Departure | undefined {
    if (shown === undefined) return undefined;
    const answer = this.#answers.get(shown.uid);
    return answer !== undefined && this.#counts(answer, shown) ? answer.departure : shown;
  }

  #counts(answer: KnownAnswer, shown: Departure): boolean {
    return isNewer(answer.departure, shown) && !this.#isOver(answer);
  }

  #isOver({ sinceMs }: KnownAnswer): boolean {
    const nowMs = this.#clock.monotonic();
    if (nowMs < sinceMs + answersLastMs) return false;
    const silence = this.#watched.silences().find(({ kind }) => kind === "departures");
    return silence === undefined || nowMs - silence.ms > sinceMs;
  }

  #newestView(
    watched: FleetView,
    newest: (some: readonly Departure[]) => readonly Departure[],
  ): FleetView {
    if (this.#view?.watched === watched && !this.#hasExpired()) return this.#view.newest;
    this.#forget();
    const isSame = this.#answers.size === 0;
    const view = isSame ? watched : withDepartures(watched, newest);
    this.#view = { watched, newest: view };
    return view;
  }

  #hasExpired(): boolean {
    const oldest = this.#answers.values().next().value;
    return oldest !== undefined && this.#isOver(oldest);
  }

  /** What the watch shows as well, and what it has not shown for too long. */
  #forget(): void {
    for (const [uid, answer] of this.#answers) {
      const shown = this.#watched.departure(uid);
      if (shown === undefined || !this.#counts(answer, shown)) this.#answers.delete(uid);
    }
  }
}

/** In a burst, answers come every few milliseconds, and most readers want nodes or policies. */
function withDepartures(
  view: FleetView,
  newest: (some: readonly Departure[]) => readonly Departure[],
): FleetView {
  let made: readonly Departure[] | undefined;
  return {
    ...view,
    get departures() {
      made ??= newest(view.departures);
      return made;
    },
  };
}

/**
 * Whether one version of an object is newer. The versions of a resource are decimal numbers without
 * a limit: k8s.io/apimachinery `pkg/util/resourceversion`. Of others, nobody knows the order.
 */
function isNewer(one: Departure, than: Departure): boolean {
  const [a, b] = [one.resourceVersion, than.resourceVersion];
  if (![a, b].every((version) => /^[1-9]\d*$/.test(version))) return false;
  return a.length === b.length ? a > b : a.length > b.length;
}
