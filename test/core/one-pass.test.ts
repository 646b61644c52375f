import { describe, expect, it } from "vitest";
import { seededRng } from "../../src/core/chance/chance.ts";
import type { NodeFacts } from "../../src/core/cluster/node.ts";
import { decide } from "../../src/core/decide.ts";
import { type Departure, isPressing } from "../../src/core/departure/departure.ts";
import type { Budget, Policy } from "../../src/core/policy/policy.ts";
import { hours, instant, minutes, plus } from "../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at, everyMachine } from "./fleet-builder.ts";

const now = at("2026-11-20T12:00:00Z");
const oneOfAll: Budget = { kind: "Nodes", scope: "Cluster", nodes: { count: 1 } };

/** A policy for the nodes with a label of its name. */
function policyOf(name: string, over: Partial<Policy> = {}): Policy {
  const matchExpressions = [{ key: "pool", operator: "In", values: [name] } as const];
  return aPolicy({
    ...{ name, nodeSelector: { nodeSelectorTerms: [{ matchExpressions, matchFields: [] }] } },
    ...over,
  });
}

function nodeOf(policy: string, name: string, over: Partial<NodeFacts> = {}): NodeFacts {
  const createdAt = plus(now, hours(-10));
  return aNode(name, { createdAt, labels: { pool: policy }, ...over });
}

const due = (policy: string, node: NodeFacts, over: Partial<Departure> = {}): Departure =>
  aDeparture(node, { policy, departAt: now, ...over, status: {} });

interface World {
  readonly policies: readonly Policy[];
  readonly nodes: readonly NodeFacts[];
  readonly departures: readonly Departure[];
}

function inShort(world: World): readonly string[] {
  const answers = { gateAnswers: {}, releaseAnswers: everyMachine };
  const { decisions } = decide({ ...world, badPolicies: [], ...answers }, now);
  return decisions.flatMap((one) => {
    if (one.kind !== "Begin" && one.kind !== "Note") return [];
    return [`${one.departure.node.name} ${one.kind} ${one.reason}`];
  });
}

describe("two departures that are due in one pass", () => {
  const [n1, n2] = [nodeOf("a", "n1"), nodeOf("b", "n2")];
  const strict = [policyOf("a", { budgets: [oneOfAll] }), policyOf("b", { budgets: [oneOfAll] })];
  const asked = { cause: "Manual", departAt: plus(now, minutes(-1)) } as const;

  it.each<[string, World, readonly string[]]>([
    [
      "of two policies share a cluster-wide budget",
      { policies: strict, nodes: [n1, n2], departures: [due("a", n1), due("b", n2)] },
      ["n1 Begin Spaced", "n2 Note BudgetSpent"],
    ],
    [
      "share it if a user requested the first, whose policy has no budget",
      {
        policies: [policyOf("a"), policyOf("b", { budgets: [oneOfAll] })],
        nodes: [n1, n2],
        departures: [due("a", n1, asked), due("b", n2)],
      },
      ["n1 Begin Requested", "n2 Note BudgetSpent"],
    ],
    [
      "share it if the first exceeds its budget at its deadline",
      {
        policies: strict,
        nodes: [n1, n2],
        departures: [due("a", n1, { ...asked, deadlineAt: now }), due("b", n2)],
      },
      ["n1 Begin Requested", "n2 Note BudgetSpent"],
    ],
    [
      "of one policy start one by one if a user requested the first",
      {
        policies: [policyOf("a", { waves: { sizes: [{ count: 1 }] } })],
        nodes: [n1, nodeOf("a", "n2")],
        departures: [due("a", n1, asked), due("a", nodeOf("a", "n2"))],
      },
      ["n1 Begin Requested"],
    ],
    [
      "do not wait for a node that matches no policy",
      {
        policies: [policyOf("b", { budgets: [oneOfAll] })],
        nodes: [nodeOf("nobody", "n1"), n2],
        departures: [due("", nodeOf("nobody", "n1"), asked), due("b", n2)],
      },
      ["n1 Begin Requested", "n2 Begin Spaced"],
    ],
  ])("%s", (_, world, expected) => {
    expect(inShort(world)).toEqual(expected);
  });
});

