import { awsActionKinds, createAwsRunner } from "../../cloud/aws/actions/aws-runners.ts";
import {
  findInstanceRef,
  type InRegion,
  instanceIdOf,
  oneEach,
  parseManagedTag,
} from "../../cloud/aws/ec2-machine.ts";
import { interfacesOfOne } from "../../cloud/aws/ec2-network.ts";
import { TaggedMachines } from "../../cloud/aws/instance-feed.ts";
import type { MetadataText } from "../../cloud/aws/notice-source.ts";
import {
  eventRegion,
  type MessageReading,
  readQueueMessage,
} from "../../cloud/aws/queue/queue-message.ts";
import { unreadVariables } from "../../config/options/unread-variable.ts";
import { parsePolicyObject } from "../../config/policy/parse-policy-object.ts";
import { sentenceOf } from "../../config/problem.ts";
import type { ActionRunner, ActionRunners, SecretReader } from "../../contracts/action-runner.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { Log } from "../../contracts/telemetry.ts";
import type { Rng } from "../../core/chance/chance.ts";
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
import { type Action, type ActionKind, causes } from "../../core/policy/action.ts";
import {
  earlier,
  formatInstant,
  type Instant,
  instant,
  type Millis,
  parseInstant,
  seconds,
} from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import { actionHosts, guardedSender } from "../assemble/controller-ports.ts";
import {
  type DepartingMachine,
  type MachineLookUp,
  Responder,
  type ResponderFleet,
} from "./responder.ts";

export interface ResponderIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly rng: Rng;
  readonly log: Log;
}

const variables = {
  named: ["ACTIONS", "ACTION_HOSTS", "AWS_MANAGED_TAG", "EVENT_FIELDS", "SECRETS"].map(
    (name) => `LASTCALL_${name}`,
  ),
  beginning: "LASTCALL_SECRET_",
};

/** Assembles the responder from its environment. Throws CONFIG_INVALID with the field. */
export function createResponder(io: ResponderIo): Responder {
  const { env, clock, rng, log } = io;
  for (const problem of unreadVariables(env, variables)) log.warn("variable-unknown", { problem });
  const ec2In = ec2Clients(io);
  return new Responder({
    actions: readActions(env.LASTCALL_ACTIONS),
    runners: runnersOf(io),
    lookUp: machineLookUp(ec2In),
    fleet: fleetOf(io, ec2In),
    ...{ clock, rng, log },
  });
}

/** Validated by the schema of a policy's `spec.actions`. */
function readActions(text: string | undefined): readonly Action[] {
  const actions = parseJson(text ?? "")?.value;
  if (!Array.isArray(actions)) {
    throw new LastcallError(
      "CONFIG_INVALID",
      `Cannot use LASTCALL_ACTIONS: found ${text === undefined ? "nothing" : excerpt(text)}, expected the list of spec.actions as JSON`,
    );
  }
  const object = {
    ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy" },
    ...{ metadata: { name: "lambda" }, spec: { actions } },
  };
  const parsed = parsePolicyObject(object, {
    unknownFields: "Refuse",
    // There are no windows in this environment.
    cronProblem: () => undefined,
  });
  if ("policy" in parsed) return parsed.policy.actions;
  const details = parsed.problems.map(sentenceOf);
  throw new LastcallError("CONFIG_INVALID", `Cannot use LASTCALL_ACTIONS: ${details[0]}`, {
    details,
  });
}

