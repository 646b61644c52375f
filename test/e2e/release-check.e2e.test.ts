import type { Node } from "kubernetes-types/core/v1.js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { formatInstant, instant, minutes, plus } from "../../src/core/time/time.ts";
import { FleetWorld } from "./fleet-world.ts";
import { nameOf } from "./history.ts";

const toRecreate = "compute.instanceGroupManagers.update";
const policyPath = "/apis/lastcall.dev/v1alpha1/departurepolicies/spot";

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

let world: FleetWorld;
let isSilent = false;

beforeAll(async () => {
  world = await FleetWorld.start({ before: async () => (isSilent ? "Drop" : "Pass") });
  world.cloud.deny(toRecreate);
  // A node with a notice counts in the budget, too. Every node is past its limit of two seconds, so
  // the first departure is due at once.
  await world.applyPolicy({
    lifetime: { max: "3s", reserve: "1s" },
    spacing: { mode: "Late", min: "1s" },
    budgets: [{ nodes: 2 }],
  });
  await world.startController(await world.controllerKubeconfig());
});

afterAll(() => world?.stop());

async function feasible(): Promise<Condition | undefined> {
  const { body } = await world.plane.request({ path: policyPath });
  const conditions: readonly Condition[] = body.status?.conditions ?? [];
  return conditions.find(({ type }) => type === "Feasible");
}

async function heldBy(reason: string): Promise<readonly string[]> {
  const held = (await world.departures()).filter(
    ({ status }) => status?.phase === "Held" && status.reason === reason,
  );
  return held.flatMap(({ spec }) => spec?.node?.name ?? []);
}

async function cordoned(): Promise<readonly string[]> {
  const { body } = await world.plane.request({ path: "/api/v1/nodes" });
  const nodes: readonly Node[] = body.items;
  return nodes.filter(({ spec }) => spec?.unschedulable === true).map(nameOf);
}

async function eventsOf(reason: string): Promise<number> {
  const { body } = await world.plane.request({ path: "/apis/events.k8s.io/v1/events" });
  const events: readonly { reason?: string; type?: string }[] = body.items;
  return events.filter((one) => one.reason === reason && one.type === "Warning").length;
}

test("a missing permission holds every departure before its node is cordoned", async () => {
  await world.until("all nine are held", async () => {
    return (await heldBy("ReleaseImpossible")).length === 9;
  });
  const condition = await world.until("the policy says it", async () => {
    const found = await feasible();
    return found?.reason === "ReleaseImpossible" && found;
  });
  expect(condition.status).toBe("False");
  expect(condition.message).toContain(toRecreate);
  await world.until("Events say it", async () => (await eventsOf("ReleaseImpossible")) > 0);
  expect(await cordoned()).toEqual([]);
});

test("a notice still cordons its node", async () => {
  const { body: node } = await world.plane.request({ path: "/api/v1/nodes/spot-9" });
  const nowAt = instant(Date.now());
  await world.plane.request({
    method: "POST",
    path: "/apis/lastcall.dev/v1alpha1/departures",
    body: {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "Departure",
      metadata: { name: "spot-9-notice" },
      spec: {
        node: { name: "spot-9", uid: node.metadata.uid, providerID: node.spec.providerID },
        cause: "SpotInterruption",
        noticedAt: formatInstant(nowAt),
        deadlineAt: formatInstant(plus(nowAt, minutes(10))),
        source: "e2e/notice",
      },
    },
  });
  await world.until("spot-9 is cordoned", async () => (await cordoned()).includes("spot-9"), 5_000);
});

test("a cloud that does not respond holds the departures as well", async () => {
  isSilent = true;
  world.cloud.allow(toRecreate);
  await world.until("one is held for it", async () => {
    return (await heldBy("CloudUnreachable")).length > 0;
  });
  expect((await feasible())?.status).toBe("False");
  expect(await cordoned()).toEqual(["spot-9"]);
  expect((await world.history()).releases).toEqual([]);
});

test("the departures continue when it responds again", async () => {
  isSilent = false;
  const released = async () => (await world.history()).releases.length >= 2;
  await world.until("machines are released", released, 180_000);
});
