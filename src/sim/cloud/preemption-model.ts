import { seededRng } from "../../core/chance/rng.ts";
import {
  hours,
  type Instant,
  instant,
  later,
  type Millis,
  millis,
  plus,
  seconds,
} from "../../core/time/time.ts";
import { gcpPreemptibleLifetimes } from "../data/gcp-preemptible-lifetimes.ts";

export interface MachineEnd {
  readonly at: Instant;
  /** `Limit`: it reached the end that every preemptible machine reaches after 24 hours. */
  readonly because: "Preempted" | "Limit";
}

/** When the cloud takes machines; `Endless` for machines that it does not take. */
export interface Fate {
  endOf(slot: string, bornAt: Instant): MachineEnd | "Endless";
}

/** The fate of machines at their full price. */
export const endlessFate: Fate = Object.freeze({ endOf: () => "Endless" as const });

interface Strike {
  readonly at: Instant;
  /** 0 to 1: how likely a machine has to be struck at its age, of the most there is, to be hit. */
  readonly level: number;
}

/** Strikes are drawn a day at a time, so that they can be looked up in any order. */
const block = hours(24);
const hardLimit = hours(24);

/**
 * Preemptions that do not depend on what anybody does about them. Each slot of a group is struck
 * at instants that the seed alone decides (a Poisson process at the highest hazard there is); a
 * machine is hit if its age at that instant is dangerous enough (thinning: Lewis and Shedler
 * 1979), so that lifetimes follow the observed distribution. Two policies on one seed so meet the
 * same strikes at the same instants, whichever machines they let live until then: their outcomes
 * differ by what they did, not by luck (common random numbers).
 */
export class EmpiricalFate implements Fate {
  readonly #seed: number;
  readonly #sparedUntil: Instant;
  readonly #strikes = new Map<string, readonly Strike[]>();

  /**
   * Nobody is struck until `sparedUntil`: for a fleet of which no more is told than that it has lived
   * until then. What comes after is as likely as it was, since strikes know nothing of one another.
   */
  constructor(seed: number, { sparedUntil = instant(0) }: { sparedUntil?: Instant } = {}) {
    this.#seed = seed;
    this.#sparedUntil = sparedUntil;
  }

  endOf(slot: string, bornAt: Instant): MachineEnd {
    const limitAt = plus(plus(bornAt, hardLimit), this.#overtime(slot, bornAt));
    const last = blockOf(plus(bornAt, hardLimit));
    const fromAt = later(bornAt, this.#sparedUntil);
    for (let day = blockOf(fromAt); day <= last; day += 1) {
      const hit = this.#strikesOf(slot, day).find(
        ({ at, level }) => at > fromAt && level * highestHazard < hazardAt(millis(at - bornAt)),
      );
      if (hit) return { at: hit.at, because: "Preempted" };
    }
    return { at: limitAt, because: "Limit" };
  }

  /** By the day on which the limit is reached, so that it too is the same for every policy. */
  #overtime(slot: string, bornAt: Instant): Millis {
    const day = blockOf(plus(bornAt, hardLimit));
    const steps = gcpPreemptibleLifetimes.overtimeSeconds;
    const place = this.#rng(`${slot}/limit`, day)() * (steps.length - 1);
    const [low = 0, high = 0] = [steps[Math.floor(place)], steps[Math.ceil(place)]];
    return seconds(low + (high - low) * (place % 1));
  }

  #strikesOf(slot: string, day: number): readonly Strike[] {
    const key = `${slot}|${day}`;
    const known = this.#strikes.get(key);
    if (known) return known;
    const rng = this.#rng(slot, day);
    const strikes: Strike[] = [];
    let offsetMs = nextGapMs(rng);
    while (offsetMs < block) {
      strikes.push({ at: instant(Math.round(day * block + offsetMs)), level: rng() });
      offsetMs += nextGapMs(rng);
    }
    this.#strikes.set(key, strikes);
    return strikes;
  }

  #rng(name: string, day: number): () => number {
    const rng = seededRng(hashOf(`${this.#seed}|${name}|${day}`));
    // Seeds that differ little give first numbers that differ little.
    rng();
    return rng;
  }
}

interface HazardStep {
  readonly untilMs: number;
  readonly perHour: number;
}

/** Between two ages of the table the hazard is taken as constant. */
const hazardSteps: readonly HazardStep[] = gcpPreemptibleLifetimes.survival
  .slice(1)
  .map(({ ageHours, share }, index) => {
    const from = gcpPreemptibleLifetimes.survival[index] ?? { ageHours: 0, share: 1 };
    const perHour = Math.log(from.share / share) / (ageHours - from.ageHours);
    return { untilMs: hours(ageHours), perHour };
  });

const highestHazard = Math.max(...hazardSteps.map((step) => step.perHour));

/** Preemptions an hour that threaten a machine of this age; none after 24 h, when the limit ends it. */
function hazardAt(age: Millis): number {
  return hazardSteps.find((step) => age < step.untilMs)?.perHour ?? 0;
}

function nextGapMs(rng: () => number): number {
  return (-Math.log(1 - rng()) / highestHazard) * hours(1);
}

function blockOf(at: Instant): number {
  return Math.floor(at / block);
}

/** FNV-1a: spreads a text over 32 bits. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0;
  }
  return hash;
}
