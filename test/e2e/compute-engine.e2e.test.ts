import type { Node } from "kubernetes-types/core/v1.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { formatInstant, instant, minutes, plus, seconds } from "../../src/core/time/time.ts";
import type { LastcallProcess } from "../support/lastcall-process.ts";
import { FleetWorld } from "./fleet-world.ts";
import { isBoundToNode, nameOf, type RawDeparture } from "./history.ts";
import { incarnationsOf, podStoriesOf, podsOf } from "./incarnation.ts";

/** Half of the notice of Compute Engine, and longer than the pods here take to exit. */
const stopMs = seconds(15);
const poll = ["--gcp-preemption-poll", "1s"];
/** Every Spot node, including replacements. */
const everySpotNode = {
  nodeSelectorTerms: [
    { matchExpressions: [{ key: "cloud.google.com/gke-preemptible", operator: "Exists" }] },
  ],
};

let world: FleetWorld;
let controller: LastcallProcess;

beforeAll(async () => {
  world = await FleetWorld.start({ stopMs });
});

afterAll(() => world?.stop());

async function node(name: string): Promise<Node> {
  return (await world.plane.request({ path: `/api/v1/nodes/${name}` })).body;
}

async function departuresOf(name: string): Promise<readonly RawDeparture[]> {
  return (await world.departures()).filter(({ spec }) => spec?.node?.name === name);
}

/** The planned deadlines, as stored in the cluster. */
async function deadlines(): Promise<ReadonlyMap<string, string>> {
  const live = (await world.departures()).filter(({ status }) => status?.phase !== "Ended");
  return new Map(live.map(({ spec }) => [spec?.node?.name ?? "", spec?.deadlineAt ?? ""]));
}

function bootIdOf({ status }: Node): string | undefined {
  return status?.nodeInfo?.bootID;
}

describe("a machine whose preemption only the Compute Engine API reports", () => {
  let first: Node;

  test("has its node cordoned while it is still stopping", async () => {
    first = await node("spot-2");
    await world.applyPolicy({ nodeSelector: everySpotNode, lifetime: {} });
    controller = await world.startController(await world.controllerKubeconfig(), poll);
    await world.until("the controller leads", async () => controller.log().includes('"leader"'));
    const operation = world.cloud.preempt("spot-2");
    const cordoned = async () => (await node("spot-2")).spec?.unschedulable === true;
    await world.until("spot-2 is cordoned", cordoned, stopMs);
    const [departure, ...others] = await departuresOf("spot-2");
    expect(others).toEqual([]);
    expect(departure?.spec).toMatchObject({
      cause: "Preempted",
      noticedAt: formatInstant(operation.insertAt),
      deadlineAt: formatInstant(plus(operation.insertAt, seconds(30))),
      source: `gcp/operations/${operation.name}`,
    });
  });

  test("loses its pods before it is gone", async () => {
    const isBack = async () => bootIdOf(await node("spot-2")) !== bootIdOf(first);
    await world.until("a new machine stands under the name", isBack, 60_000);
    const history = await world.history();
    const [life] = incarnationsOf(history).filter(({ name }) => name === "spot-2");
    const { cordonedAt = 0, to = 0 } = life ?? {};
    const pods = life === undefined ? [] : podsOf(life, podStoriesOf(history.changes));
    expect(pods.length).toBeGreaterThan(3);
    // Most by eviction; a pod that its budget blocks is deleted in time for its grace.
    expect(pods.filter(({ evicted }) => evicted).length).toBeGreaterThan(pods.length / 2);
    const late = pods.filter(
      ({ leavingAt = 0, goneAt = to }) => leavingAt < cordonedAt || goneAt >= to,
    );
    expect(late).toEqual([]);
  });

  test("leaves an uncordoned Node object to its replacement, and one ended Departure", async () => {
    const isFree = async () => {
      const { spec } = await node("spot-2");
      return (
        spec?.unschedulable !== true && !spec?.taints?.some(({ key }) => key.startsWith("last"))
      );
    };
    await world.until("the new machine is put to work", isFree, 30_000);
    // The operation is still in the list, which the controller has continued to poll.
    const departures = await departuresOf("spot-2");
    expect(departures.map(({ status }) => [status?.phase, status?.outcome])).toEqual([
      ["Ended", "Preempted"],
    ]);
    expect((await node("spot-2")).metadata?.uid).toBe(first.metadata?.uid);
  });
});

