import type { KubeObject } from "../contracts/kube-api.ts";
import { fieldsOf, numberOf, textMapOf, textOf } from "../core/json/json-field.ts";
import { formatInstant, type Instant, type Millis, seconds } from "../core/time/time.ts";

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
  /** Of other hands; kept as they are. */
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
export function leaseObject(claim: LeaseClaim): KubeObject {
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
