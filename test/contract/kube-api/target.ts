import type { KubeApi } from "../../../src/contracts/kube-api.ts";

/** Sentences that a target may be unable to keep; it says why. */
export type KubeApiGap =
  /** Rules in CEL are not evaluated. */
  | "Cel"
  /** Owners of fields are not tracked, so server-side apply never conflicts. */
  | "FieldOwners"
  /** A budget that no controller has observed cannot be held still: one observes it at once. */
  | "UnobservedBudget"
  /** The history of changes cannot be shortened at will, so nothing is "too old". */
  | "Compaction";

export interface KubeApiTarget {
  readonly api: KubeApi;
  /** A namespace that exists, is empty, takes pods, and is the suite's own. */
  readonly namespace: string;
  readonly gaps: Readonly<Partial<Record<KubeApiGap, string>>>;
  /** Makes versions from before now too old, where the target can. */
  readonly compactHistory?: () => Promise<void> | void;
  readonly close: () => Promise<void>;
}
