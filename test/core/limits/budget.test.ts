import { describe, expect, it } from "vitest";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { Snapshot } from "../../../src/core/departure/decision.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import {
  amountOf,
  budgetVerdict,
  readBudgets,
  withStart,
} from "../../../src/core/limits/budget.ts";
import type { Budget } from "../../../src/core/policy/policy.ts";
import { formatInstant, hours, instant, minutes } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at, everyMachine, inZone } from "../fleet-builder.ts";

const now = at("2026-11-20T12:00:00Z");

interface World {
  readonly budgets: readonly Budget[];
  readonly nodes: readonly NodeFacts[];
  readonly departures?: readonly Departure[];
}

function snapshotOf({ budgets, nodes, departures = [] }: World): Snapshot {
  const policies = [aPolicy({ budgets })];
  return {
    nodes,
    policies,
    departures,
    badPolicies: [],
    gateAnswers: {},
    releaseAnswers: everyMachine,
  };
}

/** The verdict on the first node. */
function verdict(world: World): string {
  const snapshot = snapshotOf(world);
  const [node] = world.nodes;
  const [policy] = snapshot.policies;
  if (node === undefined || policy === undefined) throw new Error("a world has a node");
  const answer = budgetVerdict(readBudgets(snapshot, now), { policy, node });
  return answer.kind === "Held" ? answer.detail : answer.kind;
}

const atOnce = (nodes: number, scope: "Policy" | "Zone" | "Cluster"): Budget => ({
  kind: "Nodes",
  scope,
  nodes: { count: nodes },
});

describe("an amount", () => {
  it.each([
    ["10 % of 40", { percent: 10 }, 40, 4],
    ["10 % of 39 is rounded down", { percent: 10 }, 39, 3],
    ["10 % of 5 is at least 1", { percent: 10 }, 5, 1],
    ["a count is used as given", { count: 3 }, 2, 3],
  ])("%s", (_, amount, matched, expected) => {
    expect(amountOf(amount, matched)).toBe(expected);
  });
});

describe("a budget of nodes", () => {
  const n1 = aNode("n1");
  const noticed = aDeparture(aNode("n2"), { cause: "SpotInterruption" });
  const draining = aDeparture(aNode("n2"), { status: { phase: "Draining" } });
  const scheduled = aDeparture(aNode("n2"));
  const spent = "1 node of the policy spot was out, and at most 1 may be";

  it.each<[string, Partial<NodeFacts>, readonly Departure[], string]>([
    ["no other node is out", {}, [], "Allowed"],
    ["another is not ready", { ready: false }, [], spent],
    ["another is cordoned", { unschedulable: true }, [], spent],
    ["another is being deleted", { deletionAt: now }, [], spent],
    ["another is under notice", {}, [noticed], spent],
    ["another is departing", {}, [draining], spent],
    ["another is only scheduled", {}, [scheduled], "Allowed"],
    ["another matches no policy", { labels: {}, ready: false }, [], "Allowed"],
    [
      "another tool drains a node",
      { taints: [{ key: "karpenter.sh/disrupted", effect: "NoSchedule" }] },
      [],
      spent,
    ],
  ])("answers for a node when %s", (_, other, departures, expected) => {
    const nodes = [n1, aNode("n2", other)];
    expect(verdict({ budgets: [atOnce(1, "Policy")], nodes, departures })).toBe(expected);
  });

  it("does not count the node itself twice", () => {
    const nodes = [aNode("n1", { ready: false }), aNode("n2")];
    expect(verdict({ budgets: [atOnce(1, "Policy")], nodes })).toBe("Allowed");
  });

  it.each<["Zone" | "Cluster", string]>([
    ["Zone", "Allowed"],
    ["Cluster", "1 node of the cluster was out, and at most 1 may be"],
  ])("of scope %s counts a node out in another zone or not", (scope, expected) => {
    const nodes = [aNode("n1", inZone("a")), aNode("n2", { ...inZone("b"), ready: false })];
    expect(verdict({ budgets: [atOnce(1, scope)], nodes })).toBe(expected);
  });

  it("in percent is a share of the matched nodes of its scope", () => {
    // 49 % of the four nodes in zone a is 1, and one is out; 50 % is 2.
    const nodes = ["n1", "n2", "n3"].map((name) => aNode(name, inZone("a")));
    const out = aNode("n4", { ...inZone("a"), ready: false });
    const budgets: readonly Budget[] = [{ kind: "Nodes", scope: "Zone", nodes: { percent: 49 } }];
    expect(verdict({ budgets, nodes: [...nodes, out] })).toBe(
      "1 node of the zone a was out, and at most 1 may be",
    );
    const half: readonly Budget[] = [{ kind: "Nodes", scope: "Zone", nodes: { percent: 50 } }];
    expect(verdict({ budgets: half, nodes: [...nodes, out] })).toBe("Allowed");
  });
});

