import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { AgentHealth, AgentMetrics } from "../../src/agent/agent-status.ts";
import { NoticeReporter } from "../../src/agent/notice-reporter.ts";
import { agentFallback } from "../../src/cli/assemble/agent-fallback.ts";
import type { KubeAnswer, KubeRequest } from "../../src/contracts/kube-api.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import type { Notice, NoticeCause } from "../../src/core/notice/notice.ts";
import { minutes, plus, seconds } from "../../src/core/time/time.ts";
import { departures, ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";
import { unreachable } from "../support/scripted-api.ts";
import { ScriptedSource } from "../support/scripted-source.ts";

/** The real agent of n1 with its fallback, on a model cluster, with or without a controller. */
let world: ModelWorld;
let source: ScriptedSource;
let logged: string[];
/** Every request of the agent. */
let sent: KubeRequest[];
/** What the agent gets instead of the API server's response; undefined: that response. */
let refuse: (request: KubeRequest) => KubeAnswer | Error | undefined;
let ending: AbortController;
let running: Promise<unknown>[];
let standing: readonly Notice[];

beforeEach(() => {
  world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, "a");
  spotPolicy(world, { lifetime: {} });
  logged = [];
  sent = [];
  refuse = () => undefined;
  ending = new AbortController();
  running = [];
  standing = [];
});
afterEach(async () => {
  ending.abort();
  await Promise.all(running);
});

const leasePath = "/apis/coordination.k8s.io/v1/namespaces/lastcall/leases";

async function startAgent(mode: "Cordon" | "Drain", ended = ending.signal): Promise<void> {
  source = new ScriptedSource(world.clock);
  const uid = world.get(`${nodes}/n1`)?.metadata?.uid ?? "";
  const identify = async () => ({ name: "n1", uid, bootID: "boot-2" });
  const api = {
    send: async ({ bodyAtTurn, ...asked }: KubeRequest): Promise<KubeAnswer> => {
      const request = bodyAtTurn === undefined ? asked : { ...asked, body: bodyAtTurn() };
      sent.push(request);
      const instead = refuse(request);
      if (instead instanceof Error) throw instead;
      return instead ?? world.api.send(request);
    },
  };
  const say = (event: string) => void logged.push(event);
  const log = { debug: say, info: say, warn: say, error: say };
  const [{ clock }, rng, metrics] = [world, seededRng(1), new AgentMetrics()];
  const reporter = new NoticeReporter({ api, identify, log });
  const parts = { api, reporter, identify, log, metrics, clock, rng };
  const agent = new Agent({
    findSource: async () => source,
    fallback: agentFallback({ ...parts, mode, namespace: "lastcall" }),
    health: new AgentHealth(clock),
    dryRun: false,
    ...parts,
  });
  running.push(agent.run(ended).catch(() => {}));
  await world.pass(seconds(1));
}

function startController(ended = ending.signal): void {
  running.push(world.startController(ended).catch(() => {}));
}

function notice(leftSeconds: number, cause: NoticeCause = "SpotInterruption"): Notice {
  const deadlineAt = plus(world.clock.now(), seconds(leftSeconds));
  const noticedAt = world.clock.now();
  return { cause, deadlineAt, noticedAt, source: "aws/a", eventId: "event-1" };
}

/** For `count` seconds, the cloud reports `standing` each second. */
async function pass(count: number): Promise<void> {
  for (let second = 0; second < count; second += 1) {
    source.say("aws/a", standing);
    source.say("aws/b", []);
    await world.pass(seconds(1));
  }
}

const allMarks = [
  "unschedulable",
  "lastcall.dev/departing",
  "lastcall.dev/departure",
  "node.kubernetes.io/exclude-from-external-load-balancers",
];

function writesOfAgent(): readonly string[] {
  return sent.flatMap(({ method, path }) =>
    method === "GET" || path.includes("departures") ? [] : [`${method} ${path}`],
  );
}

async function withPods(how: { maxUnavailable: number }): Promise<void> {
  webWorkload(world, { replicas: 6, ...how });
  await world.pass(seconds(30));
  expect(world.podsOn("n1").length).toBeGreaterThan(0);
}

