import type { Fields } from "../json/json-field.ts";
import type { ActionKind, ActionPoint } from "../policy/action.ts";
import type { Instant } from "../time/time.ts";

/**
 * Pending: not due yet. Running: started, and possibly completed by a controller that crashed
 * before recording it. Undone: its changes are reverted. Skipped: it does not apply to this
 * departure.
 */
export type ActionState = "Pending" | "Running" | "Done" | "Failed" | "Undone" | "Skipped";

/** The state of one action of a departure: an entry of `status.actions`. */
export interface ActionRecord {
  readonly name: string;
  readonly kind: ActionKind;
  readonly at: ActionPoint;
  readonly state: ActionState;
  /** When its first attempt started. */
  readonly startedAt?: Instant | undefined;
  /** Its duration since then. */
  readonly seconds?: number | undefined;
  readonly attempts: number;
  /** `Done`, `Undone`, or the error code. */
  readonly result?: string | undefined;
  /** A sentence with details. */
  readonly detail?: string | undefined;
  /** The undo record, written before the first change. */
  readonly undo?: Fields | undefined;
  /** The receiver's identifier: of a silence, or of a message that later ones reply to. */
  readonly reference?: string | undefined;
}