describe("a plan of machines, one of them younger than its Node", () => {
  const lifetime = { max: "1h", reserve: "1s" };
  // Nine departures fit into the last minutes of the hour, so none starts in this test.
  const spacing = { min: "1m" };
  const lifeMs = seconds(3599);

  test("counts lifetimes from the start of each machine", async () => {
    await world.applyPolicy({ nodeSelector: everySpotNode, lifetime, spacing });
    const wanted = new Map(
      world.nodes.map((one) => {
        const name = nameOf(one);
        return [name, formatInstant(plus(world.cloud.startedAt(name), lifeMs))] as const;
      }),
    );
    await world.until("all nine are planned", async () => (await deadlines()).size === 9);
    expect(await deadlines()).toEqual(wanted);
    const { creationTimestamp = "" } = (await node("spot-2")).metadata ?? {};
    const aheadMs = world.cloud.startedAt("spot-2") - Date.parse(creationTimestamp);
    expect(aheadMs).toBeGreaterThan(stopMs);
  });

  test("turns a planned departure into a preemption without creating a second one", async () => {
    const [planned] = await departuresOf("spot-3");
    const operation = world.cloud.preempt("spot-3");
    const forced = async () =>
      (await departuresOf("spot-3"))[0]?.spec?.source === `gcp/operations/${operation.name}`;
    await world.until("spot-3's departure is forced", forced, stopMs);
    const departures = await departuresOf("spot-3");
    expect(departures.map(({ metadata }) => metadata?.uid)).toEqual([planned?.metadata?.uid]);
    const ended = async () => (await departuresOf("spot-3"))[0]?.status?.phase === "Ended";
    await world.until("spot-3 has left", ended, 60_000);
    expect((await departuresOf("spot-3"))[0]?.status?.outcome).toBe("Preempted");
  });

  test("counts from the Nodes without the permission to list, and logs that once", async () => {
    await controller.stop();
    world.cloud.deny("compute.instances.list");
    controller = await world.startController(await world.controllerKubeconfig());
    const byNode = new Map(
      ["spot-1", "spot-4", "spot-9"].map((name) => {
        const made = world.nodes.find((one) => nameOf(one) === name)?.metadata?.creationTimestamp;
        const bornAt = instant(Date.parse(String(made)));
        return [name, formatInstant(plus(bornAt, lifeMs))] as const;
      }),
    );
    const replanned = async () => {
      const now = await deadlines();
      return [...byNode].every(([name, deadlineAt]) => now.get(name) === deadlineAt);
    };
    await world.until("they are planned by their Nodes", replanned, 30_000);
    const said = controller
      .log()
      .split("\n")
      .filter((line) => line.includes("launch-times-unknown"));
    expect(said).toHaveLength(1);
    expect(said[0]).toContain("compute.instances.list");
  });
});

describe("maintenance under a policy with onNotice.maintenance Release", () => {
  test("has the machine released once its node is empty, long before the deadline", async () => {
    const onNotice = { maintenance: "Release" };
    await world.applyPolicy({ nodeSelector: everySpotNode, lifetime: {}, onNotice });
    const isFree = async () => (await deadlines()).size === 0;
    await world.until("nothing is planned any more", isFree);
    const { metadata, spec } = await node("spot-5");
    const nowAt = instant(Date.now());
    const { status } = await world.plane.request({
      method: "POST",
      path: "/apis/lastcall.dev/v1alpha1/departures",
      body: {
        apiVersion: "lastcall.dev/v1alpha1",
        kind: "Departure",
        metadata: { name: "spot-5-maintenance" },
        spec: {
          node: { name: "spot-5", uid: metadata?.uid, providerID: spec?.providerID },
          cause: "ScheduledMaintenance",
          noticedAt: formatInstant(nowAt),
          deadlineAt: formatInstant(plus(nowAt, minutes(14))),
          source: "e2e/maintenance",
        },
      },
    });
    expect(status).toBe(201);
    const end = async () => {
      const all = await departuresOf("spot-5");
      const one = all.find(({ metadata: meta }) => meta?.name === "spot-5-maintenance");
      return one?.status?.phase === "Ended" && one.status;
    };
    expect(await world.until("spot-5 has left", end, 60_000)).toMatchObject({
      outcome: "Preempted",
      reason: "Released",
    });
    const { releases } = await world.history();
    const [release, ...others] = releases.filter(({ machine }) => machine === "spot-5");
    expect(others).toEqual([]);
    expect(release?.podsThen.filter((pod) => !isBoundToNode(pod))).toEqual([]);
  });
});
