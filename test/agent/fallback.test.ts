import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { allMarks, FallbackStage } from "../support/fallback-stage.ts";
import { departures, nodes } from "../support/model-world.ts";
import { unreachable } from "../support/scripted-api.ts";

let stage: FallbackStage;

beforeEach(() => {
  stage = new FallbackStage();
});
afterEach(() => stage.end());

describe("an agent with fallback: Drain and no controller", () => {
  it("waits for three seconds, then marks the node as a controller does and drains it", async () => {
    await stage.withPods({ maxUnavailable: 6 });
    await stage.startAgent("Drain");
    stage.standing = [stage.notice(120)];
    await stage.pass(2);
    expect(stage.world.marksOf("n1")).toEqual([]);
    await stage.pass(2);
    expect(stage.world.marksOf("n1")).toEqual(expect.arrayContaining(allMarks));
    const name = stage.world.departureOf("n1")?.metadata?.name;
    expect(stage.world.get(`${nodes}/n1`)?.metadata?.annotations).toMatchObject({
      "lastcall.dev/departure": name,
    });
    await stage.pass(15);
    expect(stage.world.podsOn("n1")).toEqual([]);
    expect(stage.logged).toContain("fallback-drained");
  });

  it("drains a node whose deadline is the time of the notice", async () => {
    await stage.withPods({ maxUnavailable: 6 });
    await stage.startAgent("Drain");
    stage.standing = [stage.notice(0)];
    await stage.pass(30);
    expect(stage.world.podsOn("n1")).toEqual([]);
    expect(stage.logged).toContain("fallback-drained");
  });

  it("sends no further request once the node is drained", async () => {
    await stage.withPods({ maxUnavailable: 6 });
    await stage.startAgent("Drain");
    stage.standing = [stage.notice(600)];
    await stage.pass(60);
    const before = stage.sent.length;
    await stage.pass(300);
    expect(stage.sent.length).toBe(before);
  });

  it("also evicts a pod that was bound before the scheduler saw the cordon", async () => {
    await stage.startAgent("Drain");
    stage.standing = [stage.notice(120)];
    await stage.pass(4);
    expect(stage.world.marksOf("n1")).toEqual(expect.arrayContaining(allMarks));
    expect(stage.logged).not.toContain("fallback-drained");
    stage.world.create("/api/v1/namespaces/default/pods", {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "late", namespace: "default", labels: { app: "late" } },
      spec: { nodeName: "n1", containers: [{ name: "late", image: "late:1" }] },
    });
    await stage.pass(15);
    expect(stage.world.podsOn("n1")).toEqual([]);
    expect(stage.logged.filter((event) => event === "fallback-drained")).toHaveLength(1);
  });

  it("deletes pods that a budget holds while their grace still fits before the deadline", async () => {
    await stage.withPods({ maxUnavailable: 0 });
    await stage.startAgent("Drain");
    stage.standing = [stage.notice(120)];
    await stage.pass(50);
    expect(stage.sent.some(({ method }) => method === "DELETE")).toBe(false);
    // The budget is respected for half of the time since the agent started.
    await stage.pass(20);
    expect(stage.world.podsOn("n1")).toEqual([]);
    const deleted = stage.sent.filter(({ method }) => method === "DELETE");
    expect(deleted.length).toBeGreaterThan(0);
    for (const { body } of deleted) {
      expect(body).toMatchObject({ preconditions: { uid: expect.any(String) } });
      expect((body as { gracePeriodSeconds: number }).gracePeriodSeconds).toBeLessThanOrEqual(120);
    }
  });

  it("retries evictions until the budget allows them if the notice has no deadline", async () => {
    await stage.withPods({ maxUnavailable: 0 });
    await stage.startAgent("Drain");
    stage.standing = [{ ...stage.notice(0, "LifecycleHook"), deadlineAt: undefined }];
    await stage.pass(400);
    expect(stage.world.podsOn("n1").length).toBeGreaterThan(0);
    stage.world.patchBudget("web", { spec: { maxUnavailable: 6 } });
    await stage.pass(30);
    expect(stage.world.podsOn("n1")).toEqual([]);
  });

  it("drains even if the custom resources are not installed", async () => {
    await stage.withPods({ maxUnavailable: 6 });
    await stage.startAgent("Drain");
    stage.refuse = ({ path }) =>
      path.startsWith(departures) ? { status: 404, body: "404 page not found" } : undefined;
    stage.standing = [stage.notice(120)];
    await stage.pass(20);
    expect(stage.world.marksOf("n1")).toEqual(expect.arrayContaining(allMarks));
    expect(stage.world.podsOn("n1")).toEqual([]);
    stage.standing = [];
    await stage.pass(20);
    expect(stage.world.marksOf("n1")).toEqual([]);
  });

  it("is not stopped by another node's departure under the name of its own", async () => {
    await stage.withPods({ maxUnavailable: 6 });
    const [own = "", other = ""] = ["n1", "n0"].map(
      (name) => stage.world.get(`${nodes}/${name}`)?.metadata?.uid,
    );
    stage.world.create(departures, {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "Departure",
      metadata: { name: `n1-${own.slice(0, 8)}` },
      spec: {
        node: { name: "n0", uid: other },
        cause: "Manual",
        withdrawnAt: "2026-11-20T00:00:00Z",
      },
    });
    await stage.startAgent("Drain");
    const body = { kind: "Status", message: "no" };
    stage.refuse = ({ method }) => (method === "POST" ? { status: 500, body } : undefined);
    stage.standing = [stage.notice(120)];
    await stage.pass(5);
    expect(stage.world.marksOf("n1")).toEqual(expect.arrayContaining(allMarks));
  });

  it("acts as soon as an unreachable API server is back", async () => {
    await stage.withPods({ maxUnavailable: 6 });
    await stage.startAgent("Drain");
    stage.refuse = () => unreachable();
    stage.standing = [stage.notice(120)];
    await stage.pass(60);
    stage.refuse = () => undefined;
    await stage.pass(3);
    expect(stage.world.marksOf("n1")).toEqual(expect.arrayContaining(allMarks));
  });

  it("adapts the drain to a deadline that moves forward", async () => {
    await stage.withPods({ maxUnavailable: 0 });
    await stage.startAgent("Drain");
    stage.standing = [stage.notice(3600)];
    await stage.pass(10);
    expect(stage.sent.some(({ method }) => method === "DELETE")).toBe(false);
    stage.standing = [...stage.standing, { ...stage.notice(30), eventId: "event-2" }];
    // Some 36 s in all since the agent started: half of them, less the margin, are over 10 s later.
    await stage.pass(14);
    expect(stage.world.podsOn("n1")).toEqual([]);
  });

  it("ignores a notice that policies ignore by default, and handles the next one", async () => {
    await stage.startAgent("Drain");
    stage.standing = [stage.notice(3600, "RebalanceRecommendation")];
    await stage.pass(30);
    expect(stage.writesOfAgent()).toEqual([]);
    stage.standing = [...stage.standing, { ...stage.notice(120), eventId: "event-2" }];
    await stage.pass(2);
    expect(stage.world.marksOf("n1")).toEqual(expect.arrayContaining(allMarks));
  });

  it("uncordons the node when the notice is withdrawn", async () => {
    await stage.startAgent("Drain");
    stage.standing = [stage.notice(600)];
    await stage.pass(10);
    expect(stage.world.marksOf("n1")).toContain("unschedulable");
    stage.standing = [];
    await stage.pass(20);
    expect(stage.world.marksOf("n1")).toEqual([]);
  });

  it("acts on maintenance an hour before its start, not hours ahead", async () => {
    await stage.withPods({ maxUnavailable: 6 });
    await stage.startAgent("Drain");
    stage.standing = [stage.notice(3660, "ScheduledMaintenance")];
    await stage.pass(50);
    expect(stage.writesOfAgent()).toEqual([]);
    await stage.pass(40);
    expect(stage.world.podsOn("n1")).toEqual([]);
  });

  it("uncordons the node when only maintenance hours ahead remains", async () => {
    await stage.startAgent("Drain");
    const later = { ...stage.notice(7000, "ScheduledMaintenance"), eventId: "maintenance" };
    stage.standing = [stage.notice(600), later];
    await stage.pass(6);
    expect(stage.world.marksOf("n1")).toContain("unschedulable");
    stage.standing = [later];
    await stage.pass(20);
    expect(stage.world.marksOf("n1")).toEqual([]);
  });

  it("acts on a notice that follows one that was withdrawn", async () => {
    await stage.withPods({ maxUnavailable: 6 });
    await stage.startAgent("Drain");
    stage.standing = [stage.notice(3600, "ScheduledMaintenance")];
    await stage.pass(2);
    stage.standing = [];
    await stage.pass(15);
    expect(stage.world.marksOf("n1")).toEqual([]);
    stage.standing = [{ ...stage.notice(120), eventId: "event-2" }];
    await stage.pass(5);
    expect(stage.world.marksOf("n1")).toEqual(expect.arrayContaining(allMarks));
    await stage.pass(20);
    expect(stage.world.podsOn("n1")).toEqual([]);
  });

  it("uncordons the node when only a recommendation remains", async () => {
    await stage.withPods({ maxUnavailable: 6 });
    await stage.startAgent("Drain");
    const { deadlineAt: _, ...advice } = stage.notice(0, "RebalanceRecommendation");
    const advised = { ...advice, eventId: "rebalance" };
    stage.standing = [stage.notice(1800, "ScheduledMaintenance"), advised];
    await stage.pass(6);
    expect(stage.world.marksOf("n1")).toContain("unschedulable");
    stage.standing = [advised];
    await stage.pass(20);
    expect(stage.world.marksOf("n1")).toEqual([]);
  });

  it("uncordons the node even if the agent was restarted meanwhile", async () => {
    const first = new AbortController();
    await stage.startAgent("Drain", first.signal);
    stage.standing = [stage.notice(600)];
    await stage.pass(10);
    first.abort();
    stage.standing = [];
    await stage.startAgent("Drain");
    await stage.pass(20);
    expect(stage.world.marksOf("n1")).toEqual([]);
  });

  it("continues the drain after a restart of the agent", async () => {
    await stage.withPods({ maxUnavailable: 6 });
    const first = new AbortController();
    await stage.startAgent("Drain", first.signal);
    stage.standing = [stage.notice(120)];
    await stage.pass(4);
    first.abort();
    await stage.startAgent("Drain");
    await stage.pass(15);
    expect(stage.world.podsOn("n1")).toEqual([]);
  });

  it("does nothing if a person deletes the departure", async () => {
    await stage.startAgent("Drain");
    stage.standing = [stage.notice(600)];
    await stage.pass(2);
    const name = stage.world.departureOf("n1")?.metadata?.name ?? "";
    stage.world.api.handle({ method: "DELETE", path: `${departures}/${name}` });
    await stage.pass(30);
    expect(stage.writesOfAgent()).toEqual([]);
  });
});

describe("an agent with fallback: Cordon and no controller", () => {
  it("marks the node and leaves its pods alone", async () => {
    await stage.withPods({ maxUnavailable: 6 });
    const before = stage.world.podsOn("n1").length;
    await stage.startAgent("Cordon");
    stage.standing = [stage.notice(120)];
    await stage.pass(60);
    expect(stage.world.marksOf("n1")).toEqual(expect.arrayContaining(allMarks));
    expect(stage.world.podsOn("n1")).toHaveLength(before);
    expect(stage.sent.some(({ path }) => path.includes("pods"))).toBe(false);
  });
});
