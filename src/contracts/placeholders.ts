import type { PlaceholderFacts, PlaceholderOrder } from "../core/drain/placeholder-plan.ts";

/**
 * The pods that keep room for those of a leaving node, in the controller's own namespace. Both
 * writes are idempotent: what is there already was made, and what is gone was removed.
 */
export interface Placeholders {
  /** All of them, whosever they are. */
  list(): Promise<readonly PlaceholderFacts[]>;
  /** Lists and then watches those of one Departure until the signal aborts. */
  follow(departureUid: string, signal: AbortSignal): FollowedPlaceholders;
  /** Throws `LastcallError`: no PriorityClass, a quota, a missing right, no answer. */
  create(order: PlaceholderOrder): Promise<void>;
  /** Deletes by name, without grace. Throws `LastcallError` where there was no answer. */
  remove(name: string): Promise<void>;
}

export interface FollowedPlaceholders {
  synced(): Promise<void>;
  placeholders(): readonly PlaceholderFacts[];
  onChange(listener: () => void): () => void;
}
