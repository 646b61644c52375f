import { describe, expect, it } from "vitest";
import { boardPicture } from "../../../src/board/picture.ts";
import { noRights } from "../../../src/board/stream.ts";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import type { Policy } from "../../../src/core/policy/policy.ts";
import { inEnglish } from "../../../src/core/reason/english.ts";
import type { Reason } from "../../../src/core/reason/reason.ts";
import { hours, minus, minutes, plus } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at } from "../fleet-builder.ts";

/**
 * A row and the headline of the same view are read together, and say the same: the record of a hold
 * whose figures change all the time is up to ten minutes old.
 */
const now = at("2026-11-20T12:05:00Z");
const dueAt = minus(now, minutes(5));

const fleet = (notReady: number): readonly NodeFacts[] =>
  Array.from({ length: 6 }, (_, place) =>
    aNode(`n${place}`, { createdAt: minus(now, hours(20 - place)), ready: place + notReady < 6 }),
  );

const [first = aNode("n0")] = fleet(0);

function due(reason: Reason, more: Partial<Departure> = {}): Departure {
  return aDeparture(first, {
    ...{ departAt: dueAt, deadlineAt: plus(now, hours(3.5)), createdAt: minus(now, hours(1)) },
    status: {
      ...{ phase: "Held", reason, message: "as recorded" },
      timeline: [{ at: minus(now, minutes(5)), step: "Held", result: reason }],
    },
    ...more,
  });
}

interface World {
  readonly departures: readonly Departure[];
  readonly notReady?: number;
  readonly policy?: Policy;
}

function seen({ departures, notReady = 0, policy = aPolicy() }: World) {
  const view = { policies: [policy], badPolicies: [], nodes: fleet(notReady), departures };
  const { rows, fleet: facts } = boardPicture(view, {
    now,
    state: {
      ...{ cluster: "prod", isDemo: false, missing: [], rights: noRights },
      ...{ isCounted: false, connection: { kind: "Live" } as const },
    },
  });
  const row = rows.find(({ node }) => node === "n0");
  const line = facts.headline.find(({ subject }) => subject === "Policy");
  return {
    row: row && { state: row.state, reason: row.reason, explain: inEnglish(row.explain) },
    line: line && inEnglish(line.says),
    waiting: line?.waiting,
  };
}

describe("a departure that an unhealthy fleet holds", () => {
  it.each(["Planned", "Manual"] as const)("names the figures of the headline: %s", (cause) => {
    const { row, line } = seen({ departures: [due("FleetUnhealthy", { cause })], notReady: 5 });
    const figures = "5 of 6 nodes of the policy spot are not Ready";
    expect(line).toContain(figures);
    expect(row).toMatchObject({ state: "Held", reason: "FleetUnhealthy" });
    expect(row?.explain).toBe(`n0 waits, because the fleet is unhealthy: ${figures}.`);
  });

  it.each(["Planned", "Manual"] as const)("is not held once the fleet is healthy: %s", (cause) => {
    const { row, line, waiting } = seen({ departures: [due("FleetUnhealthy", { cause })] });
    expect(row?.state).toBe("Scheduled");
    expect(row?.explain).not.toContain("as recorded");
    expect(line).not.toContain("held back");
    expect(waiting).toEqual([]);
  });
});

describe("a departure that waits for its wave", () => {
  const policy = aPolicy({ waves: { sizes: [{ count: 1 }, { count: 2 }] } });
  const canary = (status: Partial<Departure["status"]>) =>
    aDeparture(aNode("n9"), {
      departAt: minus(now, hours(1)),
      status: { phase: "Draining", startedAt: minus(now, hours(1)), ...status },
    });

  it("names how far the wave is, as the headline does", () => {
    const departures = [due("WaveWait"), canary({})];
    const { row, line } = seen({ departures, policy });
    const progress = "wave 1 of 2: 0 of 1 has succeeded, 1 is under way";
    expect(line).toContain(progress);
    expect(row).toMatchObject({ state: "Held", reason: "WaveWait" });
    expect(row?.explain).toContain(progress);
  });

  it("is held by the failure that has halted the waves since", () => {
    const endedAt = minus(now, minutes(1));
    const departures = [
      due("WaveWait"),
      canary({ phase: "Ended", outcome: "RolledBack", endedAt }),
    ];
    expect(seen({ departures, policy }).row).toMatchObject({
      ...{ state: "Held", reason: "WaveHalted" },
    });
  });

  it("is not held once the next wave may start", () => {
    const endedAt = minus(now, minutes(1));
    const departures = [due("WaveWait"), canary({ phase: "Ended", outcome: "Planned", endedAt })];
    const { row, waiting } = seen({ departures, policy });
    expect(row?.state).toBe("Scheduled");
    expect(waiting).toEqual([]);
  });
});

it("any other hold is shown as recorded", () => {
  const { row } = seen({ departures: [due("ConflictWait")], notReady: 5 });
  expect(row).toMatchObject({ state: "Held", reason: "ConflictWait", explain: "as recorded" });
});
