import { describe, expect, it } from "vitest";
import { seededRng } from "../../../src/core/chance/chance.ts";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { PlanInput } from "../../../src/core/plan/fleet-plan.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { planReport, planWarnings } from "../../../src/core/plan/plan-report.ts";
import type { Policy, Window } from "../../../src/core/policy/policy.ts";
import { formatInstant, hours, instant, millis, minutes } from "../../../src/core/time/time.ts";
import { isLongRun } from "../../support/long-run.ts";
import { aNode, aPolicy, at, daily, everyMinute, inZone } from "../fleet-builder.ts";
import { largestSum, widestGap } from "./spacing/spacing-oracle.ts";

const now = at("2026-11-20T00:00:00Z");

function plan(over: Partial<PlanInput>): ReturnType<typeof planFleet> {
  return planFleet({
    policies: [aPolicy()],
    badPolicies: [],
    nodes: [],
    departures: [],
    at: now,
    ...over,
  });
}

/** `n1 05:45 Spaced` and so on: which node leaves when, on the day of the test, and why. */
function times(over: Partial<PlanInput>): readonly string[] {
  const [first] = plan(over).policies;
  return (first?.departures ?? []).map(
    (one) => `${one.node.name} ${formatInstant(one.departAt).slice(11, 16)} ${one.reason}`,
  );
}

function bornHours(name: string, hoursAgo: number, over: Partial<NodeFacts> = {}): NodeFacts {
  return aNode(name, { createdAt: instant(now - hours(hoursAgo)), ...over });
}

describe("a plan in Late mode", () => {
  it("lets nodes of one launch time leave before their deadline, spacing.min apart", () => {
    // Deadline: launch time at midnight + 24 h - 30 min = 23:30.
    const nodes = [aNode("n1"), aNode("n2"), aNode("n3")];
    expect(times({ nodes })).toEqual(["n1 23:00 Spaced", "n2 23:15 Spaced", "n3 23:30 Spaced"]);
  });

  it("alternates zones among equals", () => {
    const nodes = [
      aNode("n1", inZone("a")),
      aNode("n2", inZone("a")),
      aNode("n3", inZone("b")),
      aNode("n4", inZone("b")),
    ];
    expect(times({ nodes }).map((line) => line.slice(0, 2))).toEqual(["n1", "n3", "n2", "n4"]);
  });

  it.each([
    // The last slot is the youngest node's deadline, when the older ones are past theirs.
    ["alternates zones among nodes launched in the same minute", 10, ["n1", "n3", "n2", "n4"]],
    ["lets the older leave first if they are minutes apart", 120, ["n1", "n2", "n3", "n4"]],
  ])("%s", (_, secondsApart, expected) => {
    const nodes = ["a", "a", "b", "b"].map((zone, at) =>
      aNode(`n${at + 1}`, {
        createdAt: instant(now + at * secondsApart * 1000),
        ...inZone(zone),
      }),
    );
    expect(times({ nodes }).map((line) => line.slice(0, 2))).toEqual(expected);
  });

  it("reaches only the best gap if the wanted one does not fit", () => {
    // All three are 22:30 old: one hour is left, 30 minutes between two departures.
    const nodes = [bornHours("n1", 22.5), bornHours("n2", 22.5), bornHours("n3", 22.5)];
    const policies = [aPolicy({ spacing: { mode: "Late", minMs: minutes(45) } })];
    const [first] = plan({ nodes, policies }).policies;
    expect(first?.spacing).toEqual({
      wantedMs: minutes(45),
      reachedMs: minutes(30),
      bestMs: minutes(30),
    });
  });
});

