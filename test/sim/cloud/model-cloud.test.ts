import { beforeEach, describe, expect, it } from "vitest";
import type { ReleaseResult } from "../../../src/contracts/cloud.ts";
import {
  hours,
  type Instant,
  instant,
  minutes,
  plus,
  seconds,
} from "../../../src/core/time/time.ts";
import { LastcallError } from "../../../src/errors.ts";
import { eventLoopTurn } from "../../../src/runtime/real-clock.ts";
import {
  type MachineEvent,
  type MachineGroup,
  type PreemptionModel,
  providerIdOf,
} from "../../../src/sim/cloud/model-machine.ts";
import {
  conditionOf,
  type NodeObject,
} from "../../../src/sim/cluster-controllers/cluster-object.ts";
import { type ModelCluster, startModelCluster } from "../../../src/sim/model-cluster.ts";
import { VirtualClock } from "../../../src/sim/time/virtual-clock.ts";
import { allClear } from "../../support/machine-releaser.ts";

const startAt = instant(Date.UTC(2026, 10, 20));
const signal = new AbortController().signal;

const spot: MachineGroup = {
  name: "spot-b",
  zone: "europe-west1-b",
  size: 2,
  price: "Preemptible",
};
const stable: MachineGroup = {
  name: "stable-c",
  zone: "europe-west1-c",
  size: 1,
  price: "Standard",
};

/** No machine ends unless a test ends it. */
const quiet: PreemptionModel = { endOf: () => "Never" };

let clock: VirtualClock;
let cluster: ModelCluster;
let events: MachineEvent[];

function start(
  preemptions: PreemptionModel = quiet,
  groups: readonly MachineGroup[] = [spot, stable],
): void {
  clock = new VirtualClock({ startAt, settle: eventLoopTurn });
  cluster = startModelCluster({ clock, seed: 5, groups, preemptions });
  events = [];
  cluster.cloud.subscribe((event) => events.push(event));
}

function at(spanSeconds: number): Promise<void> {
  return clock.runUntil(plus(startAt, seconds(spanSeconds)));
}

function nodes(): readonly NodeObject[] {
  return cluster.api.context.store.collection("nodes").list() as readonly NodeObject[];
}

function node(name: string): NodeObject | undefined {
  return nodes().find((one) => one.metadata.name === name);
}

function bootIdOf(name: string): unknown {
  const info = node(name)?.status.nodeInfo as { readonly bootID?: string } | undefined;
  return info?.bootID;
}

function firstSpot(): { name: string; providerID: string; machineId: string } {
  const machine = cluster.cloud.machines().find((one) => one.group.name === spot.name);
  if (!machine) throw new Error("no machine in the group");
  return { name: machine.name, providerID: providerIdOf(machine), machineId: machine.id };
}

/** The events of all machines with this name, with the seconds since the start. */
function eventsOf(name: string): readonly string[] {
  return events
    .filter((event) => event.machine.name === name)
    .map((event) => `${(event.at - startAt) / 1000} ${event.kind}`);
}

beforeEach(() => start());

describe("ModelCloud", () => {
  it("registers a Node for each machine, labelled as on GKE", async () => {
    await at(0);
    expect(nodes()).toHaveLength(3);
    const { name, providerID } = firstSpot();
    const made = node(name);
    expect(made?.metadata.labels).toMatchObject({
      "cloud.google.com/gke-preemptible": "true",
      "topology.kubernetes.io/zone": "europe-west1-b",
      "topology.kubernetes.io/region": "europe-west1",
    });
    expect(made?.spec.providerID).toBe(providerID);
    expect(providerID).toBe(`gce://demo/europe-west1-b/${name}`);
    expect(made && conditionOf(made, "Ready")?.status).toBe("True");
    const other = nodes().find((one) => one.metadata.name.startsWith("stable-c"));
    expect(other?.metadata.labels).not.toHaveProperty("cloud.google.com/gke-preemptible");
  });

  it("gives 30 seconds of notice, takes the machine, and creates another with its name", async () => {
    const { name, machineId } = firstSpot();
    const before = node(name)?.metadata.uid;
    const bootID = bootIdOf(name);
    await at(100);
    cluster.cloud.preempt(name);
    await at(100);
    const noticed = node(name);
    expect(noticed && conditionOf(noticed, "Ready")?.message).toBe("node is shutting down");
    await at(129);
    expect(cluster.cloud.machine(name)?.state).toBe("Noticed");
    await at(136);
    expect(node(name)).toBeUndefined();
    await at(200);
    expect(eventsOf(name)).toEqual(["100 Noticed", "130 Gone", "140 Launched", "190 Registered"]);
    expect(cluster.cloud.machine(name)?.id).not.toBe(machineId);
    expect(node(name)?.metadata.uid).not.toBe(before);
    expect(bootIdOf(name)).not.toBe(bootID);
  });

  it("reuses a Node object that was not removed in time, with another bootID", async () => {
    clock = new VirtualClock({ startAt, settle: eventLoopTurn });
    const timings = { forgetNode: minutes(10) };
    cluster = startModelCluster({ clock, seed: 5, groups: [spot], preemptions: quiet, timings });
    const { name } = firstSpot();
    const before = node(name);
    cluster.cloud.preempt(name);
    await at(700);
    const after = node(name);
    expect(after?.metadata.uid).toBe(before?.metadata.uid);
    expect(after?.status.nodeInfo).not.toEqual(before?.status.nodeInfo);
    expect(after && conditionOf(after, "Ready")?.status).toBe("True");
  });

  it("leaves pods as Failed if their machine is shut down while they run", async () => {
    const { name } = firstSpot();
    cluster.api.handle({
      method: "POST",
      path: "/api/v1/namespaces/default/pods",
      body: {
        metadata: { name: "p" },
        spec: { nodeName: name, containers: [{ name: "main", image: "app" }] },
      },
    });
    await at(60);
    cluster.cloud.preempt(name);
    await at(80);
    const path = "/api/v1/namespaces/default/pods/p";
    const answer = cluster.api.handle({ method: "GET", path });
    expect(answer.body).toMatchObject({ status: { phase: "Failed", reason: "Terminated" } });
  });
});

