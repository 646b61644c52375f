import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../src/contracts/kube-api.ts";
import { formatInstant, hours, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { podBehaviour } from "../../src/sim/cluster-controllers/kubelet.ts";
import type { ModelWorld } from "../support/model-world.ts";
import {
  beginPlanned,
  capacityStory,
  close,
  conflictsOf,
  depart,
  entangled,
  hasEnded,
  ledgerOf,
  open,
  requestsOf,
  stepsOf,
  told,
  waits,
  workload,
} from "./capacity-story.ts";

/** The default of `spacing.min`: what waits for another drain starts that long after it. */
const spacing = minutes(15);
const none = { when: "None" };
const wholeClusterList = /^GET \/api\/v1\/pods\?fieldSelector=status\.phase/;
const lookAtCapacity = /^GET \/api\/v1\/pods\?fieldSelector=spec\.nodeName=n[12],status\.phase/;

describe("a planned departure", () => {
  it("says before the cordon which pods fit nowhere else, and continues", async () => {
    const world = capacityStory({ nodes: ["n0", "n1"], replacement: none });
    workload(world, "web", { replicas: 4, cpu: "2" });
    await world.pass(seconds(30));
    let saidBefore: readonly string[] | undefined;
    world.beforeWrite = ({ method, path }) => {
      if (method !== "PATCH" || path !== "/api/v1/nodes/n0") return;
      saidBefore ??= world.events.map(({ reason, about }) => `${reason} ${about.kind}`);
    };
    depart(world, "n0");
    await told(world, hasEnded(world, "n0"));
    expect(saidBefore?.filter((said) => said.startsWith("NoCapacity"))).toEqual([
      ...["NoCapacityElsewhere Node", "NoCapacityElsewhere Departure", "NoCapacityElsewhere Pod"],
      ...["NoCapacityElsewhere Node", "NoCapacityElsewhere Departure", "NoCapacityElsewhere Pod"],
    ]);
    const entry = ledgerOf(world, "n0").timeline?.find(
      ({ step }) => step === "NoCapacityElsewhere",
    );
    expect(entry?.result).toContain("(0 of 1 node: 1 short of cpu)");
    expect(ledgerOf(world, "n0").outcome).toBe("Planned");
  });

  it("says nothing if there is capacity, for which it lists the pods of one other node", async () => {
    const world = capacityStory({ replacement: none });
    workload(world, "web", { replicas: 3, cpu: "1" });
    await world.pass(seconds(30));
    const requests = requestsOf(world);
    depart(world, "n0");
    await told(world, hasEnded(world, "n0"));
    expect(stepsOf(world, "n0").map((step) => step.split(" ")[1])).toEqual([
      "Preparing",
      "Draining",
      "Releasing",
      "Ended",
    ]);
    expect(requests.filter((one) => lookAtCapacity.test(one))).toHaveLength(1);
    expect(requests.filter((one) => wholeClusterList.test(one))).toEqual([]);
  });
});

describe("planned departures of all nodes at once", () => {
  it("report that no node is left for the pods", async () => {
    const world = capacityStory({ nodes: ["n0", "n1"], replacement: none });
    workload(world, "web", { replicas: 2, cpu: "1" });
    await world.pass(seconds(30));
    for (const name of ["n0", "n1"]) depart(world, name);
    await told(world, () => ["n0", "n1"].every((name) => hasEnded(world, name)()));
    const said = ["n0", "n1"].flatMap((name) =>
      stepsOf(world, name).filter((step) => step.endsWith("NoCapacityElsewhere")),
    );
    expect(said).not.toEqual([]);
  });
});

describe("a planned departure from a fleet of twenty full nodes", () => {
  it("lists all pods once before it says that a pod fits nowhere", async () => {
    const names = Array.from({ length: 20 }, (_, at) => `n${at}`);
    const world = capacityStory({ nodes: names, replacement: none });
    workload(world, "web", { replicas: 20, cpu: "4" });
    await world.pass(seconds(60));
    const requests = requestsOf(world);
    depart(world, "n0");
    await told(world, hasEnded(world, "n0"));
    expect(requests.filter((one) => wholeClusterList.test(one))).toHaveLength(1);
    const entry = ledgerOf(world, "n0").timeline?.find(
      ({ step }) => step === "NoCapacityElsewhere",
    );
    expect(entry?.result).toContain("(0 of 19 nodes: 19 short of cpu)");
  });
});

describe("a notice", () => {
  it("lists only the pods of its own node before it cordons and drains", async () => {
    const world = capacityStory();
    workload(world, "web", { replicas: 4, cpu: "2" });
    await world.pass(seconds(30));
    const requests = requestsOf(world);
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(seconds(10));
    world.notice("n0", seconds(120));
    await world.pass(seconds(20));
    expect(world.podsOn("n0")).toEqual([]);
    expect(requests.filter((one) => wholeClusterList.test(one))).toEqual([]);
    expect(stepsOf(world, "n0").slice(0, 2)).toEqual(["0 Preparing", "0 Draining"]);
    stop.abort();
    await running;
  });
});

describe("two departures that need the same two budgets", () => {
  it("run one after the other, and the second says which one it waits for", async () => {
    const world = await entangled();
    await told(world, () => ["n0", "n1"].every((name) => hasEnded(world, name)()));
    const second = ["n0", "n1"].filter(waits(world));
    expect(second).toHaveLength(1);
    const [first] = ["n0", "n1"].filter((name) => !second.includes(name));
    const lastEviction = world.steps.lastIndexOf(`evict ${first}`);
    expect(world.steps.indexOf(`cordon ${second[0]}`)).toBeGreaterThan(lastEviction);
    const [conflict] = conflictsOf(world, second[0] ?? "");
    expect(conflict).toContain(`${first}-`);
    expect(conflict).toContain("over default/db and default/web");
    for (const name of ["n0", "n1"]) expect(ledgerOf(world, name).outcome).toBe("Planned");
  });

  it("say when the turn of the second comes, once the first has emptied its node", async () => {
    const world = await entangled();
    world.patchPolicy({ spec: { lifetime: { max: "24h" } } });
    for (const name of ["n0", "n1"]) beginPlanned(world, name);
    const startedAt = world.clock.now();
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.passUntil(() => ["n0", "n1"].some(waits(world)), minutes(1));
    const [second = ""] = ["n0", "n1"].filter(waits(world));
    await world.pass(minutes(5));
    const turn = formatInstant(plus(startedAt, spacing));
    expect(ledgerOf(world, second)).toMatchObject({
      ...{ phase: "Scheduled", message: `${second} waits for its turn at ${turn}.` },
    });
    stop.abort();
    await running;
  });

  it("free their budgets once the pods are gone, while the machine still waits", async () => {
    const world = await entangled({ loadBalancerDelay: "10m" });
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    const draining = (): readonly string[] =>
      ["n0", "n1"].filter((name) => ledgerOf(world, name).phase === "Draining");
    await world.passUntil(() => draining().length === 2, minutes(20));
    expect(draining()).toHaveLength(2);
    stop.abort();
    await running;
  });

  it("respect a freeze that comes while the second waits for the first", async () => {
    const world = await entangled();
    world.patchPolicy({ spec: { lifetime: { max: "24h" } } });
    for (const name of ["n0", "n1"]) beginPlanned(world, name);
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.passUntil(() => ["n0", "n1"].some(waits(world)), minutes(1));
    const [second = ""] = ["n0", "n1"].filter(waits(world));
    const first = second === "n0" ? "n1" : "n0";
    const freezeUntil = formatInstant(plus(world.clock.now(), hours(2)));
    world.patchPolicy({ spec: { gates: { freezeUntil } } });
    await world.passUntil(hasEnded(world, first), minutes(10));
    await world.pass(spacing);
    expect(world.marksOf(second)).toEqual([]);
    expect(ledgerOf(world, second).timeline?.map(({ result }) => result)).toContain(
      `Blocked: ${second} waits until the freeze ends at ${freezeUntil}.`,
    );
    stop.abort();
    await running;
  });

  const pause = (world: ModelWorld) => world.patchPolicy({ spec: { paused: true } });
  const disrupt = (world: ModelWorld, node: string) =>
    world.patchNode(node, {
      spec: { taints: [{ key: "karpenter.sh/disrupted", effect: "NoSchedule" }] },
    });
  const freeze = (world: ModelWorld) =>
    world.patchPolicy({ spec: { gates: { freezeUntil: "2027-01-01T00:00:00Z" } } });

  it.each([
    { what: "a paused policy", act: pause, reason: "PolicyPaused" },
    { what: "Karpenter's mark", act: disrupt, reason: "LeftToOthers" },
    { what: "a freeze, which the deadline overrides", act: freeze, reason: undefined },
  ])("respect $what that comes before the deadline of the second", async ({ act, reason }) => {
    const world = await entangled();
    world.patchPolicy({ spec: { lifetime: { max: "1h", reserve: "30m" } } });
    for (const name of ["n0", "n1"]) beginPlanned(world, name);
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.passUntil(() => ["n0", "n1"].some(waits(world)), minutes(1));
    const [second = ""] = ["n0", "n1"].filter(waits(world));
    act(world, second);
    await world.pass(minutes(40));
    stop.abort();
    await running;
    if (reason === undefined) expect(ledgerOf(world, second).outcome).toBe("Planned");
    else {
      expect(ledgerOf(world, second)).toMatchObject({ phase: "Held", reason });
      expect(world.steps).not.toContain(`cordon ${second}`);
    }
  });

  it("do not wait for each other once the cloud takes one of the nodes", async () => {
    const world = await entangled();
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.passUntil(() => ["n0", "n1"].some(waits(world)), minutes(1));
    const [second] = ["n0", "n1"].filter(waits(world));
    expect(world.marksOf(second ?? "")).toEqual([]);
    const noticedAt = world.clock.now();
    world.api.handle({
      method: "PATCH",
      path: `/apis/lastcall.dev/v1alpha1/departures/${world.departureOf(second ?? "")?.metadata?.name}`,
      patchType: "application/merge-patch+json",
      body: {
        spec: {
          noticedAt: new Date(noticedAt).toISOString(),
          deadlineAt: new Date(noticedAt + 120_000).toISOString(),
        },
      },
    });
    await world.pass(seconds(1));
    expect(world.marksOf(second ?? "")).toContain("unschedulable");
    stop.abort();
    await running;
  });

  /**
   * Each of two full nodes has a pod of `web`, which fits nowhere else, and two of `db`, one of
   * which fits on the third node. If each drain takes what the other needs, both wait forever.
   */
  async function interlocked(): Promise<ModelWorld> {
    const world = capacityStory({ nodes: ["n0", "n1"], replacement: none });
    world.addNode("n2", "b");
    const requests = { cpu: "3" };
    world.create("/api/v1/namespaces/default/pods", {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "filler", namespace: "default" },
      spec: { nodeName: "n2", containers: [{ name: "c", image: "c:1", resources: { requests } }] },
    });
    close(world, ["n2"]);
    const nodeSelector = { "topology.kubernetes.io/zone": "a" };
    workload(world, "web", { replicas: 2, cpu: "2", maxUnavailable: 1, nodeSelector });
    await world.pass(seconds(30));
    workload(world, "db", { replicas: 4, cpu: "1", maxUnavailable: 1 });
    await world.pass(seconds(30));
    for (const name of ["n0", "n1"]) expect(world.podsOn(name)).toHaveLength(3);
    open(world, ["n2"]);
    for (const name of ["n0", "n1"]) depart(world, name);
    return world;
  }

  it("keep their order when the leader dies during a drain, and neither waits forever", async () => {
    const world = await interlocked();
    const draining = () => ["n0", "n1"].find((name) => ledgerOf(world, name).phase === "Draining");
    const isStaying = (pod: KubeObject) => pod.metadata?.deletionTimestamp === undefined;
    const oneStays = () => {
      const pods = world.podsOn(draining() ?? "");
      return pods.length === 1 && pods.every(isStaying);
    };
    await told(world, oneStays, minutes(2));
    const first = draining() ?? "";
    const second = first === "n0" ? "n1" : "n0";
    expect(oneStays()).toBe(true);
    expect(waits(world)(second)).toBe(true);
    // What the first has used of its budgets cannot be seen from its pods any longer.
    let leftAtCordon: number | undefined;
    world.beforeWrite = ({ method, path }) => {
      if (method !== "PATCH" || path !== `/api/v1/nodes/${second}`) return;
      leftAtCordon ??= world.podsOn(first).length;
    };
    await told(world, () => ["n0", "n1"].every((name) => hasEnded(world, name)()));
    expect(leftAtCordon).toBe(0);
    for (const name of ["n0", "n1"]) expect(ledgerOf(world, name).outcome).toBe("Planned");
  });

  it("no longer hold budgets once they have ended", async () => {
    const world = await entangled();
    await told(world, () => ["n0", "n1"].every((name) => hasEnded(world, name)()));
    for (const name of ["n0", "n1"]) expect(ledgerOf(world, name)).not.toHaveProperty("demands");
  });
});

