import { describe, expect, it } from "vitest";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import type { PolicyPlan } from "../../../src/core/plan/fleet-plan.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import type { Policy } from "../../../src/core/policy/policy.ts";
import {
  formatInstant,
  hours,
  type Instant,
  instant,
  minutes,
  seconds,
} from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at, daily, inZone } from "../fleet-builder.ts";

const now = at("2026-11-20T00:00:00Z");

function bornHours(hoursAgo: number, zone: string) {
  return (name: string) =>
    aNode(name, { createdAt: instant(now - hours(hoursAgo)), ...inZone(zone) });
}

it("overdue nodes of the same age alternate zones", () => {
  const nodes = [
    bornHours(41, "a")("n0"),
    ...["n1", "n2", "n3"].map(bornHours(40, "a")),
    ...["n4", "n5"].map(bornHours(40, "b")),
    bornHours(40, "c")("n6"),
    bornHours(30, "c")("n7"),
  ];
  const input = { policies: [aPolicy()], badPolicies: [], nodes, departures: [], at: now };
  const [made] = planFleet(input).policies;
  const order = made?.departures.map(
    ({ node, departAt }) => `${formatInstant(departAt).slice(11, 16)} ${node.name}`,
  );
  // The oldest, in zone a, is first and the youngest last. The others alternate zones, each time
  // from the zone with the most nodes left: a b a b a c a c.
  expect(order).toEqual([
    ...["00:00 n0", "00:15 n4", "00:30 n1", "00:45 n5"],
    ...["01:00 n2", "01:15 n6", "01:30 n3", "01:45 n7"],
  ]);
});

it("an overdue node on hold until the year 9999 is planned without computing every window", () => {
  const annotations = { "lastcall.dev/hold": "9999-12-31T23:59:59Z" };
  const old = { createdAt: instant(now - hours(30)) };
  const nodes = [aNode("held", { ...old, annotations }), aNode("free", old)];
  const policies = [aPolicy({ windows: [daily("22:00-06:00")] })];
  const input = { policies, badPolicies: [], nodes, at: now };
  const first = planFleet({ ...input, departures: [] }).policies[0]?.departures ?? [];
  const departures = first.map(({ node, departAt }) => aDeparture(node, { departAt }));
  const again = planFleet({ ...input, departures }).policies[0]?.departures ?? [];
  for (const made of [first, again]) {
    expect(made.map(({ node, departAt }) => `${node.name} ${formatInstant(departAt)}`)).toEqual([
      "free 2026-11-20T00:00:00.000Z",
      "held 9999-12-31T23:59:59.000Z",
    ]);
  }
});

interface Fleet {
  readonly nodes: readonly NodeFacts[];
  readonly policy?: Policy;
  readonly departures?: readonly Departure[];
  readonly at: Instant;
}

function planOf({ policy = aPolicy(), departures = [], ...fleet }: Fleet): PolicyPlan {
  const input = { ...fleet, policies: [policy], badPolicies: [], departures };
  const [made] = planFleet(input).policies;
  if (made === undefined) throw new Error("the policy has a plan");
  return made;
}

/** The plan as the cluster stores it. */
function stored(made: PolicyPlan, createdAt = now): readonly Departure[] {
  return made.departures.map(({ node, departAt, deadlineAt }) =>
    aDeparture(node, { departAt, deadlineAt, createdAt }),
  );
}

function timesOf(made: PolicyPlan): readonly string[] {
  return made.departures.map(
    ({ node, departAt }) => `${node.name} ${formatInstant(departAt).slice(11, 16)}`,
  );
}

function agedHours(name: string, age: number): NodeFacts {
  return aNode(name, { createdAt: instant(now - hours(age)) });
}

