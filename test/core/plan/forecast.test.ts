import { describe, expect, it } from "vitest";
import { seededRng } from "../../../src/core/chance/chance.ts";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import { budgetTitle } from "../../../src/core/limits/budget-meter.ts";
import { occurrences, openHours } from "../../../src/core/limits/windows.ts";
import type { PolicyPlan } from "../../../src/core/plan/fleet-plan.ts";
import { wideningFor } from "../../../src/core/plan/forecast.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { planReport } from "../../../src/core/plan/plan-report.ts";
import type { Policy, Window } from "../../../src/core/policy/policy.ts";
import {
  formatInstant,
  hours,
  instant,
  lengthenSpans,
  mergeSpans,
  minutes,
  plus,
  seconds,
  subtractSpans,
} from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at, daily, inZone } from "../fleet-builder.ts";

const now = at("2026-11-20T00:00:00Z");

interface World {
  readonly policy: Partial<Policy>;
  readonly nodes: readonly NodeFacts[];
  readonly departures?: readonly Departure[];
}

function plan({ policy, nodes, departures = [] }: World): PolicyPlan {
  const policies = [aPolicy(policy)];
  const [made] = planFleet({ policies, badPolicies: [], nodes, departures, at: now }).policies;
  if (made === undefined) throw new Error("the policy has a plan");
  return made;
}

function born(name: string, minutesAgo: number, over: Partial<NodeFacts> = {}): NodeFacts {
  return aNode(name, { createdAt: instant(now - minutes(minutesAgo)), ...over });
}

/** Deadline = launch time + 23:30 h, so this node's deadline is that many minutes from now. */
function dueIn(name: string, minutesAhead: number, over: Partial<NodeFacts> = {}): NodeFacts {
  return born(name, 23.5 * 60 - minutesAhead, over);
}

describe("a forecast", () => {
  it("is feasible if every node has its instant, even if the gap is smaller than wanted", () => {
    const made = plan({ policy: {}, nodes: [dueIn("n1", 10), dueIn("n2", 10), dueIn("n3", 10)] });
    expect(made.forecast).toMatchObject({ feasible: true, late: [], widenBySeconds: 0 });
    const report = planReport({ at: now, policies: [made], notPlanned: [], bad: [], ties: [] });
    expect(report.policies[0]?.forecast.explain).toBe(
      "All 3 departures are on schedule; departures are at least 5m instead of 15m apart, because there is no time for more",
    );
  });

  it("says for how many overdue nodes lifetime.max ends before a window opens", () => {
    const windows = [daily("12:00-13:00")];
    const nodes = [dueIn("n1", -10), dueIn("n2", -20), dueIn("n3", -60)];
    const made = plan({ policy: { windows }, nodes });
    const report = planReport({ at: now, policies: [made], notPlanned: [], bad: [], ties: [] });
    expect(report.policies[0]?.forecast.explain).toBe(
      "All 3 departures are late; 3 nodes already past the deadline, leaving one by one; lifetime.max ends first for 2 of them, unless they depart by request",
    );
  });

  it("counts departures that a freeze holds back, and names those that are forced", () => {
    const gates = { freezeUntil: plus(now, hours(2)), blockingPods: [] };
    // With the gap of 15 minutes one of the last two leaves at 01:55, before its deadline at 02:10.
    const nodes = [dueIn("n1", 60), dueIn("n2", 100), dueIn("n3", 130), dueIn("n4", 130)];
    const told = (some: readonly NodeFacts[]) => {
      const made = plan({ policy: { gates }, nodes: some });
      const report = planReport({ at: now, policies: [made], notPlanned: [], bad: [], ties: [] });
      return report.policies[0]?.forecast.explain.split("; ").slice(1);
    };
    const until = "the freeze until 2026-11-20T02:00:00.000Z";
    expect(told(nodes)).toEqual([
      `${until} holds back 1 departure`,
      `${until} ends after the deadlines of 2 departures (n1, n2), which leave at their deadlines`,
    ]);
    expect(told([dueIn("n1", 60)])).toContain(
      `${until} ends after the deadlines of 1 departure (n1), which leaves at its deadline`,
    );
    expect(told([born("n0", 3000)])).toContain(`${until} holds back 1 departure`);
  });

  it("names the nodes without an open window, and how much longer it would have to be", () => {
    // Nights until 06:00. n1 may leave only between 06:10 and 07:00, because of its minimum age.
    const lifetime = { minMs: hours(23), maxMs: hours(24), reserveMs: minutes(10) };
    const nodes = [born("n1", 23 * 60 - 370), born("n2", 0)];
    const made = plan({ policy: { lifetime, windows: [daily("22:00-06:00")] }, nodes });
    // To contain 06:10:00 the half-open window must end after it: 10 minutes and 1 second.
    expect(made.forecast).toMatchObject({ feasible: false, late: ["n1"], widenBySeconds: 601 });
  });

  it("says if a longer window does not help: with a Deny window or a hold", () => {
    const windows = [daily("22:00-06:00"), daily("06:00-12:00", { type: "Deny" })];
    const lifetime = { minMs: hours(23), maxMs: hours(24), reserveMs: minutes(10) };
    const made = plan({ policy: { lifetime, windows }, nodes: [born("n1", 23 * 60 - 370)] });
    expect(made.forecast).toMatchObject({ feasible: false, widenBySeconds: 0, helpless: 1 });
  });
});

