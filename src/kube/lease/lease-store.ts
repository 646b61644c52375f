import type { Clock } from "../../contracts/clock.ts";
import type { KubeAnswer, KubeApi, KubeObject } from "../../contracts/kube-api.ts";
import type { Rng } from "../../core/chance/chance.ts";
import { fieldsOf, numberOf, textMapOf, textOf } from "../../core/json/json-field.ts";
import { formatInstant, type Instant, type Millis, millis, seconds } from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import { apiError, isConflict, isGone, isNameTaken, objectError } from "../object/api-call.ts";

export type LeaseWrite =
  | { readonly kind: "Written"; readonly record: LeaseRecord }
  /** Another writer has changed or created the lease since it was read, by the server's answer. */
  | { readonly kind: "Conflict"; readonly error: LastcallError }
  | { readonly kind: "Failed"; readonly error: LastcallError };

export type LeaseRead =
  | { readonly kind: "Found"; readonly record: LeaseRecord }
  | { readonly kind: "Absent" }
  | { readonly kind: "Failed"; readonly error: LastcallError };

export interface LeaseStoreOptions extends LeasePlace {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly durationSeconds: number;
}

/**
 * The timeout of a lease request: if one is lost, there must be time for others before the lease
 * expires.
 */
const timeoutMs: Millis = seconds(5);
/** Otherwise a burst of requests that hang would cost the leadership. */
const urgency = "Apart";

/** Reads and writes one Lease object. API errors are returned, not thrown. */
export class LeaseStore {
  readonly collection: string;
  readonly #options: LeaseStoreOptions;

  constructor(options: LeaseStoreOptions) {
    this.#options = options;
    this.collection = `/apis/coordination.k8s.io/v1/namespaces/${options.namespace}/leases`;
  }

