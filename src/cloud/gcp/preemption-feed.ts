import type { Clock } from "../../contracts/clock.ts";
import type { FeedListener, LaunchTimes, NoticeFeed } from "../../contracts/cloud.ts";
import { around, type Rng } from "../../core/chance/chance.ts";
import { excerpt, type Fields, trimmedTextOf } from "../../core/json/json-field.ts";
import type { InstanceNotice } from "../../core/notice/instance-notice.ts";
import {
  type Instant,
  later,
  type Millis,
  minus,
  minutes,
  parseInstant,
  plus,
  seconds,
} from "../../core/time/time.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import { type ComputeClient, listItems } from "./compute-client.ts";
import { findInstanceRef } from "./compute-instance.ts";
import { defaultPreemptionNoticeMs } from "./notice-source.ts";

export interface PreemptionFeedOptions {
  readonly client: ComputeClient;
  readonly clock: Clock;
  readonly rng: Rng;
  /** The interval between polls of a zone. */
  readonly pollMs: Millis;
  /** The providerIDs of the nodes whose machines matter; read before each round. */
  readonly machines: () => readonly string[];
  readonly launchTimes: LaunchTimes;
}

/** The longest interval between polls of a zone that fails. */
const longestPauseMs: Millis = minutes(5);

interface ZonePoll {
  readonly zone: PreemptionZone;
  failures: number;
  /** On the monotonic clock. */
  nextAt: number;
  isUnderWay: boolean;
}

/**
 * Preemptions from the zones' operations, for fleets without the agent. Each round lists every zone
 * once; zones without a machine that matters are not polled, and no zone waits for another.
 */
export class PreemptionFeed implements NoticeFeed {
  readonly #options: PreemptionFeedOptions;

  constructor(options: PreemptionFeedOptions) {
    this.#options = options;
  }

  async run(listener: FeedListener, signal: AbortSignal): Promise<void> {
    const { clock, rng, pollMs } = this.#options;
    const zones = new Map<string, ZonePoll>();
    const polls = new Set<Promise<void>>();
    while (!signal.aborted) {
      this.#follow(zones);
      for (const watched of zones.values()) {
        const poll = this.#pollIfDue(watched, listener, signal).finally(() => polls.delete(poll));
        polls.add(poll);
      }
      await clock.sleep(around(pollMs, rng), signal).catch(() => undefined);
    }
    await Promise.all(polls);
  }

  /** Starts polling zones that now have machines, and stops polling those that no longer do. */
  #follow(zones: Map<string, ZonePoll>): void {
    const present = new Map(this.#options.machines().flatMap(zoneEntryOf));
    for (const key of zones.keys()) if (!present.has(key)) zones.delete(key);
    for (const [key, ref] of present) {
      if (zones.has(key)) continue;
      const zone = new PreemptionZone(ref, this.#options);
      zones.set(key, { zone, failures: 0, nextAt: 0, isUnderWay: false });
    }
  }

  async #pollIfDue(watched: ZonePoll, listener: FeedListener, signal: AbortSignal): Promise<void> {
    const { clock, pollMs } = this.#options;
    if (watched.isUnderWay || clock.monotonic() < watched.nextAt) return;
    watched.isUnderWay = true;
    try {
      await watched.zone.poll(listener, signal);
      watched.failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      listener.onError(isLastcallError(error) ? error : unexpected(error));
      const pauseMs = Math.min(longestPauseMs, pollMs * 2 ** watched.failures);
      watched.failures += 1;
      watched.nextAt = clock.monotonic() + pauseMs;
    } finally {
      watched.isUnderWay = false;
    }
  }
}

function unexpected(error: unknown): LastcallError {
  return new LastcallError("NOTICE_UNREADABLE", `Cannot read preemptions: ${messageOf(error)}`);
}

function zoneEntryOf(providerID: string): readonly (readonly [string, ZoneRef])[] {
  const ref = findInstanceRef(providerID);
  if (ref === undefined) return [];
  const { project, zone } = ref;
  return [[`${project}/${zone}`, { project, zone }]];
}

