import { describe, expect, it } from "vitest";
import {
  capacitiesOf,
  podsWithoutCapacity,
  searchCapacity,
} from "../../../src/core/capacity/capacity-fit.ts";
import { seededRng } from "../../../src/core/chance/chance.ts";
import type { Amounts, NodeFacts } from "../../../src/core/cluster/node.ts";
import type { PodFacts } from "../../../src/core/cluster/pod.ts";
import { instant } from "../../../src/core/time/time.ts";
import { asking, machine } from "./capacity-scene.ts";

const full: Amounts = { cpu: 4, pods: 1 };
const leaving: ReadonlySet<string> = new Set(["n1"]);

interface Search {
  /** What was queried: names of nodes, round by round, or `everywhere`. */
  readonly looks: readonly string[];
  readonly unplaced: readonly string[];
}

/** Queries what the search asks for until it has settled. */
function search(
  pods: readonly PodFacts[],
  nodes: readonly NodeFacts[],
  truth: ReadonlyMap<string, Amounts>,
): Search {
  const looks: string[] = [];
  const loads = new Map<string, Amounts>();
  for (;;) {
    const answer = searchCapacity({ pods, nodes, leaving, loads });
    if (answer.kind === "Settled") {
      const unplaced = answer.unplaced.map(({ pod, detail }) => `${pod.name} ${detail}`);
      return { looks, unplaced };
    }
    const names = answer.kind === "LookAt" ? answer.nodes : nodes.map(({ name }) => name);
    looks.push(answer.kind === "LookAt" ? names.join(" ") : "everywhere");
    for (const name of names) loads.set(name, truth.get(name) ?? {});
  }
}

const cores = (name: string, cpu: number) => asking(name, { requests: { cpu } });

function fleet(count: number, changes: (at: number) => Partial<NodeFacts> = () => ({})) {
  return Array.from({ length: count }, (_, at) =>
    machine(`m${String(at).padStart(3, "0")}`, changes(at)),
  );
}

describe("the search for capacity", () => {
  it("queries one node of a thousand if the pods fit on it", () => {
    const pods = [cores("a", 1), cores("b", 2)];
    expect(search(pods, fleet(1000), new Map())).toEqual({ looks: ["m000"], unplaced: [] });
  });

  it("queries the newest node first", () => {
    const nodes = fleet(3, (at) => ({ createdAt: instant(at) }));
    expect(search([cores("a", 1)], nodes, new Map()).looks).toEqual(["m002"]);
  });

  it("queries no node that could not take any of the pods even if it were empty", () => {
    const nodes = fleet(50, (at) => ({ labels: at === 40 ? { disk: "ssd" } : {} }));
    const picky = asking("picky", { nodeSelector: { disk: "ssd" } });
    expect(search([picky], nodes, new Map()).looks).toEqual(["m040"]);
  });

  it("queries nothing for a pod that fits on no node, and counts every node in the detail", () => {
    const found = search([cores("big", 5)], fleet(1000), new Map());
    expect(found).toEqual({ looks: [], unplaced: ["big 0 of 1000 nodes: 1000 short of cpu"] });
  });

  it("continues if the first nodes are full, doubling the number of nodes each round", () => {
    const truth = new Map(["m000", "m001", "m002"].map((name) => [name, full]));
    const { looks, unplaced } = search([cores("a", 1)], fleet(1000), truth);
    expect(looks).toEqual(["m000", "m001", "m002 m003"]);
    expect(unplaced).toEqual([]);
  });

  it("reports a pod as unplaced only after querying every node of a small fleet", () => {
    const nodes = fleet(3);
    const truth = new Map(nodes.map(({ name }) => [name, full]));
    expect(search([cores("a", 1)], nodes, truth)).toEqual({
      looks: ["m000", "m001", "m002"],
      unplaced: ["a 0 of 3 nodes: 3 short of cpu"],
    });
  });

  it("lists all pods of a large fleet once if eight nodes had no capacity", () => {
    const nodes = fleet(1000);
    const truth = new Map(nodes.map(({ name }) => [name, full]));
    const { looks, unplaced } = search([cores("a", 1)], nodes, truth);
    expect(looks.slice(0, -1).flatMap((look) => look.split(" "))).toHaveLength(8);
    expect(looks.at(-1)).toBe("everywhere");
    expect(unplaced).toEqual(["a 0 of 1000 nodes: 1000 short of cpu"]);
  });

  it("queries another node if one pod takes the only node that fits a second pod", () => {
    const ssd = machine("m0", { labels: { disk: "ssd" }, createdAt: instant(1) });
    const picky = asking("picky", { requests: { cpu: 3 }, nodeSelector: { disk: "ssd" } });
    const { unplaced } = search([cores("easy", 4), picky], [ssd, machine("m1")], new Map());
    expect(unplaced).toEqual([]);
  });
});

describe("the search for capacity on random fleets reports the pods that fit nowhere", () => {
  it.each(Array.from({ length: 200 }, (_, seed) => seed + 1))("with seed %i", (seed) => {
    const rng = seededRng(seed);
    const below = (limit: number) => Math.floor(rng() * limit);
    const nodes = fleet(1 + below(30), () => ({
      createdAt: instant(below(5)),
      labels: rng() < 0.3 ? { disk: "ssd" } : {},
      taints: rng() < 0.2 ? [{ key: "gpu", effect: "NoSchedule" }] : [],
      ready: rng() < 0.9,
    }));
    const truth = new Map(nodes.map(({ name }) => [name, { cpu: below(5), pods: below(10) }]));
    const pods = Array.from({ length: 1 + below(8) }, (_, at) =>
      asking(`p${at}`, {
        requests: { cpu: below(6) },
        nodeSelector: rng() < 0.3 ? { disk: "ssd" } : {},
      }),
    );
    const { unplaced } = search(pods, nodes, truth);
    const capacities = capacitiesOf({ nodes, loads: truth, leaving });
    const all = podsWithoutCapacity(pods, capacities).map(
      ({ pod, detail }) => `${pod.name} ${detail}`,
    );
    // A query of all nodes at once may give another result only because of the placement order.
    if (unplaced.length === 0 || all.length === 0) return;
    const alone = pods.filter((pod) => podsWithoutCapacity([pod], capacities).length === 1);
    const names = unplaced.map((words) => words.split(" ")[0]);
    for (const { name } of alone) expect(names).toContain(name);
    for (const words of unplaced) expect(words).toContain(`0 of ${capacities.length} node`);
  });
});