/** Each client is created once, for as long as Lambda keeps the process. */
function runnersOf({ env, clock, rng, log }: ResponderIo): ActionRunners {
  const made = new Map<ActionKind, Promise<ActionRunner<never> | undefined>>();
  const tools = {
    ...{ clock, rng, region: env.AWS_REGION, machines: () => [], nodesUnlabelled: true },
    onError: (error: LastcallError) => log.warn("index-trouble", { error: error.message }),
  };
  const make = async (kind: ActionKind): Promise<unknown> => {
    const known = oneOf(awsActionKinds, kind);
    if (known !== undefined) return createAwsRunner(known, tools);
    const { sinkRunner } = await import("../../actions/sink-runners.ts");
    const allowed = await actionHosts(env.LASTCALL_ACTION_HOSTS).catch((error: unknown) => {
      throw asVariable(error, "--action-hosts", "LASTCALL_ACTION_HOSTS");
    });
    const sender = await guardedSender({ allowed, env });
    return sinkRunner(kind, { sender, secrets: environmentSecrets(env), clock });
  };
  return <Kind extends ActionKind>(kind: Kind) => {
    const runner = made.get(kind) ?? (make(kind) as Promise<ActionRunner<never> | undefined>);
    made.set(kind, runner);
    return runner as Promise<ActionRunner<Kind> | undefined>;
  };
}

/**
 * There is no cluster: key `token` of Secret `slack` is `LASTCALL_SECRET_SLACK_TOKEN`, in the
 * environment or in the JSON of `LASTCALL_SECRETS`, which is for secret stores that cannot set
 * variables they do not know.
 */
function environmentSecrets(env: ResponderIo["env"]): SecretReader {
  const json = env.LASTCALL_SECRETS ?? "";
  const read = parseJson(json)?.value;
  const together = fieldsOf(read);
  const unread = json === "" || isFields(read) ? "" : ", which is not a JSON object";
  return {
    read: async ({ name, key }) => {
      const variable = `LASTCALL_SECRET_${name}_${key}`.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_");
      const value = env[variable] || textOf(together[variable]);
      if (value) return value;
      throw new LastcallError(
        "SECRET_MISSING",
        `Cannot read the Secret ${name}: found no key ${key}, expected it in the environment as ${variable}, or by that name in the JSON of LASTCALL_SECRETS${unread}`,
      );
    },
  };
}

/** Names the variable where an error names the option with the same value. */
function asVariable(error: unknown, option: string, variable: string): unknown {
  if (!isLastcallError(error)) return error;
  return new LastcallError(error.code, error.message.replaceAll(option, variable));
}

/** One client per region, created when first needed; without a region, the function's own. */
function ec2Clients({ env }: ResponderIo): InRegion<Promise<ResponderEc2>> {
  const inNamed = oneEach(async (region) => {
    const { Ec2Client } = await import("../../cloud/aws/ec2-client.ts");
    return new Ec2Client({ region });
  });
  return (region) => inNamed(region ?? env.AWS_REGION);
}

/** A cold start includes the first connection to EC2, and nothing is done without its answer. */
const answerWithinMs: Millis = seconds(10);

/** `LASTCALL_AWS_MANAGED_TAG`, like the controller's `--aws-managed-tag`. */
function fleetOf(
  { env, clock, rng }: ResponderIo,
  ec2In: InRegion<Promise<ResponderEc2>>,
): ResponderFleet | undefined {
  const text = env.LASTCALL_AWS_MANAGED_TAG;
  if (!text) return undefined;
  const tag = tagOf(text);
  const taggedIn = oneEach(
    async (region) =>
      new TaggedMachines({ ec2: await ec2In(region), tag, clock, rng, answerWithinMs }),
  );
  return {
    mark: `the tag ${text}`,
    has: async ({ instanceId, region }) => (await taggedIn(region)).has(instanceId),
  };
}

function tagOf(text: string): ReturnType<typeof parseManagedTag> {
  try {
    return parseManagedTag(text);
  } catch (error) {
    throw asVariable(error, "--aws-managed-tag", "LASTCALL_AWS_MANAGED_TAG");
  }
}

