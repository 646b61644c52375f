import type { Clock } from "../../contracts/clock.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { type Millis, millis } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import type { LeaseRecord, LeaseStore } from "./lease-store.ts";

export interface LeaseTermOptions {
  readonly clock: Clock;
  readonly rng: Rng;
  readonly store: LeaseStore;
  readonly identity: string;
  readonly renewEveryMs: Millis;
  readonly renewDeadlineMs: Millis;
  readonly retryMs: Millis;
  readonly onError: (error: LastcallError) => void;
  /** Each version of the lease that this term has written or found. */
  readonly onRecord: (record: LeaseRecord) => void;
}

/** The lease as it was won, and when the winning request was sent, by the monotonic clock. */
export interface WonLease {
  readonly record: LeaseRecord;
  readonly askedMs: number;
}

/**
 * One term of leading: renews the lease until it is given up or lost. The time to lead is counted
 * from the moment a renewal was *sent*: all others count theirs from when they saw it, which is
 * later, so that this replica stops first however slow the answer was.
 */
export class LeaseTerm {
  readonly #options: LeaseTermOptions;
  readonly #lost = new AbortController();
  readonly #over = new AbortController();
  readonly #ended: AbortSignal;
  #record: LeaseRecord;
  #untilMs: number;

  constructor(won: WonLease, options: LeaseTermOptions) {
    this.#options = options;
    this.#record = won.record;
    this.#untilMs = won.askedMs + options.renewDeadlineMs;
    this.#ended = AbortSignal.any([this.#lost.signal, this.#over.signal]);
  }

  /** Aborts when the lead is lost; the reason is `LEASE_LOST`. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** By the clock, not by a timer: true after a pause of the process only if there is time left. */
  isValid(): boolean {
    return !this.#ended.aborted && this.#options.clock.monotonic() < this.#untilMs;
  }

  /** Renews until `work` has settled; then gives the lease up, where it was not lost. */
  async hold(work: () => Promise<void>): Promise<void> {
    const renewing = Promise.all([this.#renewOnAndOn(), this.#watchTheClock()]);
    try {
      await work();
    } finally {
      this.#over.abort();
      await renewing;
      if (!this.#lost.signal.aborted) await this.#giveUp();
    }
  }

  /** The watch has seen the lease in this state, perhaps a while ago: only what is newer counts. */
  seen(record: LeaseRecord): void {
    const isOthers = record.holder !== undefined && record.holder !== this.#options.identity;
    if (isOthers && record.transitions > this.#record.transitions) {
      this.#lose(`${record.holder} holds the lease now`);
    }
  }

  /** The watch has seen the lease of that uid deleted: anybody may make a new one. */
  seenDeleted(uid: string): void {
    if (uid === this.#record.uid) this.#lose("the lease was deleted");
  }

  async #renewOnAndOn(): Promise<void> {
    const { clock, rng, renewEveryMs, retryMs } = this.#options;
    let waitMs: number = renewEveryMs;
    for (;;) {
      await clock.sleep(millis(waitMs), this.#ended).catch(() => {});
      if (this.#ended.aborted) return;
      const isRenewed = await this.#renew();
      waitMs = isRenewed ? renewEveryMs : Math.round(retryMs * (0.8 + 0.4 * rng()));
    }
  }

  async #watchTheClock(): Promise<void> {
    const { clock } = this.#options;
    for (;;) {
      const leftMs = this.#untilMs - clock.monotonic();
      if (leftMs <= 0) this.#lose("no renewal succeeded in time");
      if (this.#ended.aborted) return;
      await clock.sleep(millis(leftMs), this.#ended).catch(() => {});
    }
  }

  /** A request is not cut short when the work ends, or nobody would know which version is ours. */
  async #renew(): Promise<boolean> {
    const { clock, store, identity } = this.#options;
    const askedMs = clock.monotonic();
    const written = await store.write(this.#record, identity, this.#lost.signal);
    if (this.#lost.signal.aborted) return false;
    if (written.kind === "Failed") this.#options.onError(written.error);
    if (written.kind === "Conflict") await this.#lookAgain();
    if (written.kind !== "Written") return false;
    this.#keep(written.record);
    this.#untilMs = askedMs + this.#options.renewDeadlineMs;
    return true;
  }

  /**
   * A conflict is a loss, unless it was our own: a renewal whose answer was lost, or somebody who
   * wrote a label. Then the lease is still ours, in the same term, and its new version is taken.
   */
  async #lookAgain(): Promise<void> {
    const found = await this.#options.store.read(this.#lost.signal);
    if (found.kind === "Failed") return this.#options.onError(found.error);
    if (found.kind === "Absent") return this.#lose("the lease was deleted");
    const { holder, transitions, uid } = found.record;
    if (holder !== this.#options.identity || transitions !== this.#record.transitions) {
      return this.#lose(`${holder ?? "nobody"} holds the lease`);
    }
    if (uid !== this.#record.uid) return this.#lose("the lease was deleted and recreated");
    this.#keep(found.record);
  }

  async #giveUp(): Promise<void> {
    const { store, onError } = this.#options;
    let written = await store.write(this.#record, "");
    if (written.kind === "Conflict") {
      await this.#lookAgain();
      if (this.#lost.signal.aborted) return;
      written = await store.write(this.#record, "");
    }
    if (written.kind === "Written") this.#options.onRecord(written.record);
    if (written.kind === "Failed") onError(written.error);
  }

  #keep(record: LeaseRecord): void {
    this.#record = record;
    this.#options.onRecord(record);
  }

  #lose(why: string): void {
    this.#lost.abort(new LastcallError("LEASE_LOST", `Cannot keep leading: ${why}, stepping down`));
  }
}
