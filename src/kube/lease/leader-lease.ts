import { type Clock, Wakeup } from "../../contracts/clock.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import type { LeaderDuty, Leadership } from "../../contracts/leadership.ts";
import type { Rng } from "../../core/chance/chance.ts";
import { type Millis, millis, minutes, seconds } from "../../core/time/time.ts";
import type { LastcallError } from "../../errors.ts";
import type { ObjectChange } from "../watch/collection.ts";
import { Reflector } from "../watch/reflector.ts";
import {
  type LeaseRecord,
  LeaseStore,
  LeaseTerm,
  translateLease,
  type WonLease,
} from "./lease-store.ts";

export interface LeaderLeaseOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly rng: Rng;
  readonly namespace: string;
  readonly name: string;
  /** Unique to this process for all time: a host name and a UUID. */
  readonly identity: string;
  /** How long other replicas wait after a renewal. Default 40 s. */
  readonly durationMs?: Millis | undefined;
  /** Default 25 s: 144 requests an hour. */
  readonly renewEveryMs?: Millis | undefined;
  /** When this replica stops leading without a renewal; less than the duration. Default 35 s. */
  readonly renewDeadlineMs?: Millis | undefined;
  /** Default 2 s. */
  readonly retryMs?: Millis | undefined;
  /**
   * Whether the process of that identity is certainly gone; called once for each holder. A
   * controller that has restarted after a crash need not wait for its own old lease to expire.
   */
  readonly holderIsDead?: ((identity: string) => boolean) | undefined;
  readonly onError?: ((error: LastcallError) => void) | undefined;
}

/** The lease as last seen, and since when it has this version (monotonic). */
interface Observation {
  readonly record: LeaseRecord | undefined;
  readonly sinceMs: number;
}

/**
 * Leadership by a Lease of coordination.k8s.io/v1, as in client-go: a holder is judged by how long
 * its lease has not changed *here*, never by the times that it wrote. Unlike client-go, a standby
 * watches instead of polling: it takes a lease that is released or deleted at once, and waiting
 * costs two requests an hour. Permissions: create, get, update, list and watch on leases.
 */
export class LeaderLease implements Leadership {
  readonly #options: LeaderLeaseOptions;
  readonly #store: LeaseStore;
  readonly #durationMs: Millis;
  readonly #wakeup: Wakeup;
  #observed: Observation | undefined;
  #judged: { holder: string; resourceVersion: string; isDead: boolean } | undefined;
  #term: LeaseTerm | undefined;
  #hasWritten = false;
  #onHolder: (identity: string | undefined) => void = () => {};

  constructor(options: LeaderLeaseOptions) {
    this.#options = options;
    this.#durationMs = options.durationMs ?? seconds(40);
    this.#wakeup = new Wakeup(options.clock);
    const durationSeconds = Math.ceil(this.#durationMs / 1000);
    this.#store = new LeaseStore({ ...options, durationSeconds });
  }

  isLeader(): boolean {
    return this.#term?.isValid() ?? false;
  }

  async run(duty: LeaderDuty, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const fault = new AbortController();
    this.#onHolder = (identity) => duty.onHolder?.(identity);
    const watching = this.#watch(over.signal).catch((error) => fault.abort(error));
    const stop = AbortSignal.any([signal, fault.signal]);
    try {
      for (let isDone = false; !isDone; ) isDone = await this.#winAndLead(duty, stop);
    } finally {
      over.abort();
      await watching;
    }
    if (fault.signal.aborted && !signal.aborted) throw fault.signal.reason;
  }

  /** One term, from acquiring the lease to losing it. Returns true if it was the last. */
  async #winAndLead(duty: LeaderDuty, stop: AbortSignal): Promise<boolean> {
    const won = await this.#win(stop);
    if (won === undefined) return true;
    const term = new LeaseTerm(won, this.#termOptions());
    this.#term = term;
    try {
      await term.hold(() => duty.onLeading(AbortSignal.any([stop, term.lost])));
    } finally {
      this.#term = undefined;
    }
    return stop.aborted || !term.lost.aborted;
  }

  /** Undefined if the signal aborted first. */
  async #win(stop: AbortSignal): Promise<WonLease | undefined> {
    const { clock, rng } = this.#options;
    const retryMs = this.#options.retryMs ?? seconds(2);
    while (!stop.aborted) {
      const waitMs = this.#waitToTake();
      if (waitMs > 0) {
        await this.#wakeup.sleep(waitMs, stop);
        continue;
      }
      const won = await this.#take(stop);
      if (won !== undefined) return won;
      // A wake-up does not end this sleep: if responses are lost, the watch shows our own write.
      await clock.sleep(millis(Math.round(retryMs * (0.8 + 0.4 * rng()))), stop).catch(() => {});
    }
    return undefined;
  }

