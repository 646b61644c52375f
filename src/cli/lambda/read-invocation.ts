import { findInstanceRef, instanceIdOf } from "../../cloud/aws/ec2-machine.ts";
import type { MetadataText } from "../../cloud/aws/notice-source.ts";
import {
  eventRegion,
  type MessageReading,
  readQueueMessage,
} from "../../cloud/aws/queue/queue-message.ts";
import {
  excerpt,
  type Fields,
  fieldsOf,
  isFields,
  listOf,
  oneOf,
  parseJson,
  textOf,
  trimmedTextOf,
  valueAt,
} from "../../core/json/json-field.ts";
import { type InstanceNotice, isStale } from "../../core/notice/instance-notice.ts";
import { actFromAt, isNear } from "../../core/notice/notice.ts";
import { causes } from "../../core/policy/action.ts";
import {
  earlier,
  formatInstant,
  type Instant,
  instant,
  parseInstant,
} from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import type { DepartingMachine } from "./responder.ts";

const fieldNames = ["instanceId", "node", "cause", "deadline"] as const;

/** Where to find each field in an invocation of another format. */
export type EventFields = Readonly<Partial<Record<(typeof fieldNames)[number], readonly string[]>>>;

/**
 * Parses `LASTCALL_EVENT_FIELDS`: `{"instanceId": "detail.id"}`, or
 * `instanceId=detail.id,node=host`. Throws CONFIG_INVALID.
 */
export function parseEventFields(text: string): EventFields {
  const json = parseJson(text)?.value;
  const pairs = isFields(json)
    ? Object.entries(json)
    : text.split(",").map((pair) => partsOf(pair));
  const fields: Partial<Record<(typeof fieldNames)[number], readonly string[]>> = {};
  for (const [name, path] of pairs) {
    const field = oneOf(fieldNames, name);
    const place = trimmedTextOf(path);
    if (field === undefined || place === undefined) {
      throw new LastcallError(
        "CONFIG_INVALID",
        `Cannot use LASTCALL_EVENT_FIELDS: found ${excerpt(text)}, expected ${fieldNames.join(", ")}, each with the path of a field, such as {"instanceId": "detail.id"}`,
      );
    }
    fields[field] = place.split(".");
  }
  return fields;
}

/** The text before the first `=`, and what follows; empty if there is another one. */
function partsOf(pair: string): readonly [string, string] {
  const [name = "", path = "", ...more] = pair.split("=").map((part) => part.trim());
  return [name, more.length === 0 ? path : ""];
}

/** What an invocation asks for. */
export interface Invocation {
  readonly machines: readonly DepartingMachine[];
  /** Notices because of which no machine leaves, or not yet. */
  readonly dropped: readonly DroppedNotice[];
}

interface DroppedNotice extends Pick<DepartingMachine, "instanceId" | "cause"> {
  /** For example `is canceled or over`. */
  readonly why: string;
}

interface ReadingOptions {
  readonly at: Instant;
  readonly fields?: EventFields | undefined;
}

/**
 * Parses an invocation: an EventBridge event, also through SNS or SQS, Lastcall's own
 * `{instanceId, node, cause, deadline}`, or another format by a mapping of fields; or a list of
 * these, which a pipe of EventBridge sends, also for one. Throws INPUT_INVALID if nothing of it can
 * be parsed.
 */
export function readInvocation(event: unknown, options: ReadingOptions): Invocation {
  const readings: readonly InvocationReading[] = Array.isArray(event)
    ? event.flatMap((part: unknown) => readPart(part, [part], options))
    : readPart(event, listOf(fieldsOf(event).Records), options);
  // A caller that names a machine also decides when it leaves.
  const named = readings.flatMap((one) => (one.kind === "Named" ? [one.machine] : []));
  const { machines, dropped } = standingNotices(readings, options.at);
  const [first, ...others] = distinct([...named, ...machines]);
  const problem =
    readings.length === 0
      ? "an empty list"
      : readings.find((one) => one.kind === "Unreadable")?.problem;
  if (first === undefined && problem !== undefined) throw unreadableAs(problem);
  if (first === undefined) return { machines: [], dropped };
  if (problem === undefined) return { machines: [first, ...others], dropped };
  // A message that cannot be parsed must not hold up the machines of the others.
  const unread = `another message of the batch cannot be read: ${problem}`;
  return {
    machines: [{ ...first, problems: [...first.problems, unread] }, ...others],
    dropped,
  };
}

type InvocationReading =
  | MessageReading
  | { readonly kind: "Named"; readonly machine: DepartingMachine };

/** `records` are what of it may be messages of SNS or SQS. */
function readPart(
  part: unknown,
  records: readonly unknown[],
  { at, fields }: ReadingOptions,
): readonly InvocationReading[] {
  const whole = fieldsOf(part);
  const mapped = fields === undefined ? undefined : mappedFields(whole, fields);
  const own = mapped ?? (whole.instanceId === undefined ? undefined : whole);
  if (own !== undefined) return [ownForm(own, { event: whole, at })];
  const { instanceId = ["instanceId"] } = fields ?? {};
  const unmapped =
    fields === undefined
      ? ""
      : `, and LASTCALL_EVENT_FIELDS finds no instanceId at ${instanceId.join(".")}`;
  const bodies = bodiesOf(records, at);
  const texts = bodies.length > 0 ? bodies : [{ text: textIn(part), at }];
  return texts.map((body) => {
    const reading = readQueueMessage(body);
    return reading.kind === "Unreadable"
      ? { ...reading, problem: `${reading.problem}${unmapped}` }
      : reading;
  });
}

