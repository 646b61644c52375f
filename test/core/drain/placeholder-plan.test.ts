import { describe, expect, it } from "vitest";
import type { PodFacts, PodPlacement } from "../../../src/core/cluster/pod.ts";
import type { Departure, Phase } from "../../../src/core/departure/departure.ts";
import {
  nextReservationStep,
  orphanPlaceholders,
  type PlaceholderFacts,
  placeholderName,
} from "../../../src/core/drain/placeholder-plan.ts";
import { planDrain } from "../../../src/core/drain-plan/drain-plan.ts";
import { type Instant, minutes, plus } from "../../../src/core/time/time.ts";
import { node, pod, rule, startAt } from "./drain-scene.ts";

const asked: PodPlacement = {
  requests: { cpu: 1 },
  nodeSelector: {},
  podAffinity: [],
  podAntiAffinity: [],
};

function asking(name: string, changes: Partial<PodFacts> = {}): PodFacts {
  return pod(name, { placement: asked, ...changes });
}

function departure(phase: Phase = "Preparing", uid = "d-uid"): Departure {
  return {
    name: "n1-abc",
    uid,
    resourceVersion: "1",
    node: { name: "n1", uid: "node-uid" },
    cause: "Planned",
    hold: false,
    status: { phase, timeline: [] },
  };
}

function keeper(forPod: PodFacts, changes: Partial<PlaceholderFacts> = {}): PlaceholderFacts {
  return {
    name: placeholderName(forPod.uid),
    departureUid: "d-uid",
    phase: "Running",
    ready: true,
    leaving: "Staying",
    ...changes,
  };
}

function step(
  pods: readonly PodFacts[],
  placeholders: readonly PlaceholderFacts[],
  { now = startAt, nodeOs }: { readonly now?: Instant; readonly nodeOs?: string } = {},
) {
  return nextReservationStep({
    departure: departure(),
    plan: planDrain({ node: node(), pods, budgets: [], rule: rule(), now: startAt }),
    pods,
    placeholders,
    rule: { when: "BeforeDrain", timeoutMs: minutes(10), onTimeout: "Proceed" },
    sinceAt: startAt,
    now,
    nodeOs,
  });
}

const [a, b] = [asking("a"), asking("b")];

describe("the capacity for the pods of a node", () => {
  it("is reserved by one placeholder for each pod that will be recreated", () => {
    const bare = asking("bare", { controller: undefined });
    const daemon = asking("daemon", { controller: { kind: "DaemonSet", name: "d", uid: "d" } });
    const made = step([a, b, bare, daemon], []);
    expect(made.create.map((order) => order.forPod.name)).toEqual(["a", "b"]);
    expect(made.verdict).toBe("Waiting");
    expect(made.endsAt).toBe(plus(startAt, minutes(10)));
  });

  it("is reserved on nodes of the same operating system, which a pod need not name", () => {
    const own = asking("own", { placement: { ...asked, nodeSelector: { disk: "ssd" } } });
    const made = step([a, own], [], { nodeOs: "linux" });
    expect(made.create.map((order) => order.placement.nodeSelector)).toEqual([
      { "kubernetes.io/os": "linux" },
      { "kubernetes.io/os": "linux", disk: "ssd" },
    ]);
    expect(step([a], []).create[0]?.placement.nodeSelector).toEqual({});
  });

  it.each<[string, readonly PlaceholderFacts[], string, string]>([
    ["none exists yet", [], "Waiting", "0 of 2 pods have room"],
    ["one runs", [keeper(a)], "Waiting", "1 of 2 pods have room"],
    ["both run", [keeper(a), keeper(b)], "Ready", "2 of 2 pods have room"],
    [
      "one cannot be scheduled",
      [keeper(a), keeper(b, { phase: "Pending", ready: false, trouble: "0/3 nodes" })],
      "Waiting",
      "1 of 2 pods have room; default/b: 0/3 nodes",
    ],
    [
      "one runs but is not ready",
      [keeper(a), keeper(b, { ready: false })],
      "Waiting",
      "1 of 2 pods have room",
    ],
    [
      "one is being preempted",
      [keeper(a), keeper(b, { leaving: "Leaving" })],
      "Waiting",
      "1 of 2 pods have room",
    ],
  ])("is reported when %s", (_, there, verdict, detail) => {
    expect(step([a, b], there)).toMatchObject({ verdict, detail });
  });

  it("is awaited until the timeout and no longer", () => {
    const justBefore = plus(startAt, minutes(10)) - 1;
    expect(step([a], [], { now: justBefore as Instant }).verdict).toBe("Waiting");
    expect(step([a], [], { now: plus(startAt, minutes(10)) }).verdict).toBe("TimedOut");
  });

  it("that is there at the timeout counts", () => {
    expect(step([a], [keeper(a)], { now: plus(startAt, minutes(10)) }).verdict).toBe("Ready");
  });

  it("is there at once if no pod will be recreated", () => {
    expect(step([], [])).toMatchObject({ create: [], verdict: "Ready" });
  });

  it("is released if no pod needs it any more or its placeholder has ended", () => {
    const gone = asking("gone");
    const failed = keeper(b, { phase: "Failed", ready: false });
    const made = step([a, b], [keeper(a), failed, keeper(gone)]);
    expect(made.remove).toEqual([placeholderName(b.uid), placeholderName(gone.uid)]);
  });

  it("is neither reserved twice nor released twice", () => {
    const leaving = keeper(asking("gone"), { leaving: "Leaving" });
    const made = step([a], [keeper(a, { phase: "Pending", ready: false }), leaving]);
    expect(made).toMatchObject({ create: [], remove: [] });
  });
});