describe("the widening", () => {
  const zone = "Europe/Berlin";
  const bounds = { startAt: now, endAt: instant(now + hours(60)) };

  it("is the smallest that works, as a search second by second confirms", () => {
    const rng = seededRng(11);
    const upTo = (most: number): number => Math.floor(rng() * (most + 1));
    for (let round = 0; round < 300; round += 1) {
      const window = (type: "Allow" | "Deny"): Window => {
        const startMinute = upTo(1439);
        const endMinute = (startMinute + 1 + upTo(300)) % 1440;
        return {
          ...daily("00:00-01:00", { type, timeZone: zone }),
          startMinute,
          endMinute,
        } as Window;
      };
      const windows = [window("Allow"), ...(upTo(1) ? [window("Allow")] : []), window("Deny")];
      const open = openHours(windows, bounds);
      const earliestAt = instant(now + upTo(3000) * 60_000);
      const range = { earliestAt, deadlineAt: instant(earliestAt + upTo(60) * 60_000) };
      const hasInstant = (spans: readonly { startAt: number; endAt: number }[]): boolean =>
        spans.some((span) => span.startAt <= range.deadlineAt && span.endAt > range.earliestAt);
      if (hasInstant(open.spans)) continue;
      const opensWith = (longer: number): boolean => {
        const openings = windows
          .filter((one) => one.type === "Allow")
          .flatMap((one) => lengthenSpans(occurrences(one, bounds), seconds(longer)));
        return hasInstant(subtractSpans(mergeSpans(openings), open.deny));
      };
      const found = wideningFor([range], { windows, hours: open });
      if (found.helpless > 0) {
        expect(opensWith(86_400), `round ${round}`).toBe(false);
        continue;
      }
      expect(opensWith(found.widenBySeconds), `round ${round}`).toBe(true);
      expect(opensWith(found.widenBySeconds - 1), `round ${round}`).toBe(false);
    }
  });
});

