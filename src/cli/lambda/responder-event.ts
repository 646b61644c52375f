import { findInstanceRef, instanceIdOf } from "../../cloud/aws/ec2-machine.ts";
import { readQueueMessage } from "../../cloud/aws/queue/queue-message.ts";
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
import type { InstanceNotice } from "../../core/notice/instance-notice.ts";
import { type Cause, causes } from "../../core/policy/action.ts";
import { type Instant, parseInstant } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";

/** A machine that is leaving, as the invocation describes it. */
export interface DepartingMachine {
  readonly instanceId: string;
  /** The Node's name, if the invocation gives it. */
  readonly node?: string | undefined;
  readonly cause: Cause;
  readonly deadlineAt?: Instant | undefined;
  readonly noticedAt: Instant;
  /** Whether it came from EventBridge, which reports every machine of the account. */
  readonly byEvent: boolean;
  /** Parts of the invocation that could not be parsed. */
  readonly problems: readonly string[];
}

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
    : text.split(",").map((pair) => pair.split("=").map((part) => part.trim()));
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

/**
 * The machines that an invocation is about: an EventBridge event, also through SNS or SQS,
 * Lastcall's own `{instanceId, node, cause, deadline}`, or another format by a mapping of fields.
 * Empty if no machine leaves because of the event. Throws INPUT_INVALID if it cannot be parsed.
 */
export function departingMachines(
  event: unknown,
  { at, fields }: { readonly at: Instant; readonly fields?: EventFields | undefined },
): readonly DepartingMachine[] {
  const whole = fieldsOf(event);
  const mapped = fields === undefined ? undefined : mappedFields(whole, fields);
  if (mapped !== undefined) return [ownForm(mapped, at)];
  if (whole.instanceId !== undefined) return [ownForm(whole, at)];
  const readings = bodiesOf(whole).map((text) => readQueueMessage({ text, at }));
  const machines = readings.flatMap((reading) =>
    reading.kind === "Read" ? reading.notices.map((notice) => told(notice, reading.problems)) : [],
  );
  const unreadable = readings.find(({ kind }) => kind === "Unreadable");
  const problem = unreadable?.kind === "Unreadable" ? unreadable.problem : undefined;
  const [first, ...others] = distinct(machines);
  if (first === undefined && problem !== undefined) throw unreadableAs(`found ${problem}`);
  if (first === undefined || problem === undefined) return first ? [first, ...others] : [];
  // A message that cannot be parsed must not hold up the machines of the others.
  const unread = `another message of the batch cannot be read: ${problem}`;
  return [{ ...first, problems: [...first.problems, unread] }, ...others];
}

/** SQS may also deliver an event twice in one batch. */
function distinct(machines: readonly DepartingMachine[]): readonly DepartingMachine[] {
  const keyOf = ({ instanceId, cause }: DepartingMachine) => `${instanceId} ${cause}`;
  return [...new Map(machines.toReversed().map((one) => [keyOf(one), one])).values()].toReversed();
}

function told({ machine, notice }: InstanceNotice, problems: readonly string[]): DepartingMachine {
  const { cause, deadlineAt, noticedAt } = notice;
  return { instanceId: machine, cause, deadlineAt, noticedAt, byEvent: true, problems };
}

/** SNS and SQS deliver messages to a function as records, SQS up to ten at a time. */
function bodiesOf(event: Fields): readonly string[] {
  const texts = listOf(event.Records).flatMap((record) => {
    const ofSns = textOf(valueAt(record, ["Sns", "Message"]));
    return ofSns ?? textOf(fieldsOf(record).body) ?? [];
  });
  return texts.length > 0 ? texts : [JSON.stringify(event)];
}

/** Undefined if the mapping finds no machine, because the invocation has another format. */
function mappedFields(event: Fields, fields: EventFields): Fields | undefined {
  const found = fieldNames.map((name) => [name, valueAt(event, fields[name] ?? [name])] as const);
  const mapped: Fields = Object.fromEntries(found.filter(([, value]) => value !== undefined));
  return mapped.instanceId === undefined ? undefined : mapped;
}

function ownForm({ instanceId, node, cause, deadline }: Fields, at: Instant): DepartingMachine {
  const told = trimmedTextOf(instanceId) ?? "";
  const id = instanceIdOf(told) ?? findInstanceRef(told)?.instanceId;
  if (id === undefined) {
    throw unreadableAs(
      `found instanceId ${excerpt(instanceId)}, expected an id such as i-0123456789abcdef0, or its providerID`,
    );
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
  return {
    ...{ instanceId: id, node: trimmedTextOf(node), deadlineAt, noticedAt: at, problems },
    ...{ cause: known ?? "SpotInterruption", byEvent: false },
  };
}

function unreadableAs(found: string): LastcallError {
  const wanted =
    "Cannot read the invocation, an event of EventBridge or {instanceId, node, cause, deadline}";
  return new LastcallError("INPUT_INVALID", `${wanted}: ${found}`);
}
