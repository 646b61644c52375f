import type { Clock } from "../../contracts/clock.ts";
import type { FeedListener, NoticeFeed } from "../../contracts/cloud.ts";
import { withinTime } from "../../contracts/time-limit.ts";
import { around, type Rng } from "../../core/chance/chance.ts";
import { excerpt } from "../../core/json/json-field.ts";
import type { InstanceNotice } from "../../core/notice/instance-notice.ts";
import { eventIdFrom } from "../../core/notice/notice.ts";
import { type Instant, type Millis, minus, minutes, plus, seconds } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import { asFault, type TroubleListener } from "./aws-client.ts";
import { parseInstanceId } from "./aws-facts.ts";
import {
  type Ec2,
  instanceIdOf,
  mostAskedFor,
  type ScheduledEvent,
  type Tag,
} from "./ec2-machine.ts";

export interface InstanceStatusFeedOptions {
  readonly ec2: Ec2;
  readonly clock: Clock;
  readonly rng: Rng;
  /** The interval between polls. */
  readonly pollMs: Millis;
  /** The providerIDs of the nodes whose machines matter; read before each poll. */
  readonly machines: () => readonly string[];
}

/** The longest interval between polls while they fail. */
const longestPauseMs: Millis = minutes(5);

/**
 * A departure for an event may exist from this long before the event's start until this long after.
 * A cancelled event that is not known is reported only within that time.
 */
const beforeMs: Millis = minutes(20);

const afterMs: Millis = minutes(10);

/** The state of an event, by its id. */
interface KnownEvent {
  readonly instanceNotice: InstanceNotice;
  /** The last notice that led to a departure: the event may have been rescheduled since. */
  readonly taken: InstanceNotice | undefined;
  /** The number of consecutive polls without it. */
  readonly missing: number;
}

/** An event that is missing this many times in a row is no longer scheduled. */
const missingAtLast = 2;

/**
 * Scheduled events of instances, from EC2's own list, for fleets without the agent. One request
 * covers the whole region, and the response contains only instances with an event, so the cost does
 * not grow with the fleet.
 */
export class InstanceStatusFeed implements NoticeFeed {
  readonly #options: InstanceStatusFeedOptions;
  readonly #known = new Map<string, KnownEvent>();
  #problems = 0;

  constructor(options: InstanceStatusFeedOptions) {
    this.#options = options;
  }

  async run(listener: FeedListener, signal: AbortSignal): Promise<void> {
    const { clock, rng, pollMs } = this.#options;
    let failures = 0;
    this.#known.clear();
    while (!signal.aborted) {
      try {
        await this.#look(listener, signal);
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        listener.onError(asFault(error));
        failures = Math.min(failures + 1, 20);
      }
      const pauseMs = Math.max(pollMs, Math.min(longestPauseMs, pollMs * 2 ** failures));
      await clock.sleep(around(pauseMs, rng), signal).catch(() => undefined);
    }
  }

  async #look(listener: FeedListener, signal: AbortSignal): Promise<void> {
    const { ec2, clock, machines } = this.#options;
    const ours = new Set(machines().flatMap(instanceOf));
    if (ours.size === 0) return;
    const events = await ec2.scheduledEvents(signal);
    const at = clock.now();
    const readings = events
      .filter(({ instance }) => instance === undefined || ours.has(instance))
      .map((event) => readScheduledEvent(event, at));
    this.#sayProblems(
      readings.flatMap((one) => (one.kind === "Unreadable" ? one.problem : [])),
      listener,
    );
    const notices = readings.flatMap((one) => (one.kind === "Read" ? one.instanceNotice : []));
    await Promise.all(
      [...notices, ...this.#missing(events)].map((instanceNotice) =>
        this.#tell(instanceNotice, listener),
      ),
    );
  }

  /**
   * Withdrawals of events that are no longer listed. Once an event has started, its absence means
   * nothing.
   */
  #missing(events: readonly ScheduledEvent[]): readonly InstanceNotice[] {
    const nowAt = this.#options.clock.now();
    const stands = standsIn(events);
    return [...this.#known].flatMap(([id, known]): readonly InstanceNotice[] => {
      const missing = stands(known.instanceNotice) ? 0 : known.missing + 1;
      this.#known.set(id, { ...known, missing });
      if (missing < missingAtLast) return [];
      const { taken } = known;
      if (taken === undefined || (taken.notice.deadlineAt ?? nowAt) <= nowAt) {
        this.#known.delete(id);
        return [];
      }
      return [{ ...taken, notice: { ...taken.notice, noticedAt: nowAt, withdrawn: true } }];
    });
  }

  /** A notice that could not be recorded is reported again at the next poll. */
  async #tell(instanceNotice: InstanceNotice, listener: FeedListener): Promise<void> {
    const { eventId, withdrawn } = instanceNotice.notice;
    const before = this.#known.get(eventId)?.taken;
    try {
      if (withdrawn !== true) {
        const delivery = await listener.onNotice(instanceNotice);
        const taken = delivery === "Taken" ? instanceNotice : before;
        this.#known.set(eventId, { instanceNotice, taken, missing: 0 });
      } else if (before !== undefined || this.#isNear(instanceNotice)) {
        // With the deadline of the notice that was taken, which identifies its departure.
        const deadlineAt = (before ?? instanceNotice).notice.deadlineAt;
        await listener.onNotice({
          ...instanceNotice,
          notice: { ...instanceNotice.notice, deadlineAt },
        });
        this.#known.delete(eventId);
      }
    } catch (error) {
      listener.onError(asFault(error));
    }
  }

  /** Whether the previous leader may have created a departure for it. */
  #isNear({ notice: { deadlineAt } }: InstanceNotice): boolean {
    const nowAt = this.#options.clock.now();
    if (deadlineAt === undefined) return false;
    return nowAt >= minus(deadlineAt, beforeMs) && nowAt <= plus(deadlineAt, afterMs);
  }

  #sayProblems(problems: readonly string[], listener: FeedListener): void {
    const [first] = problems;
    if (first !== undefined && problems.length !== this.#problems) {
      const message = `Cannot read an event that EC2 has scheduled: ${first}`;
      listener.onError(new LastcallError("NOTICE_UNREADABLE", message));
    }
    this.#problems = problems.length;
  }
}