describe("budgets in a forecast", () => {
  const tight = { spacing: { mode: "Late", minMs: minutes(15) } } as const;

  it("delay starts in the order of the plan, and the plan says until when", () => {
    // Three overdue nodes, planned for 00:00, 00:15 and 00:30; one an hour may start.
    const nodes = [born("n1", 3000), born("n2", 2900), born("n3", 2800)];
    const budgets = [{ kind: "PerHour", perHour: 1 }] as const;
    const made = plan({ policy: { ...tight, budgets }, nodes });
    const starts = made.departures.map((one) => formatInstant(one.heldBackTo ?? one.departAt));
    expect(starts.map((one) => one.slice(11, 16))).toEqual(["00:00", "01:00", "02:00"]);
    expect(made.forecast).toMatchObject({
      heldBack: 2,
      tight: [{ budget: "1 an hour", needed: { value: 3, unit: "PerHour" } }],
    });
  });

  it("make a node late if they allow no start in time, and state the amount needed", () => {
    // Planned for their deadlines, 01:00 and 01:15; with one an hour n2 would wait until 02:00.
    const budgets = [{ kind: "PerHour", perHour: 1 }] as const;
    const made = plan({
      policy: { ...tight, budgets },
      nodes: [dueIn("n1", 60), dueIn("n2", 75), dueIn("n3", 600)],
    });
    expect(made.forecast).toMatchObject({ feasible: false, late: ["n2"], heldPastDeadline: 1 });
    expect(made.forecast.tight).toMatchObject([
      { budget: "1 an hour", needed: { value: 2, unit: "PerHour" } },
    ]);
  });

  it("make every node late whose window closes before there is a place, not just the first", () => {
    // Planned 5 minutes apart until 01:00, two an hour: n3 and n4 could start from 01:44 on, when
    // the window is closed, and their deadline is 02:00.
    const nodes = ["n1", "n2", "n3", "n4"].map((name) => dueIn(name, 120));
    const made = plan({
      policy: {
        windows: [daily("00:00-01:00")],
        budgets: [{ kind: "PerHour", perHour: 2 }],
        spacing: { mode: "Late", minMs: minutes(5) },
      },
      nodes,
    });
    expect(made.forecast).toMatchObject({ late: ["n3", "n4"], heldBack: 2, heldPastDeadline: 2 });
  });

  it("delay nothing if they are large enough", () => {
    const nodes = [dueIn("n1", 60), dueIn("n2", 75)];
    const made = plan({ policy: { ...tight, budgets: [{ kind: "PerHour", perHour: 2 }] }, nodes });
    expect(made.forecast).toMatchObject({ feasible: true, heldBack: 0, tight: [] });
  });

  it("for nodes assume that a departure takes drain.timeout", () => {
    const budgets = [{ kind: "Nodes", scope: "Policy", nodes: { count: 1 } }] as const;
    const policy = { budgets, spacing: { mode: "Late", minMs: minutes(1) } } as const;
    const nodes = [dueIn("n1", 60), dueIn("n2", 90), dueIn("n3", 61)];
    const drain = { ...aPolicy().drain, timeoutMs: minutes(5) };
    const made = plan({ policy: { ...policy, drain }, nodes });
    // n1 at 01:00 is out until 01:05, but n3 has to go at 01:01.
    expect(made.forecast).toMatchObject({ late: ["n3"], heldPastDeadline: 1 });
  });

  it("count the starts of the last hour", () => {
    const gone = aDeparture(aNode("gone"), {
      status: { phase: "Ended", startedAt: instant(now - minutes(20)) },
    });
    const budgets = [{ kind: "PerHour", perHour: 1 }] as const;
    const made = plan({ policy: { budgets }, nodes: [dueIn("n1", 30)], departures: [gone] });
    // The hour since the last start ends at 00:40; the deadline is at 00:30.
    expect(made.forecast).toMatchObject({ feasible: false, late: ["n1"] });
  });

  it("for a zone do not delay other zones", () => {
    const budgets = [{ kind: "Nodes", scope: "Zone", nodes: { count: 1 } }] as const;
    const spacing = { mode: "Late", minMs: minutes(1) } as const;
    const nodes = [dueIn("n1", 60, inZone("a")), dueIn("n2", 61, inZone("b"))];
    expect(plan({ policy: { budgets, spacing }, nodes }).forecast.feasible).toBe(true);
    const same = [dueIn("n1", 60, inZone("a")), dueIn("n2", 61, inZone("a"))];
    expect(plan({ policy: { budgets, spacing }, nodes: same }).forecast.feasible).toBe(false);
  });

  it("for the cluster are used up by the starts of every policy", () => {
    const pool = (name: string) => ({
      matchFields: [],
      matchExpressions: [{ key: "pool", operator: "In", values: [name] } as const],
    });
    const budgets = [{ kind: "Nodes", scope: "Cluster", nodes: { count: 1 } }] as const;
    const policies = ["a", "b"].map((name) =>
      aPolicy({ name, budgets, nodeSelector: { nodeSelectorTerms: [pool(name)] } }),
    );
    // Both are planned for 01:00, their deadline.
    const nodes = ["a", "b"].map((name) => dueIn(`n-${name}`, 60, { labels: { pool: name } }));
    const made = planFleet({ policies, badPolicies: [], nodes, departures: [], at: now });
    expect(made.policies.map(({ forecast }) => forecast.late)).toEqual([[], ["n-b"]]);
  });

  it("are used up by requested departures", () => {
    const budgets = [{ kind: "Nodes", scope: "Policy", nodes: { count: 1 } }] as const;
    const nodes = [dueIn("n1", 60), dueIn("n2", 600), dueIn("n3", 600)];
    const asked = (node: NodeFacts, minutesAhead: number) =>
      aDeparture(node, { cause: "Manual", departAt: instant(now + minutes(minutesAhead)) });
    const spacing = { mode: "Late", minMs: minutes(1) } as const;
    const late = (departures: readonly Departure[]) =>
      plan({ policy: { spacing, budgets }, nodes, departures }).forecast.late;
    // One that starts at 00:54 is out until 00:59; one that starts at 00:56 is out past 01:00.
    expect(late([asked(nodes[1] as NodeFacts, 54)])).toEqual([]);
    expect(late([asked(nodes[1] as NodeFacts, 56)])).toEqual(["n1"]);
    // Two at the same time take turns: 00:54 to 00:59, then until 01:04.
    expect(late(nodes.slice(1).map((node) => asked(node, 54)))).toEqual(["n1"]);
  });
});