describe("an agent with fallback: Drain and no controller", () => {
  it("waits for three seconds, then marks the node as a controller does and drains it", async () => {
    await withPods({ maxUnavailable: 6 });
    await startAgent("Drain");
    standing = [notice(120)];
    await pass(2);
    expect(world.marksOf("n1")).toEqual([]);
    await pass(2);
    expect(world.marksOf("n1")).toEqual(expect.arrayContaining(allMarks));
    const name = world.departureOf("n1")?.metadata?.name;
    expect(world.get(`${nodes}/n1`)?.metadata?.annotations).toMatchObject({
      "lastcall.dev/departure": name,
    });
    await pass(15);
    expect(world.podsOn("n1")).toEqual([]);
    expect(logged).toContain("fallback-drained");
  });

  it("drains a node whose deadline is the time of the notice", async () => {
    await withPods({ maxUnavailable: 6 });
    await startAgent("Drain");
    standing = [notice(0)];
    await pass(30);
    expect(world.podsOn("n1")).toEqual([]);
    expect(logged).toContain("fallback-drained");
  });

  it("sends no further request once the node is drained", async () => {
    await withPods({ maxUnavailable: 6 });
    await startAgent("Drain");
    standing = [notice(600)];
    await pass(60);
    const before = sent.length;
    await pass(300);
    expect(sent.length).toBe(before);
  });

  it("also evicts a pod that was bound before the scheduler saw the cordon", async () => {
    await startAgent("Drain");
    standing = [notice(120)];
    await pass(4);
    expect(world.marksOf("n1")).toEqual(expect.arrayContaining(allMarks));
    expect(logged).not.toContain("fallback-drained");
    world.create("/api/v1/namespaces/default/pods", {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "late", namespace: "default", labels: { app: "late" } },
      spec: { nodeName: "n1", containers: [{ name: "late", image: "late:1" }] },
    });
    await pass(15);
    expect(world.podsOn("n1")).toEqual([]);
    expect(logged.filter((event) => event === "fallback-drained")).toHaveLength(1);
  });

  it("deletes pods that a budget holds while their grace still fits before the deadline", async () => {
    await withPods({ maxUnavailable: 0 });
    await startAgent("Drain");
    standing = [notice(120)];
    await pass(50);
    expect(sent.some(({ method }) => method === "DELETE")).toBe(false);
    // The budget is respected for half of the time since the agent started.
    await pass(20);
    expect(world.podsOn("n1")).toEqual([]);
    const deleted = sent.filter(({ method }) => method === "DELETE");
    expect(deleted.length).toBeGreaterThan(0);
    for (const { body } of deleted) {
      expect(body).toMatchObject({ preconditions: { uid: expect.any(String) } });
      expect((body as { gracePeriodSeconds: number }).gracePeriodSeconds).toBeLessThanOrEqual(120);
    }
  });

  it("retries evictions until the budget allows them if the notice has no deadline", async () => {
    await withPods({ maxUnavailable: 0 });
    await startAgent("Drain");
    standing = [{ ...notice(0, "LifecycleHook"), deadlineAt: undefined }];
    await pass(400);
    expect(world.podsOn("n1").length).toBeGreaterThan(0);
    world.patchBudget("web", { spec: { maxUnavailable: 6 } });
    await pass(30);
    expect(world.podsOn("n1")).toEqual([]);
  });

  it("drains even if the custom resources are not installed", async () => {
    await withPods({ maxUnavailable: 6 });
    await startAgent("Drain");
    refuse = ({ path }) =>
      path.startsWith(departures) ? { status: 404, body: "404 page not found" } : undefined;
    standing = [notice(120)];
    await pass(20);
    expect(world.marksOf("n1")).toEqual(expect.arrayContaining(allMarks));
    expect(world.podsOn("n1")).toEqual([]);
    standing = [];
    await pass(20);
    expect(world.marksOf("n1")).toEqual([]);
  });

  it("is not stopped by another node's departure under the name of its own", async () => {
    await withPods({ maxUnavailable: 6 });
    const [own = "", other = ""] = ["n1", "n0"].map(
      (name) => world.get(`${nodes}/${name}`)?.metadata?.uid,
    );
    world.create(departures, {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "Departure",
      metadata: { name: `n1-${own.slice(0, 8)}` },
      spec: {
        node: { name: "n0", uid: other },
        cause: "Manual",
        withdrawnAt: "2026-11-20T00:00:00Z",
      },
    });
    await startAgent("Drain");
    const body = { kind: "Status", message: "no" };
    refuse = ({ method }) => (method === "POST" ? { status: 500, body } : undefined);
    standing = [notice(120)];
    await pass(5);
    expect(world.marksOf("n1")).toEqual(expect.arrayContaining(allMarks));
  });

  it("acts as soon as an unreachable API server is back", async () => {
    await withPods({ maxUnavailable: 6 });
    await startAgent("Drain");
    refuse = () => unreachable();
    standing = [notice(120)];
    await pass(60);
    refuse = () => undefined;
    await pass(3);
    expect(world.marksOf("n1")).toEqual(expect.arrayContaining(allMarks));
  });

  it("adapts the drain to a deadline that moves forward", async () => {
    await withPods({ maxUnavailable: 0 });
    await startAgent("Drain");
    standing = [notice(3600)];
    await pass(10);
    expect(sent.some(({ method }) => method === "DELETE")).toBe(false);
    standing = [...standing, { ...notice(30), eventId: "event-2" }];
    // Some 36 s in all since the agent started: half of them, less the margin, are over 10 s later.
    await pass(14);
    expect(world.podsOn("n1")).toEqual([]);
  });

  it("ignores a notice that policies ignore by default, and handles the next one", async () => {
    await startAgent("Drain");
    standing = [notice(3600, "RebalanceRecommendation")];
    await pass(30);
    expect(writesOfAgent()).toEqual([]);
    standing = [...standing, { ...notice(120), eventId: "event-2" }];
    await pass(2);
    expect(world.marksOf("n1")).toEqual(expect.arrayContaining(allMarks));
  });

  it("uncordons the node when the notice is withdrawn", async () => {
    await startAgent("Drain");
    standing = [notice(600)];
    await pass(10);
    expect(world.marksOf("n1")).toContain("unschedulable");
    standing = [];
    await pass(20);
    expect(world.marksOf("n1")).toEqual([]);
  });

  it("uncordons the node when only a recommendation remains", async () => {
    await withPods({ maxUnavailable: 6 });
    await startAgent("Drain");
    const { deadlineAt: _, ...advice } = notice(0, "RebalanceRecommendation");
    const advised = { ...advice, eventId: "rebalance" };
    standing = [notice(1800, "ScheduledMaintenance"), advised];
    await pass(6);
    expect(world.marksOf("n1")).toContain("unschedulable");
    standing = [advised];
    await pass(20);
    expect(world.marksOf("n1")).toEqual([]);
  });

  it("uncordons the node even if the agent was restarted meanwhile", async () => {
    const first = new AbortController();
    await startAgent("Drain", first.signal);
    standing = [notice(600)];
    await pass(10);
    first.abort();
    standing = [];
    await startAgent("Drain");
    await pass(20);
    expect(world.marksOf("n1")).toEqual([]);
  });

  it("continues the drain after a restart of the agent", async () => {
    await withPods({ maxUnavailable: 6 });
    const first = new AbortController();
    await startAgent("Drain", first.signal);
    standing = [notice(120)];
    await pass(4);
    first.abort();
    await startAgent("Drain");
    await pass(15);
    expect(world.podsOn("n1")).toEqual([]);
  });

  it("does nothing if a person deletes the departure", async () => {
    await startAgent("Drain");
    standing = [notice(600)];
    await pass(2);
    const name = world.departureOf("n1")?.metadata?.name ?? "";
    world.api.handle({ method: "DELETE", path: `${departures}/${name}` });
    await pass(30);
    expect(writesOfAgent()).toEqual([]);
  });
});

