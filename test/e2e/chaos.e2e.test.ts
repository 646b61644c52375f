/**
 * Notices and rotations on a real control plane, while a proxy between controller and API server
 * injects the faults of networks and servers. `npm run chaos` runs 200 of them, and faults that
 * last longer than a start may take.
 */
import { readFileSync } from "node:fs";
import type { Node } from "kubernetes-types/core/v1.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seededRng } from "../../src/core/chance/chance.ts";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.ts";
import { FaultSchedule } from "../support/fault-schedule.ts";
import type { LastcallProcess } from "../support/lastcall-process.ts";
import { LastingFaults } from "../support/lasting-fault.ts";
import { type Asked, cordonTimes, judgeChaos } from "./chaos-judge.ts";
import { controllerUser, FleetWorld } from "./fleet-world.ts";
import { isReady, nameOf } from "./history.ts";
import { makeDeparture, noticeOf } from "./raw-departure.ts";

const seed = Number(process.env.E2E_SEED ?? 1);
const wanted = Number(process.env.E2E_CHAOS_DEPARTURES ?? 9);
/**
 * How many leave at any time: as soon as one has ended and its node is back, the next departure is
 * created.
 */
const atOnce = 4;
const faultShare = 0.05;
const noticeSeconds = 30;
const restMs = 240_000;
/** After so many departures a fault lasts. */
const lastingEvery = Number(process.env.E2E_CHAOS_LASTING_EVERY ?? 20);
/** Longer than the Lease, and than the minute in which a start may fail. */
const lastsMs = 75_000;
/** A notice arrives this long before the end of a lasting fault. */
const noticeLeadMs = 5_000;

let world: FleetWorld;
let controller: LastcallProcess;
let proxy: FaultProxy;
const rng = seededRng(seed);
const schedule = new FaultSchedule({ rng, share: faultShare, nowMs: () => performance.now() });
const lasting = new LastingFaults(() => Date.now());
const asked: Asked[] = [];

beforeAll(async () => {
  world = await FleetWorld.start();
  proxy = await startFaultProxy({
    target: world.plane.url,
    ca: () => readFileSync(world.plane.caFile, "utf8"),
    faultFor: (call) => lasting.faultFor(call) ?? schedule.next(),
  });
  await world.applyPolicy({
    // Selects every node, because replacements have to leave as well.
    nodeSelector: undefined,
    lifetime: {},
    budgets: [{ nodes: atOnce }],
    onNotice: { spotInterruption: "Release" },
    drain: { timeout: "2m", onTimeout: "Wait" },
  });
  controller = await world.startController(await world.controllerKubeconfig(proxy.url));
});

afterAll(async () => {
  await world?.stop();
  await proxy?.close();
});

describe(`notices and rotations amid faults, seed ${seed}`, () => {
  test(`${wanted} of them complete`, { timeout: restMs * wanted }, async () => {
    await within("the fleet is at rest", () => world.isAtRest());
    while (asked.length < wanted) {
      const node = await within("another node may leave", () => nextNode());
      harmConnections();
      await ask(node, rng() < 0.5 ? "Notice" : "Rotation");
      if (asked.length % lastingEvery === 0) await sufferLong();
    }
    await within("the fleet is at rest", () => world.isAtRest());
  });

  test("leave no violation in the observed history", async () => {
    const history = await world.history();
    const charge = { asked, user: controllerUser, lasting: lasting.spells };
    console.log(tableOf(cordonTimes(history, charge)));
    expect(judgeChaos(history, charge)).toEqual([]);
    expect(await world.brokenRules()).toEqual([]);
  });
});

/** A random working node, if fewer than `atOnce` are leaving. */
async function nextNode(): Promise<string | undefined> {
  const live = (await world.departures()).filter(({ status }) => status?.phase !== "Ended");
  if (live.length >= atOnce) return undefined;
  const leaving = new Set(live.map(({ spec }) => spec?.node?.name));
  const { body } = await world.plane.request({ path: "/api/v1/nodes" });
  const free = (body.items as readonly Node[])
    .filter((node) => isReady(node) && node.spec?.unschedulable !== true)
    .map(nameOf)
    .filter((name) => !leaving.has(name));
  return free.length === 0 ? undefined : free[Math.floor(rng() * free.length)];
}

/** On a timeout logs the state of the cluster, which is gone after the test. */
async function within<T>(
  what: string,
  condition: () => Promise<T | false | undefined>,
): Promise<T> {
  try {
    return await world.until(what, condition, restMs);
  } catch (error) {
    const live = (await world.departures()).filter(({ status }) => status?.phase !== "Ended");
    const states = live.map(
      ({ metadata, status }) => `${metadata?.name}: ${JSON.stringify(status)}`,
    );
    const nodes = (await world.plane.request({ path: "/api/v1/nodes" })).body.items.map(
      (node: Node) => `${nameOf(node)}: ${JSON.stringify({ ...node.spec, ready: isReady(node) })}`,
    );
    const { audit, releases } = await world.history();
    const own = audit.filter(({ user }) => user === controllerUser).slice(-40);
    const did = own.map((one) => `${one.verb} ${one.resource} ${one.name ?? ""} ${one.code}`);
    const asked = releases.map(({ machine, at }) => `release of ${machine} at ${at}`);
    const log = controller.log().split("\n").slice(-60);
    console.log([...states, ...nodes, ...did, ...asked, ...log].join("\n"));
    throw error;
  }
}

/** Rotations start amid a fault that lasts, and a notice arrives shortly before its end. */
async function sufferLong(): Promise<void> {
  await within("the fleet is at rest", () => world.isAtRest());
  const { kind, toMs } = lasting.begin(lastsMs);
  schedule.count(kind);
  const noticeAtMs = toMs - noticeLeadMs;
  for (const wish of ["Rotation", "Rotation", "Rotation"] as const) {
    const node = await within("another node may leave", () => nextNode());
    await ask(node, wish);
  }
  await within("the fault is nearly over", async () => Date.now() >= noticeAtMs);
  await ask(await within("another node may leave", () => nextNode()), "Notice");
  await within("the fault is over", async () => Date.now() >= toMs);
}

function harmConnections(): void {
  const draw = rng();
  if (draw < 1 / 6 && schedule.mayStall()) {
    schedule.count("BlackHole");
    proxy.blackHole();
  } else if (draw > 5 / 6) {
    schedule.count("AllReset");
    proxy.reset();
  }
}

async function ask(node: string, kind: Asked["kind"]): Promise<void> {
  const { name, atMs } = await makeDeparture(world.plane, node, {
    name: `${node}-${asked.length}-${kind.toLowerCase()}-${Math.floor(rng() * 1e9)}`,
    spec: kind === "Notice" ? noticeOf(noticeSeconds) : () => ({ cause: "Manual", policy: "spot" }),
  });
  asked.push({ departure: name, node, kind, atMs });
}

/** A row for docs/failure-modes.md. */
function tableOf(cordons: readonly number[]): string {
  const sorted = cordons.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.floor((sorted.length - 1) * share)] ?? 0);
  const faults = [...schedule.counts].toSorted().map(([kind, count]) => `${count} ${kind}`);
  const [notices, rotations] = [cordons.length, asked.length - cordons.length];
  return [
    "| seed | notices | rotations | faults | cordon p50 | p99 | slowest |",
    "|---|---|---|---|---|---|---|",
    `| ${seed} | ${notices} | ${rotations} | ${faults.join(", ")} | ${at(0.5)} ms | ${at(0.99)} ms | ${at(1)} ms |`,
  ].join("\n");
}