describe("overdue nodes that have an instant", () => {
  const nodes = [30, 29, 28, 27].map((age, i) => agedHours(`n${i}`, age));
  const [n0, ...others] = nodes as [NodeFacts, ...NodeFacts[]];
  /** At 00:00, 00:15, 00:30 and 00:45. */
  const first = planOf({ nodes, at: now });
  const departures = stored(first);
  const [, ...waiting] = departures;
  const startedAt = (time: string): Departure =>
    aDeparture(n0, { departAt: now, status: { phase: "Draining", startedAt: at(time) } });
  const soon = at("2026-11-20T00:00:30Z");

  it.each<[string, Partial<Fleet>, readonly string[]]>([
    ["nothing has changed", {}, ["n0 00:00", "n1 00:15", "n2 00:30", "n3 00:45"]],
    [
      "the one before them left on time",
      { departures: [startedAt("2026-11-20T00:00:10Z"), ...waiting] },
      ["n1 00:15", "n2 00:30", "n3 00:45"],
    ],
    [
      "spacing.min is larger now",
      { policy: aPolicy({ spacing: { mode: "Late", minMs: minutes(60) } }) },
      ["n0 00:00", "n1 01:00", "n2 02:00", "n3 03:00"],
    ],
    [
      "the windows are others now",
      { policy: aPolicy({ windows: [daily("00:20-00:40"), daily("08:00-12:00")] }) },
      ["n0 00:20", "n1 00:35", "n2 08:00", "n3 08:15"],
    ],
    [
      "a gate held the one before them until just before",
      {
        departures: [startedAt("2026-11-20T00:14:00Z"), ...waiting],
        at: at("2026-11-20T00:14:10Z"),
      },
      ["n1 00:29", "n2 00:44", "n3 00:59"],
    ],
    [
      "a new node has to leave just after the second",
      {
        nodes: [...others, aNode("new", { createdAt: instant(now - hours(23) + minutes(5)) })],
        departures: [startedAt("2026-11-20T00:00:10Z"), ...waiting],
      },
      ["n1 00:15", "new 00:35", "n2 00:50", "n3 01:05"],
    ],
    [
      "a user requests a departure at the same instant",
      {
        nodes: [...others, aNode("asked")],
        departures: [
          ...[startedAt("2026-11-20T00:00:10Z"), ...waiting],
          aDeparture(aNode("asked"), {
            ...{ cause: "Manual", departAt: at("2026-11-20T00:30:00Z"), createdAt: now },
          }),
        ],
      },
      ["n1 00:15", "n2 00:45", "n3 01:00"],
    ],
  ])("keep it only as long as it is allowed: %s", (_, change, expected) => {
    const fleet = { nodes, departures, at: soon, ...change };
    const made = planOf(fleet);
    expect(timesOf(made)).toEqual(expected);
    const rest = fleet.departures.filter(
      ({ cause, status }) => cause === "Manual" || status.startedAt !== undefined,
    );
    const again = planOf({ ...fleet, departures: [...stored(made), ...rest] });
    expect(again.moved).toBe(0);
  });

  it("keep it while departures before them wait for a budget", () => {
    const [, second, ...last] = departures as [Departure, Departure, ...Departure[]];
    const waits = { ...second, status: { phase: "Held", reason: "BudgetSpent", timeline: [] } };
    const made = planOf({
      nodes: others,
      departures: [startedAt("2026-11-20T00:20:00Z"), waits as Departure, ...last],
      at: at("2026-11-20T00:20:10Z"),
    });
    expect(timesOf(made)).toEqual(["n1 00:15", "n2 00:30", "n3 00:45"]);
  });

  it("make room for a departure that missed its time, once", () => {
    // Its lifetime ends at 00:25, and the newest start was at 00:00.
    const missed = aNode("missed", { createdAt: instant(now - hours(24) + minutes(25)) });
    const yesterday = instant(now - hours(10));
    const planned = { departAt: instant(now - minutes(10)), createdAt: yesterday };
    const begun = aDeparture(n0, {
      ...{ departAt: instant(now - minutes(20)), createdAt: yesterday },
      status: { phase: "Draining", startedAt: now },
    });
    const fleet = { nodes: [...others, missed], at: soon };
    const made = planOf({ ...fleet, departures: [begun, aDeparture(missed, planned), ...waiting] });
    expect(timesOf(made)).toEqual(["missed 00:15", "n1 00:30", "n2 00:45", "n3 01:00"]);
    const again = planOf({ ...fleet, departures: [begun, ...stored(made, yesterday)] });
    expect(again.moved).toBe(0);
  });
});

describe("nodes that a shorter lifetime makes overdue", () => {
  const halved = aPolicy({ lifetime: { ...aPolicy().lifetime, maxMs: hours(12) } });
  const minutesAged = (ages: readonly number[]) =>
    ages.map((age, i) => aNode(`n${i}`, { createdAt: instant(now - minutes(age)) }));

  it.each<[string, readonly number[], readonly string[]]>([
    ["past the end of their lifetime", [900, 840, 780], ["n0 00:00", "n1 00:15", "n2 00:30"]],
    ["within the reserve", [715, 710, 705], ["n0 00:00", "n1 00:15", "n2 00:30"]],
    [
      "beside one that still has time",
      [900, 840, 780, 480],
      ["n0 00:00", "n1 00:15", "n2 00:30", "n3 03:30"],
    ],
    ["beside one with the same instant", [900, 150], ["n0 00:00", "n1 09:00"]],
  ])("do not keep the instants of the longer one: %s", (_, ages, expected) => {
    const nodes = minutesAged(ages);
    const before = planOf({ nodes, at: now });
    const bornAt = instant(now - minutes(ages[0] ?? 0));
    const made = planOf({
      ...{ nodes, policy: halved, at: now },
      departures: stored(before, bornAt),
    });
    expect(timesOf(made)).toEqual(expected);
    expect(made.moved).toBe(ages.length);
    for (const passed of [0, 30_000]) {
      const again = planOf({
        ...{ nodes, policy: halved, at: instant(now + passed) },
        departures: stored(made, bornAt),
      });
      expect(timesOf(again)).toEqual(expected);
      expect(again.moved).toBe(0);
    }
  });
});

