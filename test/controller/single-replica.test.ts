import { describe, expect, it } from "vitest";
import { minutes, seconds } from "../../src/core/time/time.ts";
import { departures, type ModelWorld } from "../support/model-world.ts";
import {
  capacityStory,
  close,
  depart,
  hasEnded,
  ledgerOf,
  open,
  told,
  workload,
} from "./capacity-story.ts";

/**
 * `n0` is to leave with two pods, one of which is a single replica that its budget holds; there is
 * room elsewhere.
 */
async function leaving(onSingleReplica: string): Promise<ModelWorld> {
  const drain = { timeout: "5m", onTimeout: "RollBack", onSingleReplica };
  const world = capacityStory({ nodes: ["n0", "n1"], replacement: { when: "None" }, drain });
  close(world, ["n1"]);
  workload(world, "db", { replicas: 1, cpu: "1", maxUnavailable: 0 });
  workload(world, "web", { replicas: 1, cpu: "1" });
  await world.pass(seconds(30));
  open(world, ["n1"]);
  depart(world, "n0");
  return world;
}

async function single(onSingleReplica: string): Promise<ModelWorld> {
  const world = await leaving(onSingleReplica);
  await told(world, hasEnded(world, "n0"), minutes(20));
  return world;
}

describe("a single replica that its budget holds", () => {
  it("is moved by one rollout restart of its owner if the policy says RestartOwner", async () => {
    const world = await single("RestartOwner");
    const asked = world.writes.filter((write) => /deployments|eviction|pods\/db/.test(write));
    const patch = "PATCH /apis/apps/v1/namespaces/default/deployments/db";
    expect(asked.toSorted()).toEqual([
      // A dry run first: it shows whether there are other replicas.
      ...[patch, patch],
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

  it("is left alone if its departure is cancelled before the restart is sent", async () => {
    const world = await leaving("RestartOwner");
    const send = world.api.send.bind(world.api);
    let fate: "Asked" | "CalledOff" | "HadItsTurn" | undefined;
    world.api.send = async (request) => {
      if (request.method === "PATCH" && request.path.includes("/deployments/")) {
        fate = "Asked";
        await world.clock.sleep(seconds(30));
        fate = "HadItsTurn";
      }
      return send(request);
    };
    const callOff = (): boolean => {
      if (fate === "Asked") {
        const path = `${departures}/${world.departureOf("n0")?.metadata?.name}`;
        world.api.handle({ method: "DELETE", path });
        fate = "CalledOff";
      }
      return fate === "HadItsTurn";
    };
    await told(world, callOff, minutes(20));
    expect(fate).toBe("HadItsTurn");
    const path = "/apis/apps/v1/namespaces/default/deployments/db";
    const { body } = world.api.handle({ method: "GET", path });
    expect(JSON.stringify(body)).not.toContain("lastcall.dev/restarted-for");
  });

  describe("with RestartOwner but without the permission for it", () => {
    /** The API server answers as RBAC does without the role of `deploy/restart-owner`. */
    async function refused(path: RegExp): Promise<ModelWorld> {
      const world = await leaving("RestartOwner");
      const send = world.api.send.bind(world.api);
      world.api.send = async (request) =>
        path.test(`${request.method} ${request.path}`)
          ? { status: 403, body: { kind: "Status", message: "it is forbidden" } }
          : send(request);
      return world;
    }
    const deployments = /^PATCH .*\/deployments\//;
    const replicaSets = /^GET .*\/replicasets\//;

    it.each([
      ["its workload", deployments],
      ["its ReplicaSet", replicaSets],
    ])("is handled as with Wait, and %s is requested once", async (_, path) => {
      const world = await refused(path);
      await told(world, hasEnded(world, "n0"), minutes(20));
      expect(ledgerOf(world, "n0").outcome).toBe("RolledBack");
      expect(world.podsOn("n0").map(({ metadata }) => metadata?.labels?.app)).toEqual(["db"]);
      const asked = world.writes.filter((write) => deployments.test(write));
      expect(asked).toHaveLength(path === deployments ? 1 : 0);
      const said = world.logged.filter((line) => line.includes("restart-refused"));
      expect(said).toHaveLength(1);
      expect(said[0]).toContain('"code":"RIGHT_MISSING"');
      expect(said[0]).toContain('"pod":"default/db-');
    });

    it("is evicted as soon as its budget allows", async () => {
      const world = await refused(deployments);
      const isRefused = () => world.logged.join().includes("restart-refused");
      const isCounted = () =>
        (ledgerOf(world, "n0").drain as { evicted?: number } | undefined)?.evicted === 1;
      await told(world, () => isRefused() && isCounted(), minutes(20));
      world.patchBudget("db", { spec: { maxUnavailable: 1 } });
      await told(world, hasEnded(world, "n0"), minutes(20));
      expect(ledgerOf(world, "n0")).toMatchObject({
        outcome: "Planned",
        drain: { total: 2, left: 0, evicted: 2, forced: 0 },
      });
    });
  });

  it("is not moved if the policy says Wait, and the departure is rolled back", async () => {
    const world = await single("Wait");
    expect(ledgerOf(world, "n0").outcome).toBe("RolledBack");
    expect(world.writes.filter((write) => write.includes("deployments"))).toEqual([]);
    expect(world.podsOn("n0").map(({ metadata }) => metadata?.labels?.app)).toEqual(["db"]);
  });
});
