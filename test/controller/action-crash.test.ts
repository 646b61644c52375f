import { describe, expect, it } from "vitest";
import { minutes, seconds } from "../../src/core/time/time.ts";
import { silence, slack, useActionStage } from "../support/action-stage.ts";
import { departures } from "../support/model-world.ts";

const stage = useActionStage();

describe("the next leader", () => {
  it("resumes running actions from their records, and repeats none that is done", async () => {
    const first = stage.start([
      { name: "mute", at: "AtNotice", timeout: "1m", ...silence },
      { name: "tell", at: "AtNotice", ...slack },
    ]);
    stage.hang(stage.mute);
    await stage.giveNotice();
    await stage.world.pass(seconds(3));
    expect(stage.states).toEqual({ mute: "Running", tell: "Done" });
    first.abort();
    await stage.world.pass(seconds(1));
    stage.mute.latency = async () => {};
    stage.startController();
    await stage.world.pass(seconds(5));
    expect(stage.states).toEqual({ mute: "Done", tell: "Done" });
    expect(stage.mute.calls).toEqual(["prepare mute", "apply mute", "apply mute"]);
    expect(stage.tell.calls).toEqual(["prepare tell", "apply tell"]);
  });

  it("carries out the remaining actions of a departure that has ended, although its node is gone", async () => {
    const first = stage.start([{ name: "tell", at: "AtEnd", timeout: "1m", ...slack }]);
    stage.hang(stage.tell);
    await stage.giveNotice();
    await stage.world.pass(seconds(10));
    stage.deleteNode();
    await stage.world.pass(seconds(3));
    expect(stage.world.statusOf("n1")).toMatchObject({ phase: "Ended" });
    expect(stage.states).toEqual({ tell: "Running" });
    first.abort();
    await stage.world.pass(seconds(1));
    stage.tell.latency = async () => {};
    stage.startController();
    await stage.world.pass(seconds(5));
    expect(stage.states).toEqual({ tell: "Done" });
    expect(stage.records[0]?.attempts).toBe(2);
  });

  it("undoes an action by the record of the previous leader", async () => {
    const first = stage.start([{ name: "mute", at: "AtNotice", ...silence }]);
    await stage.giveNotice();
    await stage.world.pass(seconds(3));
    first.abort();
    await stage.world.pass(seconds(1));
    stage.patchDeparture({ withdrawnAt: "2026-11-20T00:01:00Z" });
    stage.startController();
    await stage.world.pass(seconds(5));
    expect(stage.mute.inEffect).toEqual([]);
    expect(stage.states).toEqual({ mute: "Undone" });
  });

  it("ends a departure that had begun ahead of its record, although its Node is gone", async () => {
    const first = stage.start([{ name: "mute", at: "AtNotice", ...silence }]);
    await stage.giveNotice();
    await stage.world.pass(seconds(3));
    first.abort();
    await stage.world.pass(seconds(1));
    const path = `${departures}/${stage.world.departureOf("n1")?.metadata?.name}/status`;
    stage.world.api.handle({
      ...{ method: "PATCH", path, patchType: "application/merge-patch+json" },
      body: { status: { phase: "Scheduled", startedAt: null } },
    });
    stage.patchDeparture({ withdrawnAt: "2026-11-20T00:01:00Z" });
    stage.deleteNode();
    stage.startController();
    await stage.world.pass(seconds(10));
    expect(stage.world.statusOf("n1")).toMatchObject({ phase: "Ended", reason: "NodeGone" });
  });

  it("undoes an action that the policy no longer has, by the record alone", async () => {
    const first = stage.start([{ name: "targets", at: "AtNotice", deregisterTargets: {} }]);
    await stage.giveNotice();
    await stage.world.pass(seconds(3));
    expect(stage.mute.inEffect).toHaveLength(1);
    first.abort();
    await stage.world.pass(seconds(1));
    stage.world.patchPolicy({ spec: { actions: [{ name: "targets", at: "AtEnd", ...slack }] } });
    stage.patchDeparture({ withdrawnAt: "2026-11-20T00:01:00Z" });
    stage.startController();
    await stage.world.pass(seconds(5));
    expect(stage.mute.inEffect).toEqual([]);
    expect(stage.states).toEqual({ targets: "Undone" });
  });
});