it("a node that missed its time and is past its lifetime lets one leave first whose machine still lives", () => {
  const yesterday = instant(now - hours(20));
  const nodes = [
    aNode("past", { createdAt: instant(now - hours(25)) }),
    aNode("ending", { createdAt: instant(now - hours(24) + seconds(5)) }),
  ] as const;
  const planned = [
    { departAt: instant(now - hours(2)), createdAt: yesterday },
    { departAt: instant(now - minutes(40)), createdAt: yesterday },
  ] as const;
  const departures = nodes.map((node, place) => aDeparture(node, planned[place]));
  const made = planOf({ nodes, departures, at: now });
  const begin = made.departures.map(
    ({ node, beginAt }) => `${node.name} ${formatInstant(beginAt).slice(11, 19)}`,
  );
  // The one whose machine still lives starts now, and spacing.min is a quarter of an hour.
  expect(begin).toEqual(["ending 00:00:00", "past 00:15:00"]);
});

describe("beside others that a late window crowds", () => {
  // From 24 h on a machine has ended; its deadline is half an hour before.
  const policy = aPolicy({ windows: [daily("00:20-04:00")] });
  /** Deadlines at 00:20 and at 00:22: two minutes is the gap that these can reach. */
  const crowded = { a: hours(23) + minutes(10), b: hours(23) + minutes(8) };

  it("a node on hold past the end of its machine does not bring the others closer", () => {
    const annotations = { "lastcall.dev/hold": "2026-11-20T03:00:00Z" };
    const ages = { ...crowded, old: hours(23) + minutes(32) };
    const nodes = Object.entries(ages).map(([name, ageMs]) =>
      aNode(name, { createdAt: instant(now - ageMs) }),
    );
    const createdAt = instant(now - hours(23) - minutes(33));
    const made = planOf({
      nodes: [...nodes, aNode("held", { createdAt, annotations })],
      policy,
      at: now,
    });
    expect(timesOf(made)).toEqual(["a 00:20", "b 00:22", "old 00:28", "held 03:00"]);
  });

  it.each<[string, Readonly<Record<string, number>>, readonly string[]]>([
    ["one machine ends at 00:28", { old: hours(23) + minutes(32) }, ["old 00:28"]],
    [
      "another node has its deadline at 00:30",
      { old: hours(23) + minutes(32), c: hours(23) },
      ["old 00:26", "c 00:30"],
    ],
    [
      "two machines, one of which has ended",
      { old: hours(23) + minutes(32), older: hours(25) },
      ["older 00:25", "old 00:28"],
    ],
    ["all machines have ended", { older: hours(25) }, ["older 00:24"]],
  ])("overdue nodes leave as far apart as their machines live: %s", (_, ages, expected) => {
    const nodes = Object.entries({ ...crowded, ...ages }).map(([name, ageMs]) =>
      aNode(name, { createdAt: instant(now - ageMs) }),
    );
    const made = planOf({ nodes, policy, at: now });
    expect(timesOf(made)).toEqual(["a 00:20", "b 00:22", ...expected]);
    const again = planOf({ nodes, policy, departures: stored(made), at: instant(now + 30_000) });
    expect(again.moved).toBe(0);
  });
});

it("a single overdue node keeps the widest gap from a start that its lifetime leaves", () => {
  const reserve = aPolicy().lifetime.reserveMs;
  const started = aNode("started", { createdAt: instant(now - hours(24) + reserve) });
  const overdue = aNode("overdue", { createdAt: instant(now - hours(24) + minutes(2)) });
  const status = { phase: "Draining", startedAt: now } as const;
  const departures = [
    aDeparture(started, { departAt: now, status }),
    aDeparture(overdue, { departAt: instant(now + seconds(24)) }),
  ];
  const { departures: planned } = planOf({ nodes: [started, overdue], departures, at: now });
  const next = planned.find(({ node }) => node.name === "overdue");
  expect(next?.departAt).toBe(now + minutes(2));
});