describe("an hourly budget", () => {
  const started = (name: string, minutesAgo: number): Departure =>
    aDeparture(aNode(name), {
      status: { phase: "Ended", startedAt: instant(now - minutes(minutesAgo)) },
    });

  it("counts the starts of the last 60 minutes, and says when the next start is possible", () => {
    const nodes = [aNode("n1")];
    const departures = [started("a", 61), started("b", 60), started("c", 59), started("d", 10)];
    const budgets: readonly Budget[] = [{ kind: "PerHour", perHour: 2 }];
    const snapshot = snapshotOf({ budgets, nodes, departures });
    const policy = aPolicy({ budgets });
    const answer = budgetVerdict(readBudgets(snapshot, now), { policy, node: aNode("n1") });
    expect(answer).toMatchObject({ kind: "Held", reason: "BudgetSpent" });
    // The one of 11:01 is the next to be an hour old.
    const retryAt = answer.kind === "Held" ? answer.retryAt : undefined;
    expect(formatInstant(retryAt ?? now)).toBe("2026-11-20T12:01:00.000Z");
  });

  it.each([
    [
      "a millisecond less than an hour ago counts",
      hours(1) - 1,
      "1 departure had started within an hour, and at most 1 may",
    ],
    ["an hour ago no longer counts", hours(1), "Allowed"],
    ["now counts", 0, "1 departure had started within an hour, and at most 1 may"],
    [
      "in the future, by the clock of the previous leader, counts",
      -5000,
      "1 departure had started within an hour, and at most 1 may",
    ],
  ])("for a departure that started %s", (_, agoMs, expected) => {
    const status = { phase: "Ended", startedAt: instant(now - agoMs) } as const;
    const departures = [aDeparture(aNode("a"), { status })];
    const budgets: readonly Budget[] = [{ kind: "PerHour", perHour: 1 }];
    expect(verdict({ budgets, nodes: [aNode("n1")], departures })).toBe(expected);
  });

  it("of three allows a start after two", () => {
    const departures = [started("c", 59), started("d", 10)];
    const budgets: readonly Budget[] = [{ kind: "PerHour", perHour: 3 }];
    expect(verdict({ budgets, nodes: [aNode("n1")], departures })).toBe("Allowed");
  });
});

describe("the starts of one pass", () => {
  it("use up the budgets for the nodes checked after them", () => {
    const budgets: readonly Budget[] = [atOnce(2, "Policy"), { kind: "PerHour", perHour: 5 }];
    const policy = aPolicy({ budgets });
    const nodes = ["n1", "n2", "n3"].map((name) => aNode(name));
    let ledger = readBudgets(snapshotOf({ budgets, nodes }), now);
    const answers = nodes.map((node) => {
      const answer = budgetVerdict(ledger, { policy, node });
      if (answer.kind === "Allowed") ledger = withStart(ledger, { policy, node });
      return answer.kind;
    });
    expect(answers).toEqual(["Allowed", "Allowed", "Held"]);
  });
});

