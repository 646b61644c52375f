import type { Clock } from "../../contracts/clock.ts";
import type { ReleaseRequest, ReleaseResult } from "../../contracts/cloud/instance-releaser.ts";
import { backoffMs } from "../../core/chance/backoff.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { type Millis, minutes, seconds } from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";

/** How the machine that is meant stands now. */
export type Standing = "Staying" | "Leaving" | "Gone" | "Replaced";

/** One machine that is to go, as its cloud knows it. */
export interface LeavingMachine<Seen> {
  /** The machine that stands in its place now; undefined where the cloud has none. */
  look(signal: AbortSignal): Promise<Seen | undefined>;
  standing(seen: Seen): Standing;
  /**
   * Asks the cloud once to release it, and follows the request as far as the cloud tells of it.
   * Throws `LastcallError`; `retryable` leads to another look, and to another request if it still
   * stays.
   */
  act(seen: Seen, bounds: ReleaseBounds): Promise<void>;
  /** What is told of one that is still there after the whole wait. */
  stillThere(seen: Seen): LastcallError;
}

export interface ReleaseBounds {
  /** On the monotonic clock, in milliseconds. */
  readonly giveUpAt: number;
  readonly signal: AbortSignal;
}

export interface ReleaseLoopOptions {
  readonly clock: Clock;
  readonly rng: Rng;
  /** How long one release waits for the machine to go; 20 minutes by default. */
  readonly goneWithinMs?: Millis | undefined;
}

/** Attempts of the act itself; before each the machine is looked at again. */
const actAttempts = 4;
const actRule = { firstMs: seconds(2), mostMs: seconds(15) };
const pollRule = { firstMs: seconds(2), mostMs: seconds(15) };

export interface LeavingRequest<Seen> {
  readonly machine: LeavingMachine<Seen>;
  /** The caller's own look at the node, after each of ours at the machine. */
  readonly lastLook: ReleaseRequest["lastLook"];
}

/**
 * Look, act unless it is leaving, wait until it is gone: as `InstanceReleaser.release` promises it,
 * for every cloud. Another machine in the place is never touched.
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
        ? await letGo(request, { seen: ready.seen, options, bounds })
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
 * The machine as it stays, with the node looked at after it; both again where the node's look took
 * time. Else how the machine stands that needs no request, or that it is to be kept.
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

/** Asks the cloud to release the machine; a fault that may pass is followed by more looks. */
async function letGo<Seen>(
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
 * That a request was taken, or has ended well, does not tell that the machine went: only a look
 * does.
 * `Stays`: it was leaving without a request of ours, and that was called off.
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
 * A machine that is going does not come back, whatever is found out about it meanwhile: its node
 * must not be put to work again, so that the release is taken up for as long as it takes.
 */
function stillLeaving(error: LastcallError): LastcallError {
  if (error.code === "LEASE_LOST") return error;
  return new LastcallError("MACHINE_LEAVING", error.message, { cause: error });
}
