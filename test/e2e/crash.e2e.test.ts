import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Relay, startRelay } from "../support/relay.ts";
import { FleetWorld } from "./fleet-world.ts";
import { judge, zonesAlternate } from "./judge.ts";
import { Killer } from "./killer.ts";
import { lateInstall } from "./late-install.ts";

const seed = Number(process.env.E2E_SEED ?? 1);
const killer = new Killer(seed);
const hooks = {
  before: (call: Parameters<Killer["before"]>[0]) => killer.before(call),
  after: (call: Parameters<Killer["after"]>[0]) => killer.after(call),
};
let world: FleetWorld;
let relay: Relay;

beforeAll(async () => {
  world = await FleetWorld.start(hooks);
  const { url, caFile } = world.plane;
  relay = await startRelay({ target: url, ca: () => readFileSync(caFile, "utf8"), ...hooks });
});

afterAll(async () => {
  await relay?.close();
  await world?.stop();
});

describe(`a controller that is killed at twenty instants (E2E_SEED=${seed})`, () => {
  test("still rotates the nine nodes", async () => {
    const kubeconfig = await world.controllerKubeconfig(relay.url);
    await world.applyPolicy(lateInstall);
    while (!killer.isDone) {
      const controller = await world.startController(kubeconfig);
      killer.aim(controller);
      const kills = killer.kills.length;
      await world.until(
        `kill ${kills + 1} has struck`,
        async () => killer.kills.length > kills || (await world.isRotated()),
      );
      if (killer.kills.length === kills) break;
    }
    console.table(killer.kills);
    expect(killer.kills).toHaveLength(20);
    await world.startController(kubeconfig);
    await world.until("the fleet is rotated", () => world.isRotated(), 240_000);
  });

  test("leaves no violation in the observed history", async () => {
    const history = await world.history();
    expect(judge(history, world.charge)).toEqual([]);
    expect(await world.brokenRules()).toEqual([]);
    expect(zonesAlternate(history, world.charge)).toEqual([]);
  });

  test("ends every departure with the outcome Planned", async () => {
    const departures = await world.departures();
    expect(departures.map(({ status }) => status?.outcome)).toEqual(Array(9).fill("Planned"));
  });
});
