/** Nodes that are deleted, or registered again, while their machines run. */
import { describe, expect, it } from "vitest";
import type { InstanceReleaser } from "../../src/contracts/cloud.ts";
import type { KubeObject } from "../../src/contracts/kube-api.ts";
import { fieldsOf } from "../../src/core/json/json-field.ts";
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
import { noticeOf } from "./capacity-story.ts";

/** n1 drains slowly by request; `running` is what the cloud says of its machine. */
async function draining(
  running: boolean | "Silent",
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
      if (running === "Silent") await world.clock.sleep(seconds(4));
      const state = await releaser.describe(...asked);
      return state.kind === "Present"
        ? { ...state, bornAt: dawn, running: running !== false }
        : state;
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

it("a machine whose notice was withdrawn, and that was taken later while nobody led, has not stayed", async () => {
  const world = new ModelWorld();
  for (const name of ["n0", "n1"]) world.addNode(name, name);
  spotPolicy(world, {});
  depart(world, "n1");
  const path = `${departures}/n1-by-hand`;
  const now = formatInstant(world.clock.now());
  world.api.handle({
    ...{ method: "PATCH", path, patchType: "application/merge-patch+json" },
    body: { spec: { cause: "SpotInterruption", noticedAt: now, withdrawnAt: now } },
  });
  await world.pass(minutes(90));
  world.api.handle({ method: "DELETE", path: `${nodes}/n1` });
  world.addNode("n1", "n1");
  const over = new AbortController();
  const controller = world.startController(over.signal);
  await world.pass(minutes(2));
  over.abort();
  await controller;
  const status = fieldsOf(world.get(path)?.status);
  expect(status).toMatchObject({ phase: "Ended", outcome: "Preempted" });
  expect(JSON.stringify(status)).not.toContain("stays");
});

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

it("a notice is not lost that arrives while a cloud is asked why a Node is gone", async () => {
  const { world, stop } = await draining("Silent");
  registerAgain(world, "n1");
  await world.pass(seconds(2));
  noticeOf(world, "n1", seconds(120));
  await world.pass(seconds(10));
  expect(world.marksOf("n1")).toContain("unschedulable");
  await stop();
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

  it("ends its planned departure as cancelled, and is planned again", async () => {
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

describe("a machine that is rebooted after its kubelet has reported the shutdown", () => {
  it.each(["n1", "n2"])(
    "ends its departure as cancelled, and is planned again: %s",
    async (name) => {
      const { world, stop } = await draining(true, { lifetime: { max: "24h" } });
      const ready = (status: string, message: string) =>
        writeStatus(world, name, { conditions: [{ type: "Ready", status, message, reason: "x" }] });
      ready("False", "node is shutting down");
      await world.pass(seconds(20));
      ready("Unknown", "Kubelet stopped posting node status.");
      await world.pass(minutes(1));
      ready("True", "kubelet is posting ready status");
      reboot(world, name);
      await world.pass(minutes(3));
      await stop();
      const all = ofNode(world, name).map(({ spec, status }) => ({
        ...fieldsOf(spec),
        ...fieldsOf(status),
      }));
      expect(all).toContainEqual(
        expect.objectContaining({
          ...{ cause: "NodeShutdown", reason: "MachineRebooted", outcome: "Cancelled" },
        }),
      );
      expect(all.at(-1)).toMatchObject({ cause: "Planned", phase: "Scheduled" });
      expect(world.marksOf(name)).toEqual([]);
    },
  );
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
  writeStatus(world, name, { nodeInfo: { bootID: "another-boot" } });
}

function writeStatus(world: ModelWorld, name: string, status: object): void {
  world.api.handle({
    ...{ method: "PATCH", path: `${nodes}/${name}/status` },
    patchType: "application/merge-patch+json",
    body: { status },
  });
}

describe("a Node that its kubelet registers again under a notice", () => {
  it("is cordoned and drained by the same deadline", async () => {
    const { world, word, tell, stop } = await stage();
    await tell(word("n1", { deadlineAt: plus(world.clock.now(), minutes(2)) }));
    expect(world.marksOf("n1")).toContain("unschedulable");
    registerAgain(world, "n1");
    await leavesAgain(world);
    await stop();
  });

  it("is cordoned and drained if the departure still names the old object", async () => {
    const { world, word, tell, stop } = await stage();
    let isNew = false;
    world.beforeWrite = ({ method, path }) => {
      if (isNew || method !== "POST" || path !== departures) return;
      isNew = true;
      registerAgain(world, "n1");
    };
    await tell(word("n1", { deadlineAt: plus(world.clock.now(), minutes(2)) })).catch(() => {});
    expect(isNew).toBe(true);
    await leavesAgain(world);
    await stop();
  });

  it("is cordoned within seconds, although its departure is refused at first", async () => {
    const { world, word, tell, stop } = await stage();
    await tell(word("n1", { deadlineAt: plus(world.clock.now(), minutes(2)) }));
    const { send } = world.watched;
    let refused = 0;
    world.watched.send = async (request) => {
      if (request.method !== "POST" || request.path !== departures || refused > 0) {
        return send(request);
      }
      refused += 1;
      return { status: 500, body: { kind: "Status", code: 500, message: "etcd is busy" } };
    };
    registerAgain(world, "n1");
    await world.pass(seconds(1));
    expect(refused).toBe(1);
    await leavesAgain(world);
    await stop();
  });

  it("is so if its agent has reported the notice for the old object", async () => {
    const { world, stop } = await stage();
    const { metadata, status } = world.get(`${nodes}/n1`) as KubeObject;
    const { bootID } = (status as { readonly nodeInfo: { readonly bootID: string } }).nodeInfo;
    registerAgain(world, "n1");
    world.create(departures, {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "Departure",
      metadata: { name: "n1-by-agent" },
      spec: {
        // An agent knows no providerID.
        node: { name: "n1", uid: metadata?.uid, bootID },
        ...{ cause: "Preempted", source: "test/feed/event-n1" },
        noticedAt: formatInstant(world.clock.now()),
        deadlineAt: formatInstant(plus(world.clock.now(), minutes(2))),
      },
    });
    await leavesAgain(world);
    await stop();
  });

  it("is left alone if the machine has restarted: it may be another one", async () => {
    const { world, word, tell, stop } = await stage();
    await tell(word("n1", { deadlineAt: plus(world.clock.now(), minutes(2)) }));
    registerAgain(world, "n1", "another-boot");
    await world.pass(minutes(1));
    expect(world.marksOf("n1")).toEqual([]);
    await stop();
  });

  it("is left alone if the notice was withdrawn", async () => {
    const { world, word, tell, stop } = await stage();
    const told = word("n1", { deadlineAt: plus(world.clock.now(), minutes(2)) });
    await tell(told);
    await tell({ ...told, notice: { ...told.notice, withdrawn: true } });
    registerAgain(world, "n1");
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
function registerAgain(world: ModelWorld, name: string, bootID?: string): void {
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
