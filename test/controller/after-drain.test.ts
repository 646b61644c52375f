import { describe, expect, it } from "vitest";
import { minutes, seconds } from "../../src/core/time/time.ts";
import type { ModelWorld } from "../support/model-world.ts";
import {
  capacityStory,
  close,
  depart,
  hasEnded,
  ledgerOf,
  open,
  requestsOf,
  stepsOf,
  told,
  workload,
} from "./capacity-story.ts";

const attachments = "/apis/storage.k8s.io/v1/volumeattachments";
const volumes = "/api/v1/persistentvolumes";

function attach(world: ModelWorld, about: { node: string; volume: string; claim: string }): void {
  const { node, volume, claim } = about;
  world.create(volumes, {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name: volume },
    spec: { claimRef: { namespace: "default", name: claim } },
  });
  world.create(attachments, {
    apiVersion: "storage.k8s.io/v1",
    kind: "VolumeAttachment",
    metadata: { name: `csi-${volume}` },
    spec: { nodeName: node, attacher: "csi", source: { persistentVolumeName: volume } },
  });
}

function detach(world: ModelWorld, volume: string): void {
  world.api.handle({ method: "DELETE", path: `${attachments}/csi-${volume}` });
}

/** A pod with the claim `data` on `n0`; it terminates within three seconds. */
async function database(
  world = capacityStory({ replacement: { when: "None" } }),
  exitAfterSeconds = 3,
) {
  close(world, ["n1", "n2"]);
  workload(world, "db", { replicas: 1, cpu: "1", claim: "data", exitAfterSeconds });
  await world.pass(seconds(30));
  open(world, ["n1", "n2"]);
  attach(world, { node: "n0", volume: "pv-data", claim: "data" });
  return world;
}

describe("a drained node", () => {
  it("keeps its machine until the volumes of its pods are detached", async () => {
    const world = await database();
    depart(world, "n0");
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.passUntil(() => ledgerOf(world, "n0").reason === "VolumeWait", minutes(1));
    expect(ledgerOf(world, "n0")).toMatchObject({
      phase: "Draining",
      message: "n0 is drained, and waits for its volumes to be detached: default/data.",
    });
    await world.pass(seconds(60));
    expect(world.released).toEqual([]);
    detach(world, "pv-data");
    await world.passUntil(hasEnded(world, "n0"), minutes(1));
    const ends = stepsOf(world, "n0").map((step) => Number(step.split(" ")[0]));
    expect(ends.at(-1)).toBeLessThan(70);
    expect(world.released).toHaveLength(1);
    stop.abort();
    await running;
  });

  it("keeps its machine for its volumes, too, if another controller takes over meanwhile", async () => {
    const world = await database();
    depart(world, "n0");
    await told(world, () => ledgerOf(world, "n0").reason === "VolumeWait", minutes(1));
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(seconds(60));
    expect(world.released).toEqual([]);
    detach(world, "pv-data");
    await world.passUntil(hasEnded(world, "n0"), minutes(1));
    expect(world.released).toHaveLength(1);
    stop.abort();
    await running;
  });

  it("waits for volumes until the drain timeout, and names those still attached", async () => {
    const world = await database();
    depart(world, "n0");
    await told(world, hasEnded(world, "n0"));
    // Three seconds to terminate, then the twenty minutes of the policy's timeout.
    expect(stepsOf(world, "n0")).toContain("1203 Releasing");
    const event = world.events.find(({ reason }) => reason === "VolumesAttached");
    expect(event?.message).toBe("n0 still has volumes attached: default/data");
  });

  it("waits for its volumes even if its last pod outlived the drain timeout", async () => {
    const drain = { timeout: "30s", onTimeout: "RollBack" };
    const world = await database(capacityStory({ replacement: { when: "None" }, drain }), 40);
    depart(world, "n0");
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.passUntil(() => ledgerOf(world, "n0").reason === "VolumeWait", minutes(1));
    await world.pass(seconds(10));
    expect(world.released).toEqual([]);
    detach(world, "pv-data");
    await world.passUntil(hasEnded(world, "n0"), minutes(1));
    expect(ledgerOf(world, "n0")).toMatchObject({ outcome: "Planned" });
    stop.abort();
    await running;
  });

  it("does not wait again for a pod that the drain left behind at its timeout", async () => {
    const drain = { timeout: "30s", onTimeout: "Proceed" };
    const world = capacityStory({ replacement: { when: "None" }, drain });
    close(world, ["n1", "n2"]);
    workload(world, "slow", { replicas: 1, cpu: "1", exitAfterSeconds: "never" });
    await world.pass(seconds(30));
    depart(world, "n0");
    await told(world, hasEnded(world, "n0"));
    const [released = 0] = stepsOf(world, "n0")
      .filter((step) => step.endsWith("Ended"))
      .map((step) => Number(step.split(" ")[0]));
    expect(released).toBeLessThan(40);
  });

  it("waits neither for volumes of other nodes nor for those of DaemonSet pods", async () => {
    const world = await database();
    detach(world, "pv-data");
    attach(world, { node: "n1", volume: "pv-other", claim: "other" });
    attach(world, { node: "n0", volume: "pv-logs", claim: "logs" });
    world.create("/api/v1/namespaces/default/pods", {
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        name: "logs-x",
        namespace: "default",
        ownerReferences: [
          { apiVersion: "apps/v1", kind: "DaemonSet", name: "logs", uid: "ds", controller: true },
        ],
      },
      spec: {
        nodeName: "n0",
        containers: [{ name: "c", image: "c:1" }],
        volumes: [{ name: "data", persistentVolumeClaim: { claimName: "logs" } }],
      },
    });
    depart(world, "n0");
    await told(world, hasEnded(world, "n0"));
    expect(stepsOf(world, "n0").map((step) => step.split(" ")[1])).not.toContain("VolumeWait");
  });

  it("does not request VolumeAttachments if no pod had a volume", async () => {
    const world = capacityStory({ replacement: { when: "None" } });
    workload(world, "web", { replicas: 3, cpu: "1" });
    await world.pass(seconds(30));
    const requests = requestsOf(world);
    depart(world, "n0");
    await told(world, hasEnded(world, "n0"));
    expect(requests.filter((one) => one.includes("volumeattachments"))).toEqual([]);
  });

  it("waits for its volumes until the deadline of its notice, but not longer", async () => {
    const world = await database();
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(seconds(10));
    world.notice("n0", seconds(120));
    await world.pass(seconds(119));
    expect(ledgerOf(world, "n0")).toMatchObject({ phase: "Draining", reason: "VolumeWait" });
    await world.pass(seconds(3));
    expect(ledgerOf(world, "n0").phase).toBe("Releasing");
    stop.abort();
    await running;
  });
});