it("an action that only the lost policy could undo is told as that, and not as unknown", async () => {
  const first = stage.start([{ name: "mute", at: "AtNotice", ...silence }]);
  await stage.giveNotice();
  await stage.world.pass(seconds(3));
  first.abort();
  await stage.world.pass(seconds(1));
  stage.world.patchPolicy({ spec: { actions: [] } });
  stage.patchDeparture({ withdrawnAt: "2026-11-20T00:01:00Z" });
  stage.startController();
  await stage.world.pass(seconds(5));
  expect(stage.states).toEqual({ mute: "Failed" });
  expect(stage.records[0]?.detail).toContain("the policy no longer has it");
});

describe("the next leader, once the machine can no longer be released", () => {
  it("undoes or ends the started actions before it frees the node, and starts them again later", async () => {
    let problem: string | undefined;
    const releaserFor = () => ({
      ...stage.world.releaser,
      check: async () =>
        problem === undefined
          ? ({ kind: "Possible", permission: "Granted" } as const)
          : ({ kind: "Impossible", problem } as const),
    });
    const first = stage.start(
      [
        { name: "mute", at: "AtNotice", ...silence },
        { name: "ask", at: "AtNotice", required: true, timeout: "5m", ...slack },
      ],
      { lifetime: { max: "2h", reserve: "0s" }, instance: { release: "Recreate" } },
      { releaserFor },
    );
    stage.hang(stage.tell);
    await stage.world.passUntil(() => stage.states.mute === "Done", minutes(180));
    first.abort();
    await stage.world.pass(seconds(1));
    problem = "the permission is missing";
    stage.startController({ releaserFor });
    await stage.world.pass(seconds(30));
    expect(stage.world.statusOf("n1")).toMatchObject({ phase: "Held" });
    expect(stage.mute.inEffect).toEqual([]);
    expect(stage.states).toEqual({ mute: "Pending", ask: "Failed" });
    expect(stage.records[1]).toMatchObject({ result: "ACTION_INTERRUPTED", attempts: 1 });
    expect(stage.records[1]?.detail).toContain("whether the action was carried out is unknown");
    [problem, stage.tell.latency] = [undefined, async () => {}];
    await stage.world.passUntil(() => stage.world.steps.includes("evict n1"), minutes(60));
    expect(stage.states).toEqual({ mute: "Done", ask: "Done" });
  });
});

describe("a controller that is killed", () => {
  /** Kills the controller before its `count`th write, and starts another one a second later. */
  async function killAtWrite(count: number, whole: () => Promise<void>): Promise<boolean> {
    let writes = 0;
    let killed = false;
    const first = stage.start([
      { name: "mute", at: "AtNotice", ...silence },
      { name: "tell", at: "AtNotice", ...slack },
      { name: "last", at: "AtEnd", ...slack },
    ]);
    stage.world.beforeWrite = () => {
      writes += 1;
      if (killed || writes !== count) return;
      killed = true;
      first.abort();
      void stage.world.clock.sleep(seconds(1)).then(() => stage.startController());
      throw new Error("killed");
    };
    await whole();
    return killed;
  }

  it("at any write leaves a successor that completes the actions of a departure, or undoes them", async () => {
    let kills = 0;
    for (let count = 1; count <= 40; count += 1) {
      stage.renew(count);
      const isKilled = await killAtWrite(count, async () => {
        await stage.giveNotice();
        await stage.world.pass(seconds(30));
        stage.deleteNode();
        await stage.world.pass(seconds(20));
      });
      expect(stage.states, `write ${count}`).toEqual({ mute: "Done", tell: "Done", last: "Done" });
      expect(stage.mute.inEffect, `write ${count}`).toHaveLength(1);
      await stage.stop();
      if (!isKilled) break;
      kills += 1;
    }
    expect(kills).toBeGreaterThan(5);
    for (let count = 1; count <= 40; count += 1) {
      stage.renew(count);
      const isKilled = await killAtWrite(count, async () => {
        await stage.giveNotice();
        await stage.world.pass(seconds(4));
        stage.withdraw();
        await stage.world.pass(seconds(40));
      });
      expect(stage.mute.inEffect, `write ${count}`).toEqual([]);
      expect(stage.states.last, `write ${count}`).toBe("Done");
      expect(stage.world.marksOf("n1"), `write ${count}`).toEqual([]);
      await stage.stop();
      if (!isKilled) break;
    }
  });
});
