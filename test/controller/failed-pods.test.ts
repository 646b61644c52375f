import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeObject, KubeRequest } from "../../src/contracts/kube-api.ts";
import { minutes, seconds } from "../../src/core/time/time.ts";
import { ModelWorld, nodes, spotPolicy } from "../support/model-world.ts";

const pods = "/api/v1/namespaces/default/pods";

let world: ModelWorld;
let stop: AbortController;
let running: Promise<void>;

beforeEach(() => {
  world = new ModelWorld();
  stop = new AbortController();
});
afterEach(async () => {
  stop.abort();
  await running;
});

function lead(options: { dryRun?: boolean } = {}): void {
  running = world.startController(stop.signal, options);
}

const owner = {
  apiVersion: "apps/v1",
  kind: "ReplicaSet",
  name: "web",
  uid: "r",
  controller: true,
};

/** A failed pod on the machine that has the name now, as its kubelet leaves it at a shutdown. */
function leave(
  name: string,
  nodeName: string,
  metadata: object = { ownerReferences: [owner] },
): void {
  world.create(pods, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, ...metadata },
    spec: { nodeName, containers: [{ name: "main", image: "web" }] },
  } as KubeObject);
  const startTime = new Date(world.clock.now()).toISOString();
  const status = { phase: "Failed", reason: "Terminated", startTime };
  const patchType = "application/merge-patch+json" as const;
  const path = `${pods}/${name}/status`;
  const { status: code } = world.api.handle({ method: "PATCH", path, patchType, body: { status } });
  expect(code).toBe(200);
}

/** Registers the group's next machine before the failed pods of the last one are collected. */
function replace(name: string): void {
  world.api.handle({ method: "DELETE", path: `${nodes}/${name}` });
  world.addNode(name, "a");
}

const left = () => world.list(pods).map(({ metadata }) => metadata?.name);
const deletions = () => world.writes.filter((one) => one.startsWith(`DELETE ${pods}`));
const policy = { lifetime: { max: "24h" } };

describe("failed pods of an earlier machine of the same name", () => {
  it("are deleted, and no other pods", async () => {
    spotPolicy(world, policy);
    for (const name of ["n0", "n1"]) world.addNode(name, "a");
    lead();
    await world.pass(seconds(10));
    leave("old", "n1");
    leave("bare", "n1", {});
    leave("of-n0", "n0");
    await world.pass(seconds(5));
    replace("n1");
    await world.pass(seconds(5));
    leave("new", "n1");
    await world.pass(minutes(4));
    expect(deletions()).toEqual([`DELETE ${pods}/old`]);
    expect(left()).toEqual(["bare", "new", "of-n0"]);
  });

  it.each<readonly [string, Readonly<Record<string, unknown>>, { dryRun?: boolean }]>([
    ["a policy is a dry run", { ...policy, dryRun: true }, {}],
    ["the controller runs with --dry-run", policy, { dryRun: true }],
    ["no policy selects the node", { ...policy, nodeSelector: never() }, {}],
  ])("are kept if %s", async (_, spec, options) => {
    spotPolicy(world, spec);
    world.addNode("n1", "a");
    lead(options);
    await world.pass(seconds(10));
    leave("old", "n1");
    await world.pass(seconds(5));
    replace("n1");
    await world.pass(minutes(4));
    expect(left()).toEqual(["old"]);
  });

  it("are deleted by a new leader", async () => {
    spotPolicy(world, policy);
    world.addNode("n1", "a");
    leave("old", "n1");
    await world.pass(seconds(5));
    replace("n1");
    lead();
    await world.pass(minutes(4));
    expect(left()).toEqual([]);
  });

  it("are deleted by a later attempt after an error; a refusal is logged once", async () => {
    spotPolicy(world, policy);
    world.addNode("n1", "a");
    for (const name of ["one", "two"]) leave(name, "n1");
    await world.pass(seconds(5));
    replace("n1");
    let faults = 2;
    const { send } = world.watched;
    Object.assign(world.watched, {
      send: (request: KubeRequest) => {
        if (request.method === "DELETE" && request.path.endsWith("/two")) {
          return Promise.resolve({ status: 403, body: { kind: "Status", message: "a webhook" } });
        }
        const isList = request.query?.fieldSelector?.endsWith("status.phase=Failed") === true;
        const isFaulty = (isList || request.method === "DELETE") && faults > 0;
        if (isFaulty) faults -= 1;
        const body = { kind: "Status", message: "later" };
        return isFaulty ? Promise.resolve({ status: 503, body }) : send(request);
      },
    });
    lead();
    await world.pass(minutes(30));
    expect(left()).toEqual(["two"]);
    const said = world.logged.filter((line) => line.includes("failed-pod"));
    expect(said.map((line) => line.split(" ")[1])).toEqual([
      "failed-pods-not-removed",
      "failed-pods-not-removed",
      "failed-pod-removed",
      "failed-pod-not-removed",
    ]);
  });

  it("are found by one list for all nodes, and by one for a node that is new", async () => {
    spotPolicy(world, policy);
    const names = Array.from({ length: 30 }, (_, place) => `n${place}`);
    for (const name of names) world.addNode(name, "a");
    leave("old", "n7");
    await world.pass(seconds(5));
    replace("n7");
    const lists: (string | undefined)[] = [];
    world.afterRequest = ({ method, path, query }) => {
      if (method === "GET" && path === "/api/v1/pods") lists.push(query?.fieldSelector);
    };
    lead();
    await world.pass(minutes(10));
    expect(left()).toEqual([]);
    replace("n3");
    await world.pass(minutes(10));
    expect(lists.filter((one) => one?.includes("Failed"))).toEqual([
      "status.phase=Failed",
      "spec.nodeName=n3,status.phase=Failed",
    ]);
  });
});

function never(): object {
  const expression = { key: "nothing", operator: "Exists" };
  return { nodeSelectorTerms: [{ matchExpressions: [expression] }] };
}