describe("a drained node with a loadBalancerDelay", () => {
  function delayed(instance: Readonly<Record<string, string>> = {}): ModelWorld {
    return capacityStory({
      replacement: { when: "None" },
      instance: { loadBalancerDelay: "2m", ...instance },
    });
  }

  /**
   * Runs a controller until n0 waits for load balancers, calls `then`, and stops the controller.
   */
  async function waiting(world: ModelWorld, then: () => Promise<void>): Promise<void> {
    depart(world, "n0");
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.passUntil(() => ledgerOf(world, "n0").reason === "LoadBalancerWait", minutes(1));
    await then();
    stop.abort();
    await running;
  }

  it("keeps its machine for the delay", async () => {
    const world = delayed();
    workload(world, "web", { replicas: 3, cpu: "1" });
    await world.pass(seconds(30));
    await waiting(world, async () => {
      expect(ledgerOf(world, "n0")).toMatchObject({
        phase: "Draining",
        message: expect.stringMatching(/^n0 is drained, and is kept until .*Z for load balancers/),
      });
      await world.pass(seconds(110));
      expect(world.released).toEqual([]);
      await world.passUntil(hasEnded(world, "n0"), minutes(1));
    });
    expect(stepsOf(world, "n0")).toContain("120 Releasing");
    expect(world.released).toHaveLength(1);
  });

  it("does not wait any longer if another controller takes over", async () => {
    const world = delayed();
    await waiting(world, async () => {});
    await world.pass(seconds(60));
    await told(world, hasEnded(world, "n0"));
    expect(stepsOf(world, "n0")).toContain("120 Releasing");
  });

  it("is uncordoned if a person cancels the departure during the delay", async () => {
    const world = delayed();
    await waiting(world, async () => {
      world.patchNode("n0", { spec: { unschedulable: false } });
      await world.passUntil(hasEnded(world, "n0"), minutes(1));
    });
    expect(ledgerOf(world, "n0").outcome).toBe("Cancelled");
    expect(world.released).toEqual([]);
  });

  it("is left to the cloud at once if a notice arrives during the delay", async () => {
    const world = delayed();
    await waiting(world, async () => {
      world.notice("n0", seconds(120));
      await world.passUntil(() => ledgerOf(world, "n0").phase === "Releasing", seconds(5));
      await world.pass(seconds(60));
    });
    expect(world.released).toEqual([]);
  });

  it("does not wait if Lastcall does not release its machine", async () => {
    const world = delayed({ release: "None" });
    depart(world, "n0");
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.passUntil(() => ledgerOf(world, "n0").phase === "Releasing", seconds(10));
    stop.abort();
    await running;
  });
});

