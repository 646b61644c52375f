import { excerpt, fieldsOf, parseJson, trimmedTextOf } from "../../core/json/json-field.ts";
import { eventIdFrom, type Notice, type NoticeReading } from "../../core/notice/notice.ts";
import { type Instant, parseHttpDate, parseInstant, plus, seconds } from "../../core/time/time.ts";

/**
 * The notice period of a stop or a terminate: two minutes (AWS, "Spot Instance interruption
 * notices").
 */
export const spotNoticeMs = seconds(120);

/** A value from the EC2 metadata service, and when it arrived, in the cloud's time. */
export interface MetadataText {
  readonly text: string;
  readonly at: Instant;
}

/**
 * Parses `spot/instance-action`: `{"action": "terminate", "time": "2017-09-18T08:22:00Z"}`; the
 * action is terminate, stop or hibernate, and hibernation starts at once. Fails open: the instance
 * leaves even if the action or the time cannot be parsed.
 */
export function readInstanceAction({ text, at }: MetadataText): NoticeReading {
  const fields = fieldsOf(parseJson(text)?.value);
  const action = trimmedTextOf(fields.action);
  if (action === undefined) {
    return { kind: "Unreadable", problem: `${excerpt(text)} names no action` };
  }
  const namedAt = parseInstant(trimmedTextOf(fields.time) ?? "");
  const deadlineAt = action === "hibernate" ? at : (namedAt ?? plus(at, spotNoticeMs));
  const isReckoned = action === "hibernate" || namedAt === undefined;
  const notice: Notice = {
    cause: "SpotInterruption",
    deadlineAt,
    ...(isReckoned && { isReckoned }),
    noticedAt: at,
    source: "aws/spot-instance-action",
    eventId: `spot-${eventIdFrom(action)}-${eventIdFrom(trimmedTextOf(fields.time) ?? "")}`,
  };
  const problems = namedAt === undefined ? [`${excerpt(fields.time)} is not a time`] : [];
  return { kind: "Read", notices: [notice], ignored: [], problems };
}

/** Parses `events/recommendations/rebalance`: `{"noticeTime": "2020-10-27T08:22:00Z"}`. */
export function readRebalance({ text, at }: MetadataText): NoticeReading {
  const time = trimmedTextOf(fieldsOf(parseJson(text)?.value).noticeTime);
  const noticedAt = parseInstant(time ?? "");
  if (noticedAt === undefined) {
    return { kind: "Unreadable", problem: `${excerpt(text)} has no noticeTime` };
  }
  const notice: Notice = {
    cause: "RebalanceRecommendation",
    noticedAt: noticedAt < at ? noticedAt : at,
    source: "aws/rebalance",
    eventId: `rebalance-${eventIdFrom(time ?? "")}`,
  };
  return { kind: "Read", notices: [notice], ignored: [], problems: [] };
}

/**
 * Parses `events/maintenance/scheduled`: a list of `{NotBefore, Code, EventId, State}`, with dates
 * that lack a weekday. An event that cannot be parsed does not affect the others.
 */
export function readScheduledEvents({ text, at }: MetadataText): NoticeReading {
  const list = parseJson(text)?.value;
  if (!Array.isArray(list))
    return { kind: "Unreadable", problem: `${excerpt(text)} is not a list` };
  const read = list.map((entry) => scheduledEvent(entry, at));
  return {
    kind: "Read",
    notices: read.flatMap(({ notice }) => notice ?? []),
    ignored: [],
    problems: read.flatMap(({ problem }) => problem ?? []),
  };
}

function scheduledEvent(
  entry: unknown,
  at: Instant,
): { readonly notice?: Notice; readonly problem?: string } {
  const fields = fieldsOf(entry);
  const eventId = trimmedTextOf(fields.EventId);
  const notBefore = trimmedTextOf(fields.NotBefore) ?? "";
  const deadlineAt = parseHttpDate(notBefore) ?? parseInstant(notBefore);
  const state = trimmedTextOf(fields.State);
  // Cancelled and completed events stay listed for days. They are reported as withdrawn.
  const isOff = state === "canceled" || state === "completed";
  if (eventId === undefined) return { problem: `${excerpt(entry)} has no EventId` };
  // Fails open: the event is about this machine, and may come at any time.
  const isNoTime = deadlineAt === undefined && !isOff;
  return {
    ...(isNoTime ? { problem: `${excerpt(notBefore)} is not a NotBefore` } : {}),
    notice: {
      cause: "ScheduledMaintenance",
      deadlineAt,
      noticedAt: at,
      source: "aws/scheduled-events",
      eventId: eventIdFrom(eventId),
      ...(isOff ? { withdrawn: true } : {}),
    },
  };
}

const leavingStates = new Set([
  "Terminated",
  "Warmed:Terminated",
  "Warmed:Stopped",
  "Warmed:Hibernated",
]);
const stayingStates = new Set(["InService", "Standby", "Detached", "Warmed:Running"]);

/**
 * Parses `autoscaling/target-lifecycle-state`: a plain word, set if the group is terminating the
 * instance. It does not say how long the hook waits, so there is no deadline.
 */
export function readTargetLifecycleState({ text, at }: MetadataText): NoticeReading {
  const state = text.trim();
  if (stayingStates.has(state)) return { kind: "Read", notices: [], ignored: [], problems: [] };
  if (!leavingStates.has(state)) {
    return { kind: "Unreadable", problem: `${excerpt(text)} is not a lifecycle state` };
  }
  const notice: Notice = {
    cause: "LifecycleHook",
    noticedAt: at,
    source: "aws/target-lifecycle-state",
    eventId: `lifecycle-${eventIdFrom(state)}`,
  };
  return { kind: "Read", notices: [notice], ignored: [], problems: [] };
}
