import type { NodeSelector } from "./label-selector.ts";

/** Amounts by resource name, in base units: cores, bytes, pieces. `{cpu: 0.25, memory: 1048576}` */
export type Amounts = Readonly<Record<string, number>>;

/**
 * What the scheduler asks of a place for a pod: only what can keep a pod off a node. Wishes
 * (`preferred…`, `ScheduleAnyway`) are left out.
 */
export interface PodPlacement {
  /** What the pod counts for on a node: its containers, init containers and overhead together. */
  readonly requests: Amounts;
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** Required node affinity; absent: any node. */
  readonly requiredNodes?: NodeSelector | undefined;
  /** Where each of its volumes can be reached, as far as that is known; all of them must hold. */
  readonly volumeNodes?: readonly NodeSelector[] | undefined;
  readonly podAffinity: readonly PodTerm[];
  readonly podAntiAffinity: readonly PodTerm[];
  /** Absent: the default scheduler. */
  readonly schedulerName?: string | undefined;
}

/** A required term of affinity to, or against, other pods, as it stands in the pod's spec. */
export type PodTerm = Readonly<Record<string, unknown>>;

export function sumOf(a: Amounts, b: Amounts): Amounts {
  const sum: Record<string, number> = { ...a };
  for (const [resource, amount] of Object.entries(b)) {
    sum[resource] = (sum[resource] ?? 0) + amount;
  }
  return sum;
}

export function largerOf(a: Amounts, b: Amounts): Amounts {
  const larger: Record<string, number> = { ...a };
  for (const [resource, amount] of Object.entries(b)) {
    larger[resource] = Math.max(larger[resource] ?? 0, amount);
  }
  return larger;
}
