/**
 * What a stolen agent token can write to a Departure of its own node, on a real API server.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { departureName } from "../../src/core/departure/departure.ts";
import type { ApiAnswer } from "../support/api-request.ts";
import { waitUntil } from "../support/wait-until.ts";
import { AgentWorld, type Change, departures, dotted, long, other, own } from "./agent-world.ts";
import { mustRun } from "./must-run.ts";

const merge = "application/merge-patch+json";

let world: AgentWorld;

beforeAll(async () => {
  world = await AgentWorld.start();
});
afterAll(() => world?.plane.stop());

describe("the name of a Departure that an agent creates", () => {
  const uid8 = (node: string) => world.uids.get(node)?.slice(0, 8);

  test.each([
    ["the standard name", own, () => `${own}-${uid8(own)}`],
    ["the standard name with a number", own, () => `${own}-${uid8(own)}-2`],
    ["the standard name with the highest number", own, () => `${own}-${uid8(own)}-999`],
    ["a name with dots", dotted, () => `${dotted}-${uid8(dotted)}`],
    ["the uid, if the node's name is too long", long, () => `node-${world.uids.get(long)}`],
    ["the uid with a number", long, () => `node-${world.uids.get(long)}-12`],
  ])("may be %s", async (_, node, name) => {
    const made = world.departure(node, { name: name() });
    expect((await world.create(node, made)).status).toBe(201);
  });

  test.each([
    ["another node's", () => `${other}-${uid8(other)}`],
    ["another node's with a number", () => `${other}-${uid8(other)}-2`],
    ["another node's uid", () => `node-${world.uids.get(long)}`],
    ["its own name with another node's uid", () => `${own}-${uid8(other)}`],
    ["another node's name with its own uid", () => `${other}-${uid8(own)}`],
    ["its own name without a uid", () => own],
    ["its uid, if the standard name fits", () => `node-${world.uids.get(own)}`],
    ["one that only starts like its own", () => `${own}-${uid8(own)}x`],
    ["its own with a suffix", () => `${own}-${uid8(own)}-x`],
    ["its own with the number 1", () => `${own}-${uid8(own)}-1`],
    ["its own with the number 0", () => `${own}-${uid8(own)}-0`],
    ["its own with a number that starts with a zero", () => `${own}-${uid8(own)}-02`],
    ["its own with a fourth digit", () => `${own}-${uid8(own)}-1000`],
    ["its own with two numbers", () => `${own}-${uid8(own)}-2-2`],
    ["an arbitrary name", () => "anything"],
  ])("may not be %s", async (_, name) => {
    const refused = await world.create(own, world.departure(own, { name: name() }));
    expect(refused.status).toBe(403);
    expect(refused.body.message).toContain("must name a departure after its own node");
  });

  test("is not treated as a pattern: a dot matches only a dot", async () => {
    const name = `${dotted.replaceAll(".", "x")}-${uid8(dotted)}`;
    expect((await world.create(dotted, world.departure(dotted, { name }))).status).toBe(403);
  });
});

const notice = "lastcall.dev/notice";
/** What anyone may send as the record of who has written a field. */
const record = {
  ...{ manager: "m", operation: "Apply", apiVersion: "lastcall.dev/v1alpha1" },
  ...{ time: "2026-11-20T00:00:00Z", fieldsType: "FieldsV1" },
};
const names = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`f:${"x".repeat(40)}${at}`, {}]));
const records: readonly (readonly [string, object])[] = [
  ["of thousands of fields", { "f:spec": names(9000) }],
  ["of fields within fields", { "f:spec": { "f:node": { "f:name": names(100) } } }],
  ["of the status", { "f:status": { "f:phase": {} } }],
];