describe("what counts as out although no node of the policy shows it", () => {
  const others = [aNode("n1"), aNode("n2"), aNode("n3")];
  const underWay = { status: { phase: "Draining", startedAt: now } } as const;

  it.each([
    ["is relabelled", [aNode("n9", { labels: {} })]],
    ["is gone", []],
  ])("a departure under way whose node %s", (_, more) => {
    const nodes = [...others, ...more];
    const departures = [aDeparture(aNode("n9"), underWay)];
    for (const scope of ["Policy", "Cluster"] as const) {
      expect(verdict({ budgets: [atOnce(1, scope)], nodes, departures })).toMatch(
        /^1 node .* was out/,
      );
    }
    const planned = [aDeparture(aNode("n9"))];
    expect(verdict({ budgets: [atOnce(1, "Policy")], nodes, departures: planned })).toBe("Allowed");
  });

  it("such a departure's node counts once in the cluster, and with both policies", () => {
    const policies = ["spot", "other"].map((name) =>
      aPolicy({
        name,
        nodeSelector: {
          nodeSelectorTerms: [
            {
              matchExpressions: [{ key: "pool", operator: "In", values: [name] }],
              matchFields: [],
            },
          ],
        },
      }),
    );
    const given = aNode("n1", { labels: { pool: "other" } });
    const snapshot = { ...snapshotOf({ budgets: [], nodes: [given] }), policies };
    const ledger = readBudgets({ ...snapshot, departures: [aDeparture(given, underWay)] }, now);
    expect(ledger.cluster).toMatchObject({ matched: 1, out: new Set(["n1"]) });
    expect(ledger.byPolicy.get("spot")?.out).toEqual(new Set(["n1"]));
    expect(ledger.byPolicy.get("other")?.out).toEqual(new Set(["n1"]));
  });

  it("a departure under way whose node is gone, and whose policy has lost its nodes to others", () => {
    const policies = ["spot", "spot-2", "spot-3"].map((name, weight) => aPolicy({ name, weight }));
    const snapshot = { ...snapshotOf({ budgets: [], nodes: others }), policies };
    const departures = [aDeparture(aNode("n9"), underWay)];
    const ledger = readBudgets({ ...snapshot, departures }, now);
    expect(ledger.byPolicy.get("spot-3")).toMatchObject({ matched: 4, out: new Set(["n9"]) });
    expect(ledger.byPolicy.get("spot-2")).toBeUndefined();
    expect(ledger.cluster).toMatchObject({ matched: 4, out: new Set(["n9"]) });
  });

  it("a machine that is missing, in the zone that its providerID names", () => {
    const gone = aDeparture(aNode("n9", { providerID: "gce://p/zone-b/n9" }));
    const machine = { departure: gone, goneAt: now, untilAt: now, isReleased: true };
    const zones = ["zone-a", "zone-b"].map((zone) => aNode(zone, inZone(zone)));
    const budgets = [atOnce(1, "Zone")];
    const snapshot = snapshotOf({ budgets, nodes: zones });
    const ledger = readBudgets(snapshot, now, new Map([["spot", { missing: [machine] }]]));
    const policy = aPolicy({ budgets });
    const [inA, inB] = zones.map((node) => budgetVerdict(ledger, { policy, node }));
    expect(inA).toEqual({ kind: "Allowed" });
    expect(inB).toMatchObject({
      detail: "1 node of the zone zone-b was out, gone and not replaced yet, and at most 1 may be",
    });
    // A percentage is of the nodes that there should be.
    expect(ledger.byPolicy.get("spot")).toMatchObject({ matched: 3, missing: 1 });
    const taken = { ...machine, isReleased: false };
    const later = readBudgets(snapshot, now, new Map([["spot", { missing: [taken] }]]));
    expect(later.byPolicy.get("spot")).toMatchObject({ matched: 3, missing: 0, out: new Set() });
  });
});
