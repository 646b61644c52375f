import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { formatInstant, instant } from "../../src/core/time.ts";
import { AgentProcess } from "../support/agent-process.ts";
import { agentPodsOf, agentTokenOn } from "../support/agent-token.ts";
import type { ApiAnswer } from "../support/api-request.ts";
import { AwsMetadataServer } from "../support/aws-metadata-server.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { waitUntil } from "../support/wait-until.ts";

const departures = "/apis/lastcall.dev/v1alpha1/departures";
const deploy = new URL("../../deploy", import.meta.url).pathname;
/** Half of what EC2 leaves. */
const outageMs = 60_000;
const bootID = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();

let plane: ControlPlane;
let uids: Record<string, string>;

beforeAll(async () => {
  plane = await startControlPlane();
  const nodes = await createNodes(plane, [
    { name: "spot-a", provisioning: "spot", bootID },
    { name: "spot-b", provisioning: "spot" },
    { name: "plain", provisioning: "standard" },
  ]);
  uids = Object.fromEntries(
    nodes.map(({ metadata }) => [metadata?.name ?? "", metadata?.uid ?? ""]),
  );
  await apply("-f", `${deploy}/crds/departures.lastcall.dev.yaml`);
  await apply("-f", `${deploy}/base/namespace.yaml`);
  await apply("-k", `${deploy}/agent`);
  await waitUntil(async () => (await agentPodsOf(plane)).length === 2, {
    ...{ what: "an agent runs on each spot node", timeoutMs: 60_000, signal: plane.signal },
  });
  await admissionWorks();
});

afterAll(() => plane?.stop());

afterEach(async () => {
  await plane.kubectl(["delete", "departures", "--all"]);
});

async function apply(...args: readonly string[]): Promise<void> {
  const applied = await plane.kubectl(["apply", ...args]);
  expect(applied).toMatchObject({ code: 0 });
}

function tokenOn(nodeName: string): Promise<string> {
  return agentTokenOn(plane, nodeName);
}

function departure(nodeName: string, change: { name?: string; spec?: object } = {}): object {
  return {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name: change.name ?? `${nodeName}-test` },
    spec: {
      node: { name: nodeName, uid: uids[nodeName] },
      cause: "SpotInterruption",
      noticedAt: "2026-11-20T00:00:00Z",
      source: "agent/aws/spot-instance-action",
      ...change.spec,
    },
  };
}

async function create(token: string, body: object): Promise<ApiAnswer> {
  return plane.request({ method: "POST", path: departures, body, token });
}

async function patch(token: string, name: string, body: object): Promise<ApiAnswer> {
  const contentType = "application/merge-patch+json";
  return plane.request({
    method: "PATCH",
    path: `${departures}/${name}`,
    body,
    contentType,
    token,
  });
}

/** A policy takes a moment from its creation to its first refusal. */
async function admissionWorks(): Promise<void> {
  const token = await tokenOn("spot-a");
  const probe = departure("spot-b", { name: "probe" });
  await waitUntil(
    async () => {
      const { status } = await create(token, probe);
      if (status === 201) await plane.kubectl(["delete", "departure", "probe"]);
      return status === 403;
    },
    { what: "the admission policy is in force", timeoutMs: 60_000, signal: plane.signal },
  );
}

describe("the rights of an agent", () => {
  test("let it speak of its own node", async () => {
    const token = await tokenOn("spot-a");
    expect((await create(token, departure("spot-a"))).status).toBe(201);
    const sooner = { spec: { deadlineAt: "2026-11-20T00:02:00Z" } };
    expect((await patch(token, "spot-a-test", sooner)).status).toBe(200);
  });

  test("do not let it speak of another node, nor of its own by another uid", async () => {
    const token = await tokenOn("spot-a");
    const other = await create(token, departure("spot-b"));
    expect(other.status).toBe(403);
    expect(other.body.message).toContain('its token is bound to node "spot-a"');
    const stranger = departure("spot-a", { spec: { node: { name: "spot-a", uid: "another" } } });
    expect((await create(token, stranger)).status).toBe(403);
  });

  test("do not let it change another node's departure", async () => {
    const made = await plane.request({
      method: "POST",
      path: departures,
      body: departure("spot-b"),
    });
    expect(made.status).toBe(201);
    const token = await tokenOn("spot-a");
    const sooner = { spec: { deadlineAt: "2026-11-20T00:00:30Z" } };
    expect((await patch(token, "spot-b-test", sooner)).status).toBe(403);
  });

  test.each([
    ["plan a departure", { cause: "Planned" }],
    ["ask for one as a person would", { cause: "Manual" }],
    ["speak in another's name", { source: "planner" }],
  ])("do not let it %s", async (_, spec) => {
    const token = await tokenOn("spot-a");
    expect((await create(token, departure("spot-a", { spec }))).status).toBe(403);
  });

  test.each([
    ["hold it", { hold: true }],
    ["move its instant", { departAt: "2026-11-21T00:00:00Z" }],
    ["put it under another policy", { policy: "other" }],
    ["let a noticed deadline move later", { deadlineAt: "2026-11-20T10:00:00Z" }],
  ])("do not let it change a departure in other ways: %s", async (_, spec) => {
    const token = await tokenOn("spot-a");
    const body = departure("spot-a", { spec: { deadlineAt: "2026-11-20T00:02:00Z" } });
    expect((await create(token, body)).status).toBe(201);
    const refused = await patch(token, "spot-a-test", { spec });
    expect([403, 422]).toContain(refused.status);
  });

  test("are none on nodes, pods, the list of departures or their deletion", async () => {
    const token = await tokenOn("spot-a");
    for (const path of ["/api/v1/nodes/spot-a", "/api/v1/pods", departures]) {
      expect((await plane.request({ path, token })).status).toBe(403);
    }
    const path = `${departures}/spot-a-test`;
    expect((await plane.request({ method: "DELETE", path, token })).status).toBe(403);
  });

  test("are not had by a token that is bound to no pod", async () => {
    const token = await plane.tokenFor("lastcall", "lastcall-agent");
    const refused = await create(token, departure("spot-a"));
    expect(refused.status).toBe(403);
  });
});

