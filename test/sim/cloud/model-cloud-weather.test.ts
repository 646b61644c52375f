import { expect, it, vi } from "vitest";
import { instant, minutes, seconds } from "../../../src/core/time/time.ts";
import { eventLoopTurn } from "../../../src/runtime/real-clock.ts";
import { neverPreempted, providerIdOf } from "../../../src/sim/cloud/model-machine.ts";
import { type ModelCluster, startModelCluster } from "../../../src/sim/model-cluster.ts";
import { VirtualClock } from "../../../src/sim/time/virtual-clock.ts";

const startAt = instant(Date.UTC(2026, 10, 20));

function start(): { clock: VirtualClock; cluster: ModelCluster; name: string } {
  const clock = new VirtualClock({ startAt, settle: eventLoopTurn });
  const groups = [{ name: "spot", zone: "a", size: 1, price: "Preemptible" as const }];
  const cluster = startModelCluster({ clock, seed: 5, groups, preemptions: neverPreempted });
  return { clock, cluster, name: cluster.cloud.machines()[0]?.name ?? "" };
}

it("A group gets no machine during a stock-out, and gets one when it is over", async () => {
  const { clock, cluster, name } = start();
  const { cloud } = cluster;
  cloud.setStockOut(true);
  cloud.take(name);
  await clock.advance(minutes(30));
  expect(cloud.machine(name)?.state).toBe("Gone");
  cloud.setStockOut(false);
  await clock.advance(minutes(2));
  expect(cloud.machine(name)?.state).toBe("Running");
});

it("A machine that is stopped keeps its Node, and its cloud says that it does not run", async () => {
  const { clock, cluster, name } = start();
  const { cloud } = cluster;
  await clock.advance(seconds(5));
  cloud.halt(name);
  await clock.advance(minutes(10));
  const machine = cloud.machine(name);
  if (machine === undefined) throw new Error("the machine is known");
  const signal = new AbortController().signal;
  const described = await cloud.describe(providerIdOf(machine), signal);
  expect(described).toMatchObject({ kind: "Present", id: machine.id, running: false });
  expect(cluster.api.context.store.collection("nodes").get("", name)).toBeDefined();
});

it("A machine that is stopped is still released on request", async () => {
  const { clock, cluster, name } = start();
  const { cloud } = cluster;
  await clock.advance(seconds(5));
  const machine = cloud.machine(name);
  if (machine === undefined) throw new Error("the machine is known");
  cloud.halt(name);
  const lastLook = vi.fn(async () => "Clear" as const);
  const request = {
    ...{ providerID: providerIdOf(machine), machineId: machine.id, mode: "Recreate" as const },
    ...{ requestId: "8c6f1f0e-7d0f-4b0e-9d37-0a4d8f6b2c11", lastLook },
  };
  const released = cloud.release(request, new AbortController().signal);
  await clock.advance(minutes(1));
  expect(await released).toEqual({ kind: "Released" });
  expect(lastLook).toHaveBeenCalledOnce();
});
