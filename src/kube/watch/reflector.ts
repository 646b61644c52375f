import type { Clock } from "../../contracts/clock.ts";
import type { KubeAnswer, KubeApi, KubeObject, Urgency } from "../../contracts/kube-api.ts";
import { backoffMs } from "../../core/chance/backoff.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { fieldsOf, numberOf, textOf } from "../../core/json/json-field.ts";
import { type Instant, type Millis, millis, minutes } from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import { apiError, isExpired, retryAfterMs } from "../object/api-error.ts";
import { itemsOf, limitQuery, type PageLimit } from "./list.ts";
import { type ObjectChange, ObjectStore, type SkippedObject } from "./object-store.ts";

export interface ReflectorOptions<T> {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly rng: Rng;
  /** The collection, such as `/api/v1/nodes`. */
  readonly path: string;
  /** `fieldSelector`, `labelSelector`. */
  readonly query?: Readonly<Record<string, string>> | undefined;
  /** What is kept of each object. */
  readonly translate: (object: KubeObject) => T;
  /** The keys of `items()`: the uid (default), or `namespace/name` or `name`. */
  readonly keyBy?: "uid" | "name" | undefined;
  /** Every true difference, once; it must not throw. The caller makes one of many. */
  readonly onChange?: ((change: ObjectChange<T>) => void) | undefined;
  /** An object that `translate` threw for; the stream goes on. */
  readonly onSkip?: ((skipped: SkippedObject) => void) | undefined;
  /** A fault that will be tried again. */
  readonly onError?: ((error: LastcallError) => void) | undefined;
  /**
   * Objects in one page of a list. Default 500. A page is parsed whole: 1,000 nodes of 12 kB cost
   * 56 MiB resident in pages of 500 and 43 in pages of 100 (Node 26, bundled).
   */
  readonly pageLimit?: PageLimit | undefined;
  /** Of the list, as `KubeRequest.dueAt`. */
  readonly listDueAt?: Instant | undefined;
  /** Between two attempts, whatever the server asks for. Default 10 s, or what it asks for. */
  readonly longestPauseMs?: Millis | undefined;
  /** Of the watch that follows the list; what the list shows is enough to begin with. */
  readonly watchUrgency?: Urgency | undefined;
}

type Verb = "list" | "watch";

/** How one list or one watch ended. */
type Ending =
  | { readonly kind: "Listed" }
  | { readonly kind: "WatchEnded"; readonly heard: boolean; readonly lastedMs: number }
  | { readonly kind: "Expired" }
  | {
      readonly kind: "Failed";
      readonly error: LastcallError;
      readonly waitMs?: Millis | undefined;
      readonly lastedMs: number;
    };

/** A watch that lasted this long was a good one, whatever it brought. */
const goodWatchMs = 5_000;

/**
 * The same version may fail for ever on a server's fault: after so many failures it is given up.
 */
const watchesPerVersion = 5;

/**
 * A live copy of one collection: a list in pages, then a watch that goes on from the last version
 * seen, a list again where that version has expired. It holds only what `translate` gives.
 *
 * A missing right or definition rejects `run` until the verb has worked once (`RIGHT_MISSING`,
 * `CRD_MISSING`); after that it is taken for a server that is starting and is tried again.
 */