describe("the fleet drawn in docs/planning.md", () => {
  const nodes = [
    bornHours("n1", 13, inZone("a")),
    bornHours("n2", 13, inZone("a")),
    bornHours("n3", 13, inZone("b")),
    bornHours("n4", 1),
    bornHours("n5", 16.5),
    bornHours("n7", 15),
  ];
  const windows = [daily("22:00-06:00")];

  it.each([
    // The last open instant is a millisecond before 06:00.
    ["Late", "n5 03:59, n7 04:29, n1 04:59, n3 05:29, n2 05:59, n4 22:30"],
    ["Even", "n5 00:00, n7 01:29, n1 02:59, n3 04:29, n2 05:59, n4 22:30"],
  ] as const)("leaves as drawn in mode %s", (mode, expected) => {
    const policies = [aPolicy({ windows, spacing: { mode, minMs: minutes(30) } })];
    const drawn = times({ nodes, policies }).map((line) => line.replace(" Spaced", ""));
    expect(drawn.join(", ")).toBe(expected);
  });
});

describe("windows in a plan", () => {
  it("are kept for every node that has an open instant before its deadline", () => {
    // Deadlines at 10:30 and 22:30: the first leaves at the end of this night, the second in the
    // next.
    const nodes = [bornHours("n1", 13), bornHours("n2", 1)];
    const policies = [aPolicy({ windows: [daily("22:00-06:00")] })];
    const [first] = plan({ nodes, policies }).policies;
    expect(first?.departures.map((one) => [formatInstant(one.departAt), one.window])).toEqual([
      ["2026-11-20T05:59:59.999Z", "22:00-06:00"],
      ["2026-11-20T22:30:00.000Z", "22:00-06:00"],
    ]);
  });

  it("give way to the deadline of a node without an open instant, which counts in gaps", () => {
    // n1 must leave at 01:00, when the windows are closed until 02:00; n2 keeps 15 minutes from it.
    const nodes = [bornHours("n1", 22.5), bornHours("n2", 1)];
    const windows = [daily("02:00-03:00")];
    const [first] = plan({ nodes, policies: [aPolicy({ windows })] }).policies;
    expect(first?.departures.map((one) => [one.node.name, one.reason, one.window])).toEqual([
      ["n1", "DeadlineBeatsWindow", null],
      ["n2", "Spaced", "02:00-03:00"],
    ]);
    expect(formatInstant(first?.departures[0]?.departAt ?? now)).toBe("2026-11-20T01:00:00.000Z");
    // The open instant furthest from 01:00 is 02:59:59.999.
    expect(first?.spacing.bestMs).toBe(2 * 3_600_000 - 1);
  });

  it("that never open make the forecast infeasible, and do not crash", () => {
    const never = { ...daily("02:00-03:00"), kind: "Cron", cron: "0 0 31 2 *" };
    const windows = [{ ...never, durationMs: hours(1) } as Window];
    const nodes = [bornHours("n1", 1), bornHours("n2", 30)];
    const [first] = plan({ nodes, policies: [aPolicy({ windows })] }).policies;
    // n2 is 6:30 h past its deadline, n1 has 22:30 h left.
    expect(first?.departures.map((one) => `${one.node.name} ${one.reason}`)).toEqual([
      "n2 Overdue",
      "n1 DeadlineBeatsWindow",
    ]);
    expect(first?.forecast.feasible).toBe(false);
  });
});

describe("holds in a plan", () => {
  it.each([
    ["an instant moves the earliest time", "2026-11-20T20:00:00Z", "2026-11-20T20:00:00.000Z"],
    ["a duration counts from the launch time", "4h", "2026-11-20T02:00:00.000Z"],
  ])("%s", (_, hold, earliest) => {
    const nodes = [bornHours("n1", 2, { annotations: { "lastcall.dev/hold": hold } })];
    const [only] = plan({ nodes }).policies[0]?.departures ?? [];
    expect(formatInstant(only?.earliestAt ?? now)).toBe(earliest);
  });

  it("past the deadline give way to it", () => {
    const hold = { annotations: { "lastcall.dev/hold": "2026-11-22T00:00:00Z" } };
    expect(times({ nodes: [bornHours("n1", 20, hold)] })).toEqual(["n1 03:30 DeadlineBeatsWindow"]);
  });
});

