import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { departureName } from "../../src/core/departure/departure.ts";
import { formatInstant, instant } from "../../src/core/time/time.ts";
import { AgentProcess } from "../support/agent-process.ts";
import { agentPodsOf, agentTokenOn } from "../support/agent-token.ts";
import type { ApiAnswer } from "../support/api-request.ts";
import { AwsMetadataServer } from "../support/aws-metadata-server.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { waitUntil } from "../support/wait-until.ts";

const departures = "/apis/lastcall.dev/v1alpha1/departures";
const deploy = new URL("../../deploy", import.meta.url).pathname;
/** Half of the notice that EC2 gives. */
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

test("the first notice may move a planned deadline later, but no later change may", async () => {
  const planned = {
    ...{ cause: "Planned", source: "planner", noticedAt: undefined },
    deadlineAt: "2026-11-20T00:00:00Z",
  };
  const name = departureName({ name: "spot-a", uid: uids["spot-a"] ?? "" });
  const body = {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name },
    spec: { node: { name: "spot-a", uid: uids["spot-a"] }, ...planned },
  };
  expect((await plane.request({ method: "POST", path: departures, body })).status).toBe(201);
  const token = await tokenOn("spot-a");
  const notice = {
    noticedAt: "2026-11-20T01:00:00Z",
    deadlineAt: "2026-11-20T01:02:00Z",
    source: "agent/aws/spot-instance-action",
  };
  expect((await patch(token, name, { spec: notice })).status).toBe(200);
  const later = { spec: { deadlineAt: "2026-11-20T01:03:00Z" } };
  expect((await patch(token, name, later)).status).toBe(422);
});

describe("the agent's process", () => {
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

  /** Returns when the machine will be interrupted. */
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

  test("turns a notice of the metadata service into a Departure of its own node", async () => {
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

  test("reports a notice that comes during an API outage of 1 min, once it is over", async () => {
    const running = await start();
    const wait = { timeoutMs: 20_000, signal: plane.signal };
    await waitUntil(async () => running.said("listening"), { what: "it listens", ...wait });
    await plane.stopApiServer();
    const deadlineAt = interrupt();
    await waitUntil(async () => running.said("agent-error"), { what: "it has tried", ...wait });
    await pause(outageMs);
    await plane.startApiServer();
    expect(await untilMade("the departure is there")).toMatchObject({
      node: { name: "spot-a" },
      deadlineAt,
    });
    expect(Date.now()).toBeLessThan(Date.parse(deadlineAt));
  });

  test("starts during an API outage, and reports a pending notice once it is over", async () => {
    const token = await tokenOn("spot-a");
    const deadlineAt = interrupt();
    await plane.stopApiServer();
    agent = new AgentProcess({
      ...{ nodeName: "spot-a", metadataUrl: metadata.url, apiUrl: plane.url },
      ...{ caFile: plane.caFile, token },
    });
    const running = agent;
    const wait = { timeoutMs: 20_000, signal: plane.signal };
    await waitUntil(async () => running.said("agent-error"), { what: "it has tried", ...wait });
    await plane.startApiServer();
    expect(await untilMade("the departure is there")).toMatchObject({
      node: { name: "spot-a" },
      deadlineAt,
    });
  });
});
