import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { minutes } from "../../src/core/time/time.ts";
import { FallbackStage } from "../support/fallback-stage.ts";
import { departures, nodes } from "../support/model-world.ts";

const leasePath = "/apis/coordination.k8s.io/v1/namespaces/lastcall/leases";

let stage: FallbackStage;

beforeEach(() => {
  stage = new FallbackStage();
});
afterEach(() => stage.end());

describe("an agent with fallback: Drain beside a controller", () => {
  it("leaves the node to the controller", async () => {
    await stage.withPods({ maxUnavailable: 6 });
    stage.startController();
    await stage.startAgent("Drain");
    stage.standing = [stage.notice(120)];
    await stage.pass(100);
    expect(stage.world.podsOn("n1")).toEqual([]);
    expect(stage.writesOfAgent()).toEqual([]);
  });

  it("stops as soon as the controller is back and has taken over", async () => {
    await stage.withPods({ maxUnavailable: 0 });
    await stage.startAgent("Drain");
    stage.standing = [stage.notice(600)];
    await stage.pass(10);
    expect(stage.writesOfAgent().length).toBeGreaterThan(1);
    stage.startController();
    await stage.pass(3);
    const before = stage.writesOfAgent().length;
    await stage.pass(60);
    expect(stage.writesOfAgent().length).toBe(before);
    expect(stage.world.statusOf("n1").phase).toBe("Draining");
    expect(stage.world.marksOf("n1").filter((mark) => mark === "unschedulable")).toHaveLength(1);
  });

  it("continues a controller's drain once the Lease of that controller has expired", async () => {
    await stage.withPods({ maxUnavailable: 0 });
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "lastcall" } };
    stage.world.create("/api/v1/namespaces", namespace);
    const lease = { holderIdentity: "c-1", leaseDurationSeconds: 40 };
    stage.world.create(leasePath, {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "lastcall", namespace: "lastcall" },
      spec: lease,
    });
    const alive = new AbortController();
    stage.startController(alive.signal);
    await stage.startAgent("Drain");
    stage.standing = [stage.notice(600)];
    await stage.pass(10);
    expect(stage.world.statusOf("n1").phase).toBe("Draining");
    alive.abort();
    await stage.pass(30);
    expect(stage.writesOfAgent()).toEqual([]);
    await stage.pass(30);
    expect(stage.writesOfAgent().some((one) => one.includes("/eviction"))).toBe(true);
  });

  it("leaves a controller's drain alone if there is no Lease", async () => {
    await stage.withPods({ maxUnavailable: 0 });
    const alive = new AbortController();
    stage.startController(alive.signal);
    await stage.startAgent("Drain");
    stage.standing = [stage.notice(600)];
    await stage.pass(10);
    alive.abort();
    await stage.world.pass(minutes(5));
    expect(stage.writesOfAgent()).toEqual([]);
  });

  it("leaves maintenance to the policy that holds it, until an hour before its start", async () => {
    await stage.withPods({ maxUnavailable: 6 });
    stage.world.patchPolicy({ spec: { gates: { freezeUntil: "2027-01-01T00:00:00Z" } } });
    stage.startController();
    await stage.startAgent("Drain");
    stage.standing = [stage.notice(3700, "ScheduledMaintenance")];
    await stage.pass(60);
    expect(stage.world.statusOf("n1").phase).toBe("Held");
    expect(stage.world.marksOf("n1")).toEqual([]);
    expect(stage.writesOfAgent()).toEqual([]);
    await stage.pass(60);
    expect(stage.world.podsOn("n1")).toEqual([]);
    expect(stage.writesOfAgent()).toEqual([]);
  });

  it("waits, but not for ever, while a controller rolls back an earlier notice's departure", async () => {
    const { world } = stage;
    await stage.withPods({ maxUnavailable: 6 });
    const uid = world.get(`${nodes}/n1`)?.metadata?.uid ?? "";
    const name = `n1-${uid.slice(0, 8)}`;
    world.create(departures, {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "Departure",
      metadata: { name },
      spec: {
        node: { name: "n1", uid },
        cause: "SpotInterruption",
        withdrawnAt: "2026-11-20T00:00:00Z",
      },
    });
    world.api.handle({
      method: "PATCH",
      path: `${departures}/${name}/status`,
      patchType: "application/merge-patch+json",
      body: { status: { phase: "RollingBack" } },
    });
    await stage.startAgent("Drain");
    stage.standing = [stage.notice(120)];
    await stage.pass(12);
    expect(stage.logged).toContain("fallback-actor");
    expect(stage.writesOfAgent()).toEqual([]);
    // That controller may be gone, and without a Lease nothing shows it.
    await stage.pass(18);
    expect(world.podsOn("n1")).toEqual([]);
  });
});