  /** Creates the lease if there was none before, otherwise replaces exactly that version of it. */
  async write(
    before: LeaseRecord | undefined,
    holder: string,
    signal?: AbortSignal,
  ): Promise<LeaseWrite> {
    const { clock } = this.#options;
    const body = leaseObject({ ...this.#options, before, holder, now: clock.now() });
    const request =
      before === undefined
        ? ({ method: "POST", path: this.collection } as const)
        : ({ method: "PUT", path: this.#path() } as const);
    const answer = await this.#send({ ...request, body, urgency, timeoutMs, signal });
    if (isLastcallError(answer)) return { kind: "Failed", error: answer };
    if (answer.status === 200 || answer.status === 201) {
      return { kind: "Written", record: toRecord(answer) };
    }
    const isOvertaken = before === undefined ? isNameTaken(answer) : isConflict(answer);
    // It was deleted; a 404 to its creation is about its namespace.
    const isMissing = before !== undefined && isGone(answer);
    const error = before === undefined ? apiError(request, answer) : objectError(request, answer);
    return { kind: isOvertaken || isMissing ? "Conflict" : "Failed", error };
  }

  async read(signal?: AbortSignal): Promise<LeaseRead> {
    const request = { method: "GET", path: this.#path() } as const;
    const answer = await this.#send({ ...request, urgency, timeoutMs, signal });
    if (isLastcallError(answer)) return { kind: "Failed", error: answer };
    if (answer.status === 200) return { kind: "Found", record: toRecord(answer) };
    if (isGone(answer)) return { kind: "Absent" };
    return { kind: "Failed", error: objectError(request, answer) };
  }

  async #send(request: Parameters<KubeApi["send"]>[0]): Promise<KubeAnswer | LastcallError> {
    try {
      return await this.#options.api.send(request);
    } catch (error) {
      if (isLastcallError(error)) return error;
      throw error;
    }
  }

  #path(): string {
    return `${this.collection}/${this.#options.name}`;
  }
}

function toRecord(answer: KubeAnswer): LeaseRecord {
  return translateLease(fieldsOf(answer.body) as KubeObject);
}

/** The content of a Lease of coordination.k8s.io/v1. */
export interface LeaseRecord {
  readonly uid: string;
  readonly resourceVersion: string;
  /** Undefined if it was released. */
  readonly holder: string | undefined;
  /** How long after a renewal nobody else may take it. */
  readonly durationMs: Millis;
  readonly acquireTime: string | undefined;
  /** The number of changes of holder. */
  readonly transitions: number;
  /** Set by others, and preserved. */
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface LeasePlace {
  readonly namespace: string;
  readonly name: string;
}

/** Total; a Lease without a duration counts as one of 40 s, like ours. */
export function translateLease(lease: KubeObject): LeaseRecord {
  const meta = fieldsOf(lease.metadata);
  const spec = fieldsOf(lease.spec);
  const durationSeconds = numberOf(spec.leaseDurationSeconds) ?? 0;
  return {
    uid: textOf(meta.uid) ?? "",
    resourceVersion: textOf(meta.resourceVersion) ?? "",
    holder: textOf(spec.holderIdentity) || undefined,
    durationMs: seconds(durationSeconds > 0 ? durationSeconds : 40),
    acquireTime: textOf(spec.acquireTime),
    transitions: numberOf(spec.leaseTransitions) ?? 0,
    labels: textMapOf(meta.labels),
    annotations: textMapOf(meta.annotations),
  };
}

export interface LeaseClaim extends LeasePlace {
  /** The record that the claim is based on; undefined if there is no lease. */
  readonly before: LeaseRecord | undefined;
  /** Empty releases the lease. */
  readonly holder: string;
  readonly durationSeconds: number;
  readonly now: Instant;
}

/**
 * The Lease to write. Its resourceVersion makes the write fail if anybody has written since
 * `before` was read, even the holder by a renewal.
 */
function leaseObject(claim: LeaseClaim): KubeObject {
  const { before, holder, now } = claim;
  const isRenewal = before !== undefined && (before.holder === holder || holder === "");
  const acquireTime = isRenewal ? before.acquireTime : undefined;
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: {
      name: claim.name,
      namespace: claim.namespace,
      ...(before && { resourceVersion: before.resourceVersion }),
      ...(before && { labels: before.labels, annotations: before.annotations }),
    },
    spec: {
      holderIdentity: holder,
      leaseDurationSeconds: claim.durationSeconds,
      acquireTime: acquireTime ?? microTime(now),
      renewTime: microTime(now),
      leaseTransitions: before === undefined ? 0 : before.transitions + (isRenewal ? 0 : 1),
    },
  };
}

/** A MicroTime has six decimal places. */
function microTime(at: Instant): string {
  return formatInstant(at).replace("Z", "000Z");
}

export interface LeaseTermOptions {
  readonly clock: Clock;
  readonly rng: Rng;
  readonly store: LeaseStore;
  readonly identity: string;
  readonly renewEveryMs: Millis;
  readonly renewDeadlineMs: Millis;
  readonly retryMs: Millis;
  readonly onError: (error: LastcallError) => void;
  /** Called with each version of the lease that this term has written or found. */
  readonly onRecord: (record: LeaseRecord) => void;
}

/** The lease as acquired, and when the successful request was sent (monotonic). */
export interface WonLease {
  readonly record: LeaseRecord;
  readonly askedMs: number;
}

/**
 * One term as leader: renews the lease until it is released or lost. The time to lead counts from
 * when a renewal was *sent*, while other replicas count from when they saw it, which is later. So
 * this replica stops first, however slow the response was.
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

  /**
   * Checks the clock instead of a timer: after a pause of the process, it is true only if time is
   * left.
   */
  isValid(): boolean {
    return !this.#ended.aborted && this.#options.clock.monotonic() < this.#untilMs;
  }

  /** Renews until `work` has settled, then releases the lease unless it was lost. */
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

  /**
   * Called when the watch shows the lease. It may be late, so only a newer term of another holder
   * counts.
   */
  seen(record: LeaseRecord): void {
    const isOthers = record.holder !== undefined && record.holder !== this.#options.identity;
    if (isOthers && record.transitions > this.#record.transitions) {
      this.#lose(`${record.holder} holds the lease now`);
    }
  }

  /** Called when the watch shows that the lease was deleted: anybody may create a new one. */
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

  /**
   * The request is not aborted when the work ends, because our current version would then be
   * unknown.
   */
  async #renew(): Promise<boolean> {
    const { clock, store, identity } = this.#options;
    const askedMs = clock.monotonic();
    const written = await store.write(this.#record, identity, this.#lost.signal);
    if (this.#lost.signal.aborted) return false;
    if (written.kind === "Failed") this.#options.onError(written.error);
    if (written.kind === "Conflict") {
      const { resourceVersion } = this.#record;
      await this.#lookAgain();
      // Nobody else has written, so something else refuses it.
      if (this.#record.resourceVersion === resourceVersion) this.#options.onError(written.error);
    }
    if (written.kind !== "Written") return false;
    this.#keep(written.record);
    this.#untilMs = askedMs + this.#options.renewDeadlineMs;
    return true;
  }

  /**
   * A conflict means that the lease is lost, unless our own renewal succeeded without a response,
   * or somebody changed a label. Then the lease is still ours, in the same term, and its new
   * version is used.
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