describe("the status of a departure", () => {
  it("counts how each pod ended, and names those that did not end cleanly", async () => {
    const world = capacityStory({ replacement: { when: "None" } });
    close(world, ["n1", "n2"]);
    workload(world, "web", { replicas: 2, cpu: "1" });
    workload(world, "deaf", { replicas: 1, cpu: "1", exitAfterSeconds: "never" });
    await world.pass(seconds(30));
    open(world, ["n1", "n2"]);
    const name = world.podsOn("n0").find((pod) => pod.metadata?.labels?.app === "deaf");
    depart(world, "n0");
    await told(world, hasEnded(world, "n0"));
    expect(ledgerOf(world, "n0").drain).toMatchObject({
      cleanExit: 2,
      killed: 1,
      leftBehind: 0,
      notClean: [
        {
          namespace: "default",
          name: name?.metadata?.name,
          outcome: "Killed",
          rule: "exec-sigterm-lost",
        },
      ],
    });
    expect(world.events.filter(({ reason }) => reason === "PodKilled")).toMatchObject([
      {
        about: { kind: "Node", name: "n0" },
        message: `default/${name?.metadata?.name} was killed at the end of its grace period (audit rule exec-sigterm-lost, docs/audit/exec-sigterm-lost.md)`,
      },
      { about: { kind: "Departure" } },
    ]);
  });

  it("names the pods that a notice's deadline left behind", async () => {
    const world = capacityStory();
    // A finalizer keeps the object after its processes have ended.
    world.create("/api/v1/namespaces/default/pods", {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "kept", namespace: "default", finalizers: ["example.com/kept"] },
      spec: { nodeName: "n0", containers: [{ name: "c", image: "c:1" }] },
    });
    await world.pass(seconds(10));
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(seconds(10));
    world.notice("n0", seconds(20));
    await world.pass(seconds(30));
    expect(ledgerOf(world, "n0").drain).toMatchObject({
      cleanExit: 0,
      leftBehind: 1,
      notClean: [{ namespace: "default", name: "kept", outcome: "LeftBehind", rule: "grace-cut" }],
    });
    const said = world.events.filter(({ about }) => about.kind === "Node");
    expect(said.map(({ reason }) => reason)).toContain("PodLeftBehind");
    expect(said.find(({ reason }) => reason === "PodCut")?.message).toContain(
      "(audit rule grace-cut, docs/audit/grace-cut.md)",
    );
    stop.abort();
    await running;
  });

  it("keeps the outcomes that a previous controller has written", async () => {
    const world = capacityStory({ replacement: { when: "None" } });
    close(world, ["n1", "n2"]);
    workload(world, "web", { replicas: 2, cpu: "1" });
    workload(world, "slow", { replicas: 1, cpu: "1", exitAfterSeconds: 50 });
    await world.pass(seconds(30));
    open(world, ["n1", "n2"]);
    depart(world, "n0");
    await told(world, () => ledgerOf(world, "n0").drain?.cleanExit === 2);
    await told(world, hasEnded(world, "n0"));
    expect(ledgerOf(world, "n0").drain).toMatchObject({
      ...{ total: 3, left: 0, evicted: 3, forced: 0, cut: 0 },
      ...{ cleanExit: 3, killed: 0 },
    });
  });

  it("names each pod that was deleted regardless of its budget, across a change of controller", async () => {
    const drain = { timeout: "60s", onTimeout: "Proceed" };
    const world = capacityStory({ replacement: { when: "None" }, drain });
    close(world, ["n1", "n2"]);
    workload(world, "kept", { replicas: 1, cpu: "1", maxUnavailable: 0, exitAfterSeconds: 50 });
    await world.pass(seconds(30));
    open(world, ["n1", "n2"]);
    const [pod] = world.podsOn("n0");
    depart(world, "n0");
    await told(world, () => ledgerOf(world, "n0").drain?.forced === 1);
    expect(world.podsOn("n0")).toHaveLength(1);
    await told(world, hasEnded(world, "n0"));
    const name = pod?.metadata?.name;
    expect(ledgerOf(world, "n0")).toMatchObject({
      outcome: "Forced",
      drain: {
        ...{ total: 1, evicted: 0, forced: 1 },
        forcedPods: [{ namespace: "default", name, reason: "ForcedAtTimeout" }],
      },
    });
    const forced = world.events.filter(({ reason }) => reason === "PodForced");
    expect(forced.map(({ about }) => about.kind)).toEqual([
      ...["Node", "Departure", "Pod", "PodDisruptionBudget"],
    ]);
    expect(forced[0]?.message).toContain(
      `default/${name} was deleted instead of evicted (The disruption budget`,
    );
  });
});
