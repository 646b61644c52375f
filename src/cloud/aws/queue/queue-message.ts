import { clearingMs } from "../../../core/drain/drain-time.ts";
import {
  excerpt,
  type Fields,
  fieldsOf,
  isFields,
  parseJson,
  trimmedTextOf,
} from "../../../core/json/json-field.ts";
import type { InstanceNotice, LifecycleHook } from "../../../core/notice/instance-notice.ts";
import { eventIdFrom, type Notice } from "../../../core/notice/notice.ts";
import {
  between,
  earlier,
  hours,
  type Instant,
  type Millis,
  parseHttpDate,
  parseInstant,
  plus,
} from "../../../core/time/time.ts";
import { instanceIdOf, regionNameOf } from "../ec2-machine.ts";
import { type MetadataText, spotNoticeMs } from "../notice-source.ts";

/** The content of one message of the queue. */
export type MessageReading =
  | {
      readonly kind: "Read";
      /** One or more. */
      readonly notices: readonly InstanceNotice[];
      /** Parts that could not be parsed, in addition to those that could. */
      readonly problems: readonly string[];
      /** The group holds the machine until its hook is completed, if the message says how. */
      readonly hook?: LifecycleHook | undefined;
    }
  /** A new machine is held back. */
  | { readonly kind: "Launch"; readonly hook: LifecycleHook }
  /** It was parsed, and no machine leaves because of it. */
  | { readonly kind: "Ignored"; readonly what: string }
  /** Garbage, or a message for another reader. */
  | { readonly kind: "Unreadable"; readonly problem: string };

/**
 * The largest message that SQS accepts, in bytes. A text with this many characters is at least as
 * large.
 */
const longestText = 1_048_576;

/** A message in an envelope of SNS, and one more for a forwarder in between. */
const deepestEnvelope = 2;

/**
 * Parses a message of the queue: an EventBridge event, a lifecycle hook's own message to SQS, or
 * either in an SNS envelope. `at`: when it was sent to the queue. Accepts any text. Sources:
 * EventBridge "AWS service events", EC2 "Spot Instance interruption notices", EC2 Auto Scaling
 * "Amazon SQS notifications for lifecycle hooks", AWS Health "Event pattern".
 */
export function readQueueMessage({ text, at }: MetadataText): MessageReading {
  if (text.length > longestText) return unreadable(`a message of ${text.length} characters`);
  return readBody({ text, at }, deepestEnvelope);
}

function readBody({ text, at }: MetadataText, envelopes: number): MessageReading {
  const fields = parseJson(text)?.value;
  if (!isFields(fields)) return unreadable(`${excerpt(text)} is not a JSON object`);
  if (trimmedTextOf(fields["detail-type"]) !== undefined) return readEvent(fields, at);
  if (trimmedTextOf(fields.LifecycleTransition ?? fields.Event) !== undefined) {
    return readHook(fields, { at: eventAt(fields.Time, at) });
  }
  const inner = fields.Message;
  // SNS sends requests to confirm a subscription as a message type of their own.
  const isLetter = typeof inner === "string" && (fields.Type ?? "Notification") === "Notification";
  if (isLetter && envelopes > 0) return readBody({ text: inner, at }, envelopes - 1);
  return unreadable(`${excerpt(text)} is not an event from EventBridge, SNS or Auto Scaling`);
}

function readEvent(event: Fields, at: Instant): MessageReading {
  const { detail } = event;
  const type = trimmedTextOf(event["detail-type"]) ?? "";
  if (!isFields(detail)) return unreadable(`${excerpt(type)} has no detail`);
  const isReplay = trimmedTextOf(event["replay-name"]) !== undefined;
  const happenedAt = isReplay ? replayedAt(event.time, at) : eventAt(event.time, at);
  const told = { detail, at: happenedAt, region: eventRegion(event) };
  const id = trimmedTextOf(event.id);
  switch (`${trimmedTextOf(event.source)}/${type}`) {
    case "aws.ec2/EC2 Spot Instance Interruption Warning":
      return readInterruption({ ...told, id, source: "aws/queue/spot-interruption" });
    // Some AWS pages use the second name for interruptible reservations.
    case "aws.ec2/EC2 Capacity Reservation Instance Interruption Warning":
    case "aws.ec2/EC2 Interruptible Capacity Reservation Instance Interruption Warning":
      return readInterruption({ ...told, id, source: "aws/queue/capacity-reservation" });
    case "aws.ec2/EC2 Instance Rebalance Recommendation":
      return aboutInstance(
        { ...told, id, source: "aws/queue/rebalance" },
        { cause: "RebalanceRecommendation" },
      );
    case "aws.ec2/EC2 Instance State-change Notification":
      return readStateChange({ ...told, id, source: "aws/queue/state-change" });
    case "aws.autoscaling/EC2 Instance-launch Lifecycle Action":
    case "aws.autoscaling/EC2 Instance-terminate Lifecycle Action":
      return readHook(detail, { ...told, id });
    case "aws.health/AWS Health Event":
      return readHealth({ ...told, id, source: "aws/queue/health" });
    default:
      return unreadable(
        `${excerpt(type)} of ${excerpt(event.source)} is not an event that Lastcall acts on`,
      );
  }
}

