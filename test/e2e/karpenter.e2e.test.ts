/**
 * Karpenter itself on a real API server, with its kwok provider: it creates the nodes, terminates
 * those that Lastcall releases, and creates others for the pods that had to leave.
 */
import type { Node } from "kubernetes-types/core/v1.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { generationLabel } from "./cloud.ts";
import { FleetWorld } from "./fleet-world.ts";
import { type History, isReady, keyOf, nameOf, type RawNodeClaim } from "./history.ts";
import { cordonedAgain, judge, leftApart } from "./judge.ts";
import { KarpenterFleet, karpenterUser, nodePool } from "./karpenter-fleet.ts";
import { mustRun } from "./must-run.ts";
import { makeDeparture, noticeOf } from "./raw-departure.ts";

/** Longer than a departure takes, or else the deadline would force two at once at the end. */
const spacingSeconds = 18;
const size = 9;
const drain = { timeout: "2m", onTimeout: "Wait" };

let world: FleetWorld;
let firstClaims: readonly RawNodeClaim[];
/** The history of the rotation, without later events. */
let seen: History;

beforeAll(async () => {
  world = await FleetWorld.start({ growing: (plane) => KarpenterFleet.start(plane) });
  firstClaims = await claims();
  await world.startController(await world.controllerKubeconfig());
});

afterAll(() => world?.stop());

async function claims(): Promise<readonly RawNodeClaim[]> {
  return (await world.plane.request({ path: "/apis/karpenter.sh/v1/nodeclaims" })).body.items;
}

async function nodes(): Promise<readonly Node[]> {
  return (await world.plane.request({ path: "/api/v1/nodes" })).body.items;
}

/** Whether the node is gone and the fleet is complete again, with every pod ready. */
async function hasLeft(name: string): Promise<boolean> {
  return (await world.isAtRest()) && !(await nodes()).some((one) => nameOf(one) === name);
}

function charge() {
  return { ...world.charge, heirs: /./, finalizer: karpenterUser };
}

/** The successful deletions of NodeClaims by others than Karpenter, from the audit log. */
function deletionsIn({ audit }: Pick<History, "audit">) {
  return audit
    .filter(({ verb, resource, code }) => {
      return verb.startsWith("delete") && resource === "nodeclaims" && code === 200;
    })
    .filter(({ user }) => user !== karpenterUser);
}

describe("the nodes that Karpenter created for sixty pods", () => {
  test("are nine, each with a NodeClaim", () => {
    expect(world.nodes).toHaveLength(size);
    const named = firstClaims.map(({ status }) => status?.nodeName).toSorted();
    expect(named).toEqual(world.nodes.map(nameOf).toSorted());
  });

  test("leave one after another as planned", async () => {
    await world.applyPolicy({
      ...{ instance: { release: "NodeClaim" }, drain },
      lifetime: { max: `${lifetimeSeconds()}s`, reserve: "1s" },
      spacing: { mode: "Late", min: `${spacingSeconds}s` },
    });
    await world.until("the fleet is rotated", () => world.isRotated(), 290_000);
    seen = await world.history();
  });

  test("leave no violation in the observed history", () => {
    expect(judge(seen, charge())).toEqual([]);
    expect(cordonedAgain(seen)).toEqual([]);
  });

  test("leave as far apart as the policy says", async () => {
    const plans = (await world.departures()).map(({ spec }) => Date.parse(spec?.departAt ?? ""));
    const gaps = plans
      .toSorted((a, b) => a - b)
      .flatMap((at, place, all) => {
        return place === 0 ? [] : [at - (all[place - 1] ?? 0)];
      });
    expect(Math.min(...gaps)).toBe(spacingSeconds * 1000);
    // A departure that starts late shortens the gap to the next one.
    expect(leftApart(seen, { ...charge(), gapMs: (spacingSeconds - 2) * 1000 })).toEqual([]);
  });

  test("are each released by a deletion of their NodeClaim with its uid as precondition", () => {
    const asked = deletionsIn(seen).map(({ user, name, preconditionUid }) => {
      return { user, name, uid: preconditionUid };
    });
    const wanted = firstClaims.map((one) => {
      return { user: charge().user, name: nameOf(one), uid: keyOf(one) };
    });
    const byName = (a: { name: string }, b: { name: string }) => a.name.localeCompare(b.name);
    expect(asked.toSorted(byName)).toEqual(wanted.toSorted(byName));
  });

  test("are replaced by nodes that Karpenter neither deletes nor taints", async () => {
    const first = new Set(firstClaims.map(keyOf));
    const now = await claims();
    expect(now.filter((one) => first.has(keyOf(one)))).toEqual([]);
    expect(now.map(({ metadata }) => metadata?.deletionTimestamp)).toEqual(
      Array(size).fill(undefined),
    );
    expect((await nodes()).flatMap(({ spec }) => spec?.taints ?? [])).toEqual([]);
  });

  test("have departures with the outcome Planned", async () => {
    const departures = await world.departures();
    expect(departures.map(({ status }) => status?.outcome)).toEqual(Array(size).fill("Planned"));
  });
});

describe("a node of Karpenter under a policy without instance.release", () => {
  test("is released by its NodeClaim, because its label shows the owner", async () => {
    const [node] = await nodes();
    const name = nameOf(node ?? {});
    expect(node?.metadata?.labels).toMatchObject({ "karpenter.sh/nodepool": nodePool });
    const claim = (await claims()).find(({ status }) => status?.nodeName === name);
    // Every node is past its limit of two seconds, so this one is due at once.
    await world.applyPolicy({
      ...{ instance: {}, drain, spacing: { mode: "Late", min: "1s" } },
      lifetime: { max: "3s", reserve: "1s" },
    });
    await mustRun(world.plane, ["label", "node", name, `${generationLabel}=1`]);
    await world.until(`${name} has left`, () => hasLeft(name));
    const asked = deletionsIn(await world.history()).slice(size);
    expect(asked.map(({ preconditionUid }) => preconditionUid)).toEqual([keyOf(claim ?? {})]);
  });
});

describe("a node of Karpenter whose machine is interrupted", () => {
  test("is drained in time, and Lastcall does not delete its NodeClaim", async () => {
    const node = (await nodes()).find(isReady);
    const name = nameOf(node ?? {});
    // Without a lifetime, nodes leave only at notices.
    await world.applyPolicy({ lifetime: {}, instance: {}, drain });
    await mustRun(world.plane, ["label", "node", name, `${generationLabel}=1`]);
    const before = deletionsIn(await world.history()).length;
    const made = await makeDeparture(world.plane, name, { spec: noticeOf(60) });
    const departure = async () => {
      return (await world.departures()).find(({ metadata }) => metadata?.name === made.name);
    };
    await world.until(`${name} is drained`, async () => {
      return (await departure())?.status?.reason === "AwaitingMachine";
    });
    expect(Date.now()).toBeLessThan(made.atMs + 60_000);
    // With the kwok provider, the Node is the machine.
    await mustRun(world.plane, ["delete", "node", name, "--wait=false"]);
    await world.until(`${name} has left`, () => hasLeft(name));
    expect((await departure())?.status?.outcome).toBe("Preempted");
    expect(deletionsIn(await world.history())).toHaveLength(before);
  });
});

/** Long enough for nine departures, each as late as the spacing allows. */
function lifetimeSeconds(): number {
  const madeAt = world.nodes.map((node) => Date.parse(node.metadata?.creationTimestamp ?? ""));
  const ageSeconds = Math.ceil((Date.now() - Math.min(...madeAt)) / 1000);
  return ageSeconds + spacingSeconds * world.nodes.length;
}
