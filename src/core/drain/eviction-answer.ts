import type { Millis } from "../time/time.ts";

/** What came of asking one pod to leave. Source of the cases: the eviction subresource, 1.36. */
export type EvictionAnswer =
  /** 201: the pod's termination has begun. */
  | { readonly kind: "Accepted" }
  /** 404: there is no such pod any more. */
  | { readonly kind: "Gone" }
  /** 409: a pod of that name is there, but another one. */
  | { readonly kind: "Replaced" }
  /** 429 with the cause DisruptionBudget; `stale`: the budget's status is behind its spec. */
  | {
      readonly kind: "Blocked";
      readonly budget?: string | undefined;
      readonly message: string;
      readonly retryAfterMs?: Millis | undefined;
      readonly stale: boolean;
    }
  /** 429 as plain text: priority and fairness, or an overloaded server. */
  | { readonly kind: "Overloaded"; readonly retryAfterMs?: Millis | undefined }
  | { readonly kind: "NamespaceTerminating" }
  /** More than one PodDisruptionBudget selects the pod: the API evicts it never. */
  | { readonly kind: "MultipleBudgets"; readonly message: string }
  /** A webhook or a missing right said no. */
  | { readonly kind: "Refused"; readonly status: number; readonly message: string }
  | { readonly kind: "Failed"; readonly retryable: boolean; readonly message: string }
  /** The connection was lost after sending: it may have happened. */
  | { readonly kind: "NoAnswer"; readonly message: string };
