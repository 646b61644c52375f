import {
  type Cause,
  type Departure,
  isGraver,
  isVoluntary,
  mayBeIgnored,
} from "../departure/departure.ts";
import { earlier, hours, type Instant, type Millis, minus, minutes } from "../time/time.ts";

/** The causes that a cloud names; the other two are a plan's and a person's. */
export type NoticeCause = Exclude<Cause, "Planned" | "Manual">;

/**
 * A statement from outside that a machine will go. Its instants are in the cloud's time
 * (`cloudTime`), since the clock of a node may be wrong and its word is read elsewhere.
 */
export interface Notice {
  readonly cause: NoticeCause;
  /** Absent: the cloud names none, and the drain has its ordinary time. */
  readonly deadlineAt?: Instant | undefined;
  readonly noticedAt: Instant;
  /** The way by which it came: `aws/spot-instance-action`. */
  readonly source: string;
  /** The same notice has the same id, by whatever poll it is read. */
  readonly eventId: string;
  /** The cloud may be told to begin: the event waits for that, and takes no other machine. */
  readonly canBegin?: boolean | undefined;
  /** The cloud has said outright that it is off. */
  readonly withdrawn?: boolean | undefined;
}

/**
 * `text` as an event's id. It goes into an annotation, where a comma parts ids, and into a Departure's
 * source, which holds no more than 253 characters: a short word without commas or control codes.
 */
export function wordForId(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9:._-]+/g, "_").slice(0, 80);
}

/** All that stands against one machine, as one: what a Departure is made from. */
export interface NoticeCase {
  readonly cause: NoticeCause;
  readonly deadlineAt?: Instant | undefined;
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
 * Maintenance is announced up to two weeks ahead. It becomes a departure two hours before it begins: one
 * in which budgets, waves and gates hold it as they hold any (`advice.ts`), one in which nothing does;
 * and not a fortnight of a node lying idle.
 */
export const maintenanceLeadMs: Millis = hours(2);

/**
 * Maintenance begins at its deadline or within a window after it; EC2's last two hours, as a rule.
 * Source: EC2 user guide, "Scheduled events for your instances".
 */
export const maintenanceWindowMs: Millis = hours(2);

/** What is off is written down this much before the notice that it calls off would be acted upon. */
const withdrawnLeadMs: Millis = minutes(5);

/**
 * The deadline of a departure that a notice is told of. A plan's own gives way to the cloud's; a
 * person's counts on, and so does that of the notice before: from then on it only moves earlier.
 */
export function deadlineWith(
  departure: Pick<Departure, "cause" | "noticedAt" | "deadlineAt">,
  told: { readonly deadlineAt?: Instant | undefined },
): Instant | undefined {
  const isPlansOwn = departure.cause === "Planned" && departure.noticedAt === undefined;
  const known = isPlansOwn ? undefined : departure.deadlineAt;
  if (known === undefined || told.deadlineAt === undefined) return known ?? told.deadlineAt;
  return earlier(known, told.deadlineAt);
}

/**
 * The cause that a departure gets by a notice; undefined: its own stays. A deadline that a person has named stays
 * that person's where the cloud names none, and so does the cause: nobody is forced out for it.
 */
export function causeWith(
  departure: Pick<Departure, "cause" | "deadlineAt">,
  told: { readonly cause: NoticeCause; readonly deadlineAt?: Instant | undefined },
): NoticeCause | undefined {
  const { cause, deadlineAt } = departure;
  if (!isVoluntary(cause)) return isGraver(told.cause, cause) ? told.cause : undefined;
  const isPersons = cause === "Manual" && deadlineAt !== undefined;
  return isPersons && told.deadlineAt === undefined ? undefined : told.cause;
}

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

/**
 * Makes one case of the notices of one machine: those taken back do not count, the earliest deadline
 * wins and names the cause, and one without a deadline comes after all that have one. But a cause at
 * which a policy may leave the node at work names no case in which the node has to go: a group that
 * takes a machine after a rebalance recommendation would otherwise be ignored with it. Undefined where
 * nothing stands.
 */
export function mergeNotices(notices: readonly Notice[]): NoticeCase | undefined {
  const standing = notices.filter((notice) => notice.withdrawn !== true).toSorted(byUrgency);
  const first = standing[0];
  if (first === undefined) return undefined;
  const { cause, noticedAt, source } = standing.find((one) => !mayBeIgnored(one.cause)) ?? first;
  return {
    ...{ cause, noticedAt, source },
    deadlineAt: first.deadlineAt,
    eventIds: [...new Set(standing.map((notice) => notice.eventId))].toSorted(),
  };
}

/** The same event told again: what was known first stays, and its deadline only moves earlier. */
export function tightened(known: Notice, again: Notice): Notice {
  const deadlineAt =
    known.deadlineAt === undefined || again.deadlineAt === undefined
      ? (known.deadlineAt ?? again.deadlineAt)
      : earlier(known.deadlineAt, again.deadlineAt);
  return { ...again, noticedAt: known.noticedAt, deadlineAt };
}

function byUrgency(a: Notice, b: Notice): number {
  const never = Number.MAX_SAFE_INTEGER;
  return (
    (a.deadlineAt ?? never) - (b.deadlineAt ?? never) ||
    a.noticedAt - b.noticedAt ||
    (a.eventId < b.eventId ? -1 : 1)
  );
}
