import { describe, expect, it } from "vitest";
import {
  capacitiesOf,
  loadsOf,
  podsWithoutCapacity,
} from "../../../src/core/capacity/capacity-fit.ts";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { PodFacts } from "../../../src/core/cluster/pod.ts";
import { returningPods } from "../../../src/core/drain/placeholder-plan.ts";
import { planDrain, warnOfCapacity } from "../../../src/core/drain-plan/drain-plan.ts";
import { node, pod, rule, startAt } from "../drain/drain-scene.ts";
import { asking, machine, size } from "./capacity-scene.ts";

function inZone(zone: string) {
  const key = "topology.kubernetes.io/zone";
  const matchExpressions = [{ key, operator: "In" as const, values: [zone] }];
  return { nodeSelectorTerms: [{ matchExpressions, matchFields: [] }] };
}

/** The pods of `leaving` that fit on no other node, each with what the nodes lack. */
function unplaced(
  leaving: readonly PodFacts[],
  others: readonly NodeFacts[],
  staying: readonly PodFacts[] = [],
): readonly string[] {
  const capacities = capacitiesOf({
    nodes: others,
    loads: loadsOf(staying),
    leaving: new Set(["n1"]),
  });
  return podsWithoutCapacity(leaving, capacities).map(
    ({ pod: { name }, detail }) => `${name} ${detail}`,
  );
}

describe("a leaving pod", () => {
  const zoneA = { "topology.kubernetes.io/zone": "a" };

  it.each<[string, PodFacts, Partial<NodeFacts>, string | undefined]>([
    ["requests nothing", asking("p", {}), {}, undefined],
    ["requests exactly what is free", asking("p", { requests: { cpu: 4 } }), {}, undefined],
    ["requests more CPU", asking("p", { requests: { cpu: 4.1 } }), {}, "1 short of cpu"],
    ["requests more memory", asking("p", { requests: { memory: 17e9 } }), {}, "1 short of memory"],
    [
      "requests a device",
      asking("p", { requests: { "nvidia.com/gpu": 1 } }),
      {},
      "1 short of nvidia.com/gpu",
    ],
    [
      "requests zero of a device",
      asking("p", { requests: { "nvidia.com/gpu": 0 } }),
      {},
      undefined,
    ],
    [
      "requests memory of a node that does not report any",
      asking("p", { requests: { memory: 1 } }),
      { allocatable: { cpu: 4 } },
      undefined,
    ],
    ["selects by label", asking("p", { nodeSelector: zoneA }), { labels: zoneA }, undefined],
    ["selects another label", asking("p", { nodeSelector: zoneA }), {}, "1 not selected"],
    ["requires a zone", asking("p", { requiredNodes: inZone("a") }), {}, "1 not selected"],
    [
      "has its volume in another zone",
      asking("p", { volumeNodes: [inZone("b")] }),
      { labels: zoneA },
      "1 out of reach of its volume",
    ],
    [
      "has its volume in the same zone",
      asking("p", { volumeNodes: [inZone("a")] }),
      { labels: zoneA },
      undefined,
    ],
    [
      "does not tolerate a taint",
      asking("p", {}),
      { taints: [{ key: "gpu", effect: "NoSchedule" }] },
      "1 tainted gpu",
    ],
    [
      "tolerates the taint",
      asking("p", {}, { tolerations: [{ key: "gpu", operator: "Exists" }] }),
      { taints: [{ key: "gpu", effect: "NoExecute" }] },
      undefined,
    ],
    [
      "meets a PreferNoSchedule taint",
      asking("p", {}),
      { taints: [{ key: "gpu", effect: "PreferNoSchedule" }] },
      undefined,
    ],
    ["has unknown requests", pod("p"), {}, undefined],
  ])("that %s", (_, leaving, other, lacks) => {
    const expected = lacks === undefined ? [] : [`p 0 of 1 node: ${lacks}`];
    expect(unplaced([leaving], [machine("n2", other)])).toEqual(expected);
  });

  it.each<[string, Partial<NodeFacts>]>([
    ["is not ready", { ready: false }],
    ["is cordoned", { unschedulable: true }],
    ["is being deleted", { deletionAt: startAt }],
    ["is the leaving node", { name: "n1" }],
    ["does not report its size", { allocatable: undefined }],
  ])("does not fit on a node that %s", (_, changes) => {
    expect(unplaced([asking("p", {})], [machine("n2", changes)])).toEqual(["p 0 of 0 nodes"]);
  });

  it("competes with pods that run on the other node, but not with finished ones", () => {
    const three = { requests: { cpu: 3 } };
    const leaving = [asking("p", { requests: { cpu: 2 } })];
    const running = asking("q", three, { nodeName: "n2" });
    const finished = asking("q", three, { nodeName: "n2", phase: "Succeeded" });
    expect(unplaced(leaving, [machine("n2")], [running])).toHaveLength(1);
    expect(unplaced(leaving, [machine("n2")], [finished])).toEqual([]);
  });

  it("counts towards the node's maximum number of pods", () => {
    const full = machine("n2", { allocatable: { ...size, pods: 1 } });
    const there = asking("q", {}, { nodeName: "n2" });
    expect(unplaced([asking("p", {})], [full], [there])).toEqual([
      "p 0 of 1 node: 1 short of pods",
    ]);
  });
});