describe("waves in a forecast", () => {
  const spacing = { mode: "Late", minMs: minutes(1) } as const;
  const drain = { ...aPolicy().drain, timeoutMs: minutes(5) };
  const of = (...sizes: readonly number[]) => ({
    ...{ spacing, drain },
    waves: { sizes: sizes.map((count) => ({ count })) },
  });
  const startsOf = ({ departures }: PolicyPlan) =>
    departures.map(({ heldBackTo, departAt }) =>
      formatInstant(heldBackTo ?? departAt).slice(11, 16),
    );
  const sentence = (made: PolicyPlan) =>
    planReport({ at: now, policies: [made], notPlanned: [], bad: [], ties: [] }).policies[0]
      ?.forecast.explain;

  it("delay each start until the previous wave may have left, assuming drain.timeout", () => {
    // Five overdue nodes, planned for 00:00 to 00:04: one, then two, then the others.
    const nodes = ["n1", "n2", "n3", "n4", "n5"].map((name) => born(name, 3000));
    const made = plan({ policy: of(1, 2), nodes });
    expect(startsOf(made)).toEqual(["00:00", "00:05", "00:05", "00:10", "00:10"]);
    expect(sentence(made)).toBe(
      "All 5 departures are late; 5 nodes already past the deadline, leaving one by one; waves hold back 4 departures: waves of 1, 2; wave 1 of 2: 0 of 1 has succeeded, 0 are under way",
    );
  });

  it("make a node late that cannot wait for the previous wave", () => {
    // At 01:00, 01:01, 01:02 and 02:00, their deadlines; the canary is out until 01:05.
    const nodes = [dueIn("n1", 60), dueIn("n2", 61), dueIn("n3", 62), dueIn("n4", 120)];
    const made = plan({ policy: of(1, 2), nodes });
    expect(made.forecast).toMatchObject({
      ...{ feasible: false, late: ["n2", "n3"], heldPastDeadline: 2 },
      tight: [{ budget: "waves of 1, 2", needed: undefined }],
    });
  });

  it("continue after a canary that has left, with another departure under way", () => {
    const canary = aDeparture(aNode("gone"), {
      status: { phase: "Ended", outcome: "Planned", startedAt: instant(now - hours(5)) },
    });
    const underWay = aDeparture(aNode("going"), {
      status: { phase: "Draining", startedAt: instant(now - minutes(2)) },
    });
    const nodes = ["n1", "n2", "n3"].map((name) => born(name, 3000));
    const made = plan({ policy: of(1, 2), nodes, departures: [canary, underWay] });
    // Planned one minute apart from 00:00 on. The first fills the second wave, which is out until
    // 00:05.
    expect(startsOf(made)).toEqual(["00:00", "00:05", "00:05"]);
  });

  it("do not count machines that the cloud takes", () => {
    const taken = aDeparture(aNode("taken"), {
      cause: "SpotInterruption",
      status: { phase: "Draining", startedAt: instant(now - minutes(2)) },
    });
    const made = plan({ policy: of(1), nodes: [born("n1", 3000)], departures: [taken] });
    expect(startsOf(made)).toEqual(["00:00"]);
  });

  it("delay nothing if they are large enough", () => {
    const nodes = [dueIn("n1", 60), dueIn("n2", 61), dueIn("n3", 62)];
    const made = plan({ policy: of(3), nodes });
    expect(made.forecast).toMatchObject({ feasible: true, heldBack: 0, tight: [] });
  });

  it("are reported as halted but delay nothing, because a restart cannot be predicted", () => {
    const failed = aDeparture(aNode("bad"), {
      status: { phase: "Ended", outcome: "RolledBack", startedAt: instant(now - hours(5)) },
    });
    const nodes = [dueIn("n1", 60), dueIn("n2", 61)];
    const made = plan({ policy: of(1), nodes, departures: [failed] });
    expect(made.forecast).toMatchObject({ feasible: true, heldBack: 0 });
    expect(sentence(made)).toContain("wave 1 of 1 is halted");
  });
});