describe("an agent with fallback: Cordon and no controller", () => {
  it("marks the node and leaves its pods alone", async () => {
    await withPods({ maxUnavailable: 6 });
    const before = world.podsOn("n1").length;
    await startAgent("Cordon");
    standing = [notice(120)];
    await pass(60);
    expect(world.marksOf("n1")).toEqual(expect.arrayContaining(allMarks));
    expect(world.podsOn("n1")).toHaveLength(before);
    expect(sent.some(({ path }) => path.includes("pods"))).toBe(false);
  });
});

describe("an agent with fallback: Drain beside a controller", () => {
  it("leaves the node to the controller", async () => {
    await withPods({ maxUnavailable: 6 });
    startController();
    await startAgent("Drain");
    standing = [notice(120)];
    await pass(100);
    expect(world.podsOn("n1")).toEqual([]);
    expect(writesOfAgent()).toEqual([]);
  });

  it("stops as soon as the controller is back and has taken over", async () => {
    await withPods({ maxUnavailable: 0 });
    await startAgent("Drain");
    standing = [notice(600)];
    await pass(10);
    expect(writesOfAgent().length).toBeGreaterThan(1);
    startController();
    await pass(3);
    const before = writesOfAgent().length;
    await pass(60);
    expect(writesOfAgent().length).toBe(before);
    expect(world.statusOf("n1").phase).toBe("Draining");
    expect(world.marksOf("n1").filter((mark) => mark === "unschedulable")).toHaveLength(1);
  });

  it("continues a controller's drain once the Lease of that controller has expired", async () => {
    await withPods({ maxUnavailable: 0 });
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "lastcall" } };
    world.create("/api/v1/namespaces", namespace);
    const lease = { holderIdentity: "c-1", leaseDurationSeconds: 40 };
    world.create(leasePath, {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "lastcall", namespace: "lastcall" },
      spec: lease,
    });
    const alive = new AbortController();
    startController(alive.signal);
    await startAgent("Drain");
    standing = [notice(600)];
    await pass(10);
    expect(world.statusOf("n1").phase).toBe("Draining");
    alive.abort();
    await pass(30);
    expect(writesOfAgent()).toEqual([]);
    await pass(30);
    expect(writesOfAgent().some((one) => one.includes("/eviction"))).toBe(true);
  });

  it("leaves a controller's drain alone if there is no Lease", async () => {
    await withPods({ maxUnavailable: 0 });
    const alive = new AbortController();
    startController(alive.signal);
    await startAgent("Drain");
    standing = [notice(600)];
    await pass(10);
    alive.abort();
    await world.pass(minutes(5));
    expect(writesOfAgent()).toEqual([]);
  });
});
