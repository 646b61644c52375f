import type { Cause } from "../policy/action.ts";
import { hours, type Instant, type Millis, minus, minutes, plus } from "../time/time.ts";

/** The causes that come from a cloud, as opposed to a plan or a person. */
export type NoticeCause = Exclude<Cause, "Planned" | "Manual">;

/**
 * An announcement that a machine will end. Its instants are in the cloud's time (`cloudTime`),
 * because a node's clock may be wrong and others read its notices.
 */
export interface Notice {
  readonly cause: NoticeCause;
  /** Absent: the cloud names none, and the drain has its usual timeout. */
  readonly deadlineAt?: Instant | undefined;
  /** The deadline is counted from the reading, so it differs between readers. */
  readonly isReckoned?: boolean | undefined;
  readonly noticedAt: Instant;
  /** Its source, such as `aws/spot-instance-action`. */
  readonly source: string;
  /** Identifies the notice across readings. */
  readonly eventId: string;
  /** The event waits for an acknowledgement and concerns no other machine. */
  readonly canBegin?: boolean | undefined;
  /** The cloud has explicitly cancelled it. */
  readonly withdrawn?: boolean | undefined;
}

/**
 * Converts a text to an event id: short, without commas or control characters, because ids are
 * comma-separated in an annotation and part of a Departure's source (at most 253 characters).
 */
export function eventIdFrom(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9:._-]+/g, "_").slice(0, 80);
}

/** The merged active notices of one machine, from which a Departure is created. */
export interface MachineNotice {
  readonly cause: NoticeCause;
  readonly deadlineAt?: Instant | undefined;
  /** As in `Notice`. */
  readonly isReckoned?: boolean | undefined;
  readonly noticedAt: Instant;
  readonly source: string;
  /** The sorted ids of all its notices. */
  readonly eventIds: readonly string[];
}

/** The complete result of one response of a cloud about this machine. */
export type NoticeReading =
  | {
      readonly kind: "Read";
      readonly notices: readonly Notice[];
      /** Events that do not end the machine, such as a live migration. */
      readonly ignored: readonly string[];
      /** Unreadable parts. A missing notice may be among them and is not dropped. */
      readonly problems: readonly string[];
    }
  | { readonly kind: "Unreadable"; readonly problem: string };

/**
 * Maintenance is announced up to two weeks ahead. Its departure is created two hours before it, so
 * that the node does not idle for two weeks: in the first hour budgets, waves and gates apply
 * (`isWaitingAdvice` in departure.ts), in the second nothing holds it back.
 */
const maintenanceLeadMs: Millis = hours(2);

/**
 * Maintenance starts at its deadline or within a window after it, of usually two hours on EC2.
 * Source: EC2 user guide, "Scheduled events for your instances".
 */
export const maintenanceWindowMs: Millis = hours(2);

/** How long after its deadline any other notice may still be carried out. */
const unfulfilledMs: Millis = minutes(10);

/** When a notice that was not carried out expires; undefined without a deadline. */
export function outlivedAt({
  cause,
  deadlineAt,
}: {
  readonly cause: Cause;
  readonly deadlineAt?: Instant | undefined;
}): Instant | undefined {
  if (deadlineAt === undefined) return undefined;
  return plus(deadlineAt, cause === "ScheduledMaintenance" ? maintenanceWindowMs : unfulfilledMs);
}

/** How long before the due time of a cancelled notice its cancellation is recorded. */
const withdrawnLeadMs: Millis = minutes(5);

/** When a notice is due; undefined: immediately. */
export function actFromAt({ cause, deadlineAt, withdrawn }: Notice): Instant | undefined {
  if (cause !== "ScheduledMaintenance" || deadlineAt === undefined) return undefined;
  const nearAt = minus(deadlineAt, maintenanceLeadMs);
  return withdrawn === true ? minus(nearAt, withdrawnLeadMs) : nearAt;
}

/** Whether a notice is due (`actFromAt`). */
export function isNear(notice: Notice, at: Instant): boolean {
  return (actFromAt(notice) ?? at) <= at;
}
