import { describe, expect, it } from "vitest";
import { formatInstant, type Instant, minutes, seconds } from "../../src/core/time/time.ts";
import { silence, slack, useActionStage } from "../support/action-stage.ts";

const stage = useActionStage();

const planned = {
  lifetime: { max: "1h", reserve: "0s" },
  onNotice: { spotInterruption: "Drain" },
  instance: { release: "Recreate" },
};

describe("a cancelled departure", () => {
  it("undoes its actions before its node is uncordoned", async () => {
    stage.start([
      { name: "mute", at: "AtNotice", ...silence },
      { name: "tell", at: "AtEnd", ...slack },
    ]);
    await stage.giveNotice();
    await stage.world.pass(seconds(5));
    expect(stage.mute.inEffect).toHaveLength(1);
    let cordonedAtUndo = false;
    stage.mute.onCall = (call) => {
      if (call === "undo") cordonedAtUndo = stage.world.marksOf("n1").includes("unschedulable");
    };
    stage.withdraw();
    await stage.world.pass(seconds(5));
    expect(stage.mute.inEffect).toEqual([]);
    expect(cordonedAtUndo).toBe(true);
    expect(stage.world.marksOf("n1")).toEqual([]);
    expect(stage.world.statusOf("n1")).toMatchObject({ phase: "Ended", outcome: "Cancelled" });
    expect(stage.states).toEqual({ mute: "Undone", tell: "Done" });
  });

  it("undoes the later of two actions of a type before the earlier one", async () => {
    stage.start([
      { name: "first", at: "AtNotice", ...silence },
      { name: "second", at: "BeforeDrain", ...silence },
    ]);
    await stage.giveNotice();
    await stage.world.pass(seconds(5));
    stage.mute.latency = (signal) => stage.world.clock.sleep(seconds(2), signal);
    stage.withdraw();
    await stage.world.pass(seconds(3));
    expect(stage.states).toEqual({ first: "Running", second: "Undone" });
    await stage.world.pass(seconds(5));
    expect(stage.states).toEqual({ first: "Undone", second: "Undone" });
  });

  it.each([403, 500])("undoes its actions although nothing can be recorded: %i", async (status) => {
    stage.start([{ name: "mute", at: "AtNotice", ...silence }]);
    await stage.giveNotice();
    await stage.world.pass(seconds(5));
    expect(stage.mute.inEffect).toHaveLength(1);
    const send = stage.world.watched.send.bind(stage.world.watched);
    const body = { kind: "Status", status: "Failure", message: "no status", code: status };
    stage.world.watched.send = async (request) =>
      request.path.endsWith("/status") && request.path.includes("/departures/")
        ? { status, body }
        : send(request);
    stage.withdraw();
    await stage.world.pass(minutes(5));
    expect(stage.mute.inEffect).toEqual([]);
    expect(stage.world.marksOf("n1")).toEqual([]);
  });

  it("stops a running action, and undoes what it may have changed", async () => {
    stage.start([{ name: "mute", at: "AtNotice", timeout: "1m", ...silence }]);
    stage.hang(stage.mute);
    await stage.giveNotice();
    await stage.world.pass(seconds(5));
    expect(stage.states).toEqual({ mute: "Running" });
    stage.mute.latency = async () => {};
    stage.withdraw();
    await stage.world.pass(seconds(5));
    expect(stage.states).toEqual({ mute: "Undone" });
    expect(stage.mute.calls.filter((call) => call === "apply mute")).toHaveLength(1);
  });

  it("does not retry an action that cannot be undone", async () => {
    stage.start([
      { name: "first", at: "AtNotice", retries: 9, detach: {} },
      { name: "tell", at: "AtNotice", retries: 9, ...slack },
    ]);
    stage.tell.fault = "ACTION_UNREACHABLE";
    await stage.giveNotice();
    await stage.world.pass(seconds(5));
    stage.withdraw();
    await stage.world.pass(seconds(1));
    const tried = stage.tell.calls.filter((call) => call === "apply first").length;
    stage.tell.fault = undefined;
    await stage.world.pass(seconds(30));
    expect(stage.tell.calls.filter((call) => call === "apply first")).toHaveLength(tried);
    expect(stage.states).toEqual({ first: "Failed", tell: "Done" });
    expect(stage.records[0]).toMatchObject({ result: "ACTION_UNREACHABLE", attempts: tried });
  });

  it.each([
    ["has ended", seconds(8), "Done", "Done"],
    ["times out", minutes(60), "Failed", "ACTION_TIMEOUT"],
  ] as const)(
    "waits for a running action that cannot be undone until it %s",
    async (_, takes, state, result) => {
      stage.start([{ name: "first", at: "AtNotice", timeout: "10s", retries: 9, detach: {} }]);
      stage.tell.latency = (signal) => stage.world.clock.sleep(takes, signal);
      await stage.giveNotice();
      await stage.world.pass(seconds(2));
      stage.withdraw();
      await stage.world.pass(seconds(3));
      expect(stage.states).toEqual({ first: "Running" });
      expect(stage.world.statusOf("n1")).toMatchObject({ phase: "RollingBack" });
      expect(stage.world.marksOf("n1")).toContain("unschedulable");
      await stage.world.pass(seconds(6));
      expect(stage.records).toMatchObject([{ state, result, attempts: 1 }]);
      expect(stage.world.statusOf("n1")).toMatchObject({ phase: "Ended", outcome: "Cancelled" });
      expect(stage.world.marksOf("n1")).toEqual([]);
    },
  );

  it("does not wait for a message that is being sent", async () => {
    stage.start([{ name: "tell", at: "AtNotice", timeout: "30s", ...slack }]);
    stage.tell.latency = (signal) => stage.world.clock.sleep(seconds(20), signal);
    await stage.giveNotice();
    await stage.world.pass(seconds(2));
    stage.withdraw();
    await stage.world.pass(seconds(3));
    expect(stage.world.marksOf("n1")).toEqual([]);
    await stage.world.pass(seconds(20));
    expect(stage.states).toEqual({ tell: "Done" });
  });

  it("does not abort an action that cannot be undone when its Departure is deleted", async () => {
    stage.start([{ name: "first", at: "AtNotice", timeout: "10s", detach: {} }]);
    stage.tell.latency = (signal) => stage.world.clock.sleep(seconds(8), signal);
    await stage.giveNotice();
    await stage.world.pass(seconds(2));
    stage.deleteDeparture();
    await stage.world.pass(seconds(10));
    expect(stage.tell.inEffect).toHaveLength(1);
  });

  it("does not apply an action that is only being prepared", async () => {
    stage.start([{ name: "first", at: "AtNotice", timeout: "1m", detach: {} }]);
    stage.tell.prepareLatency = (signal) => stage.world.clock.sleep(seconds(10), signal);
    await stage.giveNotice();
    await stage.world.pass(seconds(5));
    stage.withdraw();
    await stage.world.pass(seconds(20));
    expect(stage.tell.calls).toEqual(["prepare first"]);
    expect(stage.states).toEqual({ first: "Undone" });
    expect(stage.world.statusOf("n1")).toMatchObject({ phase: "Ended", outcome: "Cancelled" });
  });

  it("applies actions again, undone or failed, when a notice arrives during the roll-back", async () => {
    stage.start(
      [
        { name: "mute", at: "AtNotice", timeout: "1m", ...silence },
        { name: "ask", at: "AtNotice", required: true, ...slack },
      ],
      planned,
    );
    stage.tell.fault = "ACTION_REFUSED";
    let isUndoing = false;
    stage.mute.onCall = (call) => {
      if (call !== "undo") return;
      isUndoing = true;
      // The change is undone there, but no response arrives.
      stage.mute.forget();
      stage.hang(stage.mute);
    };
    await stage.world.passUntil(() => isUndoing, minutes(120));
    await stage.world.pass(seconds(1));
    expect(stage.states).toEqual({ mute: "Running", ask: "Failed" });
    [stage.mute.latency, stage.tell.fault] = [async () => {}, undefined];
    stage.mute.onCall = () => {};
    stage.patchDeparture({
      cause: "SpotInterruption",
      ...{ noticedAt: "2026-11-20T01:00:00Z", deadlineAt: "2026-11-20T03:00:00Z" },
    });
    await stage.world.pass(seconds(10));
    expect(stage.states).toEqual({ mute: "Done", ask: "Done" });
    expect(stage.mute.inEffect).toHaveLength(1);
    // From the record written before anything was changed.
    expect(stage.mute.calls.filter((call) => call === "prepare mute")).toHaveLength(1);
    // Each run has its own start, by which a receiver tells them apart, and its undo shares it.
    const [, apply, undo, again] = stage.mute.tasks.map(({ startedAt }) => startedAt);
    expect(undo).toBe(apply);
    expect(Number(again)).toBeGreaterThan(Number(undo));
    expect(stage.records[0]?.startedAt).toBe(formatInstant(again as Instant));
  });

  it("is rolled back even if an action cannot be undone, and its record says why", async () => {
    stage.start([{ name: "mute", at: "AtNotice", retries: 1, ...silence }]);
    await stage.giveNotice();
    await stage.world.pass(seconds(5));
    stage.mute.fault = "ACTION_UNREACHABLE";
    stage.withdraw();
    await stage.world.pass(seconds(30));
    expect(stage.world.marksOf("n1")).toEqual([]);
    expect(stage.records).toMatchObject([{ state: "Failed", result: "ACTION_UNREACHABLE" }]);
    expect(stage.records[0]?.detail).toMatch(/^not undone: /);
  });

  it("undoes its actions when its Departure is deleted, before its node is uncordoned", async () => {
    stage.start([{ name: "mute", at: "AtNotice", ...silence }]);
    await stage.giveNotice();
    await stage.world.pass(seconds(5));
    stage.mute.latency = (signal) => stage.world.clock.sleep(seconds(5), signal);
    stage.deleteDeparture();
    await stage.world.pass(seconds(4));
    expect(stage.mute.inEffect).toHaveLength(1);
    expect(stage.world.marksOf("n1")).toContain("unschedulable");
    await stage.world.pass(seconds(2));
    expect(stage.mute.inEffect).toEqual([]);
    expect(stage.world.marksOf("n1")).toEqual([]);
  });

  it("undoes what a leader did that was killed before the start was recorded", async () => {
    const leader = stage.start([{ name: "mute", at: "AtNotice", ...silence }]);
    await stage.giveNotice();
    await stage.world.pass(seconds(5));
    leader.abort();
    await stage.world.pass(seconds(1));
    const path = `/apis/lastcall.dev/v1alpha1/departures/${stage.world.departureOf("n1")?.metadata?.name}/status`;
    const patchType = "application/merge-patch+json";
    const status = { phase: "Scheduled", startedAt: null, timeline: [] };
    stage.world.api.handle({ method: "PATCH", path, patchType, body: { status } });
    stage.withdraw();
    expect(stage.mute.inEffect).toHaveLength(1);
    const evictions = () => stage.world.steps.filter((step) => step.startsWith("evict")).length;
    const evictedBefore = evictions();
    stage.startController();
    await stage.world.pass(minutes(2));
    expect(stage.mute.inEffect).toEqual([]);
    expect(stage.world.marksOf("n1")).toEqual([]);
    expect(stage.world.statusOf("n1")).toMatchObject({ phase: "Ended", outcome: "Cancelled" });
    expect(evictions()).toBe(evictedBefore);
  });

  it.each(["withdrawn", "deleted"] as const)(
    "undoes the others at once if a receiver does not respond when it is %s",
    async (how) => {
      stage.start([
        { name: "mute", at: "AtNotice", ...silence },
        { name: "first", at: "AtNotice", timeout: "1m", retries: 0, detach: {} },
      ]);
      stage.hang(stage.tell);
      await stage.giveNotice();
      await stage.world.pass(seconds(5));
      if (how === "deleted") stage.deleteDeparture();
      else stage.withdraw();
      await stage.world.pass(seconds(2));
      expect(stage.mute.inEffect).toEqual([]);
      expect(stage.world.marksOf("n1")).toContain("unschedulable");
      await stage.world.pass(seconds(60));
      expect(stage.world.marksOf("n1")).toEqual([]);
    },
  );
});
