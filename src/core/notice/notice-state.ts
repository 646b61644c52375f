import { type Instant, type Millis, plus, seconds } from "../time/time.ts";
import {
  actFromAt,
  isNear,
  type MachineNotice,
  type Notice,
  type NoticeReading,
} from "./notice.ts";
import { mergeNotices, tightened } from "./notice-merge.ts";

/**
 * A notice that its channel no longer contains is dropped this long after the first answer without
 * it: one stray answer of a metadata service must not uncordon a dying node.
 */
export const withdrawAfterMs: Millis = seconds(10);

interface HeldNotice {
  readonly notice: Notice;
  /** The way by which it came; each says all that it has to say in every answer. */
  readonly channel: string;
  /** Since when its channel no longer contains it. */
  readonly missingSinceAt?: Instant | undefined;
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
 */
export function activeNotice(state: NoticeState, at: Instant): MachineNotice | undefined {
  return mergeNotices(state.held.map((one) => one.notice).filter((one) => isNear(one, at)));
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
  const ahead = state.held
    .flatMap(({ notice }) => actFromAt(notice) ?? [])
    .filter((actAt) => actAt > at);
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
    return [{ channel: one.channel, notice: tightened(one.notice, again) }];
  }
  if (!now.complete) return [one];
  const missingSinceAt = one.missingSinceAt ?? now.at;
  const stays = plus(missingSinceAt, withdrawAfterMs) > now.at && one.notice.withdrawn !== true;
  return stays ? [{ ...one, missingSinceAt }] : [];
}

function firstOfId(all: readonly Notice[], notice: Notice): number {
  return all.findIndex((other) => other.eventId === notice.eventId);
}
