import { describe, expect, it } from "vitest";
import { assembleController } from "../../src/cli/assemble/assemble-controller.ts";
import type { ActionPorts, PreparedTask } from "../../src/contracts/action-runner.ts";
import type { InstanceReleaser } from "../../src/contracts/cloud.ts";
import type { ClusterPorts } from "../../src/contracts/cluster.ts";
import type { KubeAnswer, KubeApi, KubeRequest } from "../../src/contracts/kube-api.ts";
import type { Leadership } from "../../src/contracts/leadership.ts";
import { noAddresses } from "../../src/controller/departure/departure-options.ts";
import { fencedPorts } from "../../src/controller/fence.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import type { EvictionAnswer } from "../../src/core/drain/drain-answer.ts";
import type { LifecycleHook } from "../../src/core/notice/instance-notice.ts";
import { hours, type Millis, minutes, seconds } from "../../src/core/time/time.ts";
import { KubeNodePods } from "../../src/kube/node/node-pods.ts";
import { NodeClaimReleaser } from "../../src/kube/node-claim-releaser.ts";
import { FakeActionRunner } from "../support/fake-action-runner.ts";
import { FakeHooks } from "../support/fake-hooks.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { ModelWorld, spotPolicy, webWorkload } from "../support/model-world.ts";

/** What reports and does not act: another leader's Events stand beside ours. */
const isReport = (write: string) => write.startsWith("POST") && write.endsWith("/events");

/** A fleet whose requests all wait in a lane before they are sent, as in a burst. */
class Burst {
  readonly world = new ModelWorld();
  isLeading = true;
  term = 1;
  /** How long a request waits. */
  laneMs: (name: string) => Millis = () => seconds(2);
  readonly sent: string[] = [];
  /** Those of them that were sent while another replica may have led. */
  readonly sentUnled: string[] = [];
  /** Called when a write starts to wait. */
  onWait: (write: string) => void = () => {};

  readonly api: KubeApi = {
    watch: (request) => this.world.api.watch(request),
    send: async (request) => {
      const name = `${request.method} ${request.path}`;
      if (request.method !== "GET") this.onWait(name);
      const { term } = this;
      await this.world.clock.sleep(this.laneMs(name));
      const bodyAtTurn = (): unknown => {
        const body = request.bodyAtTurn?.() ?? request.body;
        this.#sent(request, name, term);
        return body;
      };
      return this.world.api.send({ ...request, bodyAtTurn });
    },
  };

  #sent({ method }: KubeRequest, name: string, term: number): void {
    if (method === "GET" || isReport(name)) return;
    this.sent.push(name);
    if (!this.isLeading || term !== this.term) this.sentUnled.push(name);
  }

  start(signal: AbortSignal, leadership: Leadership): Promise<void> {
    const silent = () => {};
    const { clock } = this.world;
    const { controller } = assembleController({
      ...{ api: this.api, clock, rng: seededRng(1), leadership },
      ...{ namespace: "lastcall", identity: "c-1", dryRun: false },
      log: { debug: silent, info: silent, warn: silent, error: silent },
      metrics: { count: silent, set: silent, observe: silent },
      releaserFor: () => this.world.releaser,
    });
    return controller.run(signal);
  }
}

function fleet(): Burst {
  const burst = new Burst();
  for (const name of ["n0", "n1", "n2"]) burst.world.addNode(name, name);
  webWorkload(burst.world, { replicas: 4, maxUnavailable: 2 });
  spotPolicy(burst.world, { lifetime: { max: "30m", reserve: "5m" } });
  return burst;
}

it.each([
  ["the status of a policy", /^PATCH .*\/departurepolicies\/spot\/status$/],
  ["a planned Departure", /^POST .*\/departures$/],
  ["the finalizer of a Departure", /^PATCH .*\/departures\/[^/]+$/],
  ["a record", /^PATCH .*\/departures\/[^/]+\/status$/],
  ["a cordon", /^PATCH \/api\/v1\/nodes\/n\d$/],
  ["the condition of a node", /^PATCH \/api\/v1\/nodes\/n\d\/status$/],
  ["an eviction", /\/eviction$/],
  ["the removal of a Node object", /^DELETE \/api\/v1\/nodes\/n\d$/],
])("%s that waits for its turn while the Lease is lost is not sent", async (_, meant) => {
  const burst = fleet();
  const stop = new AbortController();
  burst.onWait = (write) => {
    if (meant.test(write)) burst.isLeading = false;
  };
  const leadership: Leadership = {
    isLeader: () => burst.isLeading,
    run: ({ onLeading }, signal) => onLeading(signal),
  };
  const running = burst.start(stop.signal, leadership);
  const giveUpAt = burst.world.clock.now() + hours(1);
  while (burst.isLeading && burst.world.clock.now() < giveUpAt) await burst.world.pass(seconds(1));
  expect(burst.isLeading).toBe(false);
  await burst.world.pass(minutes(2));
  stop.abort();
  await burst.world.pass(minutes(1));
  await running;
  expect(burst.sentUnled).toEqual([]);
});