describe("pods that leave together", () => {
  const cores = (name: string, cpu: number) => asking(name, { requests: { cpu } });

  it("cannot share the same capacity", () => {
    expect(unplaced([cores("a", 3), cores("b", 3)], [machine("n2")])).toEqual([
      "b 0 of 1 node: 1 short of cpu",
    ]);
  });

  it("are placed largest first, so that small ones do not displace large ones", () => {
    const pods = [cores("s1", 1), cores("s2", 1), cores("s3", 1), cores("s4", 1), cores("big", 4)];
    expect(unplaced(pods, [machine("n2"), machine("n3")])).toEqual([]);
  });

  it("list what most nodes lack first", () => {
    const tainted = machine("n4", { taints: [{ key: "gpu", effect: "NoSchedule" }] });
    const small = { cpu: 1, memory: 16e9, pods: 110 };
    const others = [
      tainted,
      machine("n2", { allocatable: small }),
      machine("n3", { allocatable: small }),
    ];
    expect(unplaced([cores("a", 3)], others)).toEqual([
      "a 0 of 3 nodes: 2 short of cpu, 1 tainted gpu",
    ]);
  });
});

describe("a drain plan that knows the other nodes", () => {
  const big = { requests: { cpu: 8 } };
  const capacities = capacitiesOf({ nodes: [machine("n2")], loads: new Map(), leaving: new Set() });
  const warned = (pods: readonly PodFacts[]) => {
    const plan = planDrain({ node: node(), pods, budgets: [], rule: rule(), now: startAt });
    const unplacedPods = podsWithoutCapacity(returningPods(plan.pods, pods), capacities);
    return warnOfCapacity(plan, unplacedPods)
      .warnings.filter(({ reason }) => reason === "NoCapacityElsewhere")
      .map(({ name, detail }) => `${name}: ${detail}`);
  };

  it("warns about the pods that fit on no node", () => {
    expect(warned([asking("big", big), asking("small", {})])).toEqual([
      "big: 0 of 1 node: 1 short of cpu",
    ]);
  });

  it.each<[string, Partial<PodFacts>]>([
    ["has no controller, so it is not recreated", { controller: undefined }],
    ["belongs to a DaemonSet", { controller: { kind: "DaemonSet", name: "d", uid: "d" } }],
    ["is terminating, so it has been recreated", { deletionAt: startAt }],
    ["stays because of its annotation", { annotations: { "lastcall.dev/do-not-disturb": "true" } }],
  ])("does not warn about a pod that %s", (_, changes) => {
    expect(warned([asking("big", big, changes)])).toEqual([]);
  });
});
