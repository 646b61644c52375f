import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../src/contracts/kube-api.ts";
import { formatInstant, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { stage, toldUntilTaken } from "../support/feed-stage.ts";
import { departures, type ModelWorld } from "../support/model-world.ts";

/** Withdraws the notice of a node's departure, as another client may at any moment. */
function callOff(world: ModelWorld, node: string): void {
  const path = `${departures}/${world.departureOf(node)?.metadata?.name}`;
  const body = { spec: { withdrawnAt: formatInstant(world.clock.now()) } };
  const patchType = "application/merge-patch+json";
  world.api.handle({ method: "PATCH", path, patchType, body });
}

describe("a maintenance notice that is withdrawn", () => {
  const soon = (world: ModelWorld) => plus(world.clock.now(), minutes(10));
  const statusOf = (departure: KubeObject) => departure.status as Record<string, unknown>;

  it("is undone once, even if both messages are delivered again", async () => {
    const { world, word, tell, stop } = await stage();
    const told = word("n1", { cause: "ScheduledMaintenance", deadlineAt: soon(world) });
    await tell(told);
    expect(world.marksOf("n1")).toContain("unschedulable");
    const off = { ...told, notice: { ...told.notice, withdrawn: true } };
    expect(await tell(off)).toBe("Taken");
    await world.pass(seconds(10));
    expect(world.marksOf("n1")).toEqual([]);
    expect([await tell(told), await tell(off)]).toEqual(["Taken", "Taken"]);
    await world.pass(seconds(10));
    expect(world.marksOf("n1")).toEqual([]);
    expect(world.list(departures).map(statusOf)).toMatchObject([
      { phase: "Ended", outcome: "Cancelled", reason: "NoticeWithdrawn" },
    ]);
    await stop();
  });

  it.each([
    ["its node is being marked", "/api/v1/nodes/n1"],
    ["its node is marked, and nothing else is written", "/api/v1/namespaces/"],
  ])(
    "is undone before its departure ends if the withdrawal arrives while that %s",
    async (...row) => {
      const { world, word, tell, stop } = await stage();
      const [, moment] = row;
      world.beforeWrite = ({ path }) => {
        if (!path.startsWith(moment)) return;
        world.beforeWrite = () => {};
        callOff(world, "n1");
      };
      await tell(word("n1", { cause: "ScheduledMaintenance", deadlineAt: soon(world) }));
      await world.pass(seconds(10));
      expect(world.departureOf("n1")?.spec).toHaveProperty("withdrawnAt");
      expect(world.marksOf("n1")).toEqual([]);
      expect(world.logged.filter((line) => line.includes("stray"))).toEqual([]);
      expect(world.list(departures).map(statusOf)).toMatchObject([
        { phase: "Ended", outcome: "Cancelled", reason: "NoticeWithdrawn" },
      ]);
      await stop();
    },
  );

  it("leaves a person's cordon in place", async () => {
    const { world, word, tell, stop } = await stage();
    const patchType = "application/merge-patch+json";
    const body = { spec: { unschedulable: true } };
    world.api.handle({ method: "PATCH", path: "/api/v1/nodes/n1", patchType, body });
    await world.pass(seconds(1));
    const before = world.marksOf("n1");
    expect(before).toContain("unschedulable");
    const told = word("n1", { cause: "ScheduledMaintenance", deadlineAt: soon(world) });
    await tell(told);
    expect(world.marksOf("n1")).not.toEqual(before);
    await tell({ ...told, notice: { ...told.notice, withdrawn: true } });
    await world.pass(seconds(10));
    expect(world.marksOf("n1")).toEqual(before);
    await stop();
  });

  it("has no effect on the node if the withdrawal arrives first", async () => {
    const { world, word, tell, stop } = await stage();
    const told = word("n1", { cause: "ScheduledMaintenance", deadlineAt: soon(world) });
    expect(await tell({ ...told, notice: { ...told.notice, withdrawn: true } })).toBe("Taken");
    expect(await tell(told)).toBe("Taken");
    await world.pass(seconds(10));
    expect(world.writes.filter((write) => write.includes("/nodes/n1"))).toEqual([]);
    expect(world.list(departures).map(statusOf)).toMatchObject([
      { phase: "Ended", outcome: "Cancelled", reason: "NoticeWithdrawn" },
    ]);
    await stop();
  });

  it.each([
    ["its departure is undone", true],
    ["the withdrawal is written", false],
  ])("loses no other notice that arrives while %s", async (_, hasBegun) => {
    const { world, feed, word, tell, stop } = await stage();
    const told = word("n1", { cause: "ScheduledMaintenance", deadlineAt: soon(world) });
    if (hasBegun) await tell(told);
    const off = feed.listener.onNotice({ ...told, notice: { ...told.notice, withdrawn: true } });
    const interruption = word("n1", { cause: "SpotInterruption", eventId: "event-2" });
    expect(await toldUntilTaken(tell, interruption)).toBe(true);
    expect(await off).toBe("Taken");
    await world.pass(seconds(10));
    expect(world.marksOf("n1")).toContain("unschedulable");
    expect(world.podsOn("n1")).toEqual([]);
    await stop();
  });

  it("loses no other notice that arrives as its departure ends", async () => {
    const { world, word, tell, stop } = await stage();
    await tell(word("n1", { cause: "ScheduledMaintenance", deadlineAt: soon(world) }));
    const path = `${departures}/${world.departureOf("n1")?.metadata?.name}`;
    world.beforeWrite = (request) => {
      if (request.path !== path) return;
      world.beforeWrite = () => {};
      callOff(world, "n1");
    };
    const interruption = word("n1", { cause: "SpotInterruption", eventId: "event-2" });
    expect(await toldUntilTaken(tell, interruption)).toBe(true);
    await world.pass(seconds(10));
    expect(world.marksOf("n1")).toContain("unschedulable");
    expect(world.podsOn("n1")).toEqual([]);
    await stop();
  });

  it("does not undo what another notice has changed at that moment", async () => {
    const { world, word, tell, stop } = await stage();
    const told = word("n1", { cause: "ScheduledMaintenance", deadlineAt: soon(world) });
    await tell(told);
    const path = `${departures}/${world.departureOf("n1")?.metadata?.name}`;
    world.beforeWrite = (request) => {
      if (request.path !== path) return;
      world.beforeWrite = () => {};
      const patchType = "application/merge-patch+json";
      const deadlineAt = formatInstant(plus(world.clock.now(), minutes(2)));
      const body = { spec: { deadlineAt, source: "agent/aws/spot-instance-action" } };
      world.api.handle({ method: "PATCH", path, patchType, body });
    };
    await tell({ ...told, notice: { ...told.notice, withdrawn: true } });
    await world.pass(seconds(10));
    expect(world.departureOf("n1")?.spec).not.toHaveProperty("withdrawnAt");
    expect(world.marksOf("n1")).toContain("unschedulable");
    await stop();
  });
});