describe("policies that share a budget of the cluster", () => {
  const budgets = [oneOfAll];
  const [punctual, overdue] = [
    nodeOf("a", "n1"),
    nodeOf("b", "n2", { createdAt: at("2026-11-01T00:00:00Z") }),
  ];

  /** The departure of a policy that started so long ago, and has ended. */
  function former(policy: string, minutesAgo: number): Departure {
    const startedAt = plus(now, minutes(-minutesAgo));
    const node = nodeOf(policy, `${policy}-former`);
    const status = {
      phase: "Ended",
      outcome: "RolledBack",
      startedAt,
      endedAt: startedAt,
    } as const;
    return aDeparture(node, { policy, departAt: startedAt, status });
  }

  it.each([
    ["the one with overdue nodes has waited longer", 20, 60, ["n2 Begin Spaced"]],
    ["it has started the last one", 60, 20, ["n1 Begin Spaced"]],
  ])("take turns, so that overdue nodes do not starve behind punctual ones: %s", (...row) => {
    const [, agoOfA, agoOfB, begun] = row;
    const since = plus(now, hours(-5));
    const late = due("b", overdue, { departAt: since, createdAt: since });
    const world = {
      policies: [policyOf("a", { budgets }), policyOf("b", { budgets })],
      nodes: [punctual, overdue],
      departures: [due("a", punctual), late, former("a", agoOfA), former("b", agoOfB)],
    };
    expect(inShort(world).filter((line) => line.includes("Begin"))).toEqual(begun);
  });
});

describe("the departures that start in one pass", () => {
  it("fit into every cluster budget that applies to them, whatever the policies", () => {
    let held = 0;
    for (let seed = 0; seed < 200; seed += 1) {
      const rng = seededRng(seed);
      const upTo = (most: number): number => Math.floor(rng() * (most + 1));
      const names = ["a", "b", "c", "d"].slice(0, 2 + upTo(2));
      const limits = new Map(names.map((name) => [name, 1 + upTo(3)]));
      const policies = names.map((name) => {
        const nodes = { count: limits.get(name) ?? 0 };
        // Budgets alone hold: a fleet counts as healthy while any node is Ready.
        const gates = { blockingPods: [], maxUnhealthy: 1 };
        return policyOf(name, { gates, budgets: [{ ...oneOfAll, nodes } as Budget] });
      });
      const nodes = Array.from({ length: 2 + upTo(8) }, (_, at) =>
        nodeOf(names[upTo(names.length - 1)] ?? "", `n${at}`, { ready: at === 0 || upTo(4) > 0 }),
      );
      const departures = nodes.map((node) =>
        due(node.labels.pool ?? "", node, { departAt: instant(now - upTo(20_000)) }),
      );
      // By hand: the nodes that are out before, and each that starts after them.
      const out = new Set(nodes.filter(({ ready }) => !ready).map(({ name }) => name));
      for (const line of inShort({ policies, nodes, departures })) {
        const [name = "", kind] = line.split(" ");
        const limit = limits.get(nodes.find((one) => one.name === name)?.labels.pool ?? "") ?? 0;
        const others = [...out].filter((other) => other !== name).length;
        if (kind === "Note") held += 1;
        expect(kind === "Note" ? others >= limit : others < limit, `seed ${seed} ${line}`).toBe(
          true,
        );
        if (kind === "Begin") out.add(name);
      }
    }
    expect(held).toBeGreaterThan(100);
  });

  it("include at most one per node, and a pressing one first", () => {
    let several = 0;
    for (let seed = 0; seed < 1000; seed += 1) {
      const rng = seededRng(seed);
      const oneOf = <Item>(...all: readonly Item[]): Item =>
        all[Math.floor(rng() * all.length)] as Item;
      const nodes = ["n1", "n2"].map((name) => nodeOf("a", name));
      const departures = Array.from({ length: oneOf(2, 3, 4, 5) }, (_, place): Departure => {
        const cause = oneOf(
          ...(["Planned", "Manual", "RebalanceRecommendation", "ScheduledMaintenance"] as const),
        );
        const noticedAt = cause === "Planned" || cause === "Manual" ? undefined : now;
        const departAt = oneOf(undefined, now, plus(now, minutes(-30)));
        const deadlineAt = oneOf(undefined, plus(now, minutes(30)), plus(now, hours(3)));
        const fields = { name: `d${place}`, uid: `d${place}`, cause, noticedAt, deadlineAt };
        return due("a", oneOf(...nodes) as NodeFacts, { ...fields, departAt });
      });
      const onNotice = {
        spotInterruption: "Drain",
        rebalance: "Drain",
        maintenance: "Drain",
      } as const;
      const world = { nodes, departures, policies: [policyOf("a", { onNotice })] };
      const answers = { gateAnswers: {}, releaseAnswers: everyMachine };
      const { decisions } = decide({ ...world, badPolicies: [], ...answers }, now);
      const begun = decisions.flatMap((one) => (one.kind === "Begin" ? one.departure : []));
      for (const { name, uid } of nodes) {
        const beginning = begun.filter((one) => one.node.uid === uid);
        expect(beginning.length, `seed ${seed} ${name}`).toBeLessThan(2);
        const ofNode = departures.filter((one) => one.node.uid === uid);
        if (ofNode.length > 1) several += 1;
        const pressing = ofNode.filter((one) => isPressing(one, now));
        if (pressing.length > 0) expect(pressing, `seed ${seed} ${name}`).toContain(beginning[0]);
      }
    }
    expect(several).toBeGreaterThan(500);
  });
});
