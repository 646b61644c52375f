import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Acknowledger } from "../../src/agent/acknowledger.ts";
import { Agent } from "../../src/agent/agent.ts";
import { AgentHealth, AgentMetrics } from "../../src/agent/agent-status.ts";
import { NoticeReporter } from "../../src/agent/notice-reporter.ts";
import { agentFallback } from "../../src/cli/assemble/agent-fallback.ts";
import type { KubeRequest } from "../../src/contracts/kube-api.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import type { Notice } from "../../src/core/notice/notice.ts";
import { plus, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";
import { ScriptedSource } from "../support/scripted-source.ts";

/** The real agent of n1 with its acknowledger, beside the real controller, on a model cluster. */
let world: ModelWorld;
let source: ScriptedSource;
let sent: KubeRequest[];
let metrics: AgentMetrics;
let ending: AbortController;
let running: Promise<unknown>[];

beforeEach(() => {
  world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, "a");
  spotPolicy(world, { lifetime: {} });
  sent = [];
  ending = new AbortController();
  running = [];
});
afterEach(async () => {
  ending.abort();
  await Promise.all(running);
});

async function start(how: { controller: boolean; maxUnavailable: number }): Promise<void> {
  webWorkload(world, { replicas: 6, maxUnavailable: how.maxUnavailable });
  await world.pass(seconds(30));
  expect(world.podsOn("n1").length).toBeGreaterThan(0);
  const { clock } = world;
  source = new ScriptedSource(clock, "azure");
  metrics = new AgentMetrics();
  const uid = world.get(`${nodes}/n1`)?.metadata?.uid ?? "";
  const identify = async () => ({ name: "n1", uid, bootID: "boot-2" });
  const api = {
    send: (request: KubeRequest) => {
      sent.push(request);
      return world.api.send(request);
    },
  };
  const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
  const reporter = new NoticeReporter({ api, identify, log: silent });
  const parts = { api, reporter, identify, clock, metrics, log: silent, rng: seededRng(1) };
  const acknowledger = new Acknowledger(parts);
  const onDrained = () => acknowledger.drained();
  const fallback = agentFallback({ ...parts, mode: "Drain", namespace: "lastcall", onDrained });
  const agent = new Agent({
    ...{ ...parts, acknowledger, fallback, findSource: async () => source },
    ...{ health: new AgentHealth(clock), dryRun: false },
  });
  running.push(agent.run(ending.signal).catch(() => {}));
  if (how.controller) running.push(world.startController(ending.signal).catch(() => {}));
  await world.pass(seconds(1));
}

function preempt(leftSeconds: number, canBegin = true): Notice {
  const deadlineAt = plus(world.clock.now(), seconds(leftSeconds));
  const noticedAt = world.clock.now();
  const event = { eventId: "event-1", source: "aws/a", canBegin };
  return { cause: "SpotInterruption", deadlineAt, noticedAt, ...event };
}

async function say(notices: readonly Notice[], count: number): Promise<void> {
  for (let second = 0; second < count; second += 1) {
    source.say("aws/a", notices);
    source.say("aws/b", []);
    await world.pass(seconds(1));
  }
}

describe("an event that may be acknowledged", () => {
  it("is acknowledged once, when the node is drained", async () => {
    await start({ controller: true, maxUnavailable: 6 });
    const standing = [preempt(600)];
    await say(standing, 1);
    expect(world.podsOn("n1")).not.toEqual([]);
    expect(source.acknowledged).toEqual([]);
    await say(standing, 20);
    expect(world.podsOn("n1")).toEqual([]);
    expect(source.acknowledged).toEqual(["event-1"]);
    const before = sent.length;
    await say(standing, 120);
    expect(source.acknowledged).toEqual(["event-1"]);
    expect(sent.length).toBe(before);
  });

  it("is acknowledged if the agent itself has drained the node, too", async () => {
    await start({ controller: false, maxUnavailable: 6 });
    await say([preempt(600)], 30);
    expect(world.podsOn("n1")).toEqual([]);
    expect(source.acknowledged).toEqual(["event-1"]);
  });

  it("is not acknowledged while a budget keeps a pod on the node", async () => {
    await start({ controller: true, maxUnavailable: 0 });
    await say([preempt(600)], 60);
    expect(world.podsOn("n1")).not.toEqual([]);
    expect(source.acknowledged).toEqual([]);
  });

  it("is acknowledged again after a temporary error, but not after a refusal", async () => {
    await start({ controller: true, maxUnavailable: 6 });
    source.refusal = new LastcallError("CLOUD_UNREACHABLE", "Cannot acknowledge: no answer");
    await say([preempt(600)], 30);
    expect(source.acknowledged).toEqual(["event-1"]);
    source.refusal = new LastcallError("CLOUD_REFUSED", "Cannot acknowledge: 400");
    await say([preempt(600), { ...preempt(500), eventId: "event-2" }], 30);
    expect(source.acknowledged).toEqual(["event-1"]);
    expect(metrics.exposition()).toContain(
      'lastcall_actions_total{action="AzureAcknowledge",result="Failed"} 2',
    );
  });
});

describe("an event that must not be acknowledged", () => {
  it("is left alone, without a request to the API server for it", async () => {
    await start({ controller: true, maxUnavailable: 6 });
    const standing = [preempt(600, false)];
    await say(standing, 10);
    const before = sent.length;
    await say(standing, 60);
    expect(world.podsOn("n1")).toEqual([]);
    expect(source.acknowledged).toEqual([]);
    // The agent's regular requests, and none for the event.
    expect(sent.length - before).toBeLessThanOrEqual(3);
  });
});
