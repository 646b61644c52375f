import { describe, expect, it } from "vitest";
import { millis, minutes, seconds } from "../../src/core/time/time.ts";
import { silence, slack, useActionStage } from "../support/action-stage.ts";

const stage = useActionStage();

describe("the actions of a notice", () => {
  it("start within 50 ms of the Departure, after the cordon was requested, and in parallel", async () => {
    stage.hang(stage.mute);
    stage.start([
      { name: "mute", at: "AtNotice", ...silence },
      { name: "tell", at: "AtNotice", ...slack },
    ]);
    await stage.world.pass(seconds(5));
    const begun: number[] = [];
    stage.tell.onCall = () => begun.push(stage.world.clock.now(), stage.world.steps.length);
    const at = stage.world.clock.now();
    stage.world.notice("n1", seconds(120));
    await stage.world.pass(millis(50));
    expect(stage.world.steps[0]).toBe("cordon n1");
    expect(begun[0]).toBeLessThanOrEqual(at + 50);
    expect(begun[1]).toBeGreaterThanOrEqual(1);
    expect(stage.tell.calls).toEqual(["prepare tell", "apply tell"]);
  });

  it("delay neither cordon nor evictions if they hang, and fail by their timeout", async () => {
    stage.hang(stage.mute);
    stage.hang(stage.tell);
    stage.start([
      { name: "mute", at: "AtNotice", timeout: "2s", retries: 1, ...silence },
      { name: "tell", at: "BeforeDrain", timeout: "2s", retries: 0, ...slack },
    ]);
    await stage.giveNotice();
    await stage.world.pass(seconds(10));
    expect(stage.world.podsOn("n1")).toEqual([]);
    expect(stage.records).toMatchObject([
      { name: "mute", state: "Failed", attempts: 2, result: "ACTION_TIMEOUT" },
      { name: "tell", state: "Failed", attempts: 1, result: "ACTION_TIMEOUT" },
    ]);
    expect(stage.world.counted).toContain(
      "lastcall_actions_total action=alertmanagerSilence result=Failed",
    );
    expect(stage.world.counted).toContain("lastcall_errors_total code=ACTION_TIMEOUT");
  });

  it("record how to undo them in the status before they change anything", async () => {
    stage.start([{ name: "mute", at: "AtNotice", ...silence }]);
    const atApply: unknown[] = [];
    stage.mute.onCall = (call) => {
      if (call === "apply") atApply.push(stage.records[0]);
    };
    await stage.giveNotice();
    await stage.world.pass(seconds(5));
    expect(atApply).toMatchObject([
      { name: "mute", state: "Running", undo: { before: "nothing" } },
    ]);
    expect(stage.records[0]).toMatchObject({ state: "Done", attempts: 1, result: "Done" });
    expect(stage.records[0]?.startedAt).toBeDefined();
  });

  it("are retried after a temporary error, and not after a permanent one", async () => {
    stage.mute.fault = "ACTION_UNREACHABLE";
    stage.mute.failsFor = 2;
    stage.tell.fault = "ACTION_REFUSED";
    stage.start([
      { name: "mute", at: "AtNotice", ...silence },
      { name: "tell", at: "AtNotice", ...slack },
    ]);
    await stage.giveNotice();
    await stage.world.pass(seconds(20));
    expect(stage.records).toMatchObject([
      { name: "mute", state: "Done", attempts: 3 },
      { name: "tell", state: "Failed", attempts: 1, result: "ACTION_REFUSED" },
    ]);
    expect(stage.world.podsOn("n1")).toEqual([]);
  });

  it("are retried when the receiver says, but after a minute at most", async () => {
    const begun: number[] = [];
    stage.tell.onCall = (call) => {
      if (call === "apply") begun.push(stage.world.clock.now());
    };
    stage.tell.fault = "ACTION_RATE_LIMITED";
    stage.tell.failsFor = 2;
    stage.tell.retryAfterMs = 20_000;
    stage.start([{ name: "tell", at: "AtNotice", ...slack }]);
    await stage.giveNotice(minutes(60));
    await stage.world.pass(seconds(10));
    stage.tell.retryAfterMs = 3_600_000;
    await stage.world.pass(seconds(110));
    const [first = 0, second = 0, third = 0] = begun;
    expect(second - first).toBeGreaterThanOrEqual(20_000);
    expect(second - first).toBeLessThan(25_000);
    expect(third - second).toBeGreaterThanOrEqual(60_000);
    expect(third - second).toBeLessThan(65_000);
    expect(stage.records).toMatchObject([{ state: "Done", attempts: 3 }]);
  });

  it("fail at once if the next attempt would come after the deadline, and say why", async () => {
    stage.tell.fault = "ACTION_RATE_LIMITED";
    stage.tell.retryAfterMs = 50_000;
    stage.start([{ name: "tell", at: "AtNotice", ...slack }]);
    await stage.giveNotice(seconds(30));
    await stage.world.pass(seconds(31));
    expect(stage.tell.calls).toEqual(["prepare tell", "apply tell"]);
    expect(stage.records).toMatchObject([{ state: "Failed", result: "ACTION_DEADLINE" }]);
    expect(stage.records[0]?.detail).toContain("before that: Cannot carry out the action: a test");
  });

  it("end at the deadline, and none starts after it", async () => {
    stage.mute.fault = "ACTION_UNREACHABLE";
    stage.start([{ name: "mute", at: "AtNotice", retries: 20, ...silence }]);
    await stage.giveNotice(seconds(15));
    await stage.world.pass(seconds(15));
    const calls = stage.mute.calls.length;
    await stage.world.pass(seconds(60));
    expect(stage.mute.calls).toHaveLength(calls);
    expect(stage.records).toMatchObject([{ state: "Failed", result: "ACTION_DEADLINE" }]);
    expect(stage.records[0]?.detail).toContain("before that: Cannot carry out the action: a test");
  });

  it("end at a deadline that moves forward while they run", async () => {
    stage.hang(stage.mute);
    stage.start([{ name: "mute", at: "AtNotice", timeout: "10m", ...silence }]);
    await stage.giveNotice(minutes(10));
    await stage.world.pass(seconds(5));
    expect(stage.states).toEqual({ mute: "Running" });
    // Ten seconds after the notice, which came five seconds after dawn.
    stage.patchDeparture({ deadlineAt: "2026-11-20T00:00:15Z" });
    await stage.world.pass(seconds(8));
    expect(stage.records).toMatchObject([{ state: "Failed", result: "ACTION_DEADLINE" }]);
  });

  it("are skipped for other causes than theirs, which the record says", async () => {
    stage.start([
      { name: "other", at: "AtNotice", causes: ["Planned", "Manual"], ...slack },
      { name: "spot", at: "AtNotice", causes: ["SpotInterruption"], ...slack },
    ]);
    await stage.giveNotice();
    await stage.world.pass(seconds(5));
    expect(stage.records).toMatchObject([
      {
        name: "other",
        state: "Skipped",
        attempts: 0,
        detail: "not for the cause SpotInterruption",
      },
      { name: "spot", state: "Done" },
    ]);
  });

  it("fail with the name of an unsupported type, and the drain continues", async () => {
    stage.start([
      { name: "new", at: "AtNotice", teams: slack.slack },
      { name: "tell", at: "AtNotice", ...slack },
    ]);
    await stage.giveNotice();
    await stage.world.pass(seconds(10));
    expect(stage.records).toMatchObject([
      { name: "new", state: "Failed", result: "ACTION_UNSUPPORTED" },
      { name: "tell", state: "Done" },
    ]);
    expect(stage.records[0]?.detail).toContain("does not support teams");
    const said = stage.world.events.filter(({ reason }) => reason === "ActionFailed");
    expect(said).toMatchObject([
      { type: "Warning", about: { kind: "Node", name: "n1" } },
      { type: "Warning", about: { kind: "Departure" } },
    ]);
    expect(said[0]?.message).toContain("Action new (teams) failed: ");
    expect(stage.world.podsOn("n1")).toEqual([]);
  });

  it("report once how long the machine took to leave all of its target groups", async () => {
    const detached = () => {
      const name = "lastcall_notice_to_detached_seconds";
      return stage.world.observed.filter((one) => one.name === name).map(({ value }) => value);
    };
    stage.mute.latency = (signal) => stage.world.clock.sleep(seconds(2), signal);
    stage.start([
      { name: "first", at: "AtNotice", deregisterTargets: {} },
      { name: "rest", at: "BeforeDrain", timeout: "1m", deregisterTargets: { wait: true } },
      { name: "other", at: "AtNotice", causes: ["Planned"], deregisterTargets: {} },
    ]);
    stage.mute.onCall = (call, { name }) => {
      const span = seconds(name === "rest" ? 20 : 2);
      if (call === "apply") stage.mute.latency = (signal) => stage.world.clock.sleep(span, signal);
    };
    await stage.giveNotice();
    await stage.world.pass(seconds(10));
    expect(stage.states).toEqual({ first: "Done", rest: "Running", other: "Skipped" });
    expect(detached()).toEqual([]);
    await stage.world.pass(seconds(20));
    expect(stage.states.rest).toBe("Done");
    expect(detached()).toHaveLength(1);
    expect(detached()[0]).toBeGreaterThanOrEqual(20);
    expect(detached()[0]).toBeLessThan(22);
  });

  it("do not report that time if the machine is still in one of its target groups", async () => {
    [stage.mute.fault, stage.mute.failsFor] = ["ACTION_REFUSED", 1];
    stage.start([
      { name: "first", at: "AtNotice", deregisterTargets: {} },
      { name: "rest", at: "BeforeDrain", deregisterTargets: {} },
    ]);
    await stage.giveNotice();
    await stage.world.pass(seconds(10));
    expect(Object.values(stage.states).toSorted()).toEqual(["Done", "Failed"]);
    expect(stage.world.observed.map(({ name }) => name)).not.toContain(
      "lastcall_notice_to_detached_seconds",
    );
  });

  it("at the end get the outcome and a summary of every step", async () => {
    stage.start([
      { name: "mute", at: "AtNotice", ...silence },
      { name: "tell", at: "AtEnd", slack: { ...slack.slack, message: "{{outcome}}\n{{summary}}" } },
    ]);
    await stage.giveNotice();
    await stage.world.pass(seconds(20));
    expect(stage.states).toEqual({ mute: "Done", tell: "Pending" });
    stage.deleteNode();
    await stage.world.pass(seconds(5));
    expect(stage.states).toEqual({ mute: "Done", tell: "Done" });
    const message = String(
      Object.entries(stage.tell.tasks.at(-1)?.how ?? {}).find(([k]) => k === "message")?.[1],
    );
    expect(message).toMatch(/^Preempted\nn1 has left: SpotInterruption/);
    expect(message).toMatch(/\+\d\.\ds action mute \(alertmanagerSilence\) Done in /);
    expect(message).toMatch(/pods: 1 in total, 1 evicted/);
    // The message cannot include the end of the action that sends it.
    expect(message).not.toContain("action tell");
  });
});

