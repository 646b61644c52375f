/** Nodes that are deleted, or registered anew, while their machines run. */
import { describe, expect, it } from "vitest";
import type { InstanceReleaser } from "../../src/contracts/cloud.ts";
import type { KubeObject } from "../../src/contracts/kube-api.ts";
import { formatInstant, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { stage } from "../support/feed-stage.ts";
import {
  dawn,
  departures,
  ModelWorld,
  nodes,
  spotPolicy,
  webWorkload,
} from "../support/model-world.ts";

/** n1 drains slowly by request; `running` is what the cloud says of its machine. */
async function draining(
  running: boolean,
  spec: Readonly<Record<string, unknown>> = {},
): Promise<{
  readonly world: ModelWorld;
  readonly stop: () => Promise<void>;
}> {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, name);
  webWorkload(world, { replicas: 6, maxUnavailable: 0 });
  spotPolicy(world, spec);
  const { releaser } = world;
  const cloud: InstanceReleaser = {
    ...releaser,
    describe: async (...asked) => {
      const state = await releaser.describe(...asked);
      return state.kind === "Present" ? { ...state, bornAt: dawn, running } : state;
    },
  };
  const over = new AbortController();
  const controller = world.startController(over.signal, { releaserFor: () => cloud });
  await world.pass(seconds(10));
  depart(world, "n1");
  await world.passUntil(() => world.statusOf("n1").phase === "Draining", minutes(1));
  const stop = async () => {
    over.abort();
    await controller;
  };
  return { world, stop };
}

describe("a Node that is deleted while it is drained by request", () => {
  it("was not preempted if its machine still runs", async () => {
    const { world, stop } = await draining(true);
    world.api.handle({ method: "DELETE", path: `${nodes}/n1` });
    await world.pass(minutes(1));
    await stop();
    expect(world.statusOf("n1")).toMatchObject({ phase: "Ended", outcome: "Cancelled" });
    expect(JSON.stringify(world.statusOf("n1"))).toContain("its machine still runs");
    expect(world.released).toEqual([]);
  });

  it("was taken with its machine if the cloud has stopped that", async () => {
    const { world, stop } = await draining(false);
    world.api.handle({ method: "DELETE", path: `${nodes}/n1` });
    await world.pass(minutes(1));
    await stop();
    expect(world.statusOf("n1")).toMatchObject({ phase: "Ended", reason: "NodeGone" });
    expect(world.statusOf("n1").outcome).not.toBe("Cancelled");
  });
});

describe("a machine that is rebooted without a notice", () => {
  it("ends its drain as cancelled: the cloud has not taken it", async () => {
    const { world, stop } = await draining(true);
    reboot(world, "n1");
    await world.pass(minutes(2));
    await stop();
    expect(world.statusOf("n1")).toMatchObject({
      ...{ phase: "Ended", reason: "MachineRebooted", outcome: "Cancelled" },
    });
    expect(world.marksOf("n1")).toEqual([]);
  });

  it("ends its planned departure as cancelled, and is planned anew", async () => {
    const { world, stop } = await draining(true, { lifetime: { max: "24h" } });
    const [before] = ofNode(world, "n2");
    reboot(world, "n2");
    await world.pass(minutes(2));
    await stop();
    const [old, planned] = ofNode(world, "n2");
    expect(old?.metadata?.uid).toBe(before?.metadata?.uid);
    expect(old?.status).toMatchObject({ reason: "MachineRebooted", outcome: "Cancelled" });
    expect(planned?.status).toMatchObject({ phase: "Scheduled" });
  });
});

function ofNode(world: ModelWorld, name: string): readonly KubeObject[] {
  return world
    .list(departures)
    .filter(({ spec }) => (spec as { readonly node: { readonly name: string } }).node.name === name)
    .toSorted((a, b) =>
      `${a.metadata?.creationTimestamp}` < `${b.metadata?.creationTimestamp}` ? -1 : 1,
    );
}

