import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ComputeWorld, startComputeWorld, zone } from "../../support/compute-world.ts";
import { allClear } from "../../support/machine-releaser.ts";

type Body = Readonly<Record<string, unknown>>;

function recorded(file: string) {
  return JSON.parse(readFileSync(new URL(`../../data/gce/${file}`, import.meta.url), "utf8"));
}

const operations: Record<string, Body[]> = recorded("operations-2019.json").operations;
const autoscaler: Record<string, Body> = recorded("autoscaler-responses.json");

/** The form of a value, with the parts masked that differ from body to body. */
function formOf(value: unknown): string {
  if (typeof value !== "string") return typeof value;
  return value
    .replace(/^https:\/\/[a-z]+\.googleapis\.com/, "<host>")
    .replace(/(projects|zones|instances|instanceGroupManagers)\/[^/]+/g, "$1/<name>")
    .replace(/systemevent-\d{13}-[0-9a-f]{13}-[0-9a-f]{8}-[0-9a-f]{8}/, "<event>")
    .replace(/operation-\d{13}-[0-9a-f]{13}-[0-9a-f]{8}-[0-9a-f]{8}/, "<operation>")
    .replace(/^\d{15,20}$/, "<id>")
    .replace(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}-0[78]:00$/, "<instant>");
}

/** Each of the recorded body's fields is there and has the same form. */
function expectSameForm(body: Body, real: Body, fields: readonly string[]): void {
  for (const field of fields) expect(formOf(body[field]), field).toBe(formOf(real[field]));
}

const operationFields = [
  "endTime",
  "id",
  "insertTime",
  "kind",
  "name",
  "progress",
  "selfLink",
  "startTime",
  "status",
  "targetId",
  "targetLink",
  "zone",
];

describe("the Compute Engine test server", () => {
  let world: ComputeWorld;
  beforeEach(async () => {
    world = await startComputeWorld();
  });
  afterEach(() => world.close());

  async function get(path: string): Promise<Body> {
    const url = `${world.server.endpoint}/compute/v1/projects/project1${path}`;
    return (await world.pass(fetch(url).then((answer) => answer.json()))) as Body;
  }

  it("writes an operation with the fields and forms of a recorded stop", async () => {
    const machine = world.addMachine("n1");
    const request = {
      mode: "DeleteInstance",
      requestId: crypto.randomUUID(),
      lastLook: allClear,
    } as const;
    const { providerID, id: machineId } = machine;
    await world.pass(
      world.releaser.release({ providerID, machineId, ...request }, new AbortController().signal),
    );
    const [operation] = world.server.model.operations({ scope: "zones", location: zone });
    const body = await get(`/zones/${zone}/operations/${operation?.name}`);
    for (const real of operations.stop ?? []) expectSameForm(body, real, operationFields);
    expect(body.targetId).toBe(machine.id);
  });

  it("writes a preemption like the recorded ones, in the system's name", async () => {
    world.addMachine("n1");
    const { name } = world.server.model.preempt(zone, "n1");
    const body = await get(`/zones/${zone}/operations/${name}`);
    const real = operations["compute.instances.preempted"] ?? [];
    expect(real.length).toBeGreaterThan(0);
    for (const one of real) {
      expectSameForm(body, one, operationFields);
      expect(body).toMatchObject({
        operationType: one.operationType,
        statusMessage: one.statusMessage,
        user: one.user,
        status: one.status,
      });
    }
  });

  it("writes a group like the recorded one", async () => {
    const group = await get(`/zones/${zone}/instanceGroupManagers/gke-pool-grp`);
    const realGroup = autoscaler.instanceGroupManager ?? {};
    const shared = Object.keys(realGroup).filter((field) => field !== "currentActions");
    const links = ["instanceGroup", "instanceTemplate", "id", "name", "baseInstanceName"];
    expectSameForm(
      group,
      realGroup,
      shared.filter((field) => !links.includes(field)),
    );
    for (const link of links) expect(group, link).toHaveProperty(link);
  });

  it("returns the same operation for the same request ID", async () => {
    world.addMachine("n1");
    const requestId = crypto.randomUUID();
    const path = `/zones/${zone}/instances/n1?requestId=${requestId}`;
    const url = `${world.server.endpoint}/compute/v1/projects/project1${path}`;
    const [first, second] = await Promise.all(
      [url, url].map(async (one) => (await fetch(one, { method: "DELETE" })).json()),
    );
    expect(second).toEqual(first);
  });

  it("takes a recreated machine through STOPPING to a new ID under the same name", async () => {
    const { providerID, id } = world.addMachine("n1");
    const path = `zones/${zone}/instances/n1`;
    const act = { group: world.group, instances: [path], skipInvalid: false };
    world.server.model.actOnGroup("recreateInstances", act);
    const seen: string[] = [];
    await world.passUntil(() => {
      const machine = world.server.model.machines(zone).find(({ name }) => name === "n1");
      const state = machine === undefined ? "none" : `${machine.status} ${machine.id === id}`;
      if (seen.at(-1) !== state) seen.push(state);
      return state === "RUNNING false";
    });
    expect(seen).toEqual([
      "RUNNING true",
      "STOPPING true",
      "none",
      "PROVISIONING false",
      "RUNNING false",
    ]);
    expect(world.bornHere(providerID)).toBe(2);
  });

  it("refuses a list with both a filter and an order, in Compute Engine's words", async () => {
    const query = new URLSearchParams({ filter: 'name = "n1"', orderBy: "creationTimestamp desc" });
    expect(await get(`/zones/${zone}/operations?${query}`)).toEqual({
      error: {
        code: 400,
        message:
          "Invalid value for field 'orderBy': 'creationTimestamp desc'. Specifying both a list filter and sort order is not currently supported.",
        errors: [expect.objectContaining({ domain: "global", reason: "invalid" })],
      },
    });
  });

  it("returns lists in pages", async () => {
    for (const name of ["n1", "n2", "n3"]) world.addMachine(name);
    const first = await get(`/zones/${zone}/instances?maxResults=2`);
    expect(first.items).toHaveLength(2);
    const page = `maxResults=2&pageToken=${first.nextPageToken}`;
    const second = await get(`/zones/${zone}/instances?${page}`);
    expect(second.items).toMatchObject([{ name: "n3" }]);
    expect(second).not.toHaveProperty("nextPageToken");
  });
});