describe("the controller's own writes", () => {
  test("are not the policy's matter: a plan may be made and moved", async () => {
    const body = departure("spot-a", { spec: { cause: "Planned", source: "planner" } });
    expect((await plane.request({ method: "POST", path: departures, body })).status).toBe(201);
  });

  test("may move a plan's deadline later, and a first notice may, and then nothing may", async () => {
    const planned = {
      cause: "Planned",
      source: "planner",
      noticedAt: undefined,
      deadlineAt: "2026-11-20T00:00:00Z",
    };
    const body = departure("spot-a", { spec: planned });
    expect((await plane.request({ method: "POST", path: departures, body })).status).toBe(201);
    const token = await tokenOn("spot-a");
    const notice = {
      noticedAt: "2026-11-20T01:00:00Z",
      deadlineAt: "2026-11-20T01:02:00Z",
      source: "agent/aws/spot-instance-action",
    };
    expect((await patch(token, "spot-a-test", { spec: notice })).status).toBe(200);
    const later = { spec: { deadlineAt: "2026-11-20T01:03:00Z" } };
    expect((await patch(token, "spot-a-test", later)).status).toBe(422);
  });
});

describe("an agent's process", () => {
  let metadata: AwsMetadataServer;
  let agent: AgentProcess | undefined;

  beforeEach(async () => {
    metadata = await new AwsMetadataServer(() => instant(Date.now())).start();
  });
  afterEach(async () => {
    await agent?.stop();
    agent = undefined;
    await metadata.stop();
  });

  async function start(): Promise<AgentProcess> {
    const started = new AgentProcess({
      nodeName: "spot-a",
      metadataUrl: metadata.url,
      apiUrl: plane.url,
      caFile: plane.caFile,
      token: await tokenOn("spot-a"),
    });
    agent = started;
    return started;
  }

  /** Says when it will be. */
  function interrupt(): string {
    const time = formatInstant(instant(Date.now() + 120_000));
    const action = JSON.stringify({ action: "terminate", time });
    metadata.values.set("spot/instance-action", action);
    return time;
  }

  async function made(): Promise<Record<string, unknown> | undefined> {
    const { body } = await plane.request({ path: departures });
    return body.items?.[0]?.spec;
  }

  function untilMade(what: string): Promise<Record<string, unknown>> {
    return waitUntil(made, { what, timeoutMs: 20_000, signal: plane.signal, intervalMs: 20 });
  }

  test("turns the word of its machine into a Departure of its own node", async () => {
    const running = await start();
    const wait = { timeoutMs: 20_000, signal: plane.signal };
    await waitUntil(async () => running.said("listening"), { what: "it listens", ...wait });
    interrupt();
    expect(await untilMade("the departure is there")).toMatchObject({
      node: { name: "spot-a", uid: uids["spot-a"], bootID },
      cause: "SpotInterruption",
      source: "agent/aws/spot-instance-action",
    });
    expect(await running.stop()).toBe(0);
    agent = undefined;
  });

  test("hears a notice while the API server is away and tells it a minute later, when it is back", async () => {
    const running = await start();
    const wait = { timeoutMs: 20_000, signal: plane.signal };
    await waitUntil(async () => running.said("listening"), { what: "it listens", ...wait });
    await plane.stopApiServer();
    const deadlineAt = interrupt();
    await waitUntil(async () => running.said("trouble"), { what: "it has tried", ...wait });
    await pause(outageMs);
    await plane.startApiServer();
    expect(await untilMade("the departure is there")).toMatchObject({
      node: { name: "spot-a" },
      deadlineAt,
    });
    expect(Date.now()).toBeLessThan(Date.parse(deadlineAt));
  });

  test("starts while the API server is away and tells what is pending when it is back", async () => {
    const token = await tokenOn("spot-a");
    const deadlineAt = interrupt();
    await plane.stopApiServer();
    agent = new AgentProcess({
      ...{ nodeName: "spot-a", metadataUrl: metadata.url, apiUrl: plane.url },
      ...{ caFile: plane.caFile, token },
    });
    const running = agent;
    const wait = { timeoutMs: 20_000, signal: plane.signal };
    await waitUntil(async () => running.said("trouble"), { what: "it has tried", ...wait });
    await plane.startApiServer();
    expect(await untilMade("the departure is there")).toMatchObject({
      node: { name: "spot-a" },
      deadlineAt,
    });
  });
});
