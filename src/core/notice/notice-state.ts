import { type Instant, type Millis, plus, seconds } from "../time/time.ts";
import {
  actFromAt,
  isNear,
  type MachineNotice,
  type Notice,
  type NoticeReading,
  outlivedAt,
} from "./notice.ts";
import { mergeNotices, tightened } from "./notice-merge.ts";

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
  readonly toldDeadlineAt?: Instant | undefined;
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
    return [{ channel: one.channel, notice, toldDeadlineAt: again.deadlineAt }];
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
function isMovedOn({ notice, toldDeadlineAt }: HeldNotice, again: Notice, at: Instant): boolean {
  const { deadlineAt } = again;
  if (deadlineAt === undefined || deadlineAt !== toldDeadlineAt) return false;
  return deadlineAt > (notice.deadlineAt ?? at) && (endOf(notice) <= at || !isNear(notice, at));
}

function firstOfId(all: readonly Notice[], notice: Notice): number {
  return all.findIndex((other) => other.eventId === notice.eventId);
}
