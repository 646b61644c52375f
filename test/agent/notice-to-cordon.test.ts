import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { AgentHealth, AgentMetrics } from "../../src/agent/agent-status.ts";
import { NoticeReporter } from "../../src/agent/notice-reporter.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import type { Notice, NoticeCause } from "../../src/core/notice/notice.ts";
import {
  formatInstant,
  hours,
  type Instant,
  minutes,
  plus,
  seconds,
} from "../../src/core/time/time.ts";
import { departures, ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";
import { ScriptedSource } from "../support/scripted-source.ts";

/** The real agent of one node, beside the real controller, on a model cluster. */
let world: ModelWorld;
let source: ScriptedSource;
let ending: AbortController;
let running: Promise<unknown>;

beforeEach(() => {
  world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, "a");
  webWorkload(world, { replicas: 6, maxUnavailable: 6 });
  ending = new AbortController();
});
afterEach(async () => {
  ending.abort();
  await running;
});

async function start(policy: object, bootID = "boot-2"): Promise<void> {
  spotPolicy(world, { ...policy });
  source = new ScriptedSource(world.clock);
  const node = world.get(`${nodes}/n1`);
  const identity = { name: "n1", uid: node?.metadata?.uid ?? "", bootID };
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
  const agent = new Agent({
    findSource: async () => source,
    reporter: new NoticeReporter({ api: world.api, identify: async () => identity, log }),
    health: new AgentHealth(world.clock),
    clock: world.clock,
    rng: seededRng(1),
    metrics: new AgentMetrics(),
    log,
    dryRun: false,
  });
  running = Promise.allSettled([agent.run(ending.signal), world.startController(ending.signal)]);
  await world.pass(seconds(bootID === "boot-2" ? 30 : 1));
}

function notice(cause: NoticeCause, leftSeconds?: number): Notice {
  const deadlineAt =
    leftSeconds === undefined ? undefined : plus(world.clock.now(), seconds(leftSeconds));
  return { cause, deadlineAt, noticedAt: world.clock.now(), source: "aws/a", eventId: "event-1" };
}

/** For `count` seconds, the cloud reports these on one channel, and nothing on the other. */
async function keepSaying(notices: readonly Notice[], count: number): Promise<void> {
  for (let second = 0; second < count; second += 1) {
    source.say("aws/a", notices);
    source.say("aws/b", []);
    await world.pass(seconds(1));
  }
}

const departingTaint = "lastcall.dev/departing";