describe("overdue nodes", () => {
  it("leave one by one, oldest first, around the others", () => {
    // n3 has its deadline at 00:20. The overdue ones keep 15 minutes from it and from each other.
    const nodes = [
      bornHours("n1", 40),
      bornHours("n2", 50),
      bornHours("n3", 23.5 - 20 / 60),
      bornHours("n4", 30),
    ];
    expect(times({ nodes })).toEqual([
      "n2 00:00 Overdue",
      "n3 00:20 Spaced",
      "n1 00:35 Overdue",
      "n4 00:50 Overdue",
    ]);
  });

  it("wait for windows, however far ahead", () => {
    // The Sunday window opens two days later, and fits two departures 40 minutes apart.
    const windows = [daily("10:00-11:00", { days: ["Sun"] } as Partial<Window>)];
    const policies = [aPolicy({ windows, spacing: { mode: "Late", minMs: minutes(40) } })];
    const nodes = [bornHours("n1", 50), bornHours("n2", 40), bornHours("n3", 30)];
    const [first] = plan({ nodes, policies }).policies;
    expect(first?.departures.map((one) => formatInstant(one.departAt))).toEqual([
      "2026-11-22T10:00:00.000Z",
      "2026-11-22T10:40:00.000Z",
      "2026-11-29T10:00:00.000Z",
    ]);
  });

  it("do not count in the best gap, and make the forecast infeasible", () => {
    const nodes = [bornHours("n1", 40), bornHours("n2", 1)];
    const [first] = plan({ nodes }).policies;
    expect(first?.spacing.bestMs).toBeNull();
    expect(first?.forecast).toMatchObject({ feasible: false, late: ["n1"], widenBySeconds: 0 });
  });

  it("do not include a node exactly at its deadline", () => {
    expect(times({ nodes: [bornHours("n1", 23.5)] })).toEqual(["n1 00:00 Spaced"]);
  });
});

describe("nodes without a planned departure", () => {
  const taint = (key: string) => ({ taints: [{ key, effect: "NoSchedule" as const }] });
  const note = (key: string, value = "true") => ({ annotations: { [key]: value } });
  it.each<[string, Partial<NodeFacts>, Partial<Policy>, string]>([
    ["no policy selects it", { labels: {} }, {}, "NoPolicy"],
    ["its policy is paused", {}, { paused: true }, "PolicyPaused"],
    [
      "its policy has no lifetime.max",
      {},
      { lifetime: { minMs: millis(0), reserveMs: millis(0) } },
      "NoLifetimeLimit",
    ],
    ["it is on hold indefinitely", note("lastcall.dev/hold"), {}, "OnHold"],
    ["its hold cannot be read", note("lastcall.dev/hold", "for ever"), {}, "OnHold"],
    [
      "scale-down is disabled",
      note("cluster-autoscaler.kubernetes.io/scale-down-disabled"),
      {},
      "OnHold",
    ],
    ["Karpenter disrupts it", taint("karpenter.sh/disrupted"), {}, "LeftToOthers"],
    ["the autoscaler deletes it", taint("ToBeDeletedByClusterAutoscaler"), {}, "LeftToOthers"],
    ["NTH drains it", taint("aws-node-termination-handler/spot-itn"), {}, "LeftToOthers"],
    ["AKS drains it", taint("remediator.kubernetes.azure.com/unschedulable"), {}, "LeftToOthers"],
    ["it is being deleted", { deletionAt: now }, {}, "NodeTerminating"],
    ["it has no providerID", { providerID: undefined }, {}, "NoProviderID"],
    ["its providerID is unknown", { providerID: "kind://docker/n1" }, {}, "UnknownProvider"],
    ["its launch time is unknown", { createdAt: undefined }, {}, "NoLaunchTime"],
  ])("%s", (_, facts, policy, reason) => {
    const made = plan({ nodes: [aNode("n1", facts)], policies: [aPolicy(policy)] });
    expect(made.notPlanned.map((one) => one.reason)).toEqual([reason]);
    expect(made.policies[0]?.departures).toEqual([]);
  });

  it("include all nodes that an unreadable policy might own", () => {
    const badPolicies = [{ name: "broken", problem: "windows[0].cron: 61 is no minute" }];
    const made = planReport(plan({ nodes: [aNode("n1")], badPolicies }));
    expect(made.notPlanned[0]).toMatchObject({ reason: "PolicyInvalid", policy: "spot" });
    expect(made.notPlanned[0]?.explain).toContain("windows[0].cron: 61 is no minute");
  });

  it("include those of a policy with an unknown time zone, which counts as unreadable", () => {
    const windows = [daily("01:00-02:00", { timeZone: "Mars/Base" })];
    const made = plan({ nodes: [aNode("n1")], policies: [aPolicy({ windows })] });
    expect(made.notPlanned[0]?.reason).toBe("PolicyInvalid");
    expect(made.policies).toEqual([]);
  });
});

