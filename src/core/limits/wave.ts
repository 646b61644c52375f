import {
  type Departure,
  isLive,
  isUnderWay,
  isVoluntary,
  mayBeIgnored,
} from "../departure/departure.ts";
import type { Policy, Waves } from "../policy/policy.ts";
import { amountOf } from "./budget.ts";

/** The progress of one policy's waves. */
export interface WaveStanding {
  /** `Passed`: every wave has succeeded, and only budgets limit the rest. */
  readonly state: "UnderWay" | "Passed" | "Halted";
  /** The current wave, from 1 (the canary); the last one if all have passed. */
  readonly wave: number;
  readonly of: number;
  /** The size of the wave and the progress of its departures. */
  readonly size: number;
  readonly leftWell: number;
  readonly underWay: number;
  /** The newest failed departure, if the waves are halted. */
  readonly haltedBy?: { readonly departure: string; readonly outcome: string } | undefined;
}

export type WaveVerdict =
  | { readonly kind: "Allowed" }
  | {
      readonly kind: "Held";
      readonly reason: "WaveWait" | "WaveHalted";
      readonly detail: string;
    };

export interface WaveQuestion {
  readonly policy: Policy;
  /** The nodes of the policy, for sizes in percent. */
  readonly matched: number;
  readonly departures: readonly Departure[];
}

/**
 * The progress of a policy's waves, derived from the existing Departures; undefined if it has no
 * waves. A wave ends when as many departures as its size have succeeded; a failed one halts all
 * waves. Ended Departures are kept for three days, so after three days without any it starts with
 * the canary again.
 */
export function waveStanding({
  policy,
  matched,
  departures,
}: WaveQuestion): WaveStanding | undefined {
  const { waves } = policy;
  if (waves === undefined) return undefined;
  const own = departures.filter((one) => one.policy === policy.name && hasWaves(one));
  const ended = own.filter((one) => countsFor(one, waves));
  const done = ended.filter(leftWell).length;
  const failed = ended.filter(endedBadly).sort(newestFirst)[0];
  const counted = {
    ...waveAt(waves, { done, matched }),
    of: waves.sizes.length,
    underWay: own.filter((one) => isLive(one) && isUnderWay(one)).length,
  };
  if (failed === undefined) return counted;
  const haltedBy = { departure: failed.name, outcome: failed.status.outcome ?? "" };
  return { ...counted, state: "Halted", haltedBy };
}

/** Whether the waves allow one more departure to start. */
export function waveVerdict(standing: WaveStanding | undefined): WaveVerdict {
  if (standing === undefined || standing.state === "Passed") return { kind: "Allowed" };
  const detail = explainWaves(standing);
  if (standing.state === "Halted") return { kind: "Held", reason: "WaveHalted", detail };
  const { leftWell: done, underWay, size } = standing;
  if (done + underWay < size) return { kind: "Allowed" };
  return { kind: "Held", reason: "WaveWait", detail };
}

/**
 * The progress as a phrase: `wave 1 of 3: 0 of 1 have left well, 1 is under way`.
 */
export function explainWaves(standing: WaveStanding): string {
  const { state, wave, of, size, leftWell: done, underWay, haltedBy } = standing;
  if (state === "Passed") return `all ${of} waves have left well`;
  if (haltedBy !== undefined) {
    return `wave ${wave} of ${of} is halted, the departure ${haltedBy.departure} ended as ${haltedBy.outcome}; waves.restartedAt in the policy goes on`;
  }
  const going = `${underWay} ${underWay === 1 ? "is" : "are"} under way`;
  return `wave ${wave} of ${of}: ${done} of ${size} have left well, ${going}`;
}

function waveAt(
  { sizes }: Waves,
  { done, matched }: { readonly done: number; readonly matched: number },
): Pick<WaveStanding, "state" | "wave" | "size" | "leftWell"> {
  let before = 0;
  let size = 0;
  for (const [index, amount] of sizes.entries()) {
    size = amountOf(amount, matched);
    if (done < before + size) {
      return { state: "UnderWay", wave: index + 1, size, leftWell: done - before };
    }
    before += size;
  }
  return { state: "Passed", wave: sizes.length, size, leftWell: size };
}

/** Whether waves apply. Advisory departures wait for their wave and count in it. */
function hasWaves({ cause }: Departure): boolean {
  return isVoluntary(cause) || mayBeIgnored(cause);
}

function countsFor({ status }: Departure, { restartedAt }: Waves): boolean {
  if (status.phase !== "Ended" || status.startedAt === undefined) return false;
  return restartedAt === undefined || (status.endedAt ?? restartedAt) > restartedAt;
}

/** Whether a departure succeeded. Deletions that the policy allows are no failure. */
function leftWell({ status }: Departure): boolean {
  if (status.outcome === "Planned") return true;
  return status.outcome === "Forced" && (status.drain?.left ?? 0) === 0;
}

/** Whether a departure failed. Interruptions and cancellations are no failures. */
function endedBadly({ status }: Departure): boolean {
  if (status.outcome === "RolledBack" || status.outcome === "Failed") return true;
  return status.outcome === "Forced" && (status.drain?.left ?? 0) > 0;
}

function newestFirst(a: Departure, b: Departure): number {
  return (b.status.endedAt ?? 0) - (a.status.endedAt ?? 0) || (a.name < b.name ? -1 : 1);
}