/**
 * Whether a notice may belong to one of the listed events. It still does if its event can no longer
 * be parsed or no policy selects its node any more.
 */
function standsIn(events: readonly ScheduledEvent[]): (instanceNotice: InstanceNotice) => boolean {
  const ids = new Set(events.map(({ id }) => eventIdFrom(id ?? "")));
  const nameless = new Set(events.flatMap(({ id, instance }) => (id ? [] : [instance])));
  return ({ machine, notice }) =>
    ids.has(notice.eventId) || nameless.has(machine) || nameless.has(undefined);
}

function instanceOf(providerID: string): readonly string[] {
  const machine = parseInstanceId(providerID);
  return machine === undefined ? [] : [machine.instanceId];
}

export type EventReading =
  | { readonly kind: "Read"; readonly instanceNotice: InstanceNotice }
  /** It has happened and stopped the machine: there is nothing to do or to withdraw. */
  | { readonly kind: "Over" }
  | { readonly kind: "Unreadable"; readonly problem: string };

/** Events after which the machine keeps running. */
const livedThrough = new Set(["instance-reboot", "system-reboot", "system-maintenance"]);

/**
 * Converts a scheduled event of an instance to a notice. Completed and cancelled events stay listed
 * for a week, with a mark before their description. Source: EC2 API, InstanceStatusEvent.
 */
export function readScheduledEvent(event: ScheduledEvent, at: Instant): EventReading {
  const machine = instanceIdOf(event.instance);
  if (machine === undefined)
    return unreadableEvent(`${excerpt(event.instance)} is not an instance`);
  const { id, notBeforeAt: deadlineAt } = event;
  if (id === undefined || id === "" || deadlineAt === undefined) {
    return unreadableEvent(`an event of ${machine} has no InstanceEventId or NotBefore`);
  }
  const mark = /^\s*\[(completed|canceled)\]/i.exec(event.description ?? "")?.[1]?.toLowerCase();
  if (mark === "completed" && !livedThrough.has(event.code ?? "")) return { kind: "Over" };
  const instanceNotice: InstanceNotice = {
    machine,
    notice: {
      cause: "ScheduledMaintenance",
      deadlineAt,
      noticedAt: at,
      source: "aws/instance-status",
      eventId: eventIdFrom(id),
      ...(mark === undefined ? {} : { withdrawn: true }),
    },
  };
  return { kind: "Read", instanceNotice };
}

function unreadableEvent(problem: string): EventReading {
  return { kind: "Unreadable", problem };
}

export interface TaggedMachinesOptions {
  readonly ec2: Ec2;
  readonly tag: Tag;
  readonly clock: Clock;
  readonly rng: Rng;
  /** The longest that a lookup waits for EC2; default one second. */
  readonly answerWithinMs?: Millis;
}

/** Tags seldom change, and an unknown machine is looked up individually. */
const refreshMs: Millis = minutes(5);

/** The longest that a notice of one of the cluster's own nodes waits for EC2. */
const answerWithinMs: Millis = seconds(1);

/** Instances that are looked up with one request. */
interface Batch {
  readonly machines: string[];
  readonly answer: Promise<ReadonlySet<string>>;
}

