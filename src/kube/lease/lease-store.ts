import type { Clock } from "../../contracts/clock.ts";
import type {
  KubeAnswer,
  KubeApi,
  KubeObject,
  KubeRequest,
  KubeSender,
} from "../../contracts/kube-api.ts";
import type { ObservedLease } from "../../contracts/leadership.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { fieldsOf, numberOf, textMapOf, textOf } from "../../core/json/json-field.ts";
import { formatInstant, type Instant, type Millis, millis, seconds } from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import { apiError } from "../object/api-error.ts";

export type LeaseWrite =
  | { readonly kind: "Written"; readonly record: LeaseRecord }
  /** Somebody has written, or made one, since it was read. */
  | { readonly kind: "Conflict" }
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
 * A request for the Lease that is swallowed must leave time for others before the Lease runs out.
 */
const timeoutMs: Millis = seconds(5);

/** Reads and writes one Lease object; every outcome is a value. */
export class LeaseStore {
  readonly collection: string;
  readonly #options: LeaseStoreOptions;

  constructor(options: LeaseStoreOptions) {
    this.#options = options;
    this.collection = `/apis/coordination.k8s.io/v1/namespaces/${options.namespace}/leases`;
  }

  /** Creates the lease where there was none before, else replaces just that version of it. */
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
    const answer = await this.#send({ ...request, body, timeoutMs, signal });
    if (isLastcallError(answer)) return { kind: "Failed", error: answer };
    if (answer.status === 200 || answer.status === 201) {
      return { kind: "Written", record: toRecord(answer) };
    }
    const wasDeleted = answer.status === 404 && before !== undefined;
    if (answer.status === 409 || wasDeleted) return { kind: "Conflict" };
    return { kind: "Failed", error: apiError(request, answer) };
  }

  async read(signal?: AbortSignal): Promise<LeaseRead> {
    const request = { method: "GET", path: this.#path() } as const;
    const answer = await this.#send({ ...request, timeoutMs, signal });
    if (isLastcallError(answer)) return { kind: "Failed", error: answer };
    if (answer.status === 200) return { kind: "Found", record: toRecord(answer) };
    if (answer.status === 404) return { kind: "Absent" };
    return { kind: "Failed", error: apiError(request, answer) };
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

/** What a Lease of coordination.k8s.io/v1 says. */
export interface LeaseRecord {
  readonly uid: string;
  readonly resourceVersion: string;
  /** Undefined when it was given up. */
  readonly holder: string | undefined;
  /** How long after a renewal it may not be taken. */
  readonly durationMs: Millis;
  readonly acquireTime: string | undefined;
  /** Counts the changes of holder. */
  readonly transitions: number;
  /** Set by others; kept as they are. */
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface LeasePlace {
  readonly namespace: string;
  readonly name: string;
}

/** Total; a Lease without a duration counts as one of 40 s, as ours are. */
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
  /** The record that the claim was decided upon; absent: there is none. */
  readonly before: LeaseRecord | undefined;
  /** Empty: the lease is given up. */
  readonly holder: string;
  readonly durationSeconds: number;
  readonly now: Instant;
}

/**
 * The Lease to write. Its resourceVersion makes the write fail if anybody, the holder's renewal
 * too, has written since `before` was read.
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

/** A MicroTime has six digits of a second. */
function microTime(at: Instant): string {
  return formatInstant(at).replace("Z", "000Z");
}

/**
 * The controllers' Lease as it is now; undefined where there is none: then nobody can be judged by
 * it.
 */
export async function readObservedLease(
  api: KubeSender,
  { namespace, name }: LeasePlace,
): Promise<ObservedLease | undefined> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${name}`;
  const request: KubeRequest = { method: "GET", path };
  const answer = await api.send(request);
  if (answer.status === 404) return undefined;
  if (answer.status >= 300) throw apiError(request, answer);
  const { resourceVersion, holder, durationMs } = translateLease(answer.body as KubeObject);
  return { version: resourceVersion, held: holder !== undefined, durationMs };
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