describe("from the cloud's notice to the cordon", () => {
  it("a notice cordons the node at once and drains it", async () => {
    await start({ lifetime: {} });
    expect(world.podsOn("n1").length).toBeGreaterThan(0);
    source.say("aws/a", [notice("SpotInterruption", 120)]);
    await world.pass(seconds(0));
    expect(world.marksOf("n1")).toEqual(
      expect.arrayContaining(["unschedulable", departingTaint, "lastcall.dev/departure"]),
    );
    await world.pass(seconds(20));
    expect(world.podsOn("n1")).toEqual([]);
    expect(world.stepsOf("n1")[0]).toBe("cordon");
    expect(world.stepsOf("n0")).toEqual([]);
  });

  it("the planned departure becomes a forced one, and no second one is created", async () => {
    await start({ lifetime: { max: "24h", reserve: "30m" } });
    const before = world.departureOf("n1");
    expect(before).toMatchObject({ spec: { cause: "Planned" } });
    source.say("aws/a", [notice("SpotInterruption", 120)]);
    await world.pass(seconds(1));
    expect(world.statusOf("n1").phase).toBe("Draining");
    expect(world.departureOf("n1")?.metadata?.uid).toBe(before?.metadata?.uid);
    const ofNode = world
      .list(departures)
      .filter((one) => (one.spec as { node: { name: string } }).node.name === "n1");
    expect(ofNode).toHaveLength(1);
  });

  it("an overdue plan's deadline forces no pod out if the cloud leaves two minutes", async () => {
    // Created at dawn, to leave an hour later at the latest; paused until two hours after that.
    await start({ lifetime: { max: "1h", reserve: "0s" }, paused: true });
    await world.pass(hours(3));
    source.say("aws/a", [notice("SpotInterruption", 120)]);
    await world.pass(seconds(30));
    expect(world.departureOf("n1")?.status).toMatchObject({ drain: { forced: 0, left: 0 } });
  });

  it("a withdrawn notice uncordons the node, once", async () => {
    await start({ lifetime: {} });
    await keepSaying([notice("SpotInterruption", 120)], 5);
    expect(world.marksOf("n1")).toContain("unschedulable");
    await keepSaying([], 15);
    expect(world.marksOf("n1")).toEqual([]);
    expect(world.statusOf("n1")).toMatchObject({ phase: "Ended", outcome: "Cancelled" });
    expect(world.departureOf("n1")?.status).toMatchObject({ reason: "NoticeWithdrawn" });
    await keepSaying([], 60);
    expect(world.stepsOf("n1").filter((step) => step === "uncordon")).toHaveLength(1);
  });

  it("an event that stays listed as canceled uncordons the node once, and fights no person", async () => {
    await start({ lifetime: {} });
    const event = notice("ScheduledMaintenance", 600);
    await keepSaying([event], 5);
    expect(world.marksOf("n1")).toContain("unschedulable");
    const canceled = { ...event, withdrawn: true };
    await keepSaying([canceled], 15);
    expect(world.marksOf("n1")).toEqual([]);
    world.patchNode("n1", { spec: { unschedulable: true } });
    await keepSaying([canceled], 60);
    expect(world.stepsOf("n1").filter((step) => step === "uncordon")).toHaveLength(1);
    expect(world.marksOf("n1")).toContain("unschedulable");
  });

  it("a node that somebody else had cordoned stays cordoned when the notice is withdrawn", async () => {
    await start({ lifetime: {} });
    world.patchNode("n1", { spec: { unschedulable: true } });
    await keepSaying([notice("SpotInterruption", 120)], 5);
    await keepSaying([], 15);
    // The second is the taint that the cluster adds for the first.
    expect(world.marksOf("n1")).toEqual(["unschedulable", "node.kubernetes.io/unschedulable"]);
  });

  it("the same notice cordons the node again after it was withdrawn", async () => {
    await start({ lifetime: {} });
    const same = notice("SpotInterruption", 600);
    await keepSaying([same], 5);
    await keepSaying([], 15);
    expect(world.marksOf("n1")).toEqual([]);
    await keepSaying([same], 5);
    expect(world.marksOf("n1")).toContain("unschedulable");
  });

  it.each([
    ["is still listed", "event-2", "Beside"],
    ["it replaces", "event-2", "Instead"],
    ["is the same event with another time", "event-1", "Instead"],
  ])(
    "a later notice counts once the machine has outlived the first, which %s",
    async (_, eventId, place) => {
      await start({ lifetime: {} });
      const early = notice("SpotInterruption", 60);
      await keepSaying([early], 5);
      const late = { ...notice("SpotInterruption", 900), eventId };
      const both = place === "Beside" ? [early, late] : [late];
      source.say("aws/a", both);
      // The node is uncordoned ten minutes after the first deadline.
      await world.pass(minutes(10));
      await keepSaying(both, 90);
      expect(world.stepsOf("n1").filter((step) => step === "uncordon")).toHaveLength(1);
      expect(world.marksOf("n1")).toContain("unschedulable");
      const live = world.list(departures).filter(({ status }) => {
        return (status as { phase?: string } | undefined)?.phase !== "Ended";
      });
      const deadlineAt = formatInstant(late.deadlineAt as Instant);
      expect(live.map(({ spec }) => (spec as { deadlineAt?: string }).deadlineAt)).toEqual([
        deadlineAt,
      ]);
    },
  );

  it("an interruption that the machine has outlived is not reported again while it is unchanged", async () => {
    await start({ lifetime: {} });
    const standing = notice("SpotInterruption", 60);
    await keepSaying([standing], 5);
    await world.pass(minutes(10));
    await keepSaying([standing], 120);
    expect(world.stepsOf("n1").filter((step) => step === "uncordon")).toHaveLength(1);
    expect(world.marksOf("n1")).toEqual([]);
    expect(world.list(departures)).toHaveLength(1);
  });

  it("a rebalance recommendation is ignored by default, and the planned departure stays planned", async () => {
    await start({ lifetime: { max: "24h", reserve: "30m" } });
    const planned = world.departureOf("n1");
    await keepSaying([notice("RebalanceRecommendation")], 90);
    expect(world.marksOf("n1")).toEqual([]);
    const after = world.get(`${departures}/${planned?.metadata?.name}`);
    expect(after?.spec).toMatchObject({ cause: "Planned" });
    expect(after?.spec).not.toHaveProperty("noticedAt");
    const ignored = world
      .list(departures)
      .filter((one) => (one.spec as { cause: string }).cause === "RebalanceRecommendation");
    expect(ignored).toHaveLength(1);
    expect(ignored[0]?.status).toMatchObject({ phase: "Ended", reason: "NoticeIgnored" });
  });

  it("a rebalance recommendation that is acted on and the next interruption are one departure", async () => {
    await start({ lifetime: {}, onNotice: { rebalance: "Drain" } });
    const early = notice("RebalanceRecommendation");
    await keepSaying([early], 5);
    const late = { ...notice("SpotInterruption", 120), eventId: "event-2" };
    await keepSaying([early, late], 5);
    expect(
      world.list(departures).filter((one) => one.metadata?.name?.startsWith("n1-")),
    ).toHaveLength(1);
    expect(world.departureOf("n1")?.spec).toMatchObject({ cause: "SpotInterruption" });
  });

  it("an ignored rebalance recommendation does not hide the lifecycle hook that follows it", async () => {
    await start({ lifetime: {} });
    const early = notice("RebalanceRecommendation");
    await keepSaying([early], 60);
    expect(world.marksOf("n1")).toEqual([]);
    const hook = { ...notice("LifecycleHook"), eventId: "event-2" };
    await keepSaying([early, hook], 20);
    expect(world.marksOf("n1")).toContain("unschedulable");
    expect(world.podsOn("n1")).toEqual([]);
  });

  it("a person who deletes the departure cancels this notice for good", async () => {
    await start({ lifetime: {} });
    const standing = notice("SpotInterruption", 600);
    await keepSaying([standing], 5);
    const name = world.departureOf("n1")?.metadata?.name ?? "";
    world.api.handle({ method: "DELETE", path: `${departures}/${name}` });
    await world.pass(minutes(2));
    expect(world.marksOf("n1")).toEqual([]);
    expect(world.list(departures)).toEqual([]);
  });

  it("a notice right after a reboot cordons the node once the Node shows the new boot", async () => {
    await start({ lifetime: {} }, "boot-9");
    const standing = [notice("SpotInterruption", 60)];
    await keepSaying(standing, 5);
    expect(world.departureOf("n1")?.status).toMatchObject({ reason: "WrongMachine" });
    expect(world.marksOf("n1")).toEqual([]);
    world.api.handle({
      method: "PATCH",
      path: `${nodes}/n1/status`,
      patchType: "application/merge-patch+json",
      body: { status: { nodeInfo: { bootID: "boot-9" } } },
    });
    await keepSaying(standing, 5);
    expect(world.marksOf("n1")).toContain("unschedulable");
    const taken = world.list(departures).filter((one) => {
      return (one.status as { phase?: string } | undefined)?.phase !== "Ended";
    });
    expect(taken).toHaveLength(1);
  });

  it("a machine that the Node never matches is reported six times, and no more", async () => {
    await start({ lifetime: {} }, "boot-9");
    await keepSaying([notice("SpotInterruption", 600)], 300);
    expect(world.list(departures)).toHaveLength(6);
  });

  it("a running departure becomes a forced one even if the node's first departure is deleted", async () => {
    await start({ lifetime: { max: "24h", reserve: "30m" } });
    world.api.handle({
      method: "PATCH",
      path: "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web",
      patchType: "application/merge-patch+json",
      body: { spec: { maxUnavailable: 0 } },
    });
    // The state after the first departure was undone and deleted three days later.
    const planned = world.departureOf("n1");
    const first = planned?.metadata?.name ?? "";
    const node = (planned?.spec as { node: object } | undefined)?.node;
    const begun = world.create(departures, {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "Departure",
      metadata: { name: `${first}-2` },
      spec: { node, cause: "Manual", source: "person" },
    });
    world.api.handle({ method: "DELETE", path: `${departures}/${first}` });
    await world.passUntil(() => {
      const now = world.get(`${departures}/${begun.metadata?.name}`);
      return (now?.status as { phase?: string } | undefined)?.phase === "Draining";
    }, minutes(10));
    source.say("aws/a", [notice("SpotInterruption", 60)]);
    await world.pass(seconds(5));
    const live = world.list(departures).filter((one) => {
      const { name } = (one.spec as { node: { name: string } }).node;
      return name === "n1" && (one.status as { phase?: string })?.phase !== "Ended";
    });
    expect(live).toMatchObject([{ metadata: { name: `${first}-2` } }]);
    expect(live[0]?.spec).toMatchObject({ noticedAt: expect.any(String) });
  });

  it("a mark of a departure that no longer exists does not hold up a notice", async () => {
    await start({ lifetime: {} });
    world.patchNode("n1", { metadata: { annotations: { "lastcall.dev/departure": "gone" } } });
    source.say("aws/a", [notice("SpotInterruption", 120)]);
    await world.pass(seconds(1));
    const name = world.departureOf("n1")?.metadata?.name;
    expect(world.get(`${nodes}/n1`)).toMatchObject({
      metadata: { annotations: { "lastcall.dev/departure": name } },
      spec: { unschedulable: true },
    });
    await world.pass(seconds(20));
    expect(world.podsOn("n1")).toEqual([]);
  });
});
