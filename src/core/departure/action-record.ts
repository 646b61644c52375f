import type { Fields } from "../json/json-field.ts";
import type { ActionKind, ActionPoint } from "../policy/action.ts";
import type { Instant } from "../time/time.ts";

/**
 * Pending: not due yet; Running: begun, and perhaps done by a controller that did not live to say
 * so; Undone: what it had changed is as it was; Skipped: not for this departure, and why.
 */
export type ActionState = "Pending" | "Running" | "Done" | "Failed" | "Undone" | "Skipped";

/** What has come of one action of a departure: an entry of `status.actions`. */
export interface ActionRecord {
  readonly name: string;
  readonly kind: ActionKind;
  readonly at: ActionPoint;
  readonly state: ActionState;
  /** When its first attempt began. */
  readonly startedAt?: Instant | undefined;
  /** From there to its end. */
  readonly seconds?: number | undefined;
  readonly attempts: number;
  /** `Done`, `Undone`, or the code of what went wrong. */
  readonly result?: string | undefined;
  /** One sentence about it. */
  readonly detail?: string | undefined;
  /** What it takes to undo it; written before the first change. */
  readonly undo?: Fields | undefined;
  /** What the receiver calls what it was sent: a silence, a message that later ones answer. */
  readonly reference?: string | undefined;
}
