import {
  type Departure,
  isGraver,
  isLive,
  isVoluntary,
  mayBeIgnored,
} from "../departure/departure.ts";
import { earliest, type Instant } from "../time/time.ts";
import type { MachineNotice, Notice, NoticeCause } from "./notice.ts";

/** What a notice says to a departure that is there, and what it changes in it. */
export interface NoticeUpdate {
  readonly noticedAt: Instant;
  /** Absent: the cloud names none, and the plan's counts no more. */
  readonly deadlineAt?: Instant | undefined;
  /** Of the notice that names the cause. */
  readonly source: string;
  /** Absent: it stays. */
  readonly cause?: NoticeCause | undefined;
}

/** What of a departure a notice may change, and by what it is judged. */
type NoticedDeparture = Pick<Departure, "cause" | "noticedAt" | "deadlineAt" | "source">;

/**
 * What a notice changes in a departure that is there, whoever brings the notice and whatever it
 * finds; undefined where the departure says as much. The first one turns a planned departure into a
 * forced one. After that what is known stays: a deadline only moves to an earlier instant, and a
 * cause gives way to a graver one alone, at which the policy may want more. A recommendation
 * without an end says nothing to a node that is leaving: it would only keep the machine.
 */
export function noticeUpdate(
  departure: NoticedDeparture,
  told: NoticeUpdate,
): NoticeUpdate | undefined {
  const isFirst = departure.noticedAt === undefined;
  const deadlineAt = deadlineWith(departure, told);
  const cause = replacesMark(departure, told)
    ? told.cause
    : told.cause && causeWith(departure, { ...told, cause: told.cause });
  const isEndless = told.deadlineAt === undefined && told.cause && mayBeIgnored(told.cause);
  if (isFirst && isEndless && isVoluntary(departure.cause)) return undefined;
  if (!isFirst && deadlineAt === departure.deadlineAt && cause === undefined) return undefined;
  const keepsSource = !isFirst && cause === undefined;
  const source = (keepsSource ? departure.source : undefined) ?? told.source;
  return { noticedAt: departure.noticedAt ?? told.noticedAt, deadlineAt, source, cause };
}

/**
 * Whether the cloud's own notice takes the place of a mark on the node, such as the kubelet's that
 * it shuts down. A mark that goes takes its departure back; a machine that the cloud takes does not
 * stay for that.
 */
function replacesMark({ cause, source }: NoticedDeparture, told: NoticeUpdate): boolean {
  if (source === undefined || !isNodeMark(source) || isNodeMark(told.source)) return false;
  return told.cause !== undefined && !isGraver(cause, told.cause);
}

/** Whether a departure or a notice comes from the Node object itself. */
export function isNodeMark(source: string): boolean {
  return source.startsWith("node/");
}

/** What a notice says that came as a departure of its own; undefined where it was never noticed. */
export function updateFrom(notice: Departure): NoticeUpdate | undefined {
  const { cause, deadlineAt, source = "" } = notice;
  const noticedAt = notice.noticedAt ?? notice.createdAt;
  if (noticedAt === undefined) return undefined;
  return { noticedAt, deadlineAt, source, cause: isVoluntary(cause) ? undefined : cause };
}

/**
 * The deadline of a departure that a notice is told of. A plan's own gives way to the cloud's; a
 * person's counts on, and so does that of the notice before: from then on it only moves earlier.
 */
function deadlineWith(
  departure: NoticedDeparture,
  told: { readonly deadlineAt?: Instant | undefined },
): Instant | undefined {
  const isPlansOwn = departure.cause === "Planned" && departure.noticedAt === undefined;
  return earliest(isPlansOwn ? undefined : departure.deadlineAt, told.deadlineAt);
}

/**
 * The cause that a departure gets by a notice; undefined: its own stays. A deadline that a person
 * has named stays that person's where the cloud names none, and so does the cause: nobody is forced
 * out for it.
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

/**
 * Whether a departure is being withdrawn: a notice that is written onto it would be lost with it.
 */
export function isUndoing(departure: Departure): boolean {
  return isLive(departure) && departure.withdrawnAt !== undefined;
}

/**
 * Makes one notice of all notices of one machine: withdrawn ones do not count, the earliest
 * deadline wins and names the cause, and one without a deadline comes after all that have one. But
 * a cause at which a policy may leave the node at work does not count where another takes the node:
 * a group that takes a machine after a rebalance recommendation would otherwise be ignored with it.
 * Undefined where nothing stands.
 */
export function mergeNotices(notices: readonly Notice[]): MachineNotice | undefined {
  const standing = notices.filter((notice) => notice.withdrawn !== true).toSorted(byUrgency);
  const first = standing[0];
  if (first === undefined) return undefined;
  const { cause, noticedAt, source } = standing.find((one) => !mayBeIgnored(one.cause)) ?? first;
  return {
    ...{ cause, noticedAt, source },
    deadlineAt: first.deadlineAt,
    ...(first.isReckoned === true && { isReckoned: true }),
    eventIds: [...new Set(standing.map((notice) => notice.eventId))].toSorted(),
  };
}

/** The same event once more: what was known first stays, and its deadline only moves earlier. */
export function tightened(known: Notice, again: Notice): Notice {
  const deadlineAt = earliest(known.deadlineAt, again.deadlineAt);
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