function reboot(world: ModelWorld, name: string): void {
  world.api.handle({
    ...{ method: "PATCH", path: `${nodes}/${name}/status` },
    patchType: "application/merge-patch+json",
    body: { status: { nodeInfo: { bootID: "another-boot" } } },
  });
}

describe("a Node that its kubelet registers anew under a notice", () => {
  it("is cordoned and drained by the same deadline", async () => {
    const { world, word, tell, stop } = await stage();
    await tell(word("n1", { deadlineAt: plus(world.clock.now(), minutes(2)) }));
    expect(world.marksOf("n1")).toContain("unschedulable");
    registerAnew(world, "n1");
    await leavesAgain(world);
    await stop();
  });

  it("is cordoned and drained if the departure still names the old object", async () => {
    const { world, word, tell, stop } = await stage();
    let isNew = false;
    world.beforeWrite = ({ method, path }) => {
      if (isNew || method !== "POST" || path !== departures) return;
      isNew = true;
      registerAnew(world, "n1");
    };
    await tell(word("n1", { deadlineAt: plus(world.clock.now(), minutes(2)) })).catch(() => {});
    expect(isNew).toBe(true);
    await leavesAgain(world);
    await stop();
  });

  it("is left alone if the machine has restarted: it may be another one", async () => {
    const { world, word, tell, stop } = await stage();
    await tell(word("n1", { deadlineAt: plus(world.clock.now(), minutes(2)) }));
    registerAnew(world, "n1", "another-boot");
    await world.pass(minutes(1));
    expect(world.marksOf("n1")).toEqual([]);
    await stop();
  });

  it("is left alone if the notice was withdrawn", async () => {
    const { world, word, tell, stop } = await stage();
    const told = word("n1", { deadlineAt: plus(world.clock.now(), minutes(2)) });
    await tell(told);
    await tell({ ...told, notice: { ...told.notice, withdrawn: true } });
    registerAnew(world, "n1");
    await world.pass(minutes(1));
    expect(world.marksOf("n1")).toEqual([]);
    await stop();
  });
});

async function leavesAgain(world: ModelWorld): Promise<void> {
  await world.pass(seconds(5));
  expect(world.marksOf("n1")).toContain("unschedulable");
  const ofNew = world
    .list(departures)
    .filter(({ spec }) => uidOf(spec) === world.get(`${nodes}/n1`)?.metadata?.uid);
  expect(ofNew).toHaveLength(1);
  expect(ofNew[0]?.spec).toMatchObject({ cause: "Preempted", source: "test/feed/event-n1" });
  await world.pass(minutes(1));
  expect(world.podsOn("n1")).toEqual([]);
}

function uidOf(spec: unknown): string {
  return (spec as { readonly node: { readonly uid: string } }).node.uid;
}

function depart(world: ModelWorld, name: string): void {
  const { metadata, spec, status } = world.get(`${nodes}/${name}`) as KubeObject;
  const { bootID } = (status as { readonly nodeInfo: { readonly bootID: string } }).nodeInfo;
  const { providerID } = spec as { readonly providerID: string };
  world.create(departures, {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name: `${name}-by-hand` },
    spec: {
      node: { name, uid: metadata?.uid, providerID, bootID },
      cause: "Manual",
      departAt: formatInstant(world.clock.now()),
    },
  });
}

/** Another Node object of the same machine. */
function registerAnew(world: ModelWorld, name: string, bootID?: string): void {
  const { metadata, spec, status } = world.get(`${nodes}/${name}`) as KubeObject;
  const { providerID } = spec as { readonly providerID: string };
  const isKubelets = ([key]: [string, string]) => !key.includes("exclude-from");
  const labels = Object.fromEntries(Object.entries(metadata?.labels ?? {}).filter(isKubelets));
  const nodeInfo = bootID === undefined ? {} : { nodeInfo: { bootID } };
  world.api.handle({ method: "DELETE", path: `${nodes}/${name}` });
  world.create(nodes, {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels },
    spec: { providerID },
    status: { ...(status as object), ...nodeInfo },
  } as KubeObject);
}
