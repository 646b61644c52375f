import { describe, expect, it } from "vitest";
import { hours, type Instant, instant, minutes, plus } from "../../../src/core/time/time.ts";
import {
  EmpiricalPreemptions,
  gcpPreemptibleLifetimes,
} from "../../../src/sim/cloud/model-machine.ts";

const startAt = instant(Date.UTC(2026, 10, 20));

function lifeMs(preemptions: EmpiricalPreemptions, slot: string, bornAt: Instant): number {
  return preemptions.endOf(slot, bornAt).at - bornAt;
}

describe("EmpiricalPreemptions", () => {
  const preemptions = new EmpiricalPreemptions(1);
  const count = 20_000;
  const lives = Array.from({ length: count }, (_, index) =>
    lifeMs(preemptions, `slot-${index}`, startAt),
  );

  it.each(gcpPreemptibleLifetimes.survival.slice(1))(
    "lets a share of $share live longer than $ageHours h, as observed",
    ({ ageHours, share }) => {
      const longer = lives.filter((life) => life > hours(ageHours)).length / count;
      // Four standard errors of a share of 20,000 lives.
      const tolerance = 4 * Math.sqrt((share * (1 - share)) / count);
      expect(Math.abs(longer - share)).toBeLessThan(tolerance);
    },
  );

  it("ends every life within 24 hours 50 minutes", () => {
    const late = lives.filter((life) => life >= hours(24));
    expect(Math.min(...late)).toBeGreaterThanOrEqual(hours(24) + 40_000);
    expect(Math.max(...lives)).toBeLessThanOrEqual(hours(24) + minutes(50));
    const median = late.toSorted((a, b) => a - b)[Math.floor(late.length / 2)] ?? 0;
    // The observed median overtime is 741 s.
    expect(Math.abs(median - hours(24) - 741_000)).toBeLessThan(30_000);
  });

  it("gives the same answers in any order", () => {
    const again = new EmpiricalPreemptions(1);
    const asked = [3, 1, 2].map((index) => again.endOf(`slot-${index}`, startAt).at - startAt);
    expect(asked).toEqual([lives[3], lives[1], lives[2]]);
  });

  it("preempts by the clock: machines launched apart in one slot meet the same candidates", () => {
    const laterBornAt = plus(startAt, minutes(10));
    const preempted = Array.from({ length: 2000 }, (_, index) => `slot-${index}`).filter((slot) => {
      const { at } = preemptions.endOf(slot, startAt);
      return at > laterBornAt && at < plus(startAt, hours(6));
    });
    expect(preempted.length).toBeGreaterThan(100);
    for (const slot of preempted) {
      // In its first ten hours a younger machine is at greater risk: what ends the older one ends
      // it, too.
      expect(preemptions.endOf(slot, laterBornAt).at).toBeLessThanOrEqual(
        preemptions.endOf(slot, startAt).at,
      );
    }
  });

  it("takes the successor of a machine that was taken early as often as any other", () => {
    const successors = Array.from({ length: count }, (_, index) => `slot-${index}`).flatMap(
      (slot) => {
        const { at } = preemptions.endOf(slot, startAt);
        return at < plus(startAt, hours(1))
          ? [lifeMs(preemptions, slot, plus(at, minutes(1)))]
          : [];
      },
    );
    const share =
      gcpPreemptibleLifetimes.survival.find(({ ageHours }) => ageHours === 1)?.share ?? 0;
    const longer = successors.filter((life) => life > hours(1)).length / successors.length;
    const standardError = Math.sqrt((share * (1 - share)) / successors.length);
    expect(successors.length).toBeGreaterThan(2500);
    expect(Math.abs(longer - share)).toBeLessThan(4 * standardError);
  });

  it("takes the machines of a fleet independently of each other", () => {
    // Of fleets of 18, those taken in their first three hours; one seed each, names as in the demo.
    const [fleets, size] = [2000, 18];
    const taken = Array.from({ length: fleets }, (_, seed) => {
      const model = new EmpiricalPreemptions(seed);
      const names = Array.from({ length: size }, (_, index) => `spot-${"bcd"[index % 3]}-${index}`);
      return names.filter((name) => lifeMs(model, name, startAt) < hours(3)).length;
    });
    const mean = taken.reduce((sum, one) => sum + one, 0) / fleets;
    const variance = taken.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (fleets - 1);
    const share = mean / size;
    // The share lost within three hours, and the variance of a binomial distribution of that share.
    expect(Math.abs(share - (1 - 0.7677))).toBeLessThan(4 * Math.sqrt(0.18 / (fleets * size)));
    const wanted = size * share * (1 - share);
    expect(Math.abs(variance / wanted - 1)).toBeLessThan(4 * Math.sqrt(2 / fleets));
  });

  it("differs from slot to slot and from seed to seed", () => {
    expect(lifeMs(preemptions, "slot-1", startAt)).not.toBe(lifeMs(preemptions, "slot-2", startAt));
    expect(lifeMs(new EmpiricalPreemptions(2), "slot-1", startAt)).not.toBe(lives[1]);
  });
});

describe("gcpPreemptibleLifetimes", () => {
  it("never rises, and has the observed overtime after 24 hours", () => {
    const shares: readonly number[] = gcpPreemptibleLifetimes.survival.map(({ share }) => share);
    expect(shares).toEqual(shares.toSorted((a, b) => b - a));
    expect(gcpPreemptibleLifetimes.overtimeSeconds[0]).toBe(40);
    expect(gcpPreemptibleLifetimes.overtimeSeconds.at(-1)).toBe(2998);
  });
});