describe("a Departure that an agent creates for its own node", () => {
  test.each([
    ["SpotInterruption", "aws/spot-instance-action"],
    ["RebalanceRecommendation", "aws/rebalance"],
    ["ScheduledMaintenance", "azure/scheduled-events"],
    ["LifecycleHook", "aws/target-lifecycle-state"],
    ["SpotInterruption", "gcp/preempted"],
  ])("may have the cause %s from the source %s", async (cause, source) => {
    const spec = { cause, source: `agent/${source}`, deadlineAt: "2026-11-20T00:02:00Z" };
    const metadata = { annotations: { [notice]: "event-1,event-2" } };
    expect((await world.create(own, world.departure(own, { spec, metadata }))).status).toBe(201);
  });

  test.each([
    ["another node's uid", { spec: { node: { name: own, uid: "another" } } }],
    ["another node", { spec: { node: { name: other, uid: "another" } } }],
    ["the cause Planned", { spec: { cause: "Planned" } }],
    ["the cause Manual", { spec: { cause: "Manual" } }],
    ["the cause Preempted", { spec: { cause: "Preempted" } }],
    ["the cause NodeShutdown", { spec: { cause: "NodeShutdown" } }],
    ["the planner's source", { spec: { source: "planner" } }],
    ["a queue's source", { spec: { source: "aws/queue/spot-interruption/event-1" } }],
    ["a source that only contains an agent's", { spec: { source: "x agent/aws/rebalance" } }],
    ["no source", { spec: { source: undefined } }],
    ["a departure time", { spec: { departAt: "2026-11-20T00:00:00Z" } }],
    ["a hold", { spec: { hold: true } }],
    ["a policy", { spec: { policy: "other" } }],
    ["a withdrawal from the start", { spec: { withdrawnAt: "2026-11-20T00:00:00Z" } }],
    ["a label", { metadata: { labels: { a: "b" } } }],
    ["a finalizer", { metadata: { finalizers: ["example.com/stay"] } }],
    [
      "an owner",
      { metadata: { ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "n", uid: "u" }] } },
    ],
    ["another annotation", { metadata: { annotations: { a: "b" } } }],
    ["an endless notice", { metadata: { annotations: { [notice]: "x".repeat(16_385) } } }],
  ])("is rejected with %s", async (_, change: Change) => {
    const refused = await world.create(own, world.departure(own, change));
    expect(refused.status).toBe(403);
    expect(refused.body.message).toContain("an agent");
  });

  test.each(records)("is rejected with a record of writers %s", async (_, fieldsV1) => {
    const metadata = { managedFields: [{ ...record, fieldsV1 }] };
    const refused = await world.create(own, world.departure(own, { metadata }));
    expect(refused.status).toBe(403);
    expect(refused.body.message).toContain("must not write the record of a departure's writers");
  });

  test("may not have a providerID, but may have a bootID", async () => {
    const node = { ...world.identity(own), providerID: "gce://p/z/other" };
    const refused = await world.create(own, world.departure(own, { spec: { node } }));
    expect(refused.status).toBe(403);
    expect(refused.body.message).toContain("only by name, uid and bootID");
    const booted = { ...world.identity(own), bootID: "boot-1" };
    expect((await world.create(own, world.departure(own, { spec: { node: booted } }))).status).toBe(
      201,
    );
  });
});

