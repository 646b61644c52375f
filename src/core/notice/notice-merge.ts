import {
  type Departure,
  isGraver,
  isLive,
  isVoluntary,
  mayBeIgnored,
} from "../departure/departure.ts";
import { earliest, type Instant } from "../time/time.ts";
import type { MachineNotice, Notice, NoticeCause } from "./notice.ts";

/** The change that a notice makes to an existing departure. */
export interface NoticeUpdate {
  readonly noticedAt: Instant;
  /** Absent: the cloud names no deadline, and the planned one no longer counts. */
  readonly deadlineAt?: Instant | undefined;
  /** The source of the notice that sets the cause. */
  readonly source: string;
  /** Absent: unchanged. */
  readonly cause?: NoticeCause | undefined;
}

/** The fields of a departure that a notice may change or depends on. */
type NoticedDeparture = Pick<Departure, "cause" | "noticedAt" | "deadlineAt" | "source">;

/**
 * Merges a notice into an existing departure, for agent and controller alike; undefined if nothing
 * changes. The first notice turns a planned departure into an interruption. After that a deadline
 * only moves earlier, and a cause only becomes more severe, which the policy may react to
 * differently. A recommendation without a deadline does not change a departing node: it would only
 * keep the machine.
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
 * The deadline after a notice. The cloud's replaces a planned one; a person's, or an earlier
 * notice's, remains and only moves earlier.
 */
function deadlineWith(
  departure: NoticedDeparture,
  told: { readonly deadlineAt?: Instant | undefined },
): Instant | undefined {
  const isPlansOwn = departure.cause === "Planned" && departure.noticedAt === undefined;
  return earliest(isPlansOwn ? undefined : departure.deadlineAt, told.deadlineAt);
}

/**
 * The cause after a notice; undefined if unchanged. If only a person has set a deadline, the cause
 * stays theirs as well, so that no pod is forced for it.
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
 * Whether a departure is being withdrawn, so that a notice written to it would be lost.
 */
export function isUndoing(departure: Departure): boolean {
  return isLive(departure) && departure.withdrawnAt !== undefined;
}

/**
 * Merges all notices of one machine into one. Withdrawn notices do not count; the earliest deadline
 * wins and sets the cause; notices without a deadline come last. A cause that a policy may ignore
 * does not count beside one that ends the machine: otherwise a termination after a rebalance
 * recommendation would be ignored with it. Undefined if no notice is active.
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

/** Merges another reading of the same event: the deadline only moves earlier. */
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
