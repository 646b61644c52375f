import type { Cause } from "../policy/cause.ts";
import { hours, type Instant, type Millis, minus, minutes, plus } from "../time/time.ts";

/** The causes that a cloud names; the other two are a plan's and a person's. */
export type NoticeCause = Exclude<Cause, "Planned" | "Manual">;

/**
 * A statement from outside that a machine will go. Its instants are in the cloud's time
 * (`cloudTime`), since the clock of a node may be wrong and its notices are read elsewhere.
 */
export interface Notice {
  readonly cause: NoticeCause;
  /** Absent: the cloud names none, and the drain has its ordinary time. */
  readonly deadlineAt?: Instant | undefined;
  /** The deadline is counted from when it was read, and is another one for each who reads it. */
  readonly isReckoned?: boolean | undefined;
  readonly noticedAt: Instant;
  /** The way by which it came: `aws/spot-instance-action`. */
  readonly source: string;
  /** The same notice has the same id, by whatever poll it is read. */
  readonly eventId: string;
  /** The event may be acknowledged: it waits for that, and concerns no other machine. */
  readonly canBegin?: boolean | undefined;
  /** The cloud has said outright that it is off. */
  readonly withdrawn?: boolean | undefined;
}

/**
 * `text` as an event's id. It goes into an annotation, where a comma parts ids, and into a
 * Departure's source, which holds no more than 253 characters: a short word without commas or
 * control codes.
 */
export function eventIdFrom(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9:._-]+/g, "_").slice(0, 80);
}

/** All notices that stand against one machine, as one: what a Departure is made from. */
export interface MachineNotice {
  readonly cause: NoticeCause;
  readonly deadlineAt?: Instant | undefined;
  /** As in `Notice`. */
  readonly isReckoned?: boolean | undefined;
  readonly noticedAt: Instant;
  readonly source: string;
  /** Of every notice in it, in order. */
  readonly eventIds: readonly string[];
}

/** What one answer of a cloud says about this machine, all of it. */
export type NoticeReading =
  | {
      readonly kind: "Read";
      readonly notices: readonly Notice[];
      /** What concerns the machine and takes it nowhere, such as a live migration. */
      readonly ignored: readonly string[];
      /** Parts that could not be read; what is missing may be among them, and is not given up. */
      readonly problems: readonly string[];
    }
  | { readonly kind: "Unreadable"; readonly problem: string };

/**
 * Maintenance is announced up to two weeks ahead. It becomes a departure two hours before it
 * begins: one in which budgets, waves and gates hold it as they hold any (`advice.ts`), one in
 * which nothing does; and not a fortnight of a node lying idle.
 */
const maintenanceLeadMs: Millis = hours(2);

/**
 * Maintenance begins at its deadline or within a window after it; EC2's last two hours, as a rule.
 * Source: EC2 user guide, "Scheduled events for your instances".
 */
export const maintenanceWindowMs: Millis = hours(2);

/** How long after its deadline any other notice may still come true. */
const unfulfilledMs: Millis = minutes(10);

/** From when on a notice that has not come true will not; undefined where it names no deadline. */
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

/**
 * What is off is written down this much before the notice that it calls off would be acted upon.
 */
const withdrawnLeadMs: Millis = minutes(5);

/** From when on a notice is acted upon; undefined: at once. */
export function actFromAt({ cause, deadlineAt, withdrawn }: Notice): Instant | undefined {
  if (cause !== "ScheduledMaintenance" || deadlineAt === undefined) return undefined;
  const nearAt = minus(deadlineAt, maintenanceLeadMs);
  return withdrawn === true ? minus(nearAt, withdrawnLeadMs) : nearAt;
}

/** Whether a notice is to be acted upon by now (`actFromAt`). */
export function isNear(notice: Notice, at: Instant): boolean {
  return (actFromAt(notice) ?? at) <= at;
}
