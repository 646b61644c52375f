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

/**
 * How long preemptible machines lived, reduced from 1,442 machines observed February to April 2019.
 *
 * Origin: kadupitiya/goog-preemption-data at b22f181e, with the paper arXiv 1911.05160; licence
 * Apache-2.0. 717 machines were preempted; the owners of the other 725 stopped them, so those are
 * right-censored: they lived at least so long. `survival` is the Kaplan-Meier estimate of the share
 * that is not yet preempted at an age. 351 of the 717 went at their 24 hours, all of them after
 * 24:00:00 and by 24:49:58; `overtimeSeconds` holds the 5 % steps of how long after.
 */
export const gcpPreemptibleLifetimes = {
  survival: [
    { ageHours: 0, share: 1.0 },
    { ageHours: 0.25, share: 0.9265 },
    { ageHours: 0.5, share: 0.8963 },
    { ageHours: 1, share: 0.8507 },
    { ageHours: 1.5, share: 0.8241 },
    { ageHours: 2, share: 0.8032 },
    { ageHours: 3, share: 0.7677 },
    { ageHours: 4, share: 0.7441 },
    { ageHours: 6, share: 0.7236 },
    { ageHours: 8, share: 0.7102 },
    { ageHours: 10, share: 0.7019 },
    { ageHours: 12, share: 0.6825 },
    { ageHours: 15, share: 0.6637 },
    { ageHours: 18, share: 0.6429 },
    { ageHours: 21, share: 0.6298 },
    { ageHours: 24, share: 0.6143 },
  ],
  overtimeSeconds: [
    40, 102, 129, 173, 240, 309, 377, 441, 607, 693, 741, 801, 858, 979, 1169, 1480, 1871, 2120,
    2417, 2671, 2998,
  ],
} as const;

interface MachineEnd {
  readonly at: Instant;
  /** `Limit`: it reached the end that every preemptible machine reaches after 24 hours. */
  readonly because: "Preempted" | "Limit";
}

/** When the cloud takes machines; `Endless` for machines that it does not take. */
export interface PreemptionModel {
  endOf(slot: string, bornAt: Instant): MachineEnd | "Never";
}

/** Machines at their full price, which the cloud does not preempt. */
export const neverPreempted: PreemptionModel = Object.freeze({ endOf: () => "Never" as const });

interface PreemptionCandidate {
  readonly at: Instant;
  /** 0 to 1: a machine is preempted if its hazard is more than this share of the highest one. */
  readonly level: number;
}

/** Candidates are drawn a day at a time, so that they can be looked up in any order. */
const block = hours(24);
const hardLimit = hours(24);

/**
 * Preemptions that do not depend on what anybody does about them. Each slot of a group has
 * candidate instants that the seed alone decides (a Poisson process at the highest hazard there
 * is). A machine is preempted at one with the likelihood of its age then (thinning: Lewis and
 * Shedler 1979), so that lifetimes follow the observed distribution. Two policies on one seed so
 * meet the same candidates at the same instants, whichever machines they have kept until then:
 * their outcomes differ by what they did, not by luck (common random numbers).
 */
export class EmpiricalPreemptions implements PreemptionModel {
  readonly #seed: number;
  readonly #noneBefore: Instant;
  readonly #candidates = new Map<string, readonly PreemptionCandidate[]>();

  /**
   * No machine is preempted before `noneBefore`: for a fleet of which only that is known. What
   * comes after is as likely as it was, since candidates are independent of one another.
   */
  constructor(seed: number, { noneBefore = instant(0) }: { noneBefore?: Instant } = {}) {
    this.#seed = seed;
    this.#noneBefore = noneBefore;
  }

  endOf(slot: string, bornAt: Instant): MachineEnd {
    const limitAt = plus(plus(bornAt, hardLimit), this.#overtime(slot, bornAt));
    const last = blockOf(plus(bornAt, hardLimit));
    const fromAt = later(bornAt, this.#noneBefore);
    for (let day = blockOf(fromAt); day <= last; day += 1) {
      const hit = this.#candidatesOf(slot, day).find(
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

  #candidatesOf(slot: string, day: number): readonly PreemptionCandidate[] {
    const key = `${slot}|${day}`;
    const known = this.#candidates.get(key);
    if (known) return known;
    const rng = this.#rng(slot, day);
    const candidates: PreemptionCandidate[] = [];
    let offsetMs = nextGapMs(rng);
    while (offsetMs < block) {
      candidates.push({ at: instant(Math.round(day * block + offsetMs)), level: rng() });
      offsetMs += nextGapMs(rng);
    }
    this.#candidates.set(key, candidates);
    return candidates;
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

/**
 * Preemptions an hour that threaten a machine of this age; none after 24 h, when the limit ends it.
 */
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
