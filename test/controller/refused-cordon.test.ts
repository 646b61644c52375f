/** Cordons that the API server refuses for hours, and starts that nobody could carry out. */
import { describe, expect, it } from "vitest";
import type { KubeAnswer, KubeRequest } from "../../src/contracts/kube-api.ts";
import { hours, minutes, seconds } from "../../src/core/time/time.ts";
import { departures, ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";

interface SeenDeparture {
  readonly spec: { readonly node: { readonly name: string } };
  readonly status?: {
    readonly phase?: string;
    readonly outcome?: string;
    readonly reason?: string;
    readonly message?: string;
  };
}

const window = { name: "night", type: "Allow", timeZone: "UTC", start: "01:00", end: "05:00" };

/** Five nodes that leave, and one that stays. The model's time starts at midnight. */
function fleet(policy: Readonly<Record<string, unknown>>): ModelWorld {
  const world = new ModelWorld();
  for (let place = 0; place < 6; place += 1) {
    const stays = place === 5 ? { "cloud.google.com/gke-spot": "false" } : {};
    world.addNode(`n${place}`, "abc"[place % 3] as string, stays);
  }
  webWorkload(world, { replicas: 10, maxUnavailable: 10 });
  spotPolicy(world, { spacing: { mode: "Late", min: "15m" }, ...policy });
  return world;
}

/** Refuses the cordons for which `answerTo` has an answer. */
function refuse(
  world: ModelWorld,
  answerTo: (node: string) => { readonly code: number; readonly message: string } | undefined,
): void {
  const send = world.watched.send.bind(world.watched);
  world.watched.send = async (request: KubeRequest): Promise<KubeAnswer> => {
    const node = cordonedBy(request);
    const refusal = node === undefined ? undefined : answerTo(node);
    if (refusal === undefined) return send(request);
    await world.clock.sleep(seconds(1));
    const reason = refusal.code === 403 ? "Forbidden" : "InternalError";
    const body = { kind: "Status", apiVersion: "v1", status: "Failure", reason, ...refusal };
    return { status: refusal.code, body };
  };
}

function cordonedBy({ method, path, body }: KubeRequest): string | undefined {
  const isCordon = method === "PATCH" && JSON.stringify(body ?? "").includes('"value":true');
  const [, node] = /^\/api\/v1\/nodes\/([^/]+)$/.exec(path) ?? [];
  return isCordon ? node : undefined;
}

/** Which nodes are cordoned from now on, and when. */
function cordonsOf(world: ModelWorld): readonly { readonly node: string; readonly at: number }[] {
  const seen: { node: string; at: number }[] = [];
  world.afterRequest = (request, { at, status }) => {
    const node = cordonedBy(request);
    if (node !== undefined && status < 300) seen.push({ node, at });
  };
  return seen;
}

/** Sets Ready to Unknown on four of the six nodes. */
function silence(world: ModelWorld): void {
  for (const name of ["n0", "n1", "n2", "n3"]) {
    const path = `${nodes}/${name}/status`;
    const patchType = "application/strategic-merge-patch+json";
    const body = { status: { conditions: [{ type: "Ready", status: "Unknown" }] } };
    world.api.handle({ method: "PATCH", path, patchType, body });
  }
}

function departuresOf(world: ModelWorld, node: string): readonly SeenDeparture[] {
  const all = world.list(departures) as unknown as readonly SeenDeparture[];
  return all.filter(({ spec }) => spec.node.name === node);
}

const webhookDown = {
  code: 500,
  message:
    'Internal error occurred: failed calling webhook "nodes.policy.example.com": context deadline exceeded',
};

describe("a webhook for Nodes that is down from one to nine", () => {
  const policy = { lifetime: { max: "10h", reserve: "30m" }, windows: [window] };

  it.each([[[]], [[{ nodes: 1 }]]])(
    "makes no node leave after the window, with budgets %j",
    async (budgets) => {
      const world = fleet({ ...policy, budgets });
      let isDown = false;
      refuse(world, () => (isDown ? webhookDown : undefined));
      const cordons = cordonsOf(world);
      const stop = new AbortController();
      const running = world.startController(stop.signal);
      await world.pass(hours(1));
      isDown = true;
      await world.pass(hours(8));
      isDown = false;
      await world.pass(minutes(20));
      stop.abort();
      await running;
      expect(cordons).toEqual([]);
      const [first] = departuresOf(world, "n0");
      expect(first?.status).toMatchObject({ outcome: "RolledBack", reason: "RequestRefused" });
      expect(first?.status?.message).toContain("failed calling webhook");
    },
  );

  it.each([
    [
      "a freeze begins",
      (world: ModelWorld) =>
        world.patchPolicy({ spec: { gates: { freezeUntil: "2026-12-01T00:00:00Z" } } }),
    ],
    ["the kubelets fall silent", silence],
  ])("holds back what has started when %s meanwhile", async (_, change) => {
    const world = fleet(policy);
    let isDown = false;
    refuse(world, () => (isDown ? webhookDown : undefined));
    const cordons = cordonsOf(world);
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(hours(1));
    isDown = true;
    const isPreparing = () =>
      world
        .list(departures)
        .some((one) => (one as unknown as SeenDeparture).status?.phase === "Preparing");
    await world.passUntil(isPreparing, hours(4));
    change(world);
    await world.pass(seconds(20));
    isDown = false;
    await world.pass(minutes(10));
    stop.abort();
    await running;
    expect(cordons).toEqual([]);
  });
});

describe("a node whose cordon an admission policy refuses for good", () => {
  // A ValidatingAdmissionPolicy answers 422, unless it names another reason; so does a failed test
  // of a JSON patch.
  it.each([403, 422])(
    "is given up, is told of in the policy's words, and does not keep the others: %i",
    async (code) => {
      const world = fleet({ lifetime: { max: "4h", reserve: "30m" }, budgets: [{ nodes: 1 }] });
      world.bornAfterMs = minutes(3);
      const message = 'ValidatingAdmissionPolicy "protected-nodes" denied request';
      refuse(world, (node) => (node === "n0" ? { code, message } : undefined));
      const cordons = cordonsOf(world);
      const stop = new AbortController();
      const running = world.startController(stop.signal);
      await world.pass(hours(4));
      stop.abort();
      await running;
      const [first, ...later] = departuresOf(world, "n0");
      expect(first?.status).toMatchObject({ phase: "Ended", outcome: "RolledBack" });
      expect(first?.status?.message).toContain(message);
      // Tried again after ten minutes, then twenty, and so on; once more when its deadline comes.
      expect(later.length).toBeLessThanOrEqual(6);
      expect(cordons).toHaveLength(4);
      const gaps = cordons.slice(1).map(({ at }, place) => at - (cordons[place]?.at ?? 0));
      // The attempts on the refused node take places between them.
      expect(Math.min(...gaps)).toBeGreaterThan(minutes(5));
    },
  );
});

describe("a start whose leader died before the cordon", () => {
  it("is planned again if the next leader comes an hour later", async () => {
    const world = fleet({ lifetime: { max: "4h", reserve: "30m" } });
    const cordons = cordonsOf(world);
    const first = new AbortController();
    let isFirst = true;
    // Dies as soon as the start is recorded: its cordon never arrives.
    refuse(world, () => {
      if (!isFirst) return undefined;
      first.abort();
      return webhookDown;
    });
    const one = world.startController(first.signal);
    await world.passUntil(() => first.signal.aborted, hours(4));
    await world.pass(minutes(2));
    await one;
    const phases = world.list(departures) as unknown as readonly SeenDeparture[];
    const started = phases.find(({ status }) => status?.phase === "Preparing")?.spec.node.name;
    expect(started).toBeDefined();
    await world.pass(hours(1));
    isFirst = false;
    const second = new AbortController();
    const two = world.startController(second.signal);
    await world.pass(minutes(20));
    second.abort();
    await two;
    const gaps = cordons.slice(1).map(({ at }, place) => at - (cordons[place]?.at ?? 0));
    expect(cordons.length).toBeGreaterThan(0);
    expect(Math.min(...gaps, Number.POSITIVE_INFINITY)).toBeGreaterThan(minutes(1));
  });
});

/** Answers each write of the status of a node's departure with 422. */
function refuseStatuses(world: ModelWorld, isRefused: (node: string) => boolean): void {
  const send = world.watched.send.bind(world.watched);
  world.watched.send = async (request: KubeRequest): Promise<KubeAnswer> => {
    const [, name = ""] = /\/departures\/([^/]+)\/status$/.exec(request.path) ?? [];
    if (request.method === "GET" || !isRefused(name.slice(0, 2))) return send(request);
    const message = "status: Forbidden: denied by policy departures.example.com";
    const body = { kind: "Status", apiVersion: "v1", status: "Failure", code: 422, message };
    return { status: 422, body };
  };
}

describe("a start whose record is refused for hours", () => {
  const policy = { lifetime: { max: "10h", reserve: "30m" } };

  it("holds back no other node, and is told in the server's words", async () => {
    const world = fleet(policy);
    refuseStatuses(world, (node) => node === "n0");
    const cordons = cordonsOf(world);
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(hours(12));
    stop.abort();
    await running;
    const left = new Set(cordons.map(({ node }) => node));
    expect([...left].filter((node) => /^n[0-4]$/.test(node)).sort()).toEqual([
      ...["n1", "n2", "n3", "n4"],
    ]);
    const told = world.events.filter(({ reason }) => reason === "RequestRefused");
    expect(told[0]?.message).toContain("denied by policy departures.example.com");
  });

  it("moves no other departure while nothing has started", async () => {
    const world = fleet(policy);
    refuseStatuses(world, () => true);
    let moves = 0;
    world.afterRequest = ({ method, path }) => {
      if (method === "PATCH" && /\/departures\/[^/]+$/.test(path)) moves += 1;
    };
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(hours(12));
    stop.abort();
    await running;
    // Each of the five misses its time and then its deadline.
    expect(moves).toBeLessThanOrEqual(5 * 4);
  });
});
