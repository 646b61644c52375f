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
 * A notice that its channel no longer contains is dropped this long after the first answer without
 * it: one odd answer of a metadata service must not uncordon a dying node.
 */
export const withdrawAfterMs: Millis = seconds(10);

interface HeldNotice {
  readonly notice: Notice;
  /** The way by which it came; each says all that it has to say in every answer. */
  readonly channel: string;
  /** Since when its channel no longer contains it. */
  readonly missingSinceAt?: Instant | undefined;
  /** The deadline that its channel has named last; what counts is the earliest. */
  readonly toldDeadlineAt?: Instant | undefined;
}

/**
 * Everything that is known to stand against this machine. Frozen data; a reading makes a new one.
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
 * What stands at `at`, as one notice; undefined where nothing does, or where its time is not near.
 * What the machine has outlived says nothing beside another notice; alone it stands as before, for
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

/** The events that may be acknowledged. */
export function eventsToBegin(state: NoticeState): readonly string[] {
  return state.held
    .filter(
      ({ notice, missingSinceAt }) => notice.canBegin === true && missingSinceAt === undefined,
    )
    .map(({ notice }) => notice.eventId);
}

/** When that changes next by time alone; undefined: never. */
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
 * Whether a notice that the machine has outlived, or whose time is far, is told for another time. A
 * deadline that is only reckoned from when the notice was read is another one at each reading, and
 * tells nothing.
 */
function isMovedOn({ notice, toldDeadlineAt }: HeldNotice, again: Notice, at: Instant): boolean {
  const { deadlineAt } = again;
  if (deadlineAt === undefined || deadlineAt !== toldDeadlineAt) return false;
  return deadlineAt > (notice.deadlineAt ?? at) && (endOf(notice) <= at || !isNear(notice, at));
}

function firstOfId(all: readonly Notice[], notice: Notice): number {
  return all.findIndex((other) => other.eventId === notice.eventId);
}
