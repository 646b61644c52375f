import { describe, expect, it } from "vitest";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import type { FleetPlan } from "../../../src/core/plan/fleet-plan.ts";
import { soonChanges } from "../../../src/core/plan/plan-status.ts";
import { defaultPolicy, type Policy } from "../../../src/core/policy/policy.ts";
import { hours, instant, minutes, plus } from "../../../src/core/time/time.ts";

const at = instant(Date.UTC(2026, 10, 20));
const soonTaint = { key: "lastcall.dev/departing-soon", effect: "PreferNoSchedule" } as const;

function nodeOf(name: string, more: Partial<NodeFacts> = {}): NodeFacts {
  return {
    ...{ name, uid: `uid-${name}`, labels: {}, annotations: {}, taints: [] },
    ...{ unschedulable: false, ready: true },
    ...more,
  };
}

/** The plan of one policy: each node leaves in the given number of minutes. */
function planOf(inMinutes: Readonly<Record<string, number>>, policy: Partial<Policy> = {}) {
  const departures = Object.entries(inMinutes).map(([name, away]) => ({
    node: nodeOf(name),
    departAt: plus(at, minutes(away)),
  }));
  return {
    policies: [{ policy: { ...defaultPolicy, ...policy }, departures }],
  } as unknown as FleetPlan;
}

function departureOf(name: string, more: Partial<Departure>): Departure {
  return {
    ...{
      name: `${name}-1`,
      uid: "d",
      node: nodeOf(name),
      cause: "Planned",
      status: { phase: "Scheduled" },
    },
    ...more,
  } as unknown as Departure;
}

function changes(question: {
  readonly nodes: readonly NodeFacts[];
  readonly plan?: FleetPlan;
  readonly departures?: readonly Departure[];
  readonly lead?: number | null;
}) {
  const { nodes, plan = planOf({ n1: 20 }), departures = [], lead = 30 } = question;
  const leadMs = lead === null ? undefined : minutes(lead);
  const told = soonChanges({ nodes, departures, plan, at, leadMs });
  return { ...told, changes: told.changes.map(({ node, to }) => `${node.name} ${to}`) };
}

const tainted = nodeOf("n1", { taints: [soonTaint] });

describe("the departing-soon taint", () => {
  it("marks the nodes whose departure is within the lead time, to the minute", () => {
    const nodes = [nodeOf("n1"), nodeOf("n2"), nodeOf("n3")];
    const plan = planOf({ n1: -5, n2: 30, n3: 31 });
    expect(changes({ nodes, plan })).toEqual({
      changes: ["n1 Soon", "n2 Soon"],
      askAgainAt: plus(at, minutes(1)),
    });
  });

  it("is added once, and removed when the departure is no longer planned soon", () => {
    expect(changes({ nodes: [tainted] }).changes).toEqual([]);
    expect(changes({ nodes: [tainted], plan: planOf({ n1: 40 }) }).changes).toEqual(["n1 NotSoon"]);
    expect(changes({ nodes: [tainted], plan: planOf({}) }).changes).toEqual(["n1 NotSoon"]);
    expect(changes({ nodes: [tainted], lead: null })).toEqual({
      changes: ["n1 NotSoon"],
      askAgainAt: undefined,
    });
  });

  it.each<[string, Partial<Policy>]>([
    ["is paused", { paused: true }],
    ["is a dry run", { dryRun: true }],
  ])("is not used for a policy that %s", (_, policy) => {
    const plan = planOf({ n1: 20 }, policy);
    expect(changes({ nodes: [nodeOf("n1")], plan }).changes).toEqual([]);
  });

  it("marks a node that a person has requested to leave, unless the Departure is held", () => {
    const asked = { cause: "Manual", departAt: plus(at, minutes(10)) } as const;
    const plan = planOf({});
    const told = (hold: boolean) =>
      changes({ nodes: [nodeOf("n1")], plan, departures: [departureOf("n1", { ...asked, hold })] });
    expect(told(false).changes).toEqual(["n1 Soon"]);
    expect(told(true).changes).toEqual([]);
  });

  it("follows the planned departure if a person requested a later time", () => {
    const asked = { cause: "Manual", departAt: plus(at, hours(26)) } as const;
    const departures = [departureOf("n1", asked)];
    const plan = planOf({ n1: 20 });
    expect(changes({ nodes: [nodeOf("n1")], plan, departures }).changes).toEqual(["n1 Soon"]);
  });

  it.each<[string, Partial<NodeFacts>, Partial<Departure> | undefined]>([
    ["departs", {}, { status: { phase: "Draining" } as Departure["status"] }],
    ["has a notice", {}, { noticedAt: at }],
    [
      "has the marks of a departure",
      { annotations: { "lastcall.dev/departure": "n1-1" } },
      undefined,
    ],
    ["is being deleted", { deletionAt: at }, undefined],
  ])("is neither added nor removed on a node that %s", (_, more, departure) => {
    const departures = departure === undefined ? [] : [departureOf("n1", departure)];
    expect(changes({ nodes: [nodeOf("n1", more)], departures }).changes).toEqual([]);
    const withTaint = nodeOf("n1", { ...more, taints: [soonTaint] });
    expect(changes({ nodes: [withTaint], departures, plan: planOf({}) }).changes).toEqual([]);
  });

  it("is not added to a cordoned node, where nothing is scheduled anyway", () => {
    expect(changes({ nodes: [nodeOf("n1", { unschedulable: true })] }).changes).toEqual([]);
    const both = nodeOf("n1", { unschedulable: true, taints: [soonTaint] });
    expect(changes({ nodes: [both] }).changes).toEqual(["n1 NotSoon"]);
  });
});