describe("the policy of a node", () => {
  it("has the highest weight, then the first name, with a warning that names the other", () => {
    const policies = [
      aPolicy({ name: "b" }),
      aPolicy({ name: "a" }),
      aPolicy({ name: "low", weight: -1 }),
    ];
    const made = plan({ nodes: [aNode("n1"), aNode("n2")], policies });
    expect(made.policies.map((one) => [one.policy.name, one.matched])).toEqual([
      ["a", 2],
      ["b", 0],
      ["low", 0],
    ]);
    expect(planWarnings(made)).toEqual([
      "Policies a and b have the same weight and select the same 2 nodes: a applies, as the first by name",
    ]);
  });
});

describe("the plan report", () => {
  it("has the documented shape, with times in milliseconds and spans in seconds", () => {
    const nodes = [
      bornHours("n1", 22.5, inZone("z1")),
      bornHours("n2", 22.5),
      bornHours("n3", 0, { labels: {} }),
    ];
    const report = planReport(plan({ nodes }));
    expect(report.policies[0]?.moved).toBe(0);
    expect(report).toMatchObject({
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "Plan",
      at: "2026-11-20T00:00:00.000Z",
    });
    expect(report.policies[0]).toMatchObject({
      name: "spot",
      matched: 2,
      spacing: { wantedSeconds: 900, reachedSeconds: 900, bestSeconds: 3600 },
      forecast: { feasible: true, late: [], widenBySeconds: 0 },
    });
    expect(report.policies[0]?.departures[0]).toMatchObject({
      ...{ node: "n1", uid: "uid-n1", providerID: "gce://p/z/n1", zone: "z1", window: null },
      ...{ bornAt: "2026-11-19T01:30:00.000Z", earliestAt: "2026-11-20T00:00:00.000Z" },
      ...{ deadlineAt: "2026-11-20T01:00:00.000Z", departAt: "2026-11-20T00:45:00.000Z" },
      reason: "Spaced",
    });
    expect(report.notPlanned[0]).toMatchObject({ node: "n3", policy: null, reason: "NoPolicy" });
  });

  it("is byte for byte the same for the same fleet in any order", () => {
    const rng = seededRng(7);
    const nodes = Array.from({ length: 60 }, (_, i) =>
      bornHours(`n${i}`, Math.floor(rng() * 30), inZone("abc"[i % 3] ?? "")),
    );
    const shuffled = [...nodes].sort(
      (a, b) => (a.uid + a.name).length - (b.uid + b.name).length || (a.name < b.name ? 1 : -1),
    );
    const policies = [aPolicy({ windows: [daily("20:00-04:00")] })];
    const bytes = (order: readonly NodeFacts[]): string =>
      JSON.stringify(planReport(plan({ nodes: order, policies })));
    expect(bytes(shuffled)).toBe(bytes(nodes));
  });
});

