import { describe, expect, it } from "vitest";
import { minutes, seconds } from "../../src/core/time.ts";
import type { ModelWorld } from "../support/model-world.ts";
import {
  close,
  depart,
  hasEnded,
  ledgerOf,
  open,
  roomStory,
  told,
  workload,
} from "./room-story.ts";

/** A single pod on `n0` that its budget keeps, another beside it, and room elsewhere. */
async function single(onSingleReplica: string): Promise<ModelWorld> {
  const drain = { timeout: "5m", onTimeout: "RollBack", onSingleReplica };
  const world = roomStory({ nodes: ["n0", "n1"], replacement: { when: "None" }, drain });
  close(world, ["n1"]);
  workload(world, "db", { replicas: 1, cpu: "1", maxUnavailable: 0 });
  workload(world, "web", { replicas: 1, cpu: "1" });
  await world.pass(seconds(30));
  open(world, ["n1"]);
  depart(world, "n0");
  await told(world, hasEnded(world, "n0"), minutes(20));
  return world;
}

describe("a single replica that its budget keeps", () => {
  it("is moved by one rollout restart of its owner, past no budget, where the policy says so", async () => {
    const world = await single("RestartOwner");
    const asked = world.writes.filter((write) => /deployments|eviction|pods\/db/.test(write));
    expect(asked.toSorted()).toEqual([
      "PATCH /apis/apps/v1/namespaces/default/deployments/db",
      expect.stringMatching(/^POST .*\/pods\/web-.*\/eviction$/),
    ]);
    expect(ledgerOf(world, "n0")).toMatchObject({
      outcome: "Planned",
      drain: { total: 2, left: 0, evicted: 1, forced: 0, cleanExit: 2 },
    });
    expect(
      world
        .podsOn("n1")
        .map(({ metadata }) => metadata?.labels?.app)
        .toSorted(),
    ).toEqual(["db", "web"]);
  });

  it("is waited for otherwise, and the node goes back to work", async () => {
    const world = await single("Wait");
    expect(ledgerOf(world, "n0").outcome).toBe("RolledBack");
    expect(world.writes.filter((write) => write.includes("deployments"))).toEqual([]);
    expect(world.podsOn("n0").map(({ metadata }) => metadata?.labels?.app)).toEqual(["db"]);
  });
});