describe("a placeholder", () => {
  const orderFor = (one: PodFacts) => step([one], []).create[0];
  const notHere = { key: "metadata.name", operator: "NotIn", values: ["n1"] };
  const zone = (value: string) => ({
    key: "zone",
    operator: "In" as const,
    values: [value],
  });
  const terms = (...values: string[]) => ({
    nodeSelectorTerms: values.map((value) => ({
      matchExpressions: [zone(value)],
      matchFields: [],
    })),
  });

  it("has its pod's requests and tolerations", () => {
    const tolerations = [{ key: "spot", operator: "Exists" as const }];
    const one = asking("a", { tolerations });
    expect(orderFor(one)).toMatchObject({
      placement: { requests: { cpu: 1 } },
      tolerations,
      forPod: { name: "a" },
      departure: { name: "n1-abc", uid: "d-uid" },
    });
  });

  it("excludes the departing node only if its pod tolerates the cordon", () => {
    const everything = [{ operator: "Exists" as const }];
    const spot = [{ key: "spot", operator: "Exists" as const }];
    const cordon = [{ key: "node.kubernetes.io/unschedulable", operator: "Exists" as const }];
    const never = { nodeSelectorTerms: [{ matchExpressions: [], matchFields: [notHere] }] };
    const where = (tolerations: PodFacts["tolerations"]) =>
      orderFor(asking("a", { tolerations }))?.placement.requiredNodes;
    expect(where(everything)).toEqual(never);
    expect(where(cordon)).toEqual(never);
    expect(where(spot)).toBeUndefined();
    expect(where([])).toBeUndefined();
  });

  it("uses no node field, which Karpenter does not support, besides its pod's labels", () => {
    const placement = { ...asked, requiredNodes: terms("a", "b") };
    expect(orderFor(asking("a", { placement }))?.placement.requiredNodes).toEqual(terms("a", "b"));
  });

  it("that was scheduled to the departing node before the cordon is no capacity", () => {
    const [misplaced, placed] = [keeper(a, { node: "n1" }), keeper(b, { node: "n2" })];
    const made = step([a, b], [misplaced, placed]);
    expect(made).toMatchObject({ remove: [misplaced.name], verdict: "Waiting", create: [] });
    expect(made.detail).toBe("1 of 2 pods have room");
  });

  it("combines every node selector term of the pod with the nodes that reach each volume", () => {
    const placement = { ...asked, requiredNodes: terms("a", "b"), volumeNodes: [terms("b", "c")] };
    const made = orderFor(asking("a", { placement }))?.placement;
    const pairs = made?.requiredNodes?.nodeSelectorTerms.map((term) =>
      term.matchExpressions.map(({ values }) => values?.[0]).join(""),
    );
    expect(pairs).toEqual(["ab", "ac", "bb", "bc"]);
    expect(made?.volumeNodes).toBeUndefined();
  });

  it("limits a pod affinity term without namespaces to its pod's namespace", () => {
    const term = { topologyKey: "zone", labelSelector: {} };
    const named = { ...term, namespaces: ["other"] };
    const selected = { ...term, namespaceSelector: {} };
    const placement = { ...asked, podAffinity: [term], podAntiAffinity: [named, selected] };
    const made = orderFor(asking("a", { placement }))?.placement;
    expect(made?.podAffinity).toEqual([{ ...term, namespaces: ["default"] }]);
    expect(made?.podAntiAffinity).toEqual([named, selected]);
  });
});

it.each<[string, readonly Departure[], number]>([
  ["is gone", [], 1],
  ["was recreated under its name", [departure("Preparing", "other")], 1],
  ["has ended", [departure("Ended")], 1],
  ["is being rolled back", [departure("RollingBack")], 1],
  ["is past its drain", [departure("Releasing")], 1],
  ["is reserving capacity", [departure("Preparing")], 0],
  ["drains", [departure("Draining")], 0],
])("recognizes an orphan, or not: a placeholder whose departure %s", (_, departures, orphans) => {
  expect(orphanPlaceholders([keeper(a)], departures)).toHaveLength(orphans);
});
