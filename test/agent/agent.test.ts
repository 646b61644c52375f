import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { AgentHealth, AgentMetrics } from "../../src/agent/agent-status.ts";
import { NoticeReporter } from "../../src/agent/notice-reporter.ts";
import type { NoticeSource } from "../../src/contracts/cloud.ts";
import type { KubeObject, KubeRequest } from "../../src/contracts/kube-api.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import type { Notice } from "../../src/core/notice/notice.ts";
import { formatInstant, instant, minutes, plus, seconds } from "../../src/core/time/time.ts";
import type { ModelApi } from "../../src/sim/api/model-api.ts";
import { ManualClock, settle } from "../support/manual-clock.ts";
import { modelClusterApi } from "../support/model-cluster-api.ts";
import { unreachable } from "../support/scripted-api.ts";
import { ScriptedSource } from "../support/scripted-source.ts";

const departures = "/apis/lastcall.dev/v1alpha1/departures";
const node = { name: "n1", uid: "0b1f7a3e-7f0e", bootID: "boot-1" };

let clock: ManualClock;
let api: ModelApi;
let source: ScriptedSource;
let sent: KubeRequest[];
let logged: string[];
let metrics: AgentMetrics;
let health: AgentHealth;
let ending: AbortController;
let running: Promise<void>;
let apiIsAway: boolean;

beforeEach(async () => {
  clock = new ManualClock();
  api = await modelClusterApi(clock);
  source = new ScriptedSource(clock);
  sent = [];
  logged = [];
  metrics = new AgentMetrics();
  health = new AgentHealth(clock);
  ending = new AbortController();
  apiIsAway = false;
});
afterEach(async () => {
  ending.abort();
  await running.catch(() => {});
});

/** Starts the agent, whose cloud is found at once unless `findSource` is given. */
async function start(
  how: {
    dryRun?: boolean;
    findSource?: () => Promise<NoticeSource>;
    identify?: () => Promise<typeof node>;
  } = {},
): Promise<void> {
  const counting = {
    send: async (request: KubeRequest) => {
      sent.push(request);
      if (apiIsAway) throw unreachable();
      return api.send(request);
    },
  };
  const say = (event: string) => void logged.push(event);
  const log = { debug: say, info: say, warn: say, error: say };
  const identify = how.identify ?? (async () => node);
  const agent = new Agent({
    findSource: how.findSource ?? (async () => source),
    reporter: new NoticeReporter({ api: counting, identify, log }),
    ...{ health, clock, metrics, dryRun: how.dryRun ?? false },
    rng: seededRng(1),
    log,
  });
  running = agent.run(ending.signal);
  await settle();
}

function spot(leftSeconds: number): Notice {
  return {
    cause: "SpotInterruption",
    deadlineAt: plus(clock.now(), seconds(leftSeconds)),
    noticedAt: clock.now(),
    source: "aws/a",
    eventId: "spot-1",
  };
}

async function made(): Promise<readonly Record<string, unknown>[]> {
  const { body } = await api.send({ method: "GET", path: departures });
  return (body as { items: KubeObject[] }).items.map((one) => one.spec as Record<string, unknown>);
}

/** For `count` seconds, both channels report no notice each second. */
async function quiet(count: number): Promise<void> {
  for (let second = 0; second < count; second += 1) {
    source.say("aws/a", []);
    source.say("aws/b", []);
    await clock.advance(1000);
  }
}

describe("an agent that receives a notice", () => {
  it("writes it to the cluster at once", async () => {
    await start();
    const notice = spot(120);
    source.say("aws/a", [notice]);
    await settle();
    expect(await made()).toMatchObject([
      { cause: "SpotInterruption", deadlineAt: formatInstant(plus(clock.now(), seconds(120))) },
    ]);
    expect(metrics.exposition()).toContain(
      'lastcall_notices_total{cloud="aws",kind="SpotInterruption",source="agent"} 1',
    );
  });

  it("sends no further request while the notice is unchanged", async () => {
    await start();
    // Soon after its start the agent checks the Departure that it has written.
    await quiet(130);
    const notice = spot(120);
    source.say("aws/a", [notice]);
    await settle();
    const before = sent.length;
    for (let second = 0; second < 100; second += 1) {
      source.say("aws/a", [notice]);
      await clock.advance(1000);
    }
    expect(sent.length).toBe(before);
  });

  it("merges the notices of two channels into one departure with the earlier deadline", async () => {
    await start();
    source.say("aws/b", [{ ...spot(600), eventId: "other", source: "aws/b" }]);
    await settle();
    source.say("aws/a", [spot(120)]);
    await settle();
    expect(await made()).toMatchObject([
      { deadlineAt: formatInstant(plus(clock.now(), seconds(120))) },
    ]);
  });

  it("reports maintenance that is three hours away two hours before it", async () => {
    await start();
    const maintenanceAt = plus(clock.now(), minutes(180));
    source.say("aws/a", [
      { ...spot(0), cause: "ScheduledMaintenance", deadlineAt: maintenanceAt, eventId: "m" },
    ]);
    await clock.advance(minutes(60) - 1);
    expect(await made()).toEqual([]);
    await clock.advance(1);
    expect(await made()).toMatchObject([{ cause: "ScheduledMaintenance" }]);
  });
});