describe("ModelCloud as an InstanceReleaser", () => {
  it("describes a machine that exists, and one that does not", async () => {
    const { providerID, machineId } = firstSpot();
    expect(await cluster.cloud.describe(providerID, signal)).toEqual({
      kind: "Present",
      id: machineId,
      bornAt: startAt,
      asOf: startAt,
      running: true,
      names: { hosts: [expect.stringMatching(/^spot-b-/)] },
    });
    const absent = await cluster.cloud.describe("gce://demo/europe-west1-b/nobody", signal);
    expect(absent).toEqual({ kind: "Absent" });
  });

  function release(mode: "Recreate" | "Delete", requestId = "r-1"): Promise<ReleaseResult> {
    const { providerID, machineId } = firstSpot();
    return cluster.cloud.release(
      { providerID, machineId, mode, requestId, lastLook: allClear },
      signal,
    );
  }

  it("recreates: waits until the machine is gone, and creates one with the same name", async () => {
    const { name, machineId } = firstSpot();
    let goneAt: Instant | undefined;
    const released = release("Recreate").then((result) => {
      goneAt = clock.now();
      return result;
    });
    await at(200);
    expect(await released).toEqual({ kind: "Released" });
    expect(goneAt).toBe(plus(startAt, seconds(20)));
    expect(eventsOf(name)).toEqual(["0 Stopping", "20 Gone", "30 Launched", "80 Registered"]);
    expect(cluster.cloud.machine(name)?.id).not.toBe(machineId);
  });

  it("deletes: shrinks the group", async () => {
    const { name } = firstSpot();
    const released = release("Delete");
    await at(200);
    expect(await released).toEqual({ kind: "Released" });
    expect(cluster.cloud.machine(name)).toBeUndefined();
    expect(nodes()).toHaveLength(2);
  });

  it("does not release another machine of the same name", async () => {
    const { name, providerID, machineId } = firstSpot();
    cluster.cloud.preempt(name);
    await at(35);
    const late = {
      providerID,
      machineId,
      mode: "Recreate",
      requestId: "r-2",
      lastLook: allClear,
    } as const;
    expect(await cluster.cloud.release(late, signal)).toEqual({ kind: "AlreadyGone" });
    await at(100);
    const later = { ...late, requestId: "r-3" };
    expect(await cluster.cloud.release(later, signal)).toEqual({ kind: "Replaced" });
    await at(200);
    expect(cluster.cloud.machine(name)?.state).toBe("Running");
  });

  it("fails as injected", async () => {
    const error = new LastcallError("CLOUD_RATE_LIMITED", "Cannot describe: too many calls");
    cluster.cloud.failNext({ on: "describe", error });
    const { providerID } = firstSpot();
    await expect(cluster.cloud.describe(providerID, signal)).rejects.toBe(error);
    expect((await cluster.cloud.describe(providerID, signal)).kind).toBe("Present");
  });

  it("stops waiting when the caller aborts, and completes the release", async () => {
    const { name, providerID, machineId } = firstSpot();
    const abort = new AbortController();
    const request = {
      providerID,
      machineId,
      mode: "Recreate",
      requestId: "r-4",
      lastLook: allClear,
    } as const;
    const waiting = cluster.cloud.release(request, abort.signal);
    await at(0);
    abort.abort("stopped");
    await expect(waiting).rejects.toBe("stopped");
    await at(100);
    expect(eventsOf(name)).toContain("20 Gone");
  });
});

describe("a preempted fleet", () => {
  it("ends every machine within 24 hours and 50 minutes", async () => {
    clock = new VirtualClock({ startAt, settle: eventLoopTurn });
    cluster = startModelCluster({ clock, seed: 11, groups: [{ ...spot, size: 40 }] });
    const lives: number[] = [];
    cluster.cloud.subscribe(({ kind, machine, at: goneAt }) => {
      if (kind === "Gone") lives.push(goneAt - machine.bornAt);
    });
    await clock.runUntil(plus(startAt, hours(72)));
    expect(lives.length).toBeGreaterThan(80);
    expect(Math.max(...lives)).toBeLessThanOrEqual(hours(24) + minutes(50));
    expect(Math.max(...lives)).toBeGreaterThan(hours(24));
  });

  it("behaves the same for the same seed, down to the resourceVersions", async () => {
    const run = async (): Promise<unknown> => {
      clock = new VirtualClock({ startAt, settle: eventLoopTurn });
      cluster = startModelCluster({ clock, seed: 11, groups: [{ ...spot, size: 10 }] });
      const events: string[] = [];
      cluster.cloud.subscribe((event) =>
        events.push(`${event.at} ${event.kind} ${event.machine.name} ${event.machine.id}`),
      );
      await clock.runUntil(plus(startAt, hours(30)));
      return [events, nodes()];
    };
    expect(await run()).toEqual(await run());
  });
});