/** Separates the notices that count now from those that do not. */
function standingNotices(readings: readonly InvocationReading[], at: Instant): Invocation {
  const told = readings.flatMap((reading) =>
    reading.kind === "Read"
      ? reading.notices.map((one) => ({ ...one, problems: reading.problems }))
      : [],
  );
  // SQS may deliver an event and its cancellation in one batch, in any order.
  const keyOf = ({ machine, notice }: InstanceNotice) => `${machine} ${notice.eventId}`;
  const off = new Set(told.filter(({ notice }) => notice.withdrawn === true).map(keyOf));
  const machines: DepartingMachine[] = [];
  const dropped: DroppedNotice[] = [];
  for (const { problems, ...one } of told) {
    const { machine: instanceId, region, notice } = one;
    const { cause, deadlineAt, noticedAt } = notice;
    const why = off.has(keyOf(one)) ? "is canceled or over" : whyNotNow(one, at);
    if (why !== undefined) dropped.push({ instanceId, cause, why });
    else {
      const when = { deadlineAt, noticedAt };
      machines.push({ instanceId, region, cause, ...when, byEvent: true, problems });
    }
  }
  return { machines, dropped };
}

/** Undefined if the notice is due. The rules are those of `resolveNotice` for the queue. */
function whyNotNow({ notice }: InstanceNotice, at: Instant): string | undefined {
  const { deadlineAt, noticedAt } = notice;
  if (isStale(notice, at)) {
    const when = deadlineAt === undefined ? "is from" : "was due at";
    return `${when} ${formatInstant(deadlineAt ?? noticedAt)}, too long ago`;
  }
  if (isNear(notice, at)) return undefined;
  const [dueAt, fromAt] = [deadlineAt ?? noticedAt, actFromAt(notice) ?? at];
  return `is due at ${formatInstant(dueAt)}, too far ahead: invoke the function again from ${formatInstant(fromAt)}`;
}

/** SQS may also deliver an event twice in one batch. */
function distinct(machines: readonly DepartingMachine[]): readonly DepartingMachine[] {
  const keyOf = ({ instanceId, cause }: DepartingMachine) => `${instanceId} ${cause}`;
  return [...new Map(machines.toReversed().map((one) => [keyOf(one), one])).values()].toReversed();
}

/**
 * SNS and SQS deliver messages to a function as records, SQS up to ten at a time, each with the
 * time at which it was sent to the queue. A pipe sends one record of SQS, or what its template made
 * of it.
 */
function bodiesOf(records: readonly unknown[], at: Instant): readonly MetadataText[] {
  return records.flatMap((record): readonly MetadataText[] => {
    const { body } = fieldsOf(record);
    const text =
      textOf(valueAt(record, ["Sns", "Message"])) ?? (isFields(body) ? textIn(body) : textOf(body));
    if (text === undefined) return [];
    const sentMs = Number(valueAt(record, ["attributes", "SentTimestamp"]));
    return [{ text, at: sentMs > 0 ? earlier(instant(sentMs), at) : at }];
  });
}

function textIn(part: unknown): string {
  return textOf(part) ?? JSON.stringify(part ?? null);
}

/** Undefined if the mapping finds no machine, because the invocation has another format. */
function mappedFields(event: Fields, fields: EventFields): Fields | undefined {
  const found = fieldNames.map((name) => [name, valueAt(event, fields[name] ?? [name])] as const);
  const mapped: Fields = Object.fromEntries(found.filter(([, value]) => value !== undefined));
  return mapped.instanceId === undefined ? undefined : mapped;
}

function ownForm(
  { instanceId, node, cause, deadline }: Fields,
  { event, at }: { readonly event: Fields; readonly at: Instant },
): InvocationReading {
  const told = trimmedTextOf(instanceId) ?? "";
  const ref = findInstanceRef(told);
  const id = ref?.instanceId ?? instanceIdOf(told);
  if (id === undefined) {
    const expected = "expected an id such as i-0123456789abcdef0, or its providerID";
    return { kind: "Unreadable", problem: `instanceId ${excerpt(instanceId)}, ${expected}` };
  }
  // Fails open: a machine is leaving, and the sender may have other names for the remaining fields.
  const problems: string[] = [];
  const deadlineAt = parseInstant(trimmedTextOf(deadline) ?? "");
  if (deadline !== undefined && deadlineAt === undefined) {
    problems.push(`the deadline ${excerpt(deadline)} is not an RFC 3339 time and is ignored`);
  }
  const known = oneOf(causes, cause);
  if (cause !== undefined && known === undefined) {
    problems.push(`the cause ${excerpt(cause)} is unknown and is treated as SpotInterruption`);
  }
  // A mapping may find the id in an EventBridge event. Another format's `region` can be anything.
  const isEvent = event["detail-type"] !== undefined;
  const region = ref?.region ?? (isEvent ? eventRegion(event) : undefined);
  const machine: DepartingMachine = {
    ...{ instanceId: id, region, ...(ref && { providerID: told }) },
    ...{ node: trimmedTextOf(node), deadlineAt, noticedAt: at, problems },
    ...{ cause: known ?? "SpotInterruption", byEvent: false },
  };
  return { kind: "Named", machine };
}

function unreadableAs(problem: string): LastcallError {
  const wanted =
    "Cannot read the invocation, an event of EventBridge or {instanceId, node, cause, deadline}";
  return new LastcallError("INPUT_INVALID", `${wanted}: found ${problem}`);
}