describe("an agent without an API server", () => {
  it("retries until the server is back, and then reports within a second", async () => {
    apiIsAway = true;
    await start();
    source.say("aws/a", [spot(120)]);
    await clock.advance(60_000);
    expect(await made()).toEqual([]);
    // From 50 ms, doubling to a second, each with jitter down to half: one or two attempts a
    // second.
    expect(sent.length).toBeGreaterThan(60);
    expect(sent.length).toBeLessThan(140);
    apiIsAway = false;
    await clock.advance(1000);
    expect(await made()).toHaveLength(1);
  });

  it("stays healthy and ready, so nothing restarts it", async () => {
    await start();
    await quiet(15);
    apiIsAway = true;
    source.say("aws/a", [spot(120)]);
    for (let second = 0; second < 600; second += 1) {
      source.say("aws/a", [spot(120)]);
      source.say("aws/b", []);
      await clock.advance(1000);
      expect(health.problem()).toBeUndefined();
    }
    expect(health.ready()).toBe(true);
  });

  it("continues after the deadline, less often, as a machine may outlive it", async () => {
    apiIsAway = true;
    await start();
    source.say("aws/a", [spot(30)]);
    await clock.advance(31_000);
    const before = sent.length;
    await clock.advance(100_000);
    expect(sent.length - before).toBeGreaterThanOrEqual(9);
    expect(sent.length - before).toBeLessThanOrEqual(25);
    apiIsAway = false;
    await clock.advance(10_000);
    expect(await made()).toHaveLength(1);
  });

  it("reports the notices of the time when the server is back", async () => {
    apiIsAway = true;
    await start();
    const long = spot(600);
    const short = { ...long, eventId: "spot-2", deadlineAt: plus(clock.now(), seconds(60)) };
    source.say("aws/a", [long]);
    await clock.advance(5000);
    source.say("aws/a", [long, short]);
    await clock.advance(5000);
    apiIsAway = false;
    await clock.advance(1000);
    expect(await made()).toMatchObject([{ deadlineAt: formatInstant(short.deadlineAt) }]);
  });
});

describe("an agent with a bug", () => {
  it("counts it as an error and tries again", async () => {
    const identify = async () => {
      broken -= 1;
      if (broken >= 0) throw new TypeError("undefined is not a function");
      return node;
    };
    let broken = 3;
    await start({ identify });
    source.say("aws/a", [spot(120)]);
    await clock.advance(2000);
    expect(await made()).toHaveLength(1);
    expect(metrics.exposition()).toContain('lastcall_errors_total{code="UNEXPECTED"} 3');
  });
});

describe("an agent without a metadata service", () => {
  it("reports a pending notice as soon as the service appears", async () => {
    let appear: (found: NoticeSource) => void = () => {};
    const found = new Promise<NoticeSource>((resolve) => {
      appear = resolve;
    });
    await start({ findSource: () => found });
    await clock.advance(minutes(10));
    expect(health.problem()).toBeUndefined();
    expect(health.ready()).toBe(false);
    appear(source);
    await settle();
    source.say("aws/a", [spot(30)]);
    await settle();
    expect(await made()).toHaveLength(1);
    expect(health.ready()).toBe(true);
  });

  it("counts every error, and logs one line a minute", async () => {
    await start();
    for (let second = 0; second < 180; second += 1) {
      source.fail("CLOUD_UNREACHABLE");
      await clock.advance(1000);
    }
    expect(metrics.exposition()).toContain('lastcall_errors_total{code="CLOUD_UNREACHABLE"} 180');
    expect(logged.filter((event) => event === "agent-error")).toHaveLength(3);
  });
});