  /** How long until the lease may be taken; any change of it ends the sleep. */
  #waitToTake(): Millis {
    // Not known yet: the first list ends the sleep.
    if (this.#observed === undefined) return minutes(10);
    const { record, sinceMs } = this.#observed;
    if (record?.holder === undefined || record.holder === this.#options.identity) return millis(0);
    if (this.#isDead(record.holder, record.resourceVersion)) return millis(0);
    return millis(sinceMs + record.durationMs - this.#options.clock.monotonic());
  }

  /** Asks once for each holder. One that renews after it was declared dead is alive. */
  #isDead(holder: string, resourceVersion: string): boolean {
    if (this.#judged?.holder !== holder) {
      const isDead = this.#options.holderIsDead?.(holder) ?? false;
      this.#judged = { holder, resourceVersion, isDead };
    }
    return this.#judged.isDead && this.#judged.resourceVersion === resourceVersion;
  }

  /** Throws if the lease can never be acquired. */
  async #take(stop: AbortSignal): Promise<WonLease | undefined> {
    const { clock, identity } = this.#options;
    const askedMs = clock.monotonic();
    const written = await this.#store.write(this.#observed?.record, identity, stop);
    if (written.kind === "Written") {
      this.#hasWritten = true;
      this.#observe(written.record);
      return { record: written.record, askedMs };
    }
    if (stop.aborted) return undefined;
    if (written.kind === "Failed") this.#report(written.error);
    // A watch that is silently dead would show the old version forever.
    else await this.#lookAgain(stop);
    return undefined;
  }

  /**
   * Before the first success, a refusal is a configuration error; after it, a server that is
   * starting.
   */
  #report(error: LastcallError): void {
    const isFinal = error.code === "RIGHT_MISSING" || error.code === "NOT_FOUND";
    if (isFinal && !this.#hasWritten) throw error;
    this.#options.onError?.(error);
  }

  async #lookAgain(stop: AbortSignal): Promise<void> {
    const found = await this.#store.read(stop);
    if (found.kind === "Found") this.#observe(found.record);
    if (found.kind === "Absent") this.#observe(undefined);
    if (found.kind === "Failed" && !stop.aborted) this.#report(found.error);
  }

  /** Resolves when the signal aborts; rejects if watching the lease is forbidden. */
  async #watch(signal: AbortSignal): Promise<void> {
    const { api, clock, rng, name } = this.#options;
    const reflector = new Reflector<LeaseRecord>({
      api,
      clock,
      rng,
      path: this.#store.collection,
      query: { fieldSelector: `metadata.name=${name}` },
      translate: translateLease,
      onChange: (change) => this.#changed(change),
      onError: (error) => this.#options.onError?.(error),
    });
    const listed = () => {
      if (this.#observed === undefined) this.#observe(undefined);
    };
    reflector.synced.then(listed, () => {});
    await reflector.run(signal);
  }

  #changed(change: ObjectChange<LeaseRecord>): void {
    if (change.kind === "Set") {
      this.#observe(change.item);
      this.#term?.seen(change.item);
      return;
    }
    if (this.#observed?.record?.uid === change.before.uid) this.#observe(undefined);
    this.#term?.seenDeleted(change.before.uid);
  }

  #observe(record: LeaseRecord | undefined): void {
    const before = this.#observed;
    const isSame =
      before !== undefined && before.record?.resourceVersion === record?.resourceVersion;
    if (isSame) return;
    this.#observed = { record, sinceMs: this.#options.clock.monotonic() };
    if (before === undefined || before.record?.holder !== record?.holder) {
      this.#onHolder(record?.holder);
    }
    this.#wakeup.wake();
  }

  #termOptions() {
    const { clock, rng, identity, renewEveryMs, renewDeadlineMs, retryMs } = this.#options;
    return {
      clock,
      rng,
      identity,
      store: this.#store,
      renewEveryMs: renewEveryMs ?? seconds(25),
      renewDeadlineMs: renewDeadlineMs ?? seconds(35),
      retryMs: retryMs ?? seconds(2),
      onError: (error: LastcallError) => this.#options.onError?.(error),
      onRecord: (record: LeaseRecord) => this.#observe(record),
    };
  }
}
