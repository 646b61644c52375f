import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  grantGrace,
  groupOf,
  groupsOfPair,
  isGraceful,
  type ShutdownGroup,
  shutdownSeconds,
} from "../../../src/core/drain-plan/drain-order.ts";
import { millis, seconds } from "../../../src/core/time/time.ts";

describe("the groups that the kubelet derives from its two shutdown periods", () => {
  it.each([
    { total: 30_000, critical: 15_000, groups: [15, 15], why: "GKE today" },
    { total: 30_000, critical: 5_000, groups: [25, 5], why: "GKE to 1.22.8" },
    { total: 150_000, critical: 30_000, groups: [120, 30], why: "EKS on AL2023" },
    { total: 30_000, critical: 0, groups: [30, 0], why: "nothing reserved for critical pods" },
    { total: 30_000, critical: 30_000, groups: [0, 30], why: "all of it for critical pods" },
    { total: 30_700, critical: 15_900, groups: [14, 15], why: "each part loses its fraction" },
    { total: 0, critical: 0, groups: [], why: "the upstream default" },
    { total: 10_000, critical: 20_000, groups: [], why: "the kubelet drops a negative rest" },
  ])("$total ms with $critical ms for critical pods: $why", ({ total, critical, groups }) => {
    const made = groupsOfPair(millis(total), millis(critical));

    expect(made.map((group) => group.seconds)).toEqual(groups);
    if (made.length > 0) expect(made.map((g) => g.priority)).toEqual([0, 2_000_000_000]);
  });
});

describe("the group of a pod", () => {
  const groups = [
    { priority: 100_000, seconds: 10 },
    { priority: -5, seconds: 60 },
    { priority: 0, seconds: 180 },
    { priority: 2_000_000_000, seconds: 20 },
  ];

  it.each([
    { podPriority: -100, group: -5, why: "under the lowest group: the lowest" },
    { podPriority: -5, group: -5, why: "on a border: that group" },
    { podPriority: -1, group: -5, why: "between two: the lower" },
    { podPriority: 0, group: 0, why: "on a border: that group" },
    { podPriority: 99_999, group: 0, why: "just under a border: the lower" },
    { podPriority: 100_000, group: 100_000, why: "on a border: that group" },
    { podPriority: 1_999_999_999, group: 100_000, why: "one under critical is not critical" },
    { podPriority: 2_000_001_000, group: 2_000_000_000, why: "over the highest: the highest" },
  ])("of priority $podPriority is $group; $why", ({ podPriority, group }) => {
    expect(groupOf(groups, podPriority)?.priority).toBe(group);
  });

  it("agrees with the kubelet's binary search for any groups and any pod", () => {
    const group = fc.record({ priority: fc.integer(), seconds: fc.nat(600) });
    fc.assert(
      fc.property(
        fc.uniqueArray(group, { minLength: 1, selector: (g) => g.priority }),
        fc.integer(),
        (made, podPriority) => {
          expect(groupOf(made, podPriority)).toEqual(asTheKubeletDoes(made, podPriority));
        },
      ),
      { seed: 7 },
    );
  });
});

describe("the granted grace", () => {
  const gke = groupsOfPair(seconds(30), seconds(15));

  it.each([
    { wanted: 60, priority: 0, granted: 15, cut: true, why: "requests more than there is" },
    { wanted: 15, priority: 0, granted: 15, cut: false, why: "requests exactly what there is" },
    { wanted: 16, priority: 0, granted: 15, cut: true, why: "one second too many" },
    { wanted: 5, priority: 0, granted: 5, cut: false, why: "the kubelet never lengthens" },
    { wanted: 0, priority: 0, granted: 0, cut: false, why: "requests nothing" },
    { wanted: 600, priority: 2_000_001_000, granted: 15, cut: true, why: "critical, and cut" },
  ])("for $wanted s at priority $priority is $granted s; $why", (row) => {
    const grant = grantGrace({
      wantedSeconds: row.wanted,
      podPriority: row.priority,
      groups: gke,
    });

    expect(grant).toEqual({ grantedSeconds: row.granted, cut: row.cut });
  });

  it.each([0, 1, 30])("is zero, and cut, without graceful shutdown (requested: %d s)", (wanted) => {
    const nothing = { grantedSeconds: 0, cut: true };

    expect(grantGrace({ wantedSeconds: wanted, podPriority: 0, groups: [] })).toEqual(nothing);
    const empty = [{ priority: 0, seconds: 0 }];
    expect(grantGrace({ wantedSeconds: wanted, podPriority: 0, groups: empty })).toEqual(nothing);
    expect(isGraceful(empty)).toBe(false);
  });

  it("does not include what an earlier group leaves unused, although logind waits longer", () => {
    expect(shutdownSeconds(gke)).toBe(30);
    expect(grantGrace({ wantedSeconds: 30, podPriority: 0, groups: gke }).grantedSeconds).toBe(15);
  });
});

/** The search of nodeshutdown_manager.go `groupByPriority`, step by step, as the oracle. */
function asTheKubeletDoes(made: readonly ShutdownGroup[], podPriority: number): ShutdownGroup {
  const groups = [...made].sort((a, b) => a.priority - b.priority);
  let index = 0;
  while (index < groups.length && (groups[index] as ShutdownGroup).priority < podPriority) index++;
  if (index === groups.length) index = groups.length - 1;
  else if (index > 0 && (groups[index] as ShutdownGroup).priority > podPriority) index--;
  return groups[index] as ShutdownGroup;
}