/**
 * The region of an EventBridge event's machine. AWS Health also delivers events to a backup region,
 * and then only the detail names the machine's. Source: AWS Health, "EventBridge schema".
 */
export function eventRegion({ region, detail }: Fields): string | undefined {
  return regionNameOf(fieldsOf(detail).eventRegion) ?? regionNameOf(region);
}

interface EventFacts {
  readonly detail: Fields;
  /** When it happened. */
  readonly at: Instant;
  /** The same in every copy of the event. */
  readonly id: string | undefined;
  readonly source: string;
  /** A hook's own message names none. */
  readonly region?: string | undefined;
}

/** The deadline is two minutes after the event, also for a stop; hibernation starts at once. */
function readInterruption(told: EventFacts): MessageReading {
  const namedAt = instantOf(told.detail["instance-termination-time"]);
  const isNow = told.detail["instance-action"] === "hibernate";
  const deadlineAt = isNow ? told.at : (namedAt ?? plus(told.at, spotNoticeMs));
  return aboutInstance(told, { cause: "SpotInterruption", deadlineAt });
}

const stayingStates = new Set(["pending", "running"]);

/** While a machine is stopping, the kubelet still terminates its pods, within its own timeout. */
function readStateChange(told: EventFacts): MessageReading {
  const state = trimmedTextOf(told.detail.state)?.toLowerCase() ?? "";
  if (stayingStates.has(state)) return { kind: "Ignored", what: `the state ${state}` };
  switch (state) {
    case "stopping":
    case "shutting-down":
      return aboutInstance(told, { cause: "NodeShutdown" });
    case "stopped":
    case "terminated":
      return aboutInstance(told, {
        cause: "Preempted",
        deadlineAt: plus(told.at, clearingMs),
      });
    default:
      return unreadable(`${excerpt(told.detail.state)} is not a state that ends an instance`);
  }
}

/** The message does not say how long the hook waits, so there is no deadline. */
function readHook(
  detail: Fields,
  { at, id, region }: Pick<EventFacts, "at" | "region"> & Partial<Pick<EventFacts, "id">>,
): MessageReading {
  if ([detail.LifecycleTransition, detail.Event].includes("autoscaling:TEST_NOTIFICATION")) {
    return { kind: "Ignored", what: "a test notification of an Auto Scaling group" };
  }
  const hook = hookOf(detail, at);
  switch (transitionOf(detail)) {
    case "Launching":
      return hook === undefined
        ? unreadable("a launch event without instance, group or hook cannot be completed")
        : { kind: "Launch", hook };
    case "Terminating": {
      const named = { "instance-id": detail.EC2InstanceId };
      // A hook may send messages in several formats. All of them contain the token.
      const token = trimmedTextOf(detail.LifecycleActionToken) ?? id;
      const told = { detail: named, at, id: token, region, source: "aws/queue/lifecycle-hook" };
      const reading = aboutInstance(told, { cause: "LifecycleHook" });
      return reading.kind === "Read" ? { ...reading, hook } : reading;
    }
    default: {
      const found = excerpt(detail.LifecycleTransition ?? "nothing");
      return unreadable(`${found} is not a transition that Lastcall acts on`);
    }
  }
}

/**
 * Parses a change that AWS has scheduled, with a notice for each of its instances. `startTime` is
 * formatted as an HTTP date; without one the change may come at any time, and is acted on at once.
 * A closed event is cancelled or over: it withdraws what was reported under its ARN.
 */
function readHealth(told: EventFacts): MessageReading {
  const { detail } = told;
  if (detail.service !== "EC2" || detail.eventTypeCategory !== "scheduledChange") {
    const found = `${excerpt(detail.service)}, ${excerpt(detail.eventTypeCategory)}`;
    return unreadable(`a Health event of ${found} is not a scheduled change of EC2`);
  }
  const isOff = trimmedTextOf(detail.statusCode)?.toLowerCase() === "closed";
  const start = trimmedTextOf(detail.startTime) ?? "";
  const deadlineAt = parseHttpDate(start) ?? parseInstant(start);
  const said = { cause: "ScheduledMaintenance", deadlineAt } as const;
  const entities = Array.isArray(detail.affectedEntities) ? detail.affectedEntities : [];
  // An event that is sent again, with more entities or another page of them, keeps its ARN.
  const id = trimmedTextOf(detail.eventArn)?.split("/").at(-1) ?? told.id;
  const readings = entities.map((entity) => {
    const fields = fieldsOf(entity);
    const named = { "instance-id": trimmedTextOf(fields.entityValue)?.replace(instanceArn, "") };
    const isSettled = isOff || fields.status === "RESOLVED";
    return aboutInstance(
      { ...told, detail: named, id },
      isSettled ? { ...said, withdrawn: true } : said,
    );
  });
  const isNoTime = start !== "" && deadlineAt === undefined;
  return together(readings, isNoTime ? [`${excerpt(start)} is not a startTime`] : []);
}

