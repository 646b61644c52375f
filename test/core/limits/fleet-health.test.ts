import { describe, expect, it } from "vitest";
import { unhealthyHold } from "../../../src/core/limits/fleet-health.ts";
import type { MissingMachine } from "../../../src/core/limits/missing-machine.ts";
import type { Amount, Budget } from "../../../src/core/policy/policy.ts";
import { hours, minutes, plus } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at } from "../fleet-builder.ts";

const now = at("2026-11-20T12:00:00Z");
const all = (nodes: number, notReady: number) => ({ nodes, notReady });

function missing(count: number, agoMinutes = 11): readonly MissingMachine[] {
  const goneAt = plus(now, minutes(-agoMinutes));
  return Array.from({ length: count }, (_, place) => ({
    departure: aDeparture(aNode(`n${place + 1}`)),
    ...{ goneAt, untilAt: plus(goneAt, hours(24)), isReleased: true },
  }));
}

describe("a fleet of which many nodes are not Ready", () => {
  function holdAt(
    own: readonly [number, number],
    cluster: readonly [number, number],
    most?: number,
  ) {
    const policy = aPolicy({
      gates: { blockingPods: [], ...(most !== undefined && { maxUnhealthy: most }) },
    });
    const tallies = { tally: all(...own), cluster: all(...cluster) };
    return unhealthyHold({ policy, ...tallies, missing: [], at: now })?.detail;
  }

  it.each([
    [
      "all nodes of the policy",
      [12, 12],
      [60, 12],
      "12 of 12 nodes of the policy spot are not Ready",
    ],
    [
      "more than half of them",
      [20, 11],
      [60, 11],
      "11 of 20 nodes of the policy spot are not Ready",
    ],
    ["half of them", [20, 10], [60, 10], undefined],
    ["two of two, of a larger cluster", [2, 2], [60, 2], undefined],
    [
      "two of two, of a cluster of two",
      [2, 2],
      [2, 2],
      "2 of 2 nodes of the cluster are not Ready",
    ],
    ["the cluster's other nodes", [12, 0], [60, 33], "33 of 60 nodes of the cluster are not Ready"],
    ["the only node", [1, 1], [1, 1], undefined],
  ] as const)("lets nobody leave, by the default of 55 %%: %s", (_, own, cluster, detail) => {
    expect(holdAt(own, cluster)).toBe(detail);
  });

  it("is measured by the policy's own share", () => {
    expect(holdAt([20, 5], [60, 5], 0.25)).toMatch(/^5 of 20/);
    expect(holdAt([20, 4], [60, 4], 0.25)).toBeUndefined();
    expect(holdAt([20, 19], [60, 19], 1)).toBeUndefined();
    expect(holdAt([20, 20], [60, 20], 1)).toMatch(/^20 of 20/);
  });
});

describe("a fleet whose machines are not replaced", () => {
  const nodes = (amount: Amount): Budget => ({ kind: "Nodes", scope: "Policy", nodes: amount });

  it.each([
    ["one of twelve", 11, 1, [], true],
    ["four of fifty, without a budget", 46, 4, [], false],
    ["five of fifty, without a budget", 45, 5, [], true],
    ["one of fifty, with a budget of one node", 49, 1, [nodes({ count: 1 })], true],
    ["one of fifty, with a budget of two nodes", 49, 1, [nodes({ count: 2 })], false],
    ["two of fifty, with a budget of 4 %", 48, 2, [nodes({ percent: 4 })], true],
    ["one of fifty, with a budget of six an hour", 49, 1, [{ kind: "PerHour", perHour: 6 }], false],
  ] as const)("lets nobody leave, if too many are late: %s", (_, there, gone, budgets, isHeld) => {
    const policy = aPolicy({ budgets });
    const tally = all(there, 0);
    const question = { policy, tally, cluster: tally, missing: missing(gone), at: now };
    expect(unhealthyHold(question) !== undefined).toBe(isHeld);
  });

  it("waits for the policy's replacement.timeout before that, and names the first one", () => {
    const policy = aPolicy({ replacement: { ...aPolicy().replacement, timeoutMs: minutes(20) } });
    const tally = all(10, 0);
    const holdAfter = (ago: number) =>
      unhealthyHold({ policy, tally, cluster: tally, missing: missing(2, ago), at: now });
    expect(holdAfter(19)).toBeUndefined();
    expect(holdAfter(20)).toEqual({
      ...{ kind: "Held", reason: "FleetUnhealthy" },
      detail: "nothing has replaced n1 since 2026-11-20T11:40:00.000Z, and 1 more",
    });
  });
});
