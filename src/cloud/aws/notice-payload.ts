import { type Notice, type NoticeReading, wordForId } from "../../core/notice/notice.ts";
import { type Instant, parseHttpDate, parseInstant, plus, seconds } from "../../core/time/time.ts";
import {
  fieldsOf,
  glimpse,
  type PayloadFields,
  parseJson,
  wordOf,
} from "../metadata/payload-field.ts";

/** The notice of a stop or a terminate: two minutes (AWS, "Spot Instance interruption notices"). */
export const spotNoticeMs = seconds(120);

/** A text of the EC2 metadata service, and when it came in the cloud's time. */
export interface Heard {
  readonly text: string;
  readonly at: Instant;
}

/**
 * `spot/instance-action`: `{"action": "terminate", "time": "2017-09-18T08:22:00Z"}`; the action is
 * terminate, stop or hibernate, and hibernation begins at once. Fails open: whatever is to be done,
 * and whenever, the instance goes.
 */
export function readInstanceAction({ text, at }: Heard): NoticeReading {
  const fields = fieldsOf(parseJson(text)?.value);
  const action = wordOf(fields?.action);
  if (fields === undefined || action === undefined) {
    return { kind: "Unreadable", problem: `${glimpse(text)} names no action` };
  }
  const namedAt = parseInstant(wordOf(fields.time) ?? "");
  const deadlineAt = action === "hibernate" ? at : (namedAt ?? plus(at, spotNoticeMs));
  const notice: Notice = {
    cause: "SpotInterruption",
    deadlineAt,
    noticedAt: at,
    source: "aws/spot-instance-action",
    eventId: `spot-${wordForId(action)}-${wordForId(wordOf(fields.time) ?? "")}`,
  };
  const problems = namedAt === undefined ? [`${glimpse(fields.time)} is no time`] : [];
  return { kind: "Read", notices: [notice], ignored: [], problems };
}

/** `events/recommendations/rebalance`: `{"noticeTime": "2020-10-27T08:22:00Z"}`. */
export function readRebalance({ text, at }: Heard): NoticeReading {
  const time = wordOf(fieldsOf(parseJson(text)?.value)?.noticeTime);
  const noticedAt = parseInstant(time ?? "");
  if (noticedAt === undefined) {
    return { kind: "Unreadable", problem: `${glimpse(text)} names no noticeTime` };
  }
  const notice: Notice = {
    cause: "RebalanceRecommendation",
    noticedAt: noticedAt < at ? noticedAt : at,
    source: "aws/rebalance",
    eventId: `rebalance-${wordForId(time ?? "")}`,
  };
  return { kind: "Read", notices: [notice], ignored: [], problems: [] };
}

/**
 * `events/maintenance/scheduled`: a list of `{NotBefore, Code, EventId, State}`, the dates without a
 * weekday. An event that cannot be read costs none of the others.
 */
export function readScheduledEvents({ text, at }: Heard): NoticeReading {
  const list = parseJson(text)?.value;
  if (!Array.isArray(list)) return { kind: "Unreadable", problem: `${glimpse(text)} is no list` };
  const read = list.map((entry) => scheduledEvent(fieldsOf(entry), at));
  return {
    kind: "Read",
    notices: read.flatMap(({ notice }) => notice ?? []),
    ignored: [],
    problems: read.flatMap(({ problem }) => problem ?? []),
  };
}

function scheduledEvent(
  fields: PayloadFields | undefined,
  at: Instant,
): { readonly notice?: Notice; readonly problem?: string } {
  const eventId = wordOf(fields?.EventId);
  const notBefore = wordOf(fields?.NotBefore) ?? "";
  const deadlineAt = parseHttpDate(notBefore) ?? parseInstant(notBefore);
  const state = wordOf(fields?.State);
  // A cancelled and a completed event stay listed for days: they are told as taken back.
  const isOff = state === "canceled" || state === "completed";
  if (eventId === undefined) return { problem: `${glimpse(fields)} has no EventId` };
  // Fails open: it is our machine, and the change may come at any time.
  const isNoTime = deadlineAt === undefined && !isOff;
  return {
    ...(isNoTime ? { problem: `${glimpse(notBefore)} is no NotBefore` } : {}),
    notice: {
      cause: "ScheduledMaintenance",
      deadlineAt,
      noticedAt: at,
      source: "aws/scheduled-events",
      eventId: wordForId(eventId),
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
 * `autoscaling/target-lifecycle-state`: a plain word, where the group is taking the instance. How
 * long its hook waits is not said, so there is no deadline.
 */
export function readTargetLifecycleState({ text, at }: Heard): NoticeReading {
  const state = text.trim();
  if (stayingStates.has(state)) return { kind: "Read", notices: [], ignored: [], problems: [] };
  if (!leavingStates.has(state)) {
    return { kind: "Unreadable", problem: `${glimpse(text)} is no lifecycle state` };
  }
  const notice: Notice = {
    cause: "LifecycleHook",
    noticedAt: at,
    source: "aws/target-lifecycle-state",
    eventId: `lifecycle-${wordForId(state)}`,
  };
  return { kind: "Read", notices: [notice], ignored: [], problems: [] };
}
