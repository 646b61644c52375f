import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LastcallProcess } from "../support/lastcall-process.ts";
import { type Relay, startRelay } from "../support/relay.ts";
import { FleetWorld } from "./fleet-world.ts";
import { judge, zonesAlternate } from "./judge.ts";
import { lateInstall } from "./late-install.ts";

/** A replica with its own relay to the API server, which shows who writes. */
interface Replica {
  readonly relay: Relay;
  readonly process: LastcallProcess;
  /** Writes other than leases and Events. */
  readonly writes: string[];
}

let world: FleetWorld;
const replicas: Replica[] = [];

beforeAll(async () => {
  world = await FleetWorld.start();
});

afterAll(async () => {
  await Promise.all(replicas.map(({ relay }) => relay.close()));
  await world?.stop();
});

describe("of two controllers", () => {
  let leader: Replica;
  let standby: Replica;

  test("one leads and acts, and the other writes nothing", async () => {
    await startReplica();
    await startReplica();
    await world.applyPolicy(lateInstall);
    leader = await world.until("a replica holds the lease", holder);
    [standby] = replicas.filter((one) => one !== leader) as [Replica];
    await world.until("three nodes have left", () => haveLeft(3));
    expect(leader.writes).not.toEqual([]);
    expect(standby.writes).toEqual([]);
  });

  test("the other takes over when the leader is killed during a drain", async () => {
    await world.until("a node is drained", isDraining);
    await leader.process.kill();
    // What it sent before that was still sent as the leader.
    await world.until("the relay has heard all of it", async () => !(await leader.relay.isInUse()));
    const before = leader.writes.length;
    await world.until("the fleet is rotated", () => world.isRotated(), 240_000);
    expect(await holder()).toBe(standby);
    expect(leader.writes).toHaveLength(before);
    expect(standby.writes).not.toEqual([]);
  });

  test("neither leaves a violation in the observed history", async () => {
    const history = await world.history();
    expect(judge(history, world.charge)).toEqual([]);
    expect(await world.brokenRules()).toEqual([]);
    expect(zonesAlternate(history, world.charge)).toEqual([]);
  });
});

async function startReplica(): Promise<void> {
  const { url, caFile } = world.plane;
  const writes: string[] = [];
  const relay = await startRelay({
    target: url,
    ca: () => readFileSync(caFile, "utf8"),
    before: async ({ method, path }) => {
      const isOwn = method !== "GET" && !/\/(leases|events)(\/|\?|$)/.test(path);
      if (isOwn) writes.push(`${method} ${path}`);
      return "Pass";
    },
  });
  const process = await world.startController(await world.controllerKubeconfig(relay.url));
  replicas.push({ relay, process, writes });
}

/** The replica whose process ID the lease names. */
async function holder(): Promise<Replica | undefined> {
  const path = "/apis/coordination.k8s.io/v1/namespaces/lastcall/leases/lastcall";
  const identity = String((await world.plane.request({ path })).body.spec?.holderIdentity ?? "");
  return replicas.find(({ process }) => identity.split("_").includes(String(process.pid)));
}

async function haveLeft(count: number): Promise<boolean> {
  const ended = (await world.departures()).filter(({ status }) => status?.phase === "Ended");
  return ended.length >= count;
}

async function isDraining(): Promise<boolean> {
  return (await world.departures()).some(({ status }) => status?.phase === "Draining");
}