/**
 * Whole fleets on a scale of milliseconds, for which an oracle can try everything: the lifetime is
 * a few dozen milliseconds, and a cron window opens for a few at the full minute.
 */
interface SmallFleet {
  readonly input: PlanInput;
  /** Allowed instants of each node that is not overdue, counted from the instant of planning. */
  readonly choices: readonly (readonly number[])[];
}

function smallFleet(seed: number, mode: "Late" | "Even"): SmallFleet {
  const rng = seededRng(seed);
  const upTo = (most: number): number => Math.floor(rng() * (most + 1));
  const minute = at("2026-11-20T00:01:00Z");
  const planAt = minute - upTo(15);
  const allowMs = upTo(2) === 0 ? undefined : 1 + upTo(25);
  const denyMs = upTo(2) === 0 ? 1 + upTo(10) : undefined;
  const lifeMs = 10 + upTo(30);
  const nodes: NodeFacts[] = [];
  const choices: number[][] = [];
  for (let left = 2 + upTo(4); left > 0; left -= 1) {
    const born = planAt - upTo(lifeMs);
    const hold = upTo(3) === 0 ? planAt + upTo(lifeMs) : undefined;
    nodes.push(
      aNode(`n${left}`, {
        createdAt: instant(born),
        annotations:
          hold === undefined ? {} : { "lastcall.dev/hold": formatInstant(instant(hold)) },
      }),
    );
    const deadline = born + lifeMs;
    const instants: number[] = [];
    for (let t = Math.max(planAt, hold ?? 0); t <= deadline; t += 1) {
      const allowed = allowMs === undefined || (t >= minute && t < minute + allowMs);
      const denied = denyMs !== undefined && t >= minute && t < minute + denyMs;
      if (allowed && !denied) instants.push(t - planAt);
    }
    choices.push(instants.length > 0 ? instants : [deadline - planAt]);
  }
  const windows = [
    ...(allowMs === undefined ? [] : [everyMinute(allowMs, "Allow")]),
    ...(denyMs === undefined ? [] : [everyMinute(denyMs, "Deny")]),
  ];
  const policy = aPolicy({
    lifetime: { minMs: millis(0), maxMs: millis(lifeMs), reserveMs: millis(0) },
    spacing: { mode, minMs: millis(upTo(8)) },
    windows,
  });
  const common = { badPolicies: [], departures: [], at: instant(planAt) };
  return { input: { policies: [policy], nodes, ...common }, choices };
}

describe("plans of small fleets, compared with an oracle that tries everything", () => {
  const blocks = Array.from({ length: isLongRun ? 12 : 4 }, (_, block) => [block]);

  it.each(blocks)("reach the best gap in Even: block %i of 50", (block) => {
    for (let seed = block * 50; seed < block * 50 + 50; seed += 1) {
      const { input, choices } = smallFleet(seed, "Even");
      const [made] = planFleet(input).policies;
      const best = widestGap(choices);
      expect(made?.spacing, `seed ${seed}`).toEqual({
        wantedMs: null,
        reachedMs: best,
        bestMs: best,
      });
    }
  });

  it.each(blocks)("have the largest sum for their gap in Late: block %i of 50", (block) => {
    for (let seed = block * 50; seed < block * 50 + 50; seed += 1) {
      const { input, choices } = smallFleet(seed, "Late");
      const [made] = planFleet(input).policies;
      const best = widestGap(choices);
      const gap = Math.min(best, made?.policy.spacing.minMs ?? 0);
      const departs = (made?.departures ?? []).map((one) => one.departAt - input.at);
      const sum = departs.reduce((total, instantMs) => total + instantMs, 0);
      expect(made?.spacing.bestMs, `seed ${seed}`).toBe(best);
      expect(made?.spacing.reachedMs, `seed ${seed}`).toBeGreaterThanOrEqual(gap);
      expect(sum, `seed ${seed}`).toBe(largestSum(choices, gap));
    }
  });
});
