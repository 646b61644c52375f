import type { Clock } from "../../contracts/clock.ts";
import type { KubeAnswer, KubeApi, KubeObject, Urgency } from "../../contracts/kube-api.ts";
import { backoffMs, type Rng } from "../../core/chance/chance.ts";
import { fieldsOf, numberOf, textOf } from "../../core/json/json-field.ts";
import { staleAfterMs } from "../../core/limits/stale-watch.ts";
import { type Instant, type Millis, millis, minutes } from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import { apiError, isExpired, retryAfterMs } from "../object/api-call.ts";
import {
  itemsOf,
  limitQuery,
  nextPage,
  type ObjectChange,
  ObjectStore,
  type PageLimit,
  type SkippedObject,
} from "./collection.ts";

export interface ReflectorOptions<T> {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly rng: Rng;
  /** The collection, such as `/api/v1/nodes`. */
  readonly path: string;
  /** The selectors: `fieldSelector`, `labelSelector`. */
  readonly query?: Readonly<Record<string, string>> | undefined;
  /** Extracts what is kept of each object. */
  readonly translate: (object: KubeObject) => T;
  /** The keys of `items()`: the uid (default), or `namespace/name` or `name`. */
  readonly keyBy?: "uid" | "name" | undefined;
  /** Called once for every change; must not throw. The caller batches changes. */
  readonly onChange?: ((change: ObjectChange<T>) => void) | undefined;
  /** Called for an object that `translate` threw for; the stream continues. */
  readonly onSkip?: ((skipped: SkippedObject) => void) | undefined;
  /** Called for an error that is retried. */
  readonly onError?: ((error: LastcallError) => void) | undefined;
  /**
   * The page size of lists. Default 500. A page is parsed as a whole: 1,000 nodes of 12 kB take 56
   * MiB resident in pages of 500, and 43 MiB in pages of 100 (Node 26, bundled).
   */
  readonly pageLimit?: PageLimit | undefined;
  /** `KubeRequest.dueAt` of the list. */
  readonly listDueAt?: Instant | undefined;
  /** The longest pause between attempts. Default 10 s, or what the server asks for. */
  readonly longestPauseMs?: Millis | undefined;
  /** The urgency of the watch after the list, whose result is enough to start with. */
  readonly watchUrgency?: Urgency | undefined;
  /**
   * What a missing right to watch means before the first watch. Default `Final`, which shows at a
   * start that a role lacks it. `Retried` suits a short watch, such as that of one drain: its first
   * attempt may meet an API server that has not read its roles yet.
   */
  readonly watchRefusals?: "Final" | "Retried" | undefined;
}

/** What every reflector of a class shares. */
export type SharedReflectorOptions = Pick<
  ReflectorOptions<unknown>,
  "api" | "clock" | "rng" | "onError"
>;

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

/** A watch that lasted this long counts as successful. */
const goodWatchMs = 5_000;

/**
 * After so many failed watches from the same version, the collection is listed again.
 */
const watchesPerVersion = 5;

/**
 * A live copy of one collection, like client-go's reflector: a list in pages, then a watch from its
 * version, and another list if that version has expired, or if nothing was heard for minutes. It
 * stores only what `translate` returns.
 *
 * A missing right or definition rejects `run` (`RIGHT_MISSING`, `CRD_MISSING`) until the verb has
 * succeeded once; after that it counts as a server that is starting, and is retried. With
 * `watchRefusals: "Retried"`, only the first list can reject it.
 */
export class Reflector<T> {
  /** Resolves with the first complete list; rejects when `run` ends before it. */
  readonly synced: Promise<void>;
  readonly #options: ReflectorOptions<T>;
  readonly #store: ObjectStore<T>;
  readonly #sync = Promise.withResolvers<void>();
  /** Consecutive failures, each of which makes the next pause longer. */
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
    // Waiting for it is optional.
    this.synced.catch(() => {});
  }

  /** The live map, not a copy: it changes between turns of the event loop. */
  items(): ReadonlyMap<string, T> {
    return this.#store.items;
  }

  /** When the server last sent something; undefined if it has not. */
  get lastHeardAt(): Instant | undefined {
    return this.#heardAt;
  }

  /** The time since the server last sent something, or since the start. */
  silentMs(): Millis {
    return millis(this.#options.clock.monotonic() - this.#heardMs);
  }

  /**
   * Whether the copy is current. Without bookmarks, an idle watch shows no sign of life before it
   * ends, after 70 or 140 seconds with `HttpKubeApi`: hence the default of ten minutes.
   */
  isFresh(limitMs: Millis = minutes(10)): boolean {
    return this.#heardAt !== undefined && this.silentMs() <= limitMs;
  }

  /** Lists and watches until the signal aborts, then resolves. Call it once. */
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
      // A watch that stays silent may be cut off where a list is not.
      const isStale = this.silentMs() > staleAfterMs;
      if (this.#version === undefined || isStale) return await this.#list(signal);
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

  /** The pause after a watch, which avoids a hot loop if the server ends every watch at once. */
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
    // A long watch whose connection was found dead does not indicate a failing server.
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
    const tokens = new Set<string>();
    for (let next: ReturnType<typeof nextPage>; ; ) {
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
      next = nextPage(path, answer, tokens);
      if (next !== undefined) continue;
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

  /** 30 to 50 minutes: few requests an hour, and many clients do not reconnect together. */
  #watchSeconds(): number {
    return 1800 + Math.floor(this.#options.rng() * 1200);
  }

  /** Handles a refusal. Throws if retrying is pointless. */
  #refused(verb: Verb, answer: KubeAnswer): Ending {
    if (isExpired(answer)) {
      // Pages expired while they were read, on a slow server: lists without pages next time.
      this.#listWhole = verb === "list";
      return { kind: "Expired" };
    }
    const call = { method: "GET", path: this.#options.path } as const;
    const error = apiError(verb === "watch" ? { ...call, verb } : call, answer);
    if (isFinal(error) && !this.#isRetried(verb)) throw error;
    return { kind: "Failed", error, waitMs: retryAfterMs(answer), lastedMs: 0 };
  }

  #isRetried(verb: Verb): boolean {
    const { watchRefusals } = this.#options;
    return this.#granted.has(verb) || (verb === "watch" && watchRefusals === "Retried");
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