/** AWS's samples identify some instances by id, and others by this prefix with the id after it. */
const instanceArn = /^arn:aws[a-z-]*:ec2:[^:]*:[^:]*:instance\//;

/** If a volume is among the entities, an instance must still get its notice. */
function together(readings: readonly MessageReading[], beside: readonly string[]): MessageReading {
  const notices = readings.flatMap((one): readonly InstanceNotice[] =>
    one.kind === "Read" ? one.notices : [],
  );
  const unread = readings.flatMap((one) => (one.kind === "Unreadable" ? one.problem : []));
  const problems = [...beside, ...unread];
  if (notices.length === 0) return unreadable(problems[0] ?? "a Health event names no instance");
  // A page holds up to a thousand entities: a few problems are enough.
  return { kind: "Read", notices, problems: problems.slice(0, 3) };
}

function aboutInstance(
  told: EventFacts,
  said: Pick<Notice, "cause" | "deadlineAt" | "withdrawn">,
): MessageReading {
  const machine = instanceIdOf(told.detail["instance-id"]);
  if (machine === undefined) {
    return unreadable(`${excerpt(told.detail["instance-id"] ?? "")} is not an instance`);
  }
  const notice: Notice = {
    ...said,
    noticedAt: told.at,
    source: told.source,
    eventId: eventIdFrom(told.id ?? `${told.source}-${told.at}`),
  };
  return { kind: "Read", notices: [{ machine, region: told.region, notice }], problems: [] };
}

/**
 * EventBridge tries for a day to deliver an event, and SQS keeps a message for 14 days. A message
 * redriven from a dead-letter queue is sent again, and kept for another 14 days.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html
 */
const longestUnderWayMs: Millis = hours(30 * 24);

/**
 * When the event happened. Fails open: a time older than any queue keeps an event, such as that in
 * AWS's own samples (1970), is ignored. Any other time counts, so that an old event put back into
 * the queue drains nothing.
 */
function eventAt(time: unknown, sentAt: Instant): Instant {
  const at = replayedAt(time, sentAt);
  return between(at, sentAt) > longestUnderWayMs ? sentAt : at;
}

/**
 * An event cannot happen after it was reported: a clock that is ahead would make the deadline too
 * late.
 */
function replayedAt(time: unknown, sentAt: Instant): Instant {
  return earlier(instantOf(time) ?? sentAt, sentAt);
}

function instantOf(value: unknown): Instant | undefined {
  return parseInstant(trimmedTextOf(value) ?? "");
}

function unreadable(problem: string): MessageReading {
  return { kind: "Unreadable", problem };
}

/**
 * The transitions at which a group waits. Those to and from a warm pool have the same names:
 * `Origin` and `Destination` tell them apart.
 */
const transitions: Readonly<Record<string, LifecycleHook["transition"]>> = {
  "autoscaling:EC2_INSTANCE_LAUNCHING": "Launching",
  "autoscaling:EC2_INSTANCE_TERMINATING": "Terminating",
};

/** The transition that a hook's message names; undefined for any other. */
function transitionOf(detail: Fields): LifecycleHook["transition"] | undefined {
  const named = trimmedTextOf(detail.LifecycleTransition) ?? "";
  return Object.hasOwn(transitions, named) ? transitions[named] : undefined;
}

/**
 * The fields needed to complete the hook; undefined if the message lacks any of them. Source: EC2
 * Auto Scaling "Lifecycle action event types and patterns".
 */
function hookOf(detail: Fields, at: Instant): LifecycleHook | undefined {
  const transition = transitionOf(detail);
  const machine = instanceIdOf(detail.EC2InstanceId);
  const group = nameOf(detail.AutoScalingGroupName);
  const name = nameOf(detail.LifecycleHookName);
  if (!(transition && machine && group && name)) return undefined;
  const token = nameOf(detail.LifecycleActionToken);
  return {
    ...{ transition, machine, group, name, token, at },
    ...(isInWarmPool(transition, detail) && { inWarmPool: true }),
    ...(returnsToWarmPool(transition, detail) && { returnsToWarmPool: true }),
  };
}

/**
 * Whether the instance is outside of service before or after the transition: a launch into the warm
 * pool, or a termination in it. One that its reuse policy returns to the pool is in service until
 * then, and terminates as a node. Source: EC2 Auto Scaling, "Warm pool example events and
 * patterns".
 */
function isInWarmPool(
  transition: LifecycleHook["transition"],
  { Origin, Destination }: Fields,
): boolean {
  return (transition === "Launching" ? Destination : Origin) === "WarmPool";
}

/** Whether the group's reuse policy keeps the instance instead of terminating it. */
function returnsToWarmPool(
  transition: LifecycleHook["transition"],
  { Destination }: Fields,
): boolean {
  return transition === "Terminating" && Destination === "WarmPool";
}

/** The length limit of Auto Scaling. */
function nameOf(value: unknown): string | undefined {
  const name = trimmedTextOf(value);
  return name !== undefined && name.length <= 255 ? name : undefined;
}
