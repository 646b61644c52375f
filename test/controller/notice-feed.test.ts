import { describe, expect, it } from "vitest";
import { formatInstant, hours, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { stage } from "../support/feed-stage.ts";
import { departures, type ModelWorld, nodes, policies } from "../support/model-world.ts";

describe("a notice from a feed", () => {
  it("cordons and drains its node in one departure, however often it is delivered", async () => {
    const { world, feed, word, tell, stop } = await stage();
    const told = word("n1");
    const many = Array.from({ length: 100 }, () => feed.listener.onNotice(told));
    expect(await tell(told)).toBe("Taken");
    expect(new Set(await Promise.all(many))).toEqual(new Set(["Taken"]));
    expect(world.marksOf("n1")).toContain("unschedulable");
    await world.pass(seconds(10));
    expect(world.podsOn("n1")).toEqual([]);
    expect(await tell(told)).toBe("Taken");
    expect(world.list(departures)).toHaveLength(1);
    expect(world.writes.filter((write) => write === `POST ${departures}`)).toHaveLength(1);
    expect(world.departureOf("n1")?.spec).toMatchObject({
      cause: "Preempted",
      source: "test/feed/event-n1",
    });
    await stop();
  });

  it.each([
    ["now", 0],
    ["two minutes ago", -120],
  ])("moves the node's pods even if its deadline is %s", async (_, leftSeconds) => {
    const { world, word, tell, stop } = await stage();
    const deadlineAt = plus(world.clock.now(), seconds(leftSeconds));
    expect(await tell(word("n1", { cause: "SpotInterruption", deadlineAt }))).toBe("Taken");
    await world.pass(seconds(30));
    expect(world.podsOn("n1")).toEqual([]);
    const counts = world.departureOf("n1")?.status as { drain: object };
    expect(counts.drain).toMatchObject({ total: 2, evicted: 2, leftBehind: 0 });
    await stop();
  });

  it("turns the node's planned departure into a forced one", async () => {
    const { world, word, tell, stop } = await stage({ max: "24h", reserve: "30m" });
    await world.pass(hours(1));
    const planned = world.departureOf("n1")?.metadata?.uid;
    expect(await tell(word("n1"))).toBe("Taken");
    await world.pass(seconds(20));
    expect(world.podsOn("n1")).toEqual([]);
    expect(world.departureOf("n1")?.metadata?.uid).toBe(planned);
    expect(world.list(departures)).toHaveLength(3);
    await stop();
  });

  it("is written even if the planned departure changes at the same moment", async () => {
    const { world, word, tell, stop } = await stage({ max: "24h", reserve: "30m" });
    await world.pass(hours(1));
    const path = `${departures}/${world.departureOf("n1")?.metadata?.name}`;
    let rivals = 0;
    world.beforeWrite = (request) => {
      if (request.path !== path || rivals > 0) return;
      rivals += 1;
      const patchType = "application/merge-patch+json";
      const body = { metadata: { annotations: { by: "a rival" } } };
      world.api.handle({ method: "PATCH", path, patchType, body });
    };
    expect(await tell(word("n1"))).toBe("Taken");
    expect(rivals).toBe(1);
    expect(world.marksOf("n1")).toContain("unschedulable");
    await stop();
  });

  it.each([
    ["sooner", seconds(90)],
    ["later", seconds(150)],
  ])("is merged into an agent's departure whose deadline was %s", async (when, lead) => {
    const { world, word, tell, stop } = await stage();
    world.notice("n1", lead);
    await world.pass(seconds(1));
    const deadlineAt = plus(world.clock.now(), seconds(119));
    expect(await tell(word("n1", { cause: "SpotInterruption", deadlineAt }))).toBe("Taken");
    expect(world.list(departures)).toHaveLength(1);
    const wanted = when === "sooner" ? plus(world.clock.now(), seconds(88)) : deadlineAt;
    expect(world.departureOf("n1")?.spec).toMatchObject({
      deadlineAt: formatInstant(wanted),
      source: "test",
    });
    await stop();
  });

  it.each([
    ["a node in use", {}],
    ["a node with a planned departure", { max: "24h", reserve: "30m" }],
  ])(
    "without a deadline never uncordons the node while its machine is there: %s",
    async (_, lifetime) => {
      const { world, word, tell, stop } = await stage(lifetime);
      world.patchPolicy({ spec: { drain: { onTimeout: "Wait" } } });
      world.patchBudget("web", { spec: { maxUnavailable: 0 } });
      if ("max" in lifetime) {
        await world.passUntil(() => world.statusOf("n1").phase === "Draining", hours(24));
      }
      const hook = { cause: "LifecycleHook", deadlineAt: undefined } as const;
      expect(await tell(word("n1", hook))).toBe("Taken");
      // A drain may take five minutes.
      await world.pass(minutes(11));
      expect(world.marksOf("n1")).toContain("unschedulable");
      expect(world.podsOn("n1").length).toBeGreaterThan(0);
      world.patchBudget("web", { spec: { maxUnavailable: 6 } });
      await world.pass(seconds(30));
      expect(world.podsOn("n1")).toEqual([]);
      await stop();
    },
  );

  it.each(["Drain", "Cordon"])(
    "of a rebalance recommendation ends after an hour: %s",
    async (rebalance) => {
      const { world, word, tell, stop } = await stage();
      world.patchPolicy({ spec: { onNotice: { rebalance } } });
      await world.pass(seconds(1));
      const advice = word("n1", { cause: "RebalanceRecommendation", deadlineAt: undefined });
      expect(await tell(advice)).toBe("Taken");
      await world.pass(minutes(59));
      expect(world.marksOf("n1")).toContain("unschedulable");
      await world.pass(minutes(2));
      expect(world.marksOf("n1")).toEqual([]);
      expect(world.departureOf("n1")?.status).toMatchObject({ reason: "NoticeOutlived" });
      await stop();
    },
  );

  it("of maintenance keeps the node empty for two hours from its start", async () => {
    const { world, word, tell, stop } = await stage();
    const deadlineAt = plus(world.clock.now(), minutes(10));
    expect(await tell(word("n1", { cause: "ScheduledMaintenance", deadlineAt }))).toBe("Taken");
    await world.pass(minutes(129));
    expect(world.marksOf("n1")).toContain("unschedulable");
    await world.pass(minutes(2));
    expect(world.marksOf("n1")).toEqual([]);
    await stop();
  });

  it("of a recommendation keeps the node cordoned if an interruption follows within the hour", async () => {
    const { world, word, tell, stop } = await stage();
    world.patchPolicy({ spec: { onNotice: { rebalance: "Drain" } } });
    await world.pass(seconds(1));
    const advice = word("n1", { cause: "RebalanceRecommendation", deadlineAt: undefined });
    expect(await tell(advice)).toBe("Taken");
    await world.pass(minutes(59));
    expect(await tell(word("n1", { cause: "SpotInterruption", eventId: "event-2" }))).toBe("Taken");
    await world.pass(minutes(2));
    expect(world.marksOf("n1")).toContain("unschedulable");
    await stop();
  });

  it.each(["Ignore", "Drain"])(
    "of a recommendation lets a running planned departure end as planned: %s",
    async (rebalance) => {
      const { world, word, tell, stop } = await stage({ max: "24h", reserve: "30m" });
      world.patchPolicy({ spec: { onNotice: { rebalance } } });
      await world.passUntil(() => world.statusOf("n1").phase === "Draining", hours(24));
      const advice = word("n1", { cause: "RebalanceRecommendation", deadlineAt: undefined });
      expect(await tell(advice)).toBe("Taken");
      await world.pass(minutes(2));
      const isOfN1 = (id: string) => id.endsWith("/n1");
      expect(world.released.filter(isOfN1)).toHaveLength(1);
      await stop();
    },
  );

  it("for a machine without a node makes no departure", async () => {
    const { world, word, tell, stop } = await stage();
    expect(await tell(word("n9"))).toBe("NoNode");
    expect(world.list(departures)).toEqual([]);
    await stop();
  });

  it("is rejected while it cannot be written, and accepted when it is delivered again", async () => {
    const { world, word, tell, stop } = await stage();
    const fault = new LastcallError("API_UNREACHABLE", "the API server is away");
    world.beforeWrite = () => {
      throw fault;
    };
    await expect(tell(word("n1"))).rejects.toBe(fault);
    world.beforeWrite = () => {};
    expect(await tell(word("n1"))).toBe("Taken");
    expect(world.marksOf("n1")).toContain("unschedulable");
    await stop();
  });

  it("is acted on although the policy ignores another one for the same machine", async () => {
    const { world, feed, word, tell, stop } = await stage();
    const first = { cause: "RebalanceRecommendation", deadlineAt: undefined } as const;
    const recommended = feed.listener.onNotice(word("n1", { ...first, eventId: "event-0" }));
    expect(await tell(word("n1", { cause: "SpotInterruption" }))).toBe("Taken");
    expect(await recommended).toBe("Taken");
    expect(world.marksOf("n1")).toContain("unschedulable");
    await world.pass(seconds(10));
    expect(world.podsOn("n1")).toEqual([]);
    await stop();
  });

  it("is not lost if it arrives while a departure ends as ignored", async () => {
    const { world, word, tell, stop } = await stage();
    const recommended = word("n1", { cause: "RebalanceRecommendation", deadlineAt: undefined });
    const isForced = forceAtNextRecord(world, "n1");
    await tell(recommended);
    await world.pass(seconds(5));
    expect(isForced()).toBe(true);
    expect(world.departureOf("n1")?.status).toMatchObject({ phase: "Releasing" });
    expect(world.marksOf("n1")).toContain("unschedulable");
    await stop();
  });

  it("is not lost if it arrives while a departure ends because the plan dropped it", async () => {
    const { world, stop } = await stage({ max: "24h", reserve: "30m" });
    await world.pass(hours(1));
    const isForced = forceAtNextRecord(world, "n1");
    world.api.handle({ method: "DELETE", path: `${policies}/spot` });
    await world.pass(seconds(5));
    expect(isForced()).toBe(true);
    expect(world.departureOf("n1")?.status).toMatchObject({ phase: "Releasing" });
    expect(world.marksOf("n1")).toContain("unschedulable");
    await stop();
  });

  it("gets a departure of its own if the one it would join has just ended", async () => {
    const { world, word, tell, stop } = await stage();
    world.patchPolicy({ spec: { onNotice: { rebalance: "Cordon" } } });
    await tell(word("n1", { cause: "RebalanceRecommendation", deadlineAt: undefined }));
    const path = `${departures}/${world.departureOf("n1")?.metadata?.name}`;
    world.beforeWrite = (request) => {
      if (request.path !== path) return;
      world.beforeWrite = () => {};
      const patchType = "application/merge-patch+json";
      const body = { status: { phase: "Ended", outcome: "Cancelled" } };
      world.api.handle({ method: "PATCH", path: `${path}/status`, patchType, body });
    };
    const interruption = word("n1", { cause: "SpotInterruption", eventId: "event-2" });
    expect(await tell(interruption)).toBe("Taken");
    const causes = world.list(departures).map(({ spec }) => (spec as { cause: string }).cause);
    expect(causes.toSorted()).toEqual(["RebalanceRecommendation", "SpotInterruption"]);
    await stop();
  });

  it("drains the node if the policy only cordoned for the notice before it", async () => {
    const { world, word, tell, stop } = await stage();
    world.patchPolicy({ spec: { onNotice: { rebalance: "Cordon" } } });
    const first = { cause: "RebalanceRecommendation", deadlineAt: undefined } as const;
    await tell(word("n1", { ...first, eventId: "event-0" }));
    await world.pass(seconds(10));
    expect(world.marksOf("n1")).toContain("unschedulable");
    expect(world.podsOn("n1")).not.toEqual([]);
    expect(await tell(word("n1", { cause: "SpotInterruption" }))).toBe("Taken");
    await world.pass(seconds(10));
    expect(world.podsOn("n1")).toEqual([]);
    await stop();
  });

  it("that cannot be read is logged once a minute, with a count of the others", async () => {
    const { world, feed, stop } = await stage();
    const lines = () => world.logged.filter((line) => line.includes("feed-error"));
    for (let count = 0; count < 100; count += 1) {
      feed.listener.onError(new LastcallError("NOTICE_UNREADABLE", "no notice"));
    }
    expect(lines()).toHaveLength(1);
    await world.pass(seconds(60));
    feed.listener.onError(new LastcallError("NOTICE_UNREADABLE", "no notice"));
    expect(lines()).toHaveLength(2);
    expect(lines()[1]).toContain('"alsoSince":99');
    await stop();
  });

  it("is accepted after the feed has reported an error", async () => {
    const { world, feed, word, tell, stop } = await stage();
    feed.listener.onError(new LastcallError("CLOUD_UNREACHABLE", "no answer"));
    expect(world.logged.some((line) => line.includes("feed-error"))).toBe(true);
    expect(await tell(word("n1"))).toBe("Taken");
    await stop();
  });
});

/** Writes a notice just before the next write to the status of a node's departure. */
function forceAtNextRecord(world: ModelWorld, node: string): () => boolean {
  let isForced = false;
  world.beforeWrite = ({ method, path }) => {
    if (isForced || method !== "PATCH" || !path.endsWith("/status")) return;
    if (!path.includes(`${node}-`)) return;
    isForced = true;
    forceByHand(world, node);
  };
  return () => isForced;
}

function forceByHand(world: ModelWorld, node: string): void {
  const nowAt = world.clock.now();
  world.api.handle({
    method: "PATCH",
    path: `${departures}/${world.departureOf(node)?.metadata?.name}`,
    patchType: "application/merge-patch+json",
    body: {
      spec: {
        cause: "SpotInterruption",
        noticedAt: formatInstant(nowAt),
        deadlineAt: formatInstant(plus(nowAt, seconds(120))),
        source: "test/feed/interruption",
      },
    },
  });
}

describe("a notice for a machine that two Nodes name", () => {
  const instance = "i-0123456789abcdef0";
  const providerID = `aws:///eu-west-1a/${instance}`;

  /** `aaa` and `zzz` name one instance, as whose neither name tells. */
  async function twins() {
    const set = await stage();
    for (const name of ["zzz", "aaa"]) set.world.addNode(name, "b", {}, providerID);
    await set.world.pass(seconds(30));
    return { ...set, told: { ...set.word("n1"), machine: instance } };
  }

  it.each(["aaa", "zzz"])(
    "drains the one that has its name, and leaves %s alone",
    async (guest) => {
      const { world, word, tell, stop } = await stage();
      world.api.handle({ method: "DELETE", path: `${nodes}/n1` });
      world.addNode(guest, "b", {}, "gce://demo/a/n1");
      await world.pass(seconds(30));
      // It registers again, as after a restart.
      world.addNode("n1", "a");
      await world.pass(seconds(30));
      expect(await tell(word("n1"))).toBe("Taken");
      await world.pass(seconds(10));
      expect(world.marksOf("n1")).toContain("unschedulable");
      expect(world.marksOf(guest)).toEqual([]);
      expect(world.departureOf(guest)).toBeUndefined();
      await stop();
    },
  );

  it("drains both if their names do not tell, once", async () => {
    const { world, told, tell, stop } = await twins();
    for (let time = 0; time < 3; time += 1) expect(await tell(told)).toBe("Taken");
    await world.pass(seconds(10));
    for (const name of ["aaa", "zzz"]) {
      expect(world.marksOf(name), name).toContain("unschedulable");
    }
    expect(world.list(departures)).toHaveLength(2);
    await stop();
  });

  it.each(["aaa", "zzz"])(
    "drains the other one if that of %s cannot be written",
    async (refused) => {
      const { world, told, tell, stop } = await twins();
      const send = world.watched.send.bind(world.watched);
      let lasts = true;
      world.watched.send = async (request) => {
        const isOfRefused = JSON.stringify(request.body ?? "").includes(`"${refused}"`);
        if (lasts && request.method === "POST" && isOfRefused) return { status: 403, body: {} };
        return send(request);
      };
      await expect(tell(told)).rejects.toBeInstanceOf(LastcallError);
      expect(world.marksOf(refused === "aaa" ? "zzz" : "aaa")).toContain("unschedulable");
      lasts = false;
      expect(await tell(told)).toBe("Taken");
      expect(world.marksOf(refused)).toContain("unschedulable");
      await stop();
    },
  );
});
