import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { AgentHealth, AgentMetrics } from "../../src/agent/agent-health.ts";
import { NoticeReporter } from "../../src/agent/notice-reporter.ts";
import { agentFallback } from "../../src/cli/assemble/agent-fallback.ts";
import type { KubeAnswer, KubeRequest } from "../../src/contracts/kube-api.ts";
import { seededRng } from "../../src/core/chance/rng.ts";
import type { Notice, NoticeCause } from "../../src/core/notice/notice.ts";
import { minutes, plus, seconds } from "../../src/core/time/time.ts";
import { departures, ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";
import { unreachable } from "../support/scripted-api.ts";
import { ScriptedSource } from "../support/scripted-source.ts";

/** The real agent of n1 with its fallback, on a model cluster, with a controller or without. */
let world: ModelWorld;
let source: ScriptedSource;
let logged: string[];
/** Every request of the agent. */
let sent: KubeRequest[];
/** What the API server answers the agent instead; undefined: its own answer. */
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

/** The cloud says what stands, every second. */
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
  it("leaves the node alone for three seconds, then marks it as a controller does and drains it", async () => {
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

  it("drains a node whose deadline is the moment of the notice", async () => {
    await withPods({ maxUnavailable: 6 });
    await startAgent("Drain");
    standing = [notice(0)];
    await pass(30);
    expect(world.podsOn("n1")).toEqual([]);
    expect(logged).toContain("fallback-drained");
  });

  it("asks nothing more of the API server once the node is drained", async () => {
    await withPods({ maxUnavailable: 6 });
    await startAgent("Drain");
    standing = [notice(600)];
    await pass(60);
    const before = sent.length;
    await pass(300);
    expect(sent.length).toBe(before);
  });

  it("waits for what the scheduler had bound before it saw the mark", async () => {
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

  it("deletes what a budget holds while its grace still fits before the deadline", async () => {
    await withPods({ maxUnavailable: 0 });
    await startAgent("Drain");
    standing = [notice(120)];
    await pass(50);
    expect(sent.some(({ method }) => method === "DELETE")).toBe(false);
    // The budget is kept for half of the time from the agent's beginning.
    await pass(20);
    expect(world.podsOn("n1")).toEqual([]);
    const deleted = sent.filter(({ method }) => method === "DELETE");
    expect(deleted.length).toBeGreaterThan(0);
    for (const { body } of deleted) {
      expect(body).toMatchObject({ preconditions: { uid: expect.any(String) } });
      expect((body as { gracePeriodSeconds: number }).gracePeriodSeconds).toBeLessThanOrEqual(120);
    }
  });

  it("asks for what a budget holds until it gives way, where the cloud names no deadline", async () => {
    await withPods({ maxUnavailable: 0 });
    await startAgent("Drain");
    standing = [{ ...notice(0, "LifecycleHook"), deadlineAt: undefined }];
    await pass(400);
    expect(world.podsOn("n1").length).toBeGreaterThan(0);
    world.patchBudget("web", { spec: { maxUnavailable: 6 } });
    await pass(30);
    expect(world.podsOn("n1")).toEqual([]);
  });

  it("acts where the cluster takes no Departure, since its resources are not installed", async () => {
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

  it("is not kept from it by another node's departure that has its node's name", async () => {
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

  it("acts as soon as an API server that was away is back", async () => {
    await withPods({ maxUnavailable: 6 });
    await startAgent("Drain");
    refuse = () => unreachable();
    standing = [notice(120)];
    await pass(60);
    refuse = () => undefined;
    await pass(3);
    expect(world.marksOf("n1")).toEqual(expect.arrayContaining(allMarks));
  });

  it("fits the drain into a deadline that moves nearer while it drains", async () => {
    await withPods({ maxUnavailable: 0 });
    await startAgent("Drain");
    standing = [notice(3600)];
    await pass(10);
    expect(sent.some(({ method }) => method === "DELETE")).toBe(false);
    standing = [...standing, { ...notice(30), eventId: "event-2" }];
    // Some 36 s in all since the agent began: half of them, less the margin, are over 10 s later.
    await pass(14);
    expect(world.podsOn("n1")).toEqual([]);
  });

  it("leaves a notice alone that policies ignore by default, and handles the one after it", async () => {
    await startAgent("Drain");
    standing = [notice(3600, "RebalanceRecommendation")];
    await pass(30);
    expect(writesOfAgent()).toEqual([]);
    standing = [...standing, { ...notice(120), eventId: "event-2" }];
    await pass(2);
    expect(world.marksOf("n1")).toEqual(expect.arrayContaining(allMarks));
  });

  it("puts the node back to work when the notice is taken back", async () => {
    await startAgent("Drain");
    standing = [notice(600)];
    await pass(10);
    expect(world.marksOf("n1")).toContain("unschedulable");
    standing = [];
    await pass(20);
    expect(world.marksOf("n1")).toEqual([]);
  });

  it("puts the node back as well where only advice stands when the notice is off", async () => {
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

  it("puts the node back also when it was restarted in between", async () => {
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

  it("goes on where the run of it before has stopped", async () => {
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

  it("lets a person have the last word who deletes the departure", async () => {
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
  it("marks the node and touches no pod", async () => {
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
  it("does nothing", async () => {
    await withPods({ maxUnavailable: 6 });
    startController();
    await startAgent("Drain");
    standing = [notice(120)];
    await pass(100);
    expect(world.podsOn("n1")).toEqual([]);
    expect(writesOfAgent()).toEqual([]);
  });

  it("stops as soon as a controller that was away has taken the case", async () => {
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

  it("goes on with a case whose controller died in it, once its Lease has run out", async () => {
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

  it("leaves a taken case alone where no Lease tells whether its controller lives", async () => {
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
