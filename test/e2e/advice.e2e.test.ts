import { afterAll, beforeAll, expect, test } from "vitest";
import { formatInstant, instant, minutes, plus } from "../../src/core/time/time.ts";
import { deleteNode } from "../support/kwok-fleet.ts";
import { FleetWorld } from "./fleet-world.ts";
import { incarnationsOf } from "./incarnation.ts";

const advised = ["spot-1", "spot-2", "spot-3", "spot-4", "spot-5", "spot-6"];
const interrupted = "spot-9";

let world: FleetWorld;

beforeAll(async () => {
  world = await FleetWorld.start();
  await world.applyPolicy({
    lifetime: {},
    budgets: [{ nodes: 1 }],
    onNotice: { rebalance: "Release" },
    drain: { timeout: "2m", onTimeout: "Wait" },
  });
  await world.startController(await world.controllerKubeconfig());
});

afterAll(() => world?.stop());

/** Reports a cloud's notice about a node, as an agent does. */
async function tell(name: string, spec: object): Promise<void> {
  const { body: node } = await world.plane.request({ path: `/api/v1/nodes/${name}` });
  const { status } = await world.plane.request({
    method: "POST",
    path: "/apis/lastcall.dev/v1alpha1/departures",
    body: {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "Departure",
      metadata: { name: `${name}-${node.metadata.uid.slice(0, 8)}` },
      spec: {
        node: { name, uid: node.metadata.uid, providerID: node.spec.providerID },
        noticedAt: formatInstant(instant(Date.now())),
        ...spec,
      },
    },
  });
  expect(status).toBe(201);
}

async function isCordoned(name: string): Promise<boolean> {
  const { body } = await world.plane.request({ path: `/api/v1/nodes/${name}` });
  return body.spec?.unschedulable === true;
}

async function phases(): Promise<readonly (string | undefined)[]> {
  const departures = await world.departures();
  const ofAdvice = departures.filter(({ spec }) => spec?.cause === "RebalanceRecommendation");
  return ofAdvice.map(({ status }) => status?.phase);
}

test("six recommendations under a budget of one: five departures are held", async () => {
  const source = "agent/aws/rebalance";
  await Promise.all(
    advised.map((name) => tell(name, { cause: "RebalanceRecommendation", source })),
  );
  await world.until("five are held", async () => {
    return (await phases()).filter((phase) => phase === "Held").length === 5;
  });
});

test("an interruption of another node is acted on at once", async () => {
  const deadlineAt = formatInstant(plus(instant(Date.now()), minutes(10)));
  const source = "agent/aws/spot-instance-action";
  await tell(interrupted, { cause: "SpotInterruption", source, deadlineAt });
  await world.until("it is cordoned", () => isCordoned(interrupted), 5000);
  expect((await phases()).filter((phase) => phase === "Held").length).toBeGreaterThan(0);
  await world.until("its pods have left", async () => {
    const path = `/api/v1/pods?fieldSelector=spec.nodeName=${interrupted}`;
    const { body } = await world.plane.request({ path });
    const owners = body.items.map(
      (pod: { metadata: { ownerReferences?: readonly { kind: string }[] } }) =>
        pod.metadata.ownerReferences?.[0]?.kind,
    );
    return owners.every((kind: string | undefined) => kind === "DaemonSet" || kind === "Node");
  });
  await deleteNode(world.plane, interrupted);
});

test("all six leave in the end, and no two of them are cordoned at the same time", async () => {
  await world.until(
    "six departures have ended",
    async () => (await phases()).filter((phase) => phase === "Ended").length === 6,
    240_000,
  );
  const lives = incarnationsOf(await world.history());
  const left = lives.filter(
    ({ name, cordonedAt }) => advised.includes(name) && cordonedAt !== undefined,
  );
  expect(left.map(({ name }) => name).toSorted()).toEqual(advised);
  const atOnce = left.flatMap((one) => {
    const { name, cordonedAt = 0 } = one;
    const others = left.filter(
      (other) =>
        other !== one &&
        (other.cordonedAt ?? Number.POSITIVE_INFINITY) <= cordonedAt &&
        (other.to ?? Number.POSITIVE_INFINITY) > cordonedAt,
    );
    return others.map((other) => `${name} beside ${other.name}`);
  });
  expect(atOnce).toEqual([]);
});
