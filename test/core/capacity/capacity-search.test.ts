import { describe, expect, it } from "vitest";
import { podsWithoutCapacity, searchCapacity } from "../../../src/core/capacity/capacity-fit.ts";
import { capacitiesOf } from "../../../src/core/capacity/node-capacity.ts";
import { seededRng } from "../../../src/core/chance/rng.ts";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { Amounts } from "../../../src/core/cluster/placement.ts";
import type { PodFacts } from "../../../src/core/cluster/pod.ts";
import { instant } from "../../../src/core/time/time.ts";
import { asking, machine } from "./capacity-scene.ts";

const full: Amounts = { cpu: 4, pods: 1 };
const leaving: ReadonlySet<string> = new Set(["n1"]);

interface Search {
  /** What was asked: names of nodes, round by round, or `everywhere`. */
  readonly looks: readonly string[];
  readonly unplaced: readonly string[];
}

/** Looks where it is told to, until it is settled. */
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

describe("the search for room", () => {
  it("looks at one node of a thousand where the pods have a place on it", () => {
    const pods = [cores("a", 1), cores("b", 2)];
    expect(search(pods, fleet(1000), new Map())).toEqual({ looks: ["m000"], unplaced: [] });
  });

  it("looks at the newest first", () => {
    const nodes = fleet(3, (at) => ({ createdAt: instant(at) }));
    expect(search([cores("a", 1)], nodes, new Map()).looks).toEqual(["m002"]);
  });

  it("looks at no node that could take none of the pods, were it empty", () => {
    const nodes = fleet(50, (at) => ({ labels: at === 40 ? { disk: "ssd" } : {} }));
    const picky = asking("picky", { nodeSelector: { disk: "ssd" } });
    expect(search([picky], nodes, new Map()).looks).toEqual(["m040"]);
  });

  it("looks at none for a pod that no node could take, and counts them all in its words", () => {
    const found = search([cores("big", 5)], fleet(1000), new Map());
    expect(found).toEqual({ looks: [], unplaced: ["big 0 of 1000 nodes: 1000 short of cpu"] });
  });

  it("goes on where the first nodes are full, as many again each time", () => {
    const truth = new Map(["m000", "m001", "m002"].map((name) => [name, full]));
    const { looks, unplaced } = search([cores("a", 1)], fleet(1000), truth);
    expect(looks).toEqual(["m000", "m001", "m002 m003"]);
    expect(unplaced).toEqual([]);
  });

  it("says that a pod has no place only after every node of a small fleet was looked at", () => {
    const nodes = fleet(3);
    const truth = new Map(nodes.map(({ name }) => [name, full]));
    expect(search([cores("a", 1)], nodes, truth)).toEqual({
      looks: ["m000", "m001", "m002"],
      unplaced: ["a 0 of 3 nodes: 3 short of cpu"],
    });
  });

  it("lists all pods of a large fleet once when eight nodes had no room", () => {
    const nodes = fleet(1000);
    const truth = new Map(nodes.map(({ name }) => [name, full]));
    const { looks, unplaced } = search([cores("a", 1)], nodes, truth);
    expect(looks.slice(0, -1).flatMap((look) => look.split(" "))).toHaveLength(8);
    expect(looks.at(-1)).toBe("everywhere");
    expect(unplaced).toEqual(["a 0 of 1000 nodes: 1000 short of cpu"]);
  });

  it("looks beyond the only node of one pod for the sake of another that took its place", () => {
    const ssd = machine("m0", { labels: { disk: "ssd" }, createdAt: instant(1) });
    const picky = asking("picky", { requests: { cpu: 3 }, nodeSelector: { disk: "ssd" } });
    const { unplaced } = search([cores("easy", 4), picky], [ssd, machine("m1")], new Map());
    expect(unplaced).toEqual([]);
  });
});

describe("on random fleets", () => {
  it.each(Array.from({ length: 200 }, (_, seed) => seed + 1))("with the seed %i", (seed) => {
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
    // With the whole picture at once it may do better or worse by the order of placing alone.
    if (unplaced.length === 0 || all.length === 0) return;
    const alone = pods.filter((pod) => podsWithoutCapacity([pod], capacities).length === 1);
    const names = unplaced.map((words) => words.split(" ")[0]);
    for (const { name } of alone) expect(names).toContain(name);
    for (const words of unplaced) expect(words).toContain(`0 of ${capacities.length} nodes`);
  });
});
