import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../src/contracts/kube-api.ts";
import { between, seconds } from "../../src/core/time/time.ts";
import { budgetStory } from "../support/budget-story.ts";
import { departures, ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";

describe("eight pods under a budget of one, on three nodes with a notice of 30 s each", () => {
  const story = { noticeSeconds: 30, graceSeconds: 30, exitAfterSeconds: 3 } as const;

  it.each([1, 2, 3])("never drop below four, and leave in time (seed %i)", async (seed) => {
    const end = await budgetStory({ ...story, seed });
    expect(end.fewestReady).toBeGreaterThanOrEqual(4);
    expect(end.emptyAfterSeconds).toBeLessThan(30);
    expect(end.unclean).toBe(0);
  });

  it("are all deleted at once if the policy gives budgets no share of the notice", async () => {
    const end = await budgetStory({ ...story, budgetShare: "0%" });
    // One is evicted; the others are deleted at the first refusal, and each takes its 3 s.
    expect(end).toMatchObject({ fewestReady: 0, forced: 7 });
    expect(end.emptyAfterSeconds).toBeLessThan(4);
  });

  it("are all evicted within their budget if the notice is long", async () => {
    const end = await budgetStory({ ...story, noticeSeconds: 120 });
    expect(end).toMatchObject({ fewestReady: 7, forced: 0, cut: 0, unclean: 0 });
  });
});

interface Held {
  readonly world: ModelWorld;
  /**
   * When each pod was deleted regardless of its budget, in seconds after the notice, and with which
   * grace period.
   */
  readonly deleted: { readonly afterSeconds: number; readonly graceSeconds: number }[];
}

/** Two pods each on n0 and n1, which terminate within 3 s and ask for 30 s. */
async function heldPods(maxUnavailable: number): Promise<Held> {
  const world = new ModelWorld();
  for (const name of ["n0", "n1"]) world.addNode(name, name);
  const web = { replicas: 4, maxUnavailable, exitAfterSeconds: 3, graceSeconds: 30 };
  webWorkload(world, web);
  spotPolicy(world, { instance: { release: "None" } });
  await world.pass(seconds(30));
  return { world, deleted: [] };
}

function notice({ world, deleted }: Held, name: string): void {
  const noticedAt = world.clock.now();
  world.notice(name, seconds(30));
  world.afterRequest = ({ method, path }, { at, status }) => {
    if (method !== "DELETE" || !path.includes("/pods/") || status >= 300) return;
    const { deletionGracePeriodSeconds } = world.get(path)?.metadata ?? {};
    const graceSeconds = Number(deletionGracePeriodSeconds);
    deleted.push({ afterSeconds: Math.floor(between(noticedAt, at) / 1000), graceSeconds });
  };
}

async function whileControlled(world: ModelWorld, span: number): Promise<void> {
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  await world.pass(seconds(span));
  stop.abort();
  await running;
}

describe("pods that their budget never releases", () => {
  it("are deleted after half of the notice, each with a PodCut event", async () => {
    const held = await heldPods(0);
    notice(held, "n0");
    await whileControlled(held.world, 40);
    // Half is 15 s, less the margin of 2 s.
    expect(held.deleted).toEqual(Array(2).fill({ afterSeconds: 13, graceSeconds: 17 }));
    const said = held.world.events.filter(({ about }) => about.kind === "Pod");
    expect(said.map(({ reason }) => reason).toSorted()).toEqual([
      ...["DrainBlocked", "DrainBlocked", "PodCut", "PodCut", "PodForced", "PodForced"],
    ]);
    const [cut] = said.filter(({ reason }) => reason === "PodCut");
    expect(cut?.message).toContain("with its grace period truncated from 30 s to 17 s");
  });

  it("are deleted after half of the remaining time if the notice is seen late", async () => {
    const held = await heldPods(0);
    notice(held, "n0");
    await held.world.pass(seconds(14));
    await whileControlled(held.world, 20);
    // 16 s remain: 14 + 8, less the margin.
    expect(held.deleted).toEqual(Array(2).fill({ afterSeconds: 20, graceSeconds: 10 }));
  });

  it("are deleted at the same time if another controller takes over", async () => {
    const held = await heldPods(0);
    notice(held, "n0");
    await whileControlled(held.world, 8);
    await held.world.pass(seconds(2));
    await whileControlled(held.world, 20);
    expect(held.deleted).toEqual(Array(2).fill({ afterSeconds: 13, graceSeconds: 17 }));
  });

  it("are deleted later if pods of their workload are known to terminate quickly", async () => {
    const held = await heldPods(4);
    const { world } = held;
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    const uid = world.get(`${nodes}/n0`)?.metadata?.uid ?? "";
    world.create(departures, manual("n0", uid));
    await world.passUntil(() => world.podsOn("n0").length === 0, seconds(30));
    await world.pass(seconds(10));
    world.patchBudget("web", { spec: { maxUnavailable: 0 } });
    notice(held, "n1");
    await world.pass(seconds(40));
    stop.abort();
    await running;
    // Two took 3 s, so the others are estimated to need 3 + 3 * 3 / 2 = 7.5 s; with the margin of 2
    // s: 20.5 s.
    expect(held.deleted.map(({ afterSeconds }) => afterSeconds)).toEqual(Array(4).fill(20));
  });
});

describe("a pod that is deleted regardless of its budget", () => {
  it("gets the condition DisruptionTarget first", async () => {
    const held = await heldPods(0);
    const { world, deleted } = held;
    notice(held, "n0");
    const conditions: unknown[] = [];
    world.beforeWrite = ({ method, path }) => {
      if (method !== "DELETE" || !path.includes("/pods/")) return;
      const { status } = world.get(path) as { status: { conditions: { type: string }[] } };
      conditions.push(status.conditions.find(({ type }) => type === "DisruptionTarget"));
    };
    await whileControlled(world, 40);
    expect(deleted).toHaveLength(2);
    const mark = { status: "True", reason: "DeletionByLastcall" };
    expect(conditions).toMatchObject([mark, mark]);
  });

  it.each([
    ["cannot be written", { status: 403, body: "no right" }],
    ["gets no response", "Drop"],
  ] as const)("is deleted on time even if that condition %s", async (_, answer) => {
    const held = await heldPods(0);
    held.world.api.failNext({ match: { path: /pods\/[^/]+\/status$/ }, answer, times: 2 });
    notice(held, "n0");
    await whileControlled(held.world, 40);
    expect(held.deleted).toEqual(Array(2).fill({ afterSeconds: 13, graceSeconds: 17 }));
    const said = held.world.logged.filter((line) => line.includes("disruption-not-marked"));
    expect(said).toHaveLength(2);
  });
});

function manual(name: string, uid: string): KubeObject {
  return {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name: `${name}-asked` },
    spec: { node: { name, uid }, cause: "Manual", source: "person" },
  };
}