/**
 * A preemption older than this at the start, or when a zone responds again, is not reported: its
 * machine is gone, and half a minute later a new one may have its name. A preemption that could not
 * be recorded is reported again for this long.
 */
const freshMs: Millis = seconds(60);
/**
 * After a longer silence of the zone, old preemptions are skipped as at the start. Longer than the
 * slowest interval with its jitter.
 */
const longestGapMs: Millis = seconds(90);
/**
 * How far operations may be listed out of order. A poll reads those of this long before the newest.
 */
const disorderMs: Millis = minutes(2);
const answerWithinMs: Millis = seconds(10);

/**
 * No new machine is a node of this name earlier: until then, a preemption is reported without
 * asking whose it is.
 */
const successorAfterMs: Millis = seconds(20);
/** A notice does not wait longer than this for the launch time of its machine. */
const launchTimesWithinMs: Millis = seconds(1);

interface ZoneReading {
  readonly notices: readonly InstanceNotice[];
  readonly problems: readonly string[];
  /** The insert time of the zone's newest operation, whatever its type. */
  readonly newestAt: Instant | undefined;
  /** Why the list was not read to its end. */
  readonly fault?: LastcallError;
}

interface KnownPreemption {
  readonly insertedAt: Instant;
  /** How long it is reported again if it was not recorded; undefined once it was recorded. */
  readonly tellUntilAt?: Instant | undefined;
}

/** One zone's list of preemptions: reports each operation until it is recorded. */
class PreemptionZone {
  readonly #ref: ZoneRef;
  readonly #client: ComputeClient;
  readonly #clock: Clock;
  readonly #launchTimes: LaunchTimes;
  readonly #known = new Map<string, KnownPreemption>();
  /** In the cloud's time: anything older was handled by an earlier poll. */
  #floorAt: Instant | undefined;
  /** On the monotonic clock, when the zone last responded. */
  #answeredAt = Number.NEGATIVE_INFINITY;
  #unreadable = 0;

  constructor(
    ref: ZoneRef,
    tools: Pick<PreemptionFeedOptions, "client" | "clock" | "launchTimes">,
  ) {
    this.#ref = ref;
    this.#client = tools.client;
    this.#clock = tools.clock;
    this.#launchTimes = tools.launchTimes;
  }

