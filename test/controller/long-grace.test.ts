import { expect, it } from "vitest";
import { hours, minutes, seconds } from "../../src/core/time/time.ts";
import { webWorkload } from "../support/model-world.ts";
import { capacityStory, depart, ledgerOf } from "./capacity-story.ts";

it.each([
  ["one replica leads", false],
  ["another one leads meanwhile", true],
])(
  "a drain that only waits for a grace of hours is recorded rarely, and goes on: %s",
  async (_, isReplaced) => {
    const world = capacityStory({
      nodes: ["n0"],
      replacement: { when: "None" },
      drain: { timeout: "2m", onTimeout: "RollBack" },
    });
    webWorkload(world, {
      ...{ replicas: 1, maxUnavailable: 1 },
      ...{ graceSeconds: 7200, exitAfterSeconds: "never" },
    });
    await world.pass(seconds(30));
    let over = new AbortController();
    let running = world.startController(over.signal);
    depart(world, "n0");
    await world.pass(minutes(20));
    if (isReplaced) {
      over.abort();
      await running;
      over = new AbortController();
      running = world.startController(over.signal);
      await world.pass(minutes(1));
    }
    const before = world.writes.length;
    await world.pass(hours(1));
    const written = world.writes.slice(before).filter((write) => write.includes("/departures/"));
    expect(written.length).toBeLessThanOrEqual(4);
    expect(ledgerOf(world, "n0")).toMatchObject({ phase: "Draining" });
    await world.pass(hours(1));
    over.abort();
    await running;
    expect(ledgerOf(world, "n0")).toMatchObject({ outcome: "Planned" });
  },
);