describe("the value with which a budget would hold none back", () => {
  const explained = (world: World) => {
    const made = plan(world);
    const report = planReport({ at: now, policies: [made], notPlanned: [], bad: [], ties: [] });
    return report.policies[0]?.forecast.explain ?? "";
  };
  const started = (name: string, minutesAgo: number) =>
    aDeparture(aNode(name), {
      cause: "SpotInterruption",
      status: { phase: "Draining", startedAt: instant(now - minutes(minutesAgo)) },
    });

  it("counts the departures that are under way", () => {
    const budgets = [{ kind: "Nodes", scope: "Policy", nodes: { count: 2 } }] as const;
    const departures = [started("a", 1), started("b", 1)];
    const nodes = [aNode("a"), aNode("b"), dueIn("n1", 1)];
    expect(explained({ policy: { budgets }, nodes, departures })).toContain(
      "budgets hold back 1 departure past the deadline: 2 nodes at once; 3 nodes would hold none back",
    );
  });

  it("is a share of the nodes where the budget is one", () => {
    const budgets = [{ kind: "Nodes", scope: "Policy", nodes: { percent: 10 } }] as const;
    const spacing = { mode: "Late", minMs: minutes(0) } as const;
    const nodes = Array.from({ length: 40 }, (_, place) => dueIn(`n${place}`, 60));
    expect(explained({ policy: { budgets, spacing }, nodes })).toMatch(
      /10 % of nodes at once; 100 % would hold none back$/,
    );
  });

  it("holds none back in any fleet, once every budget has it", () => {
    const rng = seededRng(7);
    const below = (most: number): number => Math.floor(rng() * most);
    let tried = 0;
    for (let run = 0; run < 300; run += 1) {
      const size = 2 + below(12);
      const nodes = Array.from({ length: size }, (_, place) =>
        dueIn(`n${place}`, below(90), inZone(`z${below(2)}`)),
      );
      const departures = nodes.slice(0, below(4)).map(({ name }) => started(name, below(20)));
      const amount = () => (below(2) === 0 ? { count: 1 + below(3) } : { percent: 5 + below(40) });
      const scopes = ["Policy", "Zone", "Cluster"] as const;
      const budgets: Policy["budgets"] = [
        { kind: "Nodes", scope: scopes[below(3)] ?? "Policy", nodes: amount() },
        ...(below(2) === 0 ? [{ kind: "PerHour" as const, perHour: 1 + below(4) }] : []),
      ];
      const spacing = { mode: "Late", minMs: minutes(below(10)) } as const;
      const world = { policy: { budgets, spacing }, nodes, departures };
      const { tight } = plan(world).forecast;
      if (tight.length === 0) continue;
      tried += 1;
      const cured = budgets.map((budget) => {
        const needed = tight.find((one) => one.budget === budgetTitle(budget))?.needed;
        if (needed === undefined) return budget;
        if (budget.kind === "PerHour") return { ...budget, perHour: needed.value };
        return {
          ...budget,
          nodes: needed.unit === "Percent" ? { percent: needed.value } : { count: needed.value },
        };
      });
      const after = plan({ ...world, policy: { budgets: cured, spacing } }).forecast;
      expect([run, after.heldBack, after.heldPastDeadline]).toEqual([run, 0, 0]);
    }
    expect(tried).toBeGreaterThan(100);
  });
});
