import { describe, expect, it } from "vitest";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import type { Policy } from "../../../src/core/policy/policy.ts";
import { formatInstant, hours, instant, minutes } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at } from "../fleet-builder.ts";

const now = at("2026-11-20T00:00:00Z");
const even = aPolicy({ spacing: { mode: "Even", minMs: minutes(15) } });

interface Fleet {
  readonly nodes: readonly NodeFacts[];
  readonly policy: Policy;
  readonly departures: readonly Departure[];
}

function plan({ nodes, policy, departures }: Fleet) {
  const input = { policies: [policy], badPolicies: [], nodes, departures, at: now };
  const [made] = planFleet(input).policies;
  if (made === undefined) throw new Error("the policy has a plan");
  return made;
}

function departs(made: ReturnType<typeof plan>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    made.departures.map(({ node, departAt }) => [node.name, formatInstant(departAt)]),
  );
}

/** A node whose deadline is so many minutes from now. */
function leftMinutes(name: string, count: number): NodeFacts {
  return aNode(name, { createdAt: instant(now - minutes(23 * 60 + 30 - count)) });
}

describe("the newest start in Even", () => {
  const gone = aDeparture(aNode("n0"), {
    status: { phase: "Ended", startedAt: instant(now - minutes(5)) },
  });

  it("is a neighbor like any other", () => {
    // Three gaps of 4:45 h from 23:55 on reach the first two deadlines; the third has room.
    const nodes = [leftMinutes("n1", 280), leftMinutes("n2", 565), leftMinutes("n3", 1260)];
    expect(departs(plan({ nodes, policy: even, departures: [gone] }))).toEqual({
      n1: "2026-11-20T04:40:00.000Z",
      n2: "2026-11-20T09:25:00.000Z",
      n3: "2026-11-20T21:00:00.000Z",
    });
  });

  it("is still one after a notice has overtaken it", () => {
    const overtaken = { ...gone, cause: "SpotInterruption", noticedAt: instant(now - minutes(4)) };
    const interrupted = { ...overtaken, noticedAt: instant(now - minutes(6)) };
    const nodes = [leftMinutes("n1", 280), leftMinutes("n2", 565), leftMinutes("n3", 1260)];
    const with_ = (one: object) =>
      departs(plan({ nodes, policy: even, departures: [one as Departure] }));
    expect(with_(overtaken)).toEqual(with_(gone));
    expect(with_(interrupted)).not.toEqual(with_(gone));
  });

  it("does not crowd the others for a node that cannot keep spacing.min from it", () => {
    const nodes = [leftMinutes("n1", 5), leftMinutes("n2", 1260)];
    const made = plan({ nodes, policy: even, departures: [gone] });
    // n1 leaves at its deadline, as far from the start as it can.
    expect(made.spacing.bestMs).toBe(minutes(1255));
  });

  it.each(["Even", "Late"] as const)(
    "keeps a node that cannot keep half of the others' gap from it as far away as possible, in %s",
    (mode) => {
      // Without the start, the best gap is 8:31. n1 has 4:13, less than half of it.
      const started = aDeparture(aNode("n0"), {
        departAt: now,
        status: { phase: "Ended", startedAt: now },
      });
      const at = (name: string, seconds: number) =>
        aNode(name, { createdAt: instant(now - hours(23.5) + seconds * 1000) });
      const nodes = [at("n1", 253), at("n2", 511)];
      const policy = aPolicy({ spacing: { mode, minMs: minutes(10) } });
      expect(departs(plan({ nodes, policy, departures: [started] }))).toEqual({
        n1: "2026-11-20T00:04:13.000Z",
        n2: "2026-11-20T00:08:31.000Z",
      });
    },
  );
});

describe("the newest start in a crowded Late plan", () => {
  it("is a neighbor like any other, although the gaps would be wider without it", () => {
    const gone = aDeparture(aNode("n0"), {
      ...{ departAt: now, status: { phase: "Ended", startedAt: now } },
    });
    // Deadlines 26, 54 and 83 minutes from now: 26 apart with the start, 28:30 without.
    const nodes = [26, 54, 83].map((count, at) =>
      aNode(`n${at + 1}`, { createdAt: instant(now - minutes(23 * 60 + 30 - count)) }),
    );
    const policy = aPolicy({ spacing: { mode: "Late", minMs: minutes(30) } });
    expect(departs(plan({ nodes, policy, departures: [gone] }))).toEqual({
      n1: "2026-11-20T00:26:00.000Z",
      n2: "2026-11-20T00:54:00.000Z",
      n3: "2026-11-20T01:23:00.000Z",
    });
  });
});
