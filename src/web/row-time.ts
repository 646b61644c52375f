import { type BoardRow, isHeldForGood } from "../board/stream.ts";

/** The one time that a person looks for first. */
export type RowTime =
  /** The cloud takes the machine then. */
  | { readonly kind: "UntilDeadline"; readonly at: number }
  | { readonly kind: "Began"; readonly at: number }
  | { readonly kind: "Departs"; readonly at: number }
  | { readonly kind: "OnHold" }
  | { readonly kind: "Stays" };

export function rowTime(row: BoardRow): RowTime {
  const { state, noticedAt, deadlineAt, startedAt, departAt } = row;
  if (noticedAt !== null && deadlineAt !== null) return { kind: "UntilDeadline", at: deadlineAt };
  // A request without a time and a notice without a deadline have no instant, and yet it leaves.
  const beganAt = startedAt ?? departAt;
  if (state === "Leaving" && beganAt !== null) return { kind: "Began", at: beganAt };
  if (isHeldForGood(row)) return { kind: "OnHold" };
  return departAt === null ? { kind: "Stays" } : { kind: "Departs", at: departAt };
}