/**
 * Whether instances have a tag, read in advance where possible. What an unknown answer means is for
 * the caller to decide.
 */
export class TaggedMachines {
  readonly #options: TaggedMachinesOptions;
  #tagged: ReadonlySet<string> = new Set();
  /** Individual lookups under way, and those since the last full read that found the tag. */
  readonly #asked = new Map<string, Promise<boolean>>();
  /** The next batch: collects instances until the request before it completes. */
  #next: Batch | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: TaggedMachinesOptions) {
    this.#options = options;
  }

  /** Reads all tagged instances periodically until the signal aborts. Never rejects. */
  async follow(onError: TroubleListener, signal: AbortSignal): Promise<void> {
    const { ec2, tag, clock, rng } = this.#options;
    while (!signal.aborted) {
      try {
        this.#tagged = await ec2.tagged(tag, signal);
        this.#asked.clear();
      } catch (error) {
        if (signal.aborted) return;
        onError(asFault(error));
      }
      await clock.sleep(around(refreshMs, rng), signal).catch(() => undefined);
    }
  }

  /** Whether the instance has the tag. Rejects if EC2 does not say so in time. */
  async has(machine: string): Promise<boolean> {
    if (this.#tagged.has(machine)) return true;
    const asked = this.#asked.get(machine);
    if (asked !== undefined) return asked;
    const asking = this.#ask(machine);
    this.#asked.set(machine, asking);
    // The next notice looks it up again: the instance may have got its tag by then.
    const forget = () => {
      if (this.#asked.get(machine) === asking) this.#asked.delete(machine);
    };
    asking.then((isTagged) => isTagged || forget(), forget);
    return asking;
  }

  /** Looks up an instance. EC2 gets one request at a time, however many notices arrive at once. */
  async #ask(machine: string): Promise<boolean> {
    const { answer } = this.#join(machine);
    const found = await this.#withinLimit(() => answer);
    return found.has(machine);
  }

  #join(machine: string): Batch {
    const batch = this.#next ?? this.#open();
    batch.machines.push(machine);
    this.#next = batch.machines.length < mostAskedFor ? batch : undefined;
    return batch;
  }

  #open(): Batch {
    const machines: string[] = [];
    const answer = this.#last.then(() => {
      if (this.#next?.machines === machines) this.#next = undefined;
      const { ec2, tag } = this.#options;
      return this.#withinLimit((signal) => ec2.tagged(tag, signal, machines));
    });
    // All callers may have given up, and then nothing would handle a rejection.
    this.#last = answer.catch(() => undefined);
    return { machines, answer };
  }

  #withinLimit<T>(ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { tag, clock, answerWithinMs: limitMs = answerWithinMs } = this.#options;
    const late = () =>
      new LastcallError(
        "CLOUD_UNREACHABLE",
        `Cannot determine which instances have the tag ${tag.key}: EC2 has not responded within ${limitMs / 1000} s, expected a response`,
      );
    return withinTime(ask, { clock, limitMs, late });
  }
}

export interface ManagedFeedOptions {
  /** Feeds with notices about EC2 instances only. */
  readonly feeds: readonly NoticeFeed[];
  readonly machines: TaggedMachines;
  /** Whether an instance is a node of the cluster: the tags of others are not read. */
  readonly isNode: (machine: string) => boolean;
}

/**
 * Filters other feeds: drops notices for nodes whose instances lack the tag. Fails open: the
 * machine is a node of this cluster, which the tag only narrows down.
 */
export class ManagedFeed implements NoticeFeed {
  readonly #options: ManagedFeedOptions;

  constructor(options: ManagedFeedOptions) {
    this.#options = options;
  }

  async run(listener: FeedListener, signal: AbortSignal): Promise<void> {
    const { feeds, machines } = this.#options;
    const onError = listener.onError.bind(listener);
    const managed: FeedListener = {
      onNotice: async (instanceNotice) =>
        (await this.#isManaged(instanceNotice.machine, onError))
          ? listener.onNotice(instanceNotice)
          : "NotOwned",
      onHook: async (hook) =>
        (await this.#isManaged(hook.machine, onError)) ? listener.onHook(hook) : "LeftAlone",
      onError,
    };
    await Promise.all([
      machines.follow(onError, signal),
      ...feeds.map((feed) => feed.run(managed, signal)),
    ]);
  }

  async #isManaged(machine: string, onError: FeedListener["onError"]): Promise<boolean> {
    const { machines, isNode } = this.#options;
    if (!isNode(machine)) return true;
    return machines.has(machine).catch((error: unknown) => {
      onError(asFault(error));
      return true;
    });
  }
}
