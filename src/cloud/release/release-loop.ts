import type { Clock } from "../../contracts/clock.ts";
import type { LaunchTimeReading, ReleaseRequest, ReleaseResult } from "../../contracts/cloud.ts";
import { backoffMs, type Rng } from "../../core/chance/chance.ts";
import { type Instant, type Millis, minutes, seconds } from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";

/** The state of the machine to release. */
export type Standing = "Staying" | "Leaving" | "Gone" | "Replaced";

/** A machine to release, as its cloud describes it. */
export interface LeavingMachine<Seen> {
  /** Looks up the machine; undefined if the cloud has none of that name. */
  look(signal: AbortSignal): Promise<Seen | undefined>;
  standing(seen: Seen): Standing;
  /**
   * Requests the release once and follows the request as far as the cloud reports it. Throws a
   * `LastcallError`; if it is retryable, the machine is looked up again and, if it stays, released
   * again.
   */
  act(seen: Seen, bounds: ReleaseBounds): Promise<void>;
  /** The error for a machine that is still there after the wait. */
  stillThere(seen: Seen): LastcallError;
}

export interface ReleaseBounds {
  /** Monotonic time in milliseconds. */
  readonly giveUpAt: number;
  readonly signal: AbortSignal;
}

export interface ReleaseLoopOptions {
  readonly clock: Clock;
  readonly rng: Rng;
  /** How long a release waits until the machine is gone; default 20 minutes. */
  readonly goneWithinMs?: Millis | undefined;
}

/** How often the release is requested; the machine is looked up before each. */
const actAttempts = 4;

const actRule = { firstMs: seconds(2), mostMs: seconds(15) };

const pollRule = { firstMs: seconds(2), mostMs: seconds(15) };

export interface LeavingRequest<Seen> {
  readonly machine: LeavingMachine<Seen>;
  /** The caller's final check of the node, after each lookup of the machine. */
  readonly lastLook: ReleaseRequest["lastLook"];
}

/**
 * Implements `InstanceReleaser.release` for every cloud: look up the machine, release it unless it
 * is terminating, wait until it is gone. Never touches another machine of the same name.
 */
export async function releaseByLooking<Seen>(
  request: LeavingRequest<Seen>,
  options: ReleaseLoopOptions,
  signal: AbortSignal,
): Promise<ReleaseResult> {
  const giveUpAt = options.clock.monotonic() + (options.goneWithinMs ?? minutes(20));
  const bounds = { giveUpAt, signal };
  for (let isFirst = true; ; isFirst = false) {
    const ready = await lastLooks(request, signal);
    switch (ready.kind) {
      case "Gone":
        return { kind: isFirst ? "AlreadyGone" : "Released" };
      case "Replaced":
      case "Kept":
        return ready;
    }
    const asked =
      ready.kind === "Staying"
        ? await requestRelease(request, { seen: ready.seen, options, bounds })
        : "LeavesByItself";
    if (asked === "Kept") return { kind: "Kept" };
    const end = await untilGone(request.machine, { asked, options, bounds });
    if (end === "Gone") return { kind: "Released" };
  }
}

type Ready<Seen> =
  | { readonly kind: "Staying"; readonly seen: Seen }
  | { readonly kind: "Leaving" }
  | { readonly kind: "Gone" }
  | { readonly kind: "Replaced" }
  | { readonly kind: "Kept" };

/**
 * Looks up the machine, then lets the caller check the node; repeats both if that check took time.
 * Returns the machine if it has to be released, otherwise its state, or that it is kept.
 */
async function lastLooks<Seen>(
  { machine, lastLook }: LeavingRequest<Seen>,
  signal: AbortSignal,
): Promise<Ready<Seen>> {
  for (;;) {
    const seen = await machine.look(signal);
    if (seen === undefined) return { kind: "Gone" };
    const kind = machine.standing(seen);
    if (kind !== "Staying") return { kind };
    const look = await lastLook();
    signal.throwIfAborted();
    if (look === "Keep") return { kind: "Kept" };
    if (look === "Clear") return { kind, seen };
  }
}