export class Reflector<T> {
  /** Resolves with the first complete list; rejects when `run` ends before it. */
  readonly synced: Promise<void>;
  readonly #options: ReflectorOptions<T>;
  readonly #store: ObjectStore<T>;
  readonly #sync = Promise.withResolvers<void>();
  /** How many of a kind came one after the other: each makes the next pause longer. */
  #failures = 0;
  #relists = 0;
  readonly #granted = new Set<Verb>();
  #version: string | undefined;
  #failedWatches = 0;
  #listWhole = false;
  #heardAt: Instant | undefined;
  #heardMs: number;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#store = new ObjectStore({
      keyBy: options.keyBy ?? "uid",
      translate: options.translate,
      onChange: options.onChange ?? (() => {}),
      onSkip: options.onSkip ?? (() => {}),
    });
    this.#heardMs = options.clock.monotonic();
    this.synced = this.#sync.promise;
    // Nobody need wait for it.
    this.synced.catch(() => {});
  }

  /** The live map itself: cheap to ask for, and it changes under the reader from turn to turn. */
  items(): ReadonlyMap<string, T> {
    return this.#store.items;
  }

  /** When the server last sent something; undefined before the first time. */
  get lastHeardAt(): Instant | undefined {
    return this.#heardAt;
  }

  /** Since the server last sent something, or since the start. */
  silentMs(): Millis {
    return millis(this.#options.clock.monotonic() - this.#heardMs);
  }

  /**
   * Whether the copy can be relied on. Where a server sends no bookmarks, a quiet watch is heard
   * only as it ends, after 70 seconds with `HttpKubeApi`: hence the default of ten.
   */
  isFresh(limitMs: Millis = minutes(10)): boolean {
    return this.#heardAt !== undefined && this.silentMs() <= limitMs;
  }

  /** Lists and watches until the signal aborts; then it resolves. To be called once. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      while (!signal.aborted) {
        const ending = await this.#listOrWatch(signal);
        if (signal.aborted) break;
        const waitMs = this.#waitAfter(ending);
        if (waitMs > 0) await this.#options.clock.sleep(waitMs, signal);
      }
    } catch (error) {
      if (signal.aborted) return;
      this.#sync.reject(error);
      throw error;
    } finally {
      this.#sync.reject(
        new LastcallError("INTERRUPTED", `Cannot wait for ${this.#options.path}: interrupted`),
      );
    }
  }

  async #listOrWatch(signal: AbortSignal): Promise<Ending> {
    const { clock } = this.#options;
    const startMs = clock.monotonic();
    try {
      if (this.#version === undefined) return await this.#list(signal);
      return await this.#watch(this.#version, signal);
    } catch (error) {
      if (!isLastcallError(error) || isFinal(error)) throw error;
      return { kind: "Failed", error, lastedMs: clock.monotonic() - startMs };
    }
  }

  #waitAfter(ending: Ending): Millis {
    switch (ending.kind) {
      case "Listed":
        this.#failures = 0;
        return millis(0);
      case "WatchEnded":
        return this.#waitAfterWatch(ending);
      case "Expired":
        this.#version = undefined;
        return this.#pauseAfter(this.#relists++);
      case "Failed":
        return this.#waitAfterFailure(ending);
    }
  }

  /** A server that ends every watch at once must not be asked in a hot loop. */
  #waitAfterWatch({ heard, lastedMs }: Extract<Ending, { kind: "WatchEnded" }>): Millis {
    const wasGood = lastedMs >= goodWatchMs;
    if (wasGood) this.#relists = 0;
    if (wasGood || heard) {
      this.#failures = 0;
      this.#failedWatches = 0;
    }
    return wasGood ? millis(0) : this.#pauseAfter(this.#failures++);
  }

  #waitAfterFailure({ error, waitMs, lastedMs }: Extract<Ending, { kind: "Failed" }>): Millis {
    this.#options.onError?.(error);
    // A watch that was good until its connection was found dead is no sign of a server that is ill.
    if (lastedMs >= goodWatchMs) this.#failures = 0;
    if (error.code !== "API_UNREACHABLE") this.#failedWatches += 1;
    if (this.#failedWatches >= watchesPerVersion) {
      this.#version = undefined;
      this.#failedWatches = 0;
    }
    const { longestPauseMs = Number.POSITIVE_INFINITY } = this.#options;
    const pauseMs = this.#pauseAfter(this.#failures++);
    return millis(Math.min(longestPauseMs, Math.max(pauseMs, waitMs ?? 0)));
  }

  #pauseAfter(failure: number): Millis {
    const { rng, longestPauseMs: mostMs } = this.#options;
    return backoffMs(failure, rng, { mostMs });
  }

  async #list(signal: AbortSignal): Promise<Ending> {
    const { api, path, query, pageLimit, listDueAt: dueAt } = this.#options;
    const limit = limitQuery(this.#listWhole ? "None" : (pageLimit ?? 500));
    const seen = new Set<string>();
    for (let token: string | undefined; ; ) {
      const next = token === undefined ? undefined : { continue: token };
      const answer = await api.send({
        method: "GET",
        path,
        query: { ...query, ...limit, ...next },
        dueAt,
        signal,
      });
      if (answer.status !== 200) return this.#refused("list", answer);
      this.#heard("list");
      const meta = this.#takePage(answer, seen);
      token = textOf(meta.continue) || undefined;
      if (token !== undefined) continue;
      this.#store.keepOnly(seen);
      this.#version = textOf(meta.resourceVersion) ?? "0";
      this.#listWhole = false;
      this.#sync.resolve();
      return { kind: "Listed" };
    }
  }

  #takePage(answer: KubeAnswer, seen: Set<string>): Readonly<Record<string, unknown>> {
    for (const item of itemsOf(this.#options.path, answer)) {
      const key = this.#store.put(fieldsOf(item) as KubeObject);
      if (key !== undefined) seen.add(key);
    }
    return fieldsOf(fieldsOf(answer.body).metadata);
  }

  async #watch(version: string, signal: AbortSignal): Promise<Ending> {
    const { api, clock, path, query, watchUrgency: urgency } = this.#options;
    const startMs = clock.monotonic();
    let heard = false;
    const more = {
      resourceVersion: version,
      allowWatchBookmarks: "true",
      timeoutSeconds: String(this.#watchSeconds()),
    };
    for await (const event of api.watch({ path, query: { ...query, ...more }, urgency, signal })) {
      const { object } = event;
      if (event.type === "ERROR") {
        const status = numberOf(object.code) ?? 500;
        return this.#refused("watch", { status, body: object });
      }
      heard = true;
      this.#heard("watch");
      if (event.type === "DELETED") this.#store.remove(object);
      else if (event.type !== "BOOKMARK") this.#store.put(object);
      this.#version = object.metadata?.resourceVersion ?? this.#version;
    }
    const lastedMs = clock.monotonic() - startMs;
    if (lastedMs >= goodWatchMs) this.#heard("watch");
    return { kind: "WatchEnded", heard, lastedMs };
  }

  /** 30 to 50 minutes: few requests an hour, and the watches of many clients do not end in step. */
  #watchSeconds(): number {
    return 1800 + Math.floor(this.#options.rng() * 1200);
  }

  /** Throws where going on is pointless. */
  #refused(verb: Verb, answer: KubeAnswer): Ending {
    if (isExpired(answer)) {
      // Pages that expire while they are read, on a slow or busy server: next time without pages.
      this.#listWhole = verb === "list";
      return { kind: "Expired" };
    }
    const call = { method: "GET", path: this.#options.path } as const;
    const error = apiError(verb === "watch" ? { ...call, verb } : call, answer);
    if (isFinal(error) && !this.#granted.has(verb)) throw error;
    return { kind: "Failed", error, waitMs: retryAfterMs(answer), lastedMs: 0 };
  }

  #heard(verb: Verb): void {
    this.#granted.add(verb);
    this.#heardAt = this.#options.clock.now();
    this.#heardMs = this.#options.clock.monotonic();
  }
}

function isFinal({ code }: LastcallError): boolean {
  return code === "RIGHT_MISSING" || code === "CRD_MISSING" || code === "BROKEN_INVARIANT";
}