describe("a planned departure with a pod that its budget never releases", () => {
  it("says so before the cordon, on node, pod and budget, and again when the eviction is refused", async () => {
    const world = capacityStory({
      replacement: none,
      drain: { timeout: "1m", onTimeout: "RollBack" },
    });
    workload(world, "db", { replicas: 2, cpu: "1", maxUnavailable: 0 });
    await world.pass(seconds(30));
    const [node = ""] = ["n0", "n1", "n2"].filter((name) => world.podsOn(name).length > 0);
    let saidBefore: readonly string[] | undefined;
    const said = () => world.events.map(({ reason, about }) => `${reason} ${about.kind}`);
    world.beforeWrite = ({ method, path }) => {
      if (method === "PATCH" && path === `/api/v1/nodes/${node}`) saidBefore ??= said();
    };
    depart(world, node);
    await told(world, hasEnded(world, node));
    const about = ["Node", "Departure", "Pod", "PodDisruptionBudget"];
    expect(saidBefore).toEqual(
      expect.arrayContaining(about.map((one) => `BudgetImpossible ${one}`)),
    );
    expect(said()).toEqual(expect.arrayContaining(about.map((one) => `DrainBlocked ${one}`)));
    const event = world.events.find((one) => one.about.kind === "PodDisruptionBudget");
    expect(event?.about).toMatchObject({ namespace: "default", name: "db" });
    expect(event?.message).toContain("default/db allows maxUnavailable 0 of 2");
    const entry = ledgerOf(world, node).timeline?.find(({ step }) => step === "BudgetImpossible");
    expect(entry?.result).toContain("default/db-");
    expect(ledgerOf(world, node).outcome).toBe("RolledBack");
  });

  it("says so as well for a budget that a finished pod of a Job makes impossible", async () => {
    const drain = { timeout: "1m", onTimeout: "RollBack" };
    const world = capacityStory({ replacement: none, drain });
    workload(world, "web", { replicas: 2, cpu: "1", maxUnavailable: 1 });
    world.create("/apis/batch/v1/namespaces/default/jobs", {
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: { name: "report", namespace: "default" },
      spec: {
        template: {
          metadata: {
            labels: { app: "web" },
            annotations: { [podBehaviour.runSeconds]: "5" },
          },
          spec: { restartPolicy: "Never", containers: [{ name: "c", image: "c:1" }] },
        },
      },
    });
    await world.pass(seconds(60));
    const [node = ""] = ["n0", "n1", "n2"].filter((name) => world.podsOn(name).some(isWeb));
    depart(world, node);
    await told(world, hasEnded(world, node));
    const entry = ledgerOf(world, node).timeline?.find(({ step }) => step === "BudgetImpossible");
    expect(entry?.result).toContain("jobs.batch does not implement the scale subresource");
    expect(ledgerOf(world, node).outcome).toBe("RolledBack");
  });
});

function isWeb({ metadata, status }: KubeObject): boolean {
  const isRunning = (status as { phase?: string }).phase === "Running";
  return metadata?.labels?.app === "web" && isRunning;
}