/** Requests the release, with further lookups after retryable errors. */
async function requestRelease<Seen>(
  request: LeavingRequest<Seen>,
  start: {
    readonly seen: Seen;
    readonly options: ReleaseLoopOptions;
    readonly bounds: ReleaseBounds;
  },
): Promise<"Asked" | "LeavesByItself" | "Kept"> {
  const { clock, rng } = start.options;
  const { signal } = start.bounds;
  let { seen } = start;
  for (let attempt = 0; ; attempt++) {
    try {
      await request.machine.act(seen, start.bounds);
      return "Asked";
    } catch (error) {
      const again = isLastcallError(error) && error.retryable && attempt + 1 < actAttempts;
      if (!again) throw error;
    }
    await clock.sleep(backoffMs(attempt, rng, actRule), signal);
    const ready = await lastLooks(request, signal);
    if (ready.kind !== "Staying") return ready.kind === "Kept" ? "Kept" : "LeavesByItself";
    seen = ready.seen;
  }
}

/**
 * Waits until the machine is gone. An accepted or completed request does not prove that; only a
 * lookup does. `Stays`: the machine was terminating without a request from here, and that was
 * cancelled.
 */
async function untilGone<Seen>(
  machine: LeavingMachine<Seen>,
  work: {
    readonly asked: "Asked" | "LeavesByItself";
    readonly options: ReleaseLoopOptions;
    readonly bounds: ReleaseBounds;
  },
): Promise<"Gone" | "Stays"> {
  const { clock, rng } = work.options;
  const { giveUpAt, signal } = work.bounds;
  for (let round = 0; ; round++) {
    const seen = await machine.look(signal).catch((error: unknown) => {
      throw isLastcallError(error) ? stillLeaving(error) : error;
    });
    if (seen === undefined) return "Gone";
    const standing = machine.standing(seen);
    if (standing === "Gone" || standing === "Replaced") return "Gone";
    if (standing === "Staying" && work.asked === "LeavesByItself") return "Stays";
    if (clock.monotonic() >= giveUpAt) {
      const late = machine.stillThere(seen);
      throw standing === "Leaving" ? stillLeaving(late) : late;
    }
    await clock.sleep(backoffMs(round, rng, pollRule), signal);
  }
}

/**
 * The error for a terminating machine. Its node must not be uncordoned, because the machine does
 * not come back: the release is retried for as long as that takes.
 */
function stillLeaving(error: LastcallError): LastcallError {
  if (error.code === "LEASE_LOST") return error;
  return new LastcallError("MACHINE_LEAVING", error.message, { cause: error });
}

/** Machines covered by one request or list: those of a region, a zone or a scale set. */
export interface MachinePlace<Ref> {
  /** Any one of the machines. */
  readonly ref: Ref;
  /** The providerID by the id in the response. */
  readonly wanted: ReadonlyMap<string, string>;
}

/** Finds the place and id of a machine; undefined if it is not in this cloud. */
export type FindPlace<Ref> = (
  providerID: string,
) => { readonly ref: Ref; readonly key: string; readonly id: string } | undefined;

/** Groups machines by place. Omits those of other clouds. */
export function placesOf<Ref>(
  providerIDs: readonly string[],
  find: FindPlace<Ref>,
): readonly MachinePlace<Ref>[] {
  const places = new Map<string, { readonly ref: Ref; readonly wanted: Map<string, string> }>();
  for (const providerID of providerIDs) {
    const found = find(providerID);
    if (found === undefined) continue;
    const place = places.get(found.key) ?? { ref: found.ref, wanted: new Map() };
    place.wanted.set(found.id, providerID);
    places.set(found.key, place);
  }
  return [...places.values()];
}

/**
 * Reads all places concurrently. A place that cannot be read adds to the faults. `read` adds to
 * `bornAt` by providerID. Rejects with the signal's reason when it aborts.
 */
export async function readPlaces<Ref>(
  places: readonly MachinePlace<Ref>[],
  read: (place: MachinePlace<Ref>, bornAt: Map<string, Instant>) => Promise<void>,
  signal: AbortSignal,
): Promise<LaunchTimeReading> {
  signal.throwIfAborted();
  const bornAt = new Map<string, Instant>();
  const faults: LastcallError[] = [];
  const reads = places.map(async (place) => {
    try {
      await read(place, bornAt);
    } catch (error) {
      signal.throwIfAborted();
      if (!isLastcallError(error)) throw error;
      faults.push(error);
    }
  });
  await Promise.all(reads);
  return { bornAt, faults };
}
