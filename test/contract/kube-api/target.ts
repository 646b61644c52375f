import type { KubeApi } from "../../../src/contracts/kube-api.ts";

/** Guarantees that a target may be unable to keep, if it gives a reason. */
export type KubeApiGap =
  /** CEL rules are not evaluated. */
  | "Cel"
  /** Field owners are not tracked, so server-side apply never conflicts. */
  | "FieldOwners"
  /** A budget cannot be kept unobserved: a controller observes it at once. */
  | "UnobservedBudget"
  /** The history of changes cannot be shortened on demand, so nothing is "too old". */
  | "Compaction";

export interface KubeApiTarget {
  readonly api: KubeApi;
  /** An existing, empty namespace that accepts pods and belongs to the suite. */
  readonly namespace: string;
  readonly gaps: Readonly<Partial<Record<KubeApiGap, string>>>;
  /** Makes earlier versions too old, if the target can do that. */
  readonly compactHistory?: () => Promise<void> | void;
  readonly close: () => Promise<void>;
}