  /**
   * Polls once, and resolves when every notice is recorded or refused. Throws if the list failed or
   * is incomplete, after the notices of what was read.
   */
  async poll(listener: FeedListener, signal: AbortSignal): Promise<void> {
    const look = this.#clock.monotonic() - this.#answeredAt > longestGapMs ? "First" : "Next";
    const { notices, problems, newestAt, fault } = await this.#read(look, signal);
    const fresh = notices.filter((instanceNotice) => this.#isToBeTold(instanceNotice, look));
    // After a fault the next poll reads as far back again: something may be missing.
    if (fault === undefined) {
      this.#answeredAt = this.#clock.monotonic();
      if (newestAt !== undefined) this.#raiseFloor(minus(newestAt, disorderMs));
    }
    if (problems.length !== this.#unreadable && problems[0] !== undefined) {
      listener.onError(unreadable(this.#ref, problems[0]));
    }
    this.#unreadable = problems.length;
    await this.#tellAll(fresh, listener, signal);
    if (fault !== undefined) throw fault;
  }

  async #tellAll(
    notices: readonly InstanceNotice[],
    listener: FeedListener,
    signal: AbortSignal,
  ): Promise<void> {
    const successorFrom = minus(this.#clock.now(), successorAfterMs);
    const { early = [], late = [] } = Object.groupBy(notices, ({ notice }) =>
      notice.noticedAt < successorFrom ? "late" : "early",
    );
    const tell = (instanceNotice: InstanceNotice) => this.#tell(instanceNotice, listener);
    const tellLate = async () => {
      const bornAt = await this.#launchTimesOf(late, listener, signal);
      await Promise.all(late.filter((one) => !this.#isAnothers(one, bornAt)).map(tell));
    };
    await Promise.all([...early.map(tell), tellLate()]);
  }

  /** Whether the machine of that name was launched after the preemption, which then is dropped. */
  #isAnothers(
    { machine, notice }: InstanceNotice,
    launchTimes: ReadonlyMap<string, Instant>,
  ): boolean {
    const { eventId, noticedAt } = notice;
    const bornAt = launchTimes.get(machine);
    if (bornAt === undefined || bornAt <= noticedAt) return false;
    this.#known.set(eventId, { insertedAt: noticedAt });
    return true;
  }

  /**
   * The launch times of the machines that have these names now. A Node object outlives a fast
   * recreation, so only Compute Engine knows of a new machine. Without its answer, the notices are
   * told: a needless drain is better than none.
   */
  async #launchTimesOf(
    notices: readonly InstanceNotice[],
    listener: FeedListener,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, Instant>> {
    if (notices.length === 0) return new Map();
    const over = new AbortController();
    const until = AbortSignal.any([signal, over.signal]);
    const machines = notices.map(({ machine }) => machine);
    const asked = this.#launchTimes.launchTimesOf(machines, until);
    const waited = this.#clock.sleep(launchTimesWithinMs, until).then(() => undefined);
    try {
      const reading = await Promise.race([asked, waited]);
      for (const fault of reading?.faults ?? []) listener.onError(fault);
      return reading?.bornAt ?? new Map();
    } catch (error) {
      if (!signal.aborted) listener.onError(isLastcallError(error) ? error : unexpected(error));
      return new Map();
    } finally {
      over.abort();
    }
  }

  /**
   * Reads the zone's operations back to the floor. The list is neither filtered by the type, since
   * Compute Engine refuses a filter with an order, nor read in its own order, by name: the oldest
   * of up to 14 days would come first.
   */
  async #read(look: "First" | "Next", signal: AbortSignal): Promise<ZoneReading> {
    const heard = { ...this.#ref, at: this.#clock.now() };
    let floorAt = look === "First" ? undefined : this.#floorAt;
    let newestAt: Instant | undefined;
    const notices: InstanceNotice[] = [];
    const problems: string[] = [];
    const send = this.#client.send.bind(this.#client);
    try {
      for await (const item of listItems(send, newestFirst(this.#ref), signal)) {
        const reading = readPreemption(item, heard);
        if (reading.kind === "Unreadable") problems.push(reading.problem);
        if (reading.kind === "Preempted") notices.push(reading.instanceNotice);
        const insertedAt = insertTimeOf(item, heard);
        if (insertedAt === undefined) continue;
        newestAt = newestAt === undefined ? insertedAt : later(newestAt, insertedAt);
        floorAt ??= minus(insertedAt, disorderMs);
        if (insertedAt < floorAt) break;
      }
    } catch (error) {
      if (!isLastcallError(error)) throw error;
      return { notices, problems, newestAt, fault: error };
    }
    return { notices, problems, newestAt };
  }

  #isToBeTold({ notice }: InstanceNotice, look: "First" | "Next"): boolean {
    const { eventId, noticedAt } = notice;
    const now = this.#clock.now();
    if (this.#floorAt !== undefined && noticedAt < this.#floorAt) return false;
    const known = this.#known.get(eventId);
    if (known !== undefined) return known.tellUntilAt !== undefined && known.tellUntilAt >= now;
    const isStale = look === "First" && noticedAt < minus(now, freshMs);
    const tellUntilAt = isStale ? undefined : plus(now, freshMs);
    this.#known.set(eventId, { insertedAt: noticedAt, tellUntilAt });
    return !isStale;
  }

  #raiseFloor(at: Instant): void {
    const floorAt = this.#floorAt === undefined ? at : later(this.#floorAt, at);
    this.#floorAt = floorAt;
    for (const [name, { insertedAt }] of this.#known) {
      if (insertedAt < floorAt) this.#known.delete(name);
    }
  }

  async #tell(instanceNotice: InstanceNotice, listener: FeedListener): Promise<void> {
    const { eventId, noticedAt } = instanceNotice.notice;
    try {
      await listener.onNotice(instanceNotice);
      this.#known.set(eventId, { insertedAt: noticedAt });
    } catch (error) {
      if (!isLastcallError(error)) throw error;
      listener.onError(error);
    }
  }
}

/**
 * The list of a zone's operations, with the fields of one that are used. That the newest come first
 * in this order is documented with the method zoneOperations.list.
 */
function newestFirst({ project, zone }: ZoneRef) {
  return {
    path: `/projects/${project}/zones/${zone}/operations`,
    query: {
      orderBy: "creationTimestamp desc",
      fields: "items(id,name,operationType,insertTime,targetLink),nextPageToken,warning",
    },
    action: `list the operations of ${project}/${zone}`,
    permission: "compute.zoneOperations.list",
    timeoutMs: answerWithinMs,
  };
}

function unreadable({ project, zone }: ZoneRef, problem: string): LastcallError {
  const message = `Cannot read a preemption in ${project}/${zone}: ${problem}`;
  return new LastcallError("NOTICE_UNREADABLE", message);
}

/** A zone of a project, whose operations are listed. */
interface ZoneRef {
  readonly project: string;
  readonly zone: string;
}

/** The type of the operation that Compute Engine records when it preempts a Spot machine. */
const preemptedType = "compute.instances.preempted";

type OperationReading =
  | {
      readonly kind: "Preempted";
      readonly instanceNotice: InstanceNotice;
    }
  /** An operation of another type. */
  | { readonly kind: "Other" }
  | { readonly kind: "Unreadable"; readonly problem: string };

/** A clock that is off by this much cannot be trusted with deadlines. */
const farAheadMs = minutes(10);

const target = /\/zones\/([^/]+)\/instances\/([^/]+)$/;

/**
 * Parses an operation of a zone's list: which machine was preempted, and when. Accepts any input.
 * The operation is recorded when the machine receives the signal to stop (`systemevent-…`, done at
 * once), so the power goes off half a minute later. Source: recorded operations of 2019
 * (test/data/gce).
 */
export function readPreemption(
  item: Fields,
  heard: ZoneRef & { readonly at: Instant },
): OperationReading {
  if (item.operationType !== preemptedType) return { kind: "Other" };
  const insertedAt = insertTimeOf(item, heard);
  if (insertedAt === undefined) {
    return noPreemption(`the time ${excerpt(item.insertTime)}`);
  }
  const eventId = trimmedTextOf(item.name) ?? trimmedTextOf(item.id) ?? "";
  if (!/^[-A-Za-z0-9]{1,120}$/.test(eventId)) return noPreemption(`the name ${excerpt(item.name)}`);
  const [, zone, name] = target.exec(trimmedTextOf(item.targetLink) ?? "") ?? [];
  const machine = `gce://${heard.project}/${zone}/${name}`;
  if (zone !== heard.zone || findInstanceRef(machine) === undefined) {
    return noPreemption(`the target ${excerpt(item.targetLink)}`);
  }
  const notice = {
    cause: "Preempted",
    deadlineAt: plus(insertedAt, defaultPreemptionNoticeMs),
    noticedAt: insertedAt,
    source: "gcp/operations",
    eventId,
  } as const;
  return { kind: "Preempted", instanceNotice: { machine, notice } };
}

/** Undefined if the operation has no valid time, or one that is far ahead. */
function insertTimeOf(item: Fields, heard: { readonly at: Instant }): Instant | undefined {
  const insertedAt = parseInstant(trimmedTextOf(item.insertTime) ?? "");
  const isFarAhead = insertedAt !== undefined && insertedAt > plus(heard.at, farAheadMs);
  return isFarAhead ? undefined : insertedAt;
}

function noPreemption(found: string): OperationReading {
  return { kind: "Unreadable", problem: `found ${found}, expected a preemption of this zone` };
}