function machineLookUp(ec2In: InRegion<Promise<ResponderEc2>>): MachineLookUp {
  return {
    nodeName: async ({ instanceId, region }, signal) => {
      const instance = await (await ec2In(region)).instance(instanceId, signal);
      return instance?.dnsName;
    },
    addresses: async ({ instanceId, region }, signal) => {
      const interfaces = await interfacesOfOne(await ec2In(region), instanceId, signal);
      return interfaces.flatMap(({ addresses }) => addresses);
    },
  };
}

type ResponderEc2 = InstanceType<typeof import("../../cloud/aws/ec2-client.ts")["Ec2Client"]>;

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

/**
 * Parses an invocation: an EventBridge event, also through SNS or SQS, Lastcall's own
 * `{instanceId, node, cause, deadline}`, or another format by a mapping of fields. Throws
 * INPUT_INVALID if it cannot be parsed.
 */
export function readInvocation(
  event: unknown,
  { at, fields }: { readonly at: Instant; readonly fields?: EventFields | undefined },
): Invocation {
  const whole = fieldsOf(event);
  const mapped = fields === undefined ? undefined : mappedFields(whole, fields);
  const own = mapped ?? (whole.instanceId === undefined ? undefined : whole);
  // A caller that names a machine also decides when it leaves.
  if (own !== undefined) return { machines: [ownForm(own, { event: whole, at })], dropped: [] };
  const readings = bodiesOf(whole, at).map(readQueueMessage);
  const { machines, dropped } = standingNotices(readings, at);
  const unreadable = readings.find(({ kind }) => kind === "Unreadable");
  const problem = unreadable?.kind === "Unreadable" ? unreadable.problem : undefined;
  const [first, ...others] = distinct(machines);
  if (first === undefined && problem !== undefined) {
    const { instanceId = ["instanceId"] } = fields ?? {};
    const mapping = `, and LASTCALL_EVENT_FIELDS finds no instanceId at ${instanceId.join(".")}`;
    throw unreadableAs(`found ${problem}${fields === undefined ? "" : mapping}`);
  }
  if (first === undefined) return { machines: [], dropped };
  if (problem === undefined) return { machines: [first, ...others], dropped };
  // A message that cannot be parsed must not hold up the machines of the others.
  const unread = `another message of the batch cannot be read: ${problem}`;
  return {
    machines: [{ ...first, problems: [...first.problems, unread] }, ...others],
    dropped,
  };
}

/** Separates the notices that count now from those that do not. */
function standingNotices(readings: readonly MessageReading[], at: Instant): Invocation {
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
 * time at which it was sent to the queue.
 */
function bodiesOf(event: Fields, at: Instant): readonly MetadataText[] {
  const texts = listOf(event.Records).flatMap((record): readonly MetadataText[] => {
    const text = textOf(valueAt(record, ["Sns", "Message"])) ?? textOf(fieldsOf(record).body);
    if (text === undefined) return [];
    const sentMs = Number(valueAt(record, ["attributes", "SentTimestamp"]));
    return [{ text, at: sentMs > 0 ? earlier(instant(sentMs), at) : at }];
  });
  return texts.length > 0 ? texts : [{ text: JSON.stringify(event), at }];
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
): DepartingMachine {
  const told = trimmedTextOf(instanceId) ?? "";
  const ref = findInstanceRef(told);
  const id = ref?.instanceId ?? instanceIdOf(told);
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
  // A mapping may find the id in an EventBridge event. Another format's `region` can be anything.
  const isEvent = event["detail-type"] !== undefined;
  const region = ref?.region ?? (isEvent ? eventRegion(event) : undefined);
  return {
    ...{ instanceId: id, region, ...(ref && { providerID: told }) },
    ...{ node: trimmedTextOf(node), deadlineAt, noticedAt: at, problems },
    ...{ cause: known ?? "SpotInterruption", byEvent: false },
  };
}

function unreadableAs(found: string): LastcallError {
  const wanted =
    "Cannot read the invocation, an event of EventBridge or {instanceId, node, cause, deadline}";
  return new LastcallError("INPUT_INVALID", `${wanted}: ${found}`);
}