describe("an agent whose cloud withdraws a notice", () => {
  it("withdraws it once, after ten seconds of responses without it", async () => {
    await start();
    source.say("aws/a", [spot(120)]);
    await settle();
    await quiet(10);
    expect((await made())[0]).not.toHaveProperty("withdrawnAt");
    await quiet(1);
    expect((await made())[0]).toHaveProperty("withdrawnAt");
    const before = sent.length;
    await quiet(60);
    expect(sent.length).toBe(before);
  });

  it("withdraws it even if a lesser notice remains, and reports that one on its own", async () => {
    await start();
    const advice: Notice = {
      ...{ noticedAt: clock.now(), source: "aws/b", eventId: "rebalance-1" },
      cause: "RebalanceRecommendation",
    };
    const maintenance: Notice = { ...spot(3600), cause: "ScheduledMaintenance" };
    const hear = async (off: { withdrawn?: true }) => {
      source.say("aws/b", [advice]);
      source.say("aws/a", [{ ...maintenance, ...off }]);
      await clock.advance(1000);
    };
    await hear({});
    expect(await made()).toMatchObject([{ cause: "ScheduledMaintenance" }]);
    await hear({ withdrawn: true });
    expect((await made())[0]).toHaveProperty("withdrawnAt");
    // The controller has uncordoned the node.
    await api.send({
      ...{ method: "PATCH", path: `${departures}/n1-0b1f7a3e/status` },
      ...{ patchType: "application/merge-patch+json", body: { status: { phase: "Ended" } } },
    });
    for (let second = 0; second < 3; second += 1) await hear({ withdrawn: true });
    expect((await made()).map(({ cause }) => cause)).toEqual([
      "ScheduledMaintenance",
      "RebalanceRecommendation",
    ]);
  });

  it("keeps the notice while the service does not respond", async () => {
    await start();
    source.say("aws/a", [spot(120)]);
    await settle();
    for (let second = 0; second < 60; second += 1) {
      source.fail("NOTICE_UNREADABLE");
      await clock.advance(1000);
    }
    expect((await made())[0]).not.toHaveProperty("withdrawnAt");
  });
});

describe("an agent that was restarted", () => {
  async function leaveBehind(): Promise<void> {
    await start();
    source.say("aws/a", [spot(120)]);
    await settle();
    ending.abort();
    await running;
    ending = new AbortController();
    source = new ScriptedSource(clock);
    sent = [];
  }

  it("recognizes its own departure, and changes nothing while the notice is unchanged", async () => {
    await leaveBehind();
    await start();
    source.say("aws/a", [{ ...spot(120), noticedAt: clock.now() }]);
    await settle();
    expect(await made()).toHaveLength(1);
    expect(sent.some((one) => one.method === "PATCH")).toBe(false);
  });

  it("withdraws a notice that ended while the agent was not running", async () => {
    await leaveBehind();
    await start();
    await quiet(11);
    expect((await made())[0]).toHaveProperty("withdrawnAt");
  });

  it("withdraws nothing before every channel has responded", async () => {
    await leaveBehind();
    await start();
    for (let second = 0; second < 60; second += 1) {
      source.say("aws/b", []);
      await clock.advance(1000);
    }
    expect((await made())[0]).not.toHaveProperty("withdrawnAt");
  });
});

describe("an agent with nothing to do", () => {
  it("sends the API server one request after its start and no more", async () => {
    await start();
    await quiet(15);
    const afterStart = sent.length;
    expect(afterStart).toBe(1);
    await quiet(600);
    expect(sent.length).toBe(afterStart);
    expect(health.problem()).toBeUndefined();
  });

  it("is unhealthy when one of its loops is stuck for four minutes", async () => {
    await start();
    await quiet(5);
    await clock.advance(minutes(4) + 1000);
    expect(health.problem()).toMatch(/loop aws\/a has been stuck for 24\d s/);
  });
});

describe("an agent in a dry run", () => {
  it("logs what it would do, and sends nothing", async () => {
    await start({ dryRun: true });
    source.say("aws/a", [spot(120)]);
    await settle();
    await quiet(30);
    expect(sent).toEqual([]);
    expect(logged.filter((event) => event === "dry-run").length).toBeGreaterThan(0);
  });
});

describe("an agent whose clock is wrong", () => {
  it("reports times by the cloud's clock", async () => {
    await start();
    // The node's clock is an hour ahead.
    const skewMs = 3_600_000;
    const cloudAt = instant(clock.now() - skewMs);
    const notice = { ...spot(0), noticedAt: cloudAt, deadlineAt: plus(cloudAt, seconds(120)) };
    source.say("aws/a", [notice], skewMs);
    await settle();
    expect(await made()).toMatchObject([{ noticedAt: formatInstant(cloudAt) }]);
    expect(logged).toContain("clock-skew");
    source.say("aws/a", [], skewMs);
    await clock.advance(10_000);
    source.say("aws/a", [], skewMs);
    await settle();
    expect(metrics.exposition()).toContain('lastcall_errors_total{code="CLOCK_SKEW"} 1');
    expect((await made())[0]).toMatchObject({
      withdrawnAt: formatInstant(plus(cloudAt, seconds(10))),
    });
  });
});
