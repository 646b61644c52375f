import {
  type Departure,
  type DepartureStatus,
  isGraver,
  isLive,
  isVoluntary,
  mayBeIgnored,
} from "../departure/departure.ts";
import type { Cause } from "../policy/action.ts";
import {
  earliest,
  hours,
  type Instant,
  type Millis,
  minus,
  minutes,
  plus,
  seconds,
} from "../time/time.ts";

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
  /** An event with its own id has begun: a machine that boots after that has been through it. */
  readonly hasBegun?: boolean | undefined;
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
  /** Of all of its notices. */
  readonly hasBegun?: boolean | undefined;
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

/** Whether a departure was given up because its notice was withdrawn or outlived. */
export function isNoticeOver({ reason }: Pick<DepartureStatus, "reason">): boolean {
  return reason === "NoticeWithdrawn" || reason === "NoticeOutlived";
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
 * Whether the cloud's own notice replaces a mark on the node, such as the kubelet's shutdown
 * condition. A mark that disappears withdraws its departure, but a machine that the cloud takes
 * does not stay because of that.
 */
function replacesMark({ cause, source }: NoticedDeparture, told: NoticeUpdate): boolean {
  if (source === undefined || !isNodeMark(source) || isNodeMark(told.source)) return false;
  return told.cause !== undefined && !isGraver(cause, told.cause);
}

/** Whether a departure or a notice comes from the Node object itself. */
export function isNodeMark(source: string): boolean {
  return source.startsWith("node/");
}

/** The notice in a departure that was created for it; undefined if it has no time. */
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

/** Whether a departure is being withdrawn. A notice written to it would be lost. */
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
    ...(standing.every(({ hasBegun }) => hasBegun === true) && { hasBegun: true }),
    eventIds: [...new Set(standing.map((notice) => notice.eventId))].toSorted(),
  };
}

/** Merges another reading of the same event: the deadline only moves earlier. */
function tightened(known: Notice, again: Notice): Notice {
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

/**
 * How long a notice has to be missing from its channel before it is dropped, so that a single wrong
 * response of a metadata service does not uncordon a dying node.
 */
export const withdrawAfterMs: Millis = seconds(10);

interface HeldNotice {
  readonly notice: Notice;
  /** Its channel, whose every response contains the complete state. */
  readonly channel: string;
  /** Since when its channel no longer contains it. */
  readonly missingSinceAt?: Instant | undefined;
  /** The last deadline that the channel named; the earliest one counts. */
  readonly announcedDeadlineAt?: Instant | undefined;
}

/**
 * All known notices of this machine. Immutable: a reading creates a new state.
 */
export interface NoticeState {
  readonly held: readonly HeldNotice[];
}

export const emptyNoticeState: NoticeState = Object.freeze({ held: Object.freeze([]) });

export interface ChannelReading {
  readonly channel: string;
  readonly reading: Extract<NoticeReading, { readonly kind: "Read" }>;
  readonly at: Instant;
}

/** The state after a reading of one channel, which does not affect the notices of the others. */
export function readInto(
  state: NoticeState,
  { channel, reading, at }: ChannelReading,
): NoticeState {
  const listed = new Map(reading.notices.map((notice) => [notice.eventId, notice]));
  const others = state.held.filter((one) => one.channel !== channel);
  const known = state.held
    .filter((one) => one.channel === channel)
    .flatMap((one) => repeated(one, { listed, complete: reading.problems.length === 0, at }));
  const fresh = reading.notices
    .filter((notice) => !known.some((one) => one.notice.eventId === notice.eventId))
    .filter((notice, place, all) => firstOfId(all, notice) === place)
    .map((notice) => ({ channel, notice }));
  return { held: [...others, ...known, ...fresh] };
}

/**
 * The active notices at `at`, merged into one; undefined if there is none or none is due. A notice
 * that the machine has outlived does not count beside another one; alone it remains active, because
 * the cloud still lists it.
 */
export function activeNotice(state: NoticeState, at: Instant): MachineNotice | undefined {
  const near = state.held
    .map(({ notice }) => notice)
    .filter((one) => one.withdrawn !== true && isNear(one, at));
  const lastEnd = Math.max(...near.map(endOf));
  return mergeNotices(near.filter((one) => endOf(one) > at || endOf(one) === lastEnd));
}

function endOf(notice: Notice): number {
  return outlivedAt(notice) ?? Number.POSITIVE_INFINITY;
}

/** The ids of the events that can be acknowledged. */
export function eventsToBegin(state: NoticeState): readonly string[] {
  return state.held
    .filter(
      ({ notice, missingSinceAt }) => notice.canBegin === true && missingSinceAt === undefined,
    )
    .map(({ notice }) => notice.eventId);
}

/** When the state next changes by time alone; undefined: never. */
export function nextChangeAt(state: NoticeState, at: Instant): Instant | undefined {
  const isOne = state.held.length < 2;
  const ahead = state.held
    .flatMap(({ notice }) => [actFromAt(notice), isOne ? undefined : outlivedAt(notice)])
    .filter((changeAt) => changeAt !== undefined)
    .filter((changeAt) => changeAt > at);
  return ahead.length === 0 ? undefined : (Math.min(...ahead) as Instant);
}

function repeated(
  one: HeldNotice,
  now: {
    readonly listed: ReadonlyMap<string, Notice>;
    readonly complete: boolean;
    readonly at: Instant;
  },
): readonly HeldNotice[] {
  const again = now.listed.get(one.notice.eventId);
  if (again !== undefined) {
    const notice = isMovedOn(one, again, now.at) ? again : tightened(one.notice, again);
    return [{ channel: one.channel, notice, announcedDeadlineAt: again.deadlineAt }];
  }
  if (!now.complete) return [one];
  const missingSinceAt = one.missingSinceAt ?? now.at;
  const stays = plus(missingSinceAt, withdrawAfterMs) > now.at && one.notice.withdrawn !== true;
  return stays ? [{ ...one, missingSinceAt }] : [];
}

/**
 * Whether a notice that was outlived or is not due has been rescheduled. A deadline that is counted
 * from the reading differs each time and does not count.
 */
function isMovedOn(
  { notice, announcedDeadlineAt }: HeldNotice,
  again: Notice,
  at: Instant,
): boolean {
  const { deadlineAt } = again;
  if (deadlineAt === undefined || deadlineAt !== announcedDeadlineAt) return false;
  return deadlineAt > (notice.deadlineAt ?? at) && (endOf(notice) <= at || !isNear(notice, at));
}

function firstOfId(all: readonly Notice[], notice: Notice): number {
  return all.findIndex((other) => other.eventId === notice.eventId);
}
