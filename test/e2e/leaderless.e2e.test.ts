import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LastcallProcess } from "../support/lastcall-process.ts";
import { FleetWorld } from "./fleet-world.ts";
import { judge, leftApart } from "./judge.ts";

/** Longer than a drain, so that no departure has to wait for another. */
const spacingSeconds = 10;
/** The budget allows several machines out at once: only the spacing keeps them apart. */
const atOnce = 3;
/** The time before the first departure, and from the last deadline to the end of lifetimes. */
const leadSeconds = 15;
const reserveSeconds = 120;
/**
 * The time from the decision to the cordon in the audit log of the API server, which varies.
 */
const momentMs = 1000;

let world: FleetWorld;
let controller: LastcallProcess;

beforeAll(async () => {
  world = await FleetWorld.start();
});

afterAll(() => world?.stop());

describe("a fleet without a leader during half of its plan", () => {
  test("starts to leave as planned", async () => {
    controller = await world.startController(await world.controllerKubeconfig());
    const ageSeconds = fleetAgeSeconds();
    const planSeconds = leadSeconds + spacingSeconds * (world.nodes.length - 1);
    await world.applyPolicy({
      lifetime: {
        max: `${ageSeconds + planSeconds + reserveSeconds}s`,
        reserve: `${reserveSeconds}s`,
      },
      spacing: { mode: "Late", min: `${spacingSeconds}s` },
      budgets: [{ nodes: atOnce }],
      drain: { timeout: "2m", onTimeout: "Wait" },
    });
    await world.until("two nodes have left and none is leaving", haveLeft(2));
    await controller.kill();
  });

  test("completes the rotation when a controller leads again", async () => {
    await world.until("four instants were missed", async () => (await missed()) >= 4);
    await world.startController(await world.controllerKubeconfig());
    await world.until("the fleet is rotated", () => world.isRotated(), 300_000);
  });

  test("keeps spacing.min between any two departures", async () => {
    const gapMs = spacingSeconds * 1000 - momentMs;
    expect(leftApart(await world.history(), { ...world.charge, gapMs })).toEqual([]);
  });

  test("leaves no other violation in the observed history", async () => {
    expect(judge(await world.history(), { ...world.charge, atOnce })).toEqual([]);
  });
});

function fleetAgeSeconds(): number {
  const launchTimes = world.nodes.map((node) => Date.parse(node.metadata?.creationTimestamp ?? ""));
  return Math.ceil((Date.now() - Math.min(...launchTimes)) / 1000);
}

function haveLeft(count: number): () => Promise<boolean> {
  return async () => {
    const departures = await world.departures();
    const inPhase = (phase: string) =>
      departures.filter(({ status }) => (status?.phase ?? "Scheduled") === phase).length;
    return inPhase("Ended") === count && inPhase("Scheduled") === departures.length - count;
  };
}

async function missed(): Promise<number> {
  const departures = await world.departures();
  const waiting = departures.filter(({ status }) => (status?.phase ?? "Scheduled") === "Scheduled");
  return waiting.filter(({ spec }) => Date.parse(spec?.departAt ?? "") < Date.now()).length;
}