it("what one term has left waiting is not sent in the next term of the same replica", async () => {
  const burst = fleet();
  const stop = new AbortController();
  const first = new AbortController();
  const leadership: Leadership = {
    isLeader: () => burst.isLeading,
    async run({ onLeading }, signal) {
      await onLeading(AbortSignal.any([signal, first.signal]));
      burst.isLeading = true;
      burst.term += 1;
      await onLeading(signal);
    },
  };
  // Nothing waits for the condition of a node, so the term ends before its turn.
  const isCondition = (write: string) => /\/nodes\/n\d\/status$/.test(write);
  burst.laneMs = (write) => seconds(isCondition(write) ? 60 : 2);
  burst.onWait = (write) => {
    if (burst.term > 1 || !isCondition(write)) return;
    burst.isLeading = false;
    first.abort();
  };
  const running = burst.start(stop.signal, leadership);
  const giveUpAt = burst.world.clock.now() + hours(1);
  while (burst.term === 1 && burst.world.clock.now() < giveUpAt) await burst.world.pass(seconds(1));
  expect(burst.term).toBe(2);
  await burst.world.pass(minutes(2));
  expect(burst.sent.some(isCondition)).toBe(true);
  stop.abort();
  await burst.world.pass(minutes(2));
  await running;
  expect(burst.sentUnled).toEqual([]);
});

/** Ports whose requests wait until the lead is lost. */
function waitingPorts(made: (api: KubeApi) => Partial<ClusterPorts>) {
  const turn = Promise.withResolvers<void>();
  const sent: string[] = [];
  let isLeading = true;
  const api: KubeApi = {
    watch: () => {
      throw new Error("nobody watches");
    },
    async send({ method, path, body, bodyAtTurn }): Promise<KubeAnswer> {
      await turn.promise;
      const { kind } = (bodyAtTurn?.() ?? body ?? { kind: "List" }) as { readonly kind: string };
      sent.push(`${method} ${path}`);
      const item = { metadata: { name: "c", uid: "u" }, status: { providerID } };
      return { status: method === "GET" ? 200 : 201, body: { kind, items: [item], status } };
    },
  };
  const portsFor = (fenced: KubeApi) => ({ releaserFor: () => undefined, ...made(fenced) });
  const termPorts = { api, portsFor: portsFor as (api: KubeApi) => ClusterPorts };
  const ports = fencedPorts(termPorts, () => isLeading);
  const lose = () => {
    isLeading = false;
    turn.resolve();
  };
  return { ports, sent, lose };
}

const providerID = "aws:///a/i-1";
const status = { allowed: true };

describe("the ports of a term whose lead is lost while a request waits", () => {
  const pod = { namespace: "default", name: "web-0", uid: "uid-1" };
  const owner = { kind: "StatefulSet", name: "web", uid: "uid-0" } as const;
  const tools = { clock: new ManualClock(), rng: seededRng(1) };
  const { signal } = new AbortController();

  it.each<[string, (pods: ClusterPorts["pods"]) => Promise<EvictionAnswer>]>([
    ["evict", (pods) => pods.evict(pod, { graceSeconds: () => 20 })],
    ["remove", (pods) => pods.remove(pod, { graceSeconds: () => 20 })],
    ["restart", (pods) => pods.restartOwner(pod, owner, { onTurn: () => {} })],
  ])("do not %s", async (_, ask) => {
    const { ports, sent, lose } = waitingPorts((api) => ({
      pods: new KubeNodePods({ api, ...tools }),
    }));
    const asked = ask(ports.pods);
    lose();
    await expect(asked).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(sent).toEqual([]);
  });

  it("still read, and ask what they may do", async () => {
    const { ports, sent, lose } = waitingPorts((api) => ({
      releaserFor: () => new NodeClaimReleaser({ api, ...tools }),
    }));
    const machine = { providerID, mode: "NodeClaim" } as const;
    const asked = ports.releaserFor(machine)?.check(machine, signal);
    lose();
    expect(await asked).toMatchObject({ kind: "Possible", permission: "Granted" });
    expect(sent).toEqual([
      "GET /apis/karpenter.sh/v1/nodeclaims",
      "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    ]);
  });

  it("do not release a machine whose last look takes until then", async () => {
    const machine = { providerID, mode: "Recreate" } as const;
    const released: string[] = [];
    const releaser: InstanceReleaser = {
      describe: async () => ({ kind: "Absent" }),
      check: async () => ({ kind: "Possible", permission: "Granted" }),
      async release({ lastLook, machineId }) {
        if ((await lastLook()) === "Clear") released.push(machineId);
        return { kind: "Released" };
      },
    };
    const { ports, lose } = waitingPorts(() => ({ releaserFor: () => releaser }));
    const lastLook = async () => {
      lose();
      return "Clear" as const;
    };
    const request = { ...machine, machineId: "m-1", requestId: "uid-1", lastLook };
    const asked = ports.releaserFor(machine)?.release(request, signal);
    await expect(asked).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(released).toEqual([]);
    expect(await ports.releaserFor(machine)?.describe(providerID, signal)).toEqual({
      kind: "Absent",
    });
  });

  it("do not complete a lifecycle hook, nor apply or undo an action", async () => {
    const runner = new FakeActionRunner("Undoable");
    const hooks = new FakeHooks();
    const actionPorts = { runners: async () => runner, addresses: noAddresses } as ActionPorts;
    const { ports, lose } = waitingPorts(() => ({ hooks, actionPorts }));
    lose();
    const fenced = await ports.actionPorts?.runners("deregisterTargets");
    const task = {} as PreparedTask<"deregisterTargets">;
    const hook = { group: "spot", name: "drain", machine: "n1" } as LifecycleHook;
    const asked = [
      ports.hooks?.complete(hook, "Continue", signal),
      ports.hooks?.extend(hook, signal),
      fenced?.apply(task, signal),
      fenced?.undo(task, signal),
    ];
    for (const end of await Promise.allSettled(asked)) {
      expect(end).toMatchObject({ status: "rejected", reason: { code: "LEASE_LOST" } });
    }
    expect([...hooks.told, ...runner.calls]).toEqual([]);
  });
});