describe("changes by an agent to a Departure of its own node", () => {
  const name = () => departureName(world.identity(own), 3);
  const path = () => `${departures}/${name()}`;

  beforeEach(async () => {
    await world.plane.request({ method: "DELETE", path: path() });
    const spec = {
      policy: "spot",
      departAt: "2026-11-20T00:00:00Z",
      source: "aws/queue/rebalance",
    };
    const metadata = { labels: { team: "a" }, annotations: { seen: "yes" } };
    const base = { deadlineAt: "2026-11-20T00:10:00Z", cause: "RebalanceRecommendation" };
    await world.make(
      departures,
      world.departure(own, { name: name(), metadata, spec: { ...base, ...spec } }),
    );
  });

  function change(body: object, as: string = own): Promise<ApiAnswer> {
    const token = world.tokenOf(as);
    return world.plane.request({ method: "PATCH", path: path(), body, contentType: merge, token });
  }

  test.each([
    ["an earlier deadline", { spec: { deadlineAt: "2026-11-20T00:02:00Z" } }],
    [
      "a more severe cause with its source",
      { spec: { cause: "LifecycleHook", source: "agent/aws/target-lifecycle-state" } },
    ],
    ["the withdrawal of the notice", { spec: { withdrawnAt: "2026-11-20T00:01:00Z" } }],
    // Also for a Departure that a queue created, whose source stays unchanged.
    ["one more event", { metadata: { annotations: { [notice]: "event-1" } } }],
  ])("may include %s", async (_, body) => {
    expect((await change(body)).status).toBe(200);
  });

  test.each([
    ["a hold", { spec: { hold: true } }],
    ["a departure time", { spec: { departAt: "2026-11-21T00:00:00Z" } }],
    ["the removal of the departure time", { spec: { departAt: null } }],
    ["another policy", { spec: { policy: "other" } }],
    ["the removal of the policy", { spec: { policy: null } }],
    ["the cause of a planned departure", { spec: { cause: "Planned" } }],
    ["the source of another program", { spec: { source: "aws/queue/health" } }],
    ["the removal of the source", { spec: { source: null } }],
    ["another notice time", { spec: { noticedAt: "2026-11-20T05:00:00Z" } }],
    ["a label", { metadata: { labels: { team: "b" } } }],
    ["the removal of the labels", { metadata: { labels: null } }],
    ["another program's annotation", { metadata: { annotations: { seen: "no" } } }],
    ["the removal of another program's annotation", { metadata: { annotations: { seen: null } } }],
    ["a finalizer", { metadata: { finalizers: ["example.com/stay"] } }],
  ])("may not include %s", async (_, body) => {
    const refused = await change(body);
    expect(refused.status).toBe(403);
    expect(refused.body.message).toContain("an agent");
  });

  test("may include an earlier deadline, whatever else its writer before has written", async () => {
    // The write takes the deadline out of that writer's part of the record, which stays large.
    const labels = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`label-${at}`, "x"]));
    const spec = { deadlineAt: "2026-11-20T00:05:00Z" };
    const token = world.plane.adminToken;
    const body = { metadata: { labels }, spec };
    const by = { path: `${path()}?fieldManager=person`, contentType: merge, token };
    expect((await world.plane.request({ method: "PATCH", ...by, body })).status).toBe(200);
    expect((await change({ spec: { deadlineAt: "2026-11-20T00:02:00Z" } })).status).toBe(200);
  });

  test.each(records)("may not include a record of writers %s", async (_, fieldsV1) => {
    const refused = await change({ metadata: { managedFields: [{ ...record, fieldsV1 }] } });
    expect(refused.status).toBe(403);
    expect(refused.body.message).toContain("must not write the record of a departure's writers");
  });

  test("may not move the deadline later after a notice, by the CRD's own rule", async () => {
    expect((await change({ spec: { deadlineAt: "2026-11-20T10:00:00Z" } })).status).toBe(422);
  });

  test("may not come from another node's agent", async () => {
    const refused = await change({ spec: { deadlineAt: "2026-11-20T00:02:00Z" } }, other);
    expect(refused.status).toBe(403);
    expect(refused.body.message).toContain(`its token is bound to node "${other}"`);
  });

  test("may not include the status, even if a role grants it by mistake", async () => {
    const role = ["create", "clusterrole", "mistake", "--verb=patch"];
    await mustRun(world.plane, [...role, "--resource=departures.lastcall.dev/status"]);
    const user = ["--serviceaccount=lastcall:lastcall-agent"];
    await mustRun(world.plane, [
      "create",
      "clusterrolebinding",
      "mistake",
      "--clusterrole=mistake",
      ...user,
    ]);
    const body = { status: { phase: "Ended", outcome: "Failed" } };
    const token = world.tokenOf(own);
    const write = () =>
      world.plane.request({
        method: "PATCH",
        path: `${path()}/status`,
        body,
        contentType: merge,
        token,
      });
    const isJudged = async () => (await write()).body.message.includes("must not write the status");
    await waitUntil(isJudged, {
      what: "the role counts",
      timeoutMs: 30_000,
      signal: world.plane.signal,
    });
    expect((await write()).status).toBe(403);
  });

  test("are not restricted for other users", async () => {
    const body = { spec: { departAt: "2026-11-21T00:00:00Z", hold: true, policy: "other" } };
    const answer = await world.plane.request({
      method: "PATCH",
      path: path(),
      body,
      contentType: merge,
    });
    expect(answer.status).toBe(200);
  });
});
