import { fieldsOf, parseJson, trimmedTextOf } from "../../core/json/json-field.ts";
import { excerpt } from "../../core/json/shown-value.ts";
import {
  eventIdFrom,
  type Notice,
  type NoticeCause,
  type NoticeReading,
} from "../../core/notice/notice.ts";
import { type Instant, parseHttpDate, parseInstant, plus, seconds } from "../../core/time/time.ts";

/** The shortest notice of all events, that of Preempt. */
const shortestNoticeMs = seconds(30);

/** The answer of Scheduled Events. */
export interface EventsDocument {
  readonly text: string;
  /** When it came, in the cloud's time. */
  readonly at: Instant;
  /** The machine's own name: machines of a scale set see each other's events. */
  readonly ownName: string;
}

/**
 * What takes the machine, or its local state, away. A freeze of some seconds does not. `Terminate`
 * is the scale set's own doing and comes where its owner asked for it.
 */
const causes: Readonly<Record<string, NoticeCause>> = {
  Preempt: "SpotInterruption",
  Terminate: "LifecycleHook",
  Reboot: "ScheduledMaintenance",
  Redeploy: "ScheduledMaintenance",
};

/**
 * The document of `/metadata/scheduledevents` (api-version 2020-07-01). `NotBefore` is the
 * deadline; it is blank once an event has started, which may then happen at any moment.
 */
export function readAzureEvents({ text, at, ownName }: EventsDocument): NoticeReading {
  const events = fieldsOf(parseJson(text)?.value).Events;
  if (!Array.isArray(events)) {
    return { kind: "Unreadable", problem: `${excerpt(text)} has no list of Events` };
  }
  const read = events.map((entry) => azureEvent(entry, { at, ownName }));
  return {
    kind: "Read",
    notices: read.flatMap(({ notice }) => notice ?? []),
    ignored: read.flatMap(({ ignored }) => ignored ?? []),
    problems: read.flatMap(({ problem }) => problem ?? []),
  };
}

interface ScheduledEventReading {
  readonly notice?: Notice;
  readonly ignored?: string;
  readonly problem?: string;
}

function azureEvent(
  entry: unknown,
  { at, ownName }: Pick<EventsDocument, "at" | "ownName">,
): ScheduledEventReading {
  const fields = fieldsOf(entry);
  const eventId = trimmedTextOf(fields.EventId);
  const type = trimmedTextOf(fields.EventType);
  const resources = fields.Resources;
  if (!eventId || !type || !Array.isArray(resources)) {
    return { problem: `${excerpt(entry)} has no EventId, no EventType or no Resources` };
  }
  const isOurs = resources.some(
    (name) => typeof name === "string" && name.toLowerCase() === ownName.toLowerCase(),
  );
  if (!isOurs) return {};
  // Only by names of its own: every object has a `constructor`.
  const cause = Object.hasOwn(causes, type) ? causes[type] : undefined;
  if (cause === undefined) return { ignored: type.slice(0, 40) };
  const notBefore = trimmedTextOf(fields.NotBefore);
  const namedAt = parseHttpDate(notBefore ?? "") ?? parseInstant(notBefore ?? "");
  // Fails open: it is our machine and it goes, whenever.
  const unreadable = notBefore !== undefined && namedAt === undefined;
  const notice: Notice = {
    cause,
    deadlineAt: namedAt ?? (unreadable ? plus(at, shortestNoticeMs) : at),
    noticedAt: at,
    source: "azure/scheduled-events",
    eventId: eventIdFrom(eventId),
    // A started event has no NotBefore any more.
    canBegin: resources.length === 1 && namedAt !== undefined,
  };
  return unreadable ? { notice, problem: `${excerpt(notBefore)} is no time` } : { notice };
}