describe("a planned departure", () => {
  const spec = {
    lifetime: { max: "1h", reserve: "0s" },
    onNotice: { spotInterruption: "Drain" },
    instance: { release: "Recreate" },
  };

  it("does not drain until a required action is done", async () => {
    stage.mute.latency = (signal) => stage.world.clock.sleep(seconds(8), signal);
    stage.start([{ name: "mute", at: "AtNotice", required: true, ...silence }], spec);
    await stage.world.passUntil(() => stage.world.steps.includes("cordon n1"), minutes(120));
    await stage.world.pass(seconds(5));
    expect(stage.world.steps).not.toContain("evict n1");
    await stage.world.pass(seconds(20));
    expect(stage.world.steps).toContain("evict n1");
    expect(stage.states).toEqual({ mute: "Done" });
  });

  it("does not drain until a required action is done, also after the replacement timeout", async () => {
    const replacement = { when: "BeforeDrain", timeout: "1m", onTimeout: "Proceed" };
    stage.tell.fault = "ACTION_REFUSED";
    const ask = { name: "ask", at: "BeforeDrain", required: true, ...slack };
    stage.start([ask], { ...spec, replacement });
    await stage.world.passUntil(() => stage.world.statusOf("n1").phase === "Ended", minutes(120));
    expect(stage.world.steps).not.toContain("evict n1");
    expect(stage.world.statusOf("n1")).toMatchObject({
      outcome: "RolledBack",
      reason: "ActionFailed",
    });
  });

  it("is rolled back without a drain if a required action fails", async () => {
    stage.tell.fault = "ACTION_REFUSED";
    stage.start(
      [
        { name: "mute", at: "AtNotice", ...silence },
        { name: "ask", at: "BeforeDrain", required: true, ...slack },
      ],
      spec,
    );
    await stage.world.passUntil(() => stage.world.statusOf("n1").phase === "Ended", minutes(120));
    expect(stage.world.steps).not.toContain("evict n1");
    expect(stage.world.statusOf("n1")).toMatchObject({
      outcome: "RolledBack",
      reason: "ActionFailed",
    });
    expect(stage.world.marksOf("n1")).toEqual([]);
    expect(stage.mute.inEffect).toEqual([]);
    expect(stage.states).toEqual({ mute: "Undone", ask: "Failed" });
  });

  it.each([
    ["as soon as it is out of its target groups", undefined, seconds(90), true],
    ["after the fixed delay if that failed", "ACTION_REFUSED", seconds(90), false],
  ] as const)("releases its machine %s", async (_, fault, span, isReleased) => {
    stage.mute.fault = fault;
    stage.mute.latency = (signal) => stage.world.clock.sleep(seconds(8), signal);
    stage.start([{ name: "targets", at: "AtNotice", deregisterTargets: {} }], {
      ...spec,
      instance: { release: "Recreate", loadBalancerDelay: "10m" },
    });
    await stage.world.passUntil(() => stage.world.steps.includes("cordon n1"), minutes(120));
    await stage.world.pass(span);
    expect(stage.world.steps.includes("release n1")).toBe(isReleased);
    await stage.world.pass(minutes(11));
    expect(stage.world.steps).toContain("release n1");
  });

  it("continues if an action that is not required fails", async () => {
    stage.mute.fault = "ACTION_REFUSED";
    stage.start([{ name: "mute", at: "AtNotice", ...silence }], spec);
    await stage.world.passUntil(() => stage.world.statusOf("n1").phase === "Ended", minutes(120));
    expect(stage.world.statusOf("n1")).toMatchObject({ outcome: "Planned" });
  });

  it("releases its machine only after the actions that follow the drain", async () => {
    stage.tell.latency = (signal) => stage.world.clock.sleep(seconds(8), signal);
    stage.start([{ name: "last", at: "AfterDrain", ...slack }], spec);
    let released = "";
    stage.world.onRelease = () => {
      released = JSON.stringify(stage.states);
    };
    await stage.world.passUntil(() => released !== "", minutes(120));
    expect(released).toBe('{"last":"Done"}');
  });

  it("also runs the actions of a notice that overtakes it", async () => {
    stage.start(
      [
        { name: "planned", at: "AtNotice", causes: ["Planned"], ...slack },
        { name: "spot", at: "AtNotice", causes: ["SpotInterruption"], ...slack },
      ],
      { ...spec, drain: { timeout: "10m" }, replacement: { when: "None" } },
    );
    stage.tell.latency = async () => {};
    await stage.world.passUntil(() => stage.world.steps.includes("cordon n1"), minutes(120));
    await stage.world.pass(millis(500));
    expect(stage.states).toEqual({ planned: "Done", spot: "Skipped" });
    stage.patchDeparture({ cause: "SpotInterruption", noticedAt: "2026-11-20T01:00:00Z" });
    await stage.world.pass(seconds(3));
    expect(stage.states).toEqual({ planned: "Done", spot: "Done" });
  });
});
