import { describe, expect, it } from "vitest";
import type { KubeAnswer, KubeObject } from "../../src/contracts/kube-api.ts";
import { minutes, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { dawn, type ModelWorld } from "../support/model-world.ts";
import {
  capacityStory,
  close,
  depart,
  hasEnded,
  ledgerOf,
  open,
  told,
  workload,
} from "./capacity-story.ts";

type Answer = KubeAnswer | "Lost" | "LostAfterSending";

/** When each eviction was requested, in seconds since the first one. */
interface Asked {
  readonly victim: readonly number[];
  readonly other: readonly number[];
}

function failure(code: number, message: string, more: object = {}): KubeAnswer {
  const body = { kind: "Status", status: "Failure", code, message, ...more };
  return { status: code, body };
}

function budget(message: string): object {
  return { details: { causes: [{ reason: "DisruptionBudget", message }] } };
}

const spent = "The disruption budget victim needs 2 healthy pods and has 2 currently";
const behind = "The disruption budget victim is still being processed by the server.";
const ending = { details: { causes: [{ reason: "NamespaceTerminating", message: "ending" }] } };
const two =
  "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";

/** One pod of `victim` and one of `other` on `n0`, and room elsewhere. */
async function twoPods(): Promise<ModelWorld> {
  const world = capacityStory({ nodes: ["n0", "n1"], replacement: { when: "None" } });
  close(world, ["n1"]);
  for (const name of ["victim", "other"]) workload(world, name, { replicas: 1, cpu: "1" });
  await world.pass(seconds(30));
  open(world, ["n1"]);
  return world;
}

/** Answers the first three evictions of the victim like this. */
function answerFirst(world: ModelWorld, answer: Answer): Asked {
  const [victim, other]: [number[], number[]] = [[], []];
  let firstAt: number | undefined;
  const { api } = world;
  const send = api.send.bind(api);
  api.send = async (request) => {
    if (!request.path.endsWith("/eviction")) return send(request);
    const now = world.clock.now() - dawn;
    firstAt ??= now;
    const isVictim = request.path.includes("/pods/victim-");
    (isVictim ? victim : other).push((now - firstAt) / 1000);
    if (!isVictim || victim.length > 3) return send(request);
    if (answer === "LostAfterSending") await send(request);
    if (typeof answer !== "string") return answer;
    throw new LastcallError("API_UNREACHABLE", "Cannot POST: connection reset");
  };
  return { victim, other };
}

describe("a pod whose eviction is answered by", () => {
  it.each<[string, Answer, { reason: string; words: string } | undefined, number]>([
    [
      "429 of a budget",
      failure(429, "no", budget(spent)),
      { reason: "DrainBlocked", words: spent },
      0.1,
    ],
    [
      "429 of a budget with a stale status, with Retry-After",
      { ...failure(429, "no", budget(behind)), retryAfterSeconds: 10 },
      { reason: "DrainBlocked", words: behind },
      10,
    ],
    [
      "429 in plain text, with Retry-After",
      { status: 429, body: "Too many requests, please try again later.\n", retryAfterSeconds: 1 },
      undefined,
      1,
    ],
    [
      "201 with a Failure body (two budgets)",
      { status: 201, body: { kind: "Status", status: "Failure", code: 500, message: two } },
      { reason: "DrainBlocked", words: two },
      0.1,
    ],
    ["500", failure(500, "etcd has no leader"), undefined, 0.1],
    [
      "504 of a contended budget",
      { ...failure(504, "timed out"), retryAfterSeconds: 10 },
      undefined,
      0.1,
    ],
    [
      "403 of a terminating namespace",
      failure(403, "forbidden", ending),
      { reason: "DrainBlocked", words: "the namespace is being deleted" },
      0.1,
    ],
    [
      "403 of a webhook",
      failure(403, 'admission webhook "x" denied the request: not now'),
      { reason: "DrainBlocked", words: "not now" },
      0.1,
    ],
    ["no response, and the request was never received", "Lost", undefined, 0.1],
  ])("%s: it is retried, and no other pod waits for it", async (_, answer, said, pause) => {
    const world = await twoPods();
    const asked = answerFirst(world, answer);
    const words: string[] = [];
    world.afterRequest = () => {
      const { reason, message } = ledgerOf(world, "n0");
      words.push(`${reason}: ${message}`);
    };
    depart(world, "n0");
    await told(world, hasEnded(world, "n0"), minutes(5));
    expect(asked.other).toEqual([0]);
    expect(asked.victim).toHaveLength(4);
    const pauses = asked.victim.slice(1).map((at, index) => at - (asked.victim[index] ?? 0));
    // Each refusal doubles the pause, at least half of which remains after jitter; a step may come
    // 20 ms late.
    for (const [index, found] of pauses.entries()) {
      expect(found).toBeGreaterThanOrEqual(Math.max(pause, 0.1 * 2 ** index));
      expect(found).toBeLessThanOrEqual(Math.max(pause, 0.2 * 2 ** index) + 0.05);
    }
    if (said !== undefined) {
      expect(words.find((one) => one.startsWith(said.reason))).toContain(said.words);
    }
    expect(ledgerOf(world, "n0")).toMatchObject({
      outcome: "Planned",
      drain: { total: 2, left: 0, evicted: 2, forced: 0, cleanExit: 2 },
    });
  });

  it("nothing, although it was received: it counts as evicted by Lastcall, and is not retried", async () => {
    const world = await twoPods();
    const asked = answerFirst(world, "LostAfterSending");
    depart(world, "n0");
    await told(world, hasEnded(world, "n0"), minutes(5));
    expect(asked.victim).toEqual([0]);
    expect(ledgerOf(world, "n0")).toMatchObject({
      outcome: "Planned",
      drain: { total: 2, left: 0, evicted: 2, forced: 0, cleanExit: 2 },
    });
  });
});

describe("pods that their budgets never release", () => {
  it("are in the Departure's status as blocked, with each budget's message, all the time", async () => {
    const world = capacityStory({ nodes: ["n0", "n1"], replacement: { when: "None" } });
    close(world, ["n1"]);
    workload(world, "victim", { replicas: 2, cpu: "1", maxUnavailable: 0 });
    workload(world, "other", { replicas: 1, cpu: "1", maxUnavailable: 0 });
    await world.pass(seconds(30));
    open(world, ["n1"]);
    depart(world, "n0");
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(seconds(3));
    const looks = new Set<string>();
    for (let look = 0; look < 120; look += 1) {
      await world.pass(seconds(1));
      const { reason, message, drain } = ledgerOf(world, "n0");
      looks.add(JSON.stringify({ reason, message, blocked: drain?.blocked, left: drain?.left }));
    }
    stop.abort();
    await running;
    const words = (budget: string, pods: number) =>
      `The disruption budget ${budget} needs ${pods} healthy pods and has ${pods} currently`;
    const pods = world.podsOn("n0").map(({ metadata }) => metadata?.name ?? "");
    const first = (of: string) => pods.find((name) => name.startsWith(of));
    const said = `default/${first("other")}: ${words("other", 1)}; default/${first("victim")}: ${words("victim", 2)}`;
    const message = `n0 is draining, blocked by ${said}; and 1 more pod.`;
    const look = { reason: "DrainBlocked", message, blocked: 3, left: 3 };
    expect([...looks]).toEqual([JSON.stringify(look)]);
  });
});

describe("a pod with a do-not-disturb mark", () => {
  const mark = "lastcall.dev/do-not-disturb";

  async function marked(): Promise<ModelWorld> {
    const world = await twoPods();
    for (const pod of world.podsOn("n0")) setMark(world, pod, "true");
    depart(world, "n0");
    return world;
  }

  function setMark(world: ModelWorld, pod: KubeObject, value: string | null): void {
    const path = `/api/v1/namespaces/default/pods/${pod.metadata?.name}`;
    const patchType = "application/merge-patch+json";
    const body = { metadata: { annotations: { [mark]: value } } };
    world.api.handle({ method: "PATCH", path, patchType, body });
  }

  it("is evicted once a person removes the mark during the drain, and no other pod is", async () => {
    const world = await marked();
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(minutes(1));
    const [freed, kept] = world.podsOn("n0");
    setMark(world, freed as KubeObject, null);
    await world.pass(seconds(20));
    expect(world.podsOn("n0").map(({ metadata }) => metadata?.name)).toEqual([
      kept?.metadata?.name,
    ]);
    stop.abort();
    await running;
  });

  it("is no longer evicted if the mark is added while its budget holds it", async () => {
    const world = capacityStory({ nodes: ["n0", "n1"], replacement: { when: "None" } });
    close(world, ["n1"]);
    workload(world, "victim", { replicas: 1, cpu: "1", maxUnavailable: 0 });
    await world.pass(seconds(30));
    open(world, ["n1"]);
    depart(world, "n0");
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(minutes(1));
    const [pod] = world.podsOn("n0");
    setMark(world, pod as KubeObject, "true");
    await world.pass(seconds(1));
    const evictions = world.writes.filter((one) => one.endsWith("/eviction")).length;
    await world.pass(minutes(1));
    expect(world.writes.filter((one) => one.endsWith("/eviction"))).toHaveLength(evictions);
    expect(ledgerOf(world, "n0").message).toContain(mark);
    stop.abort();
    await running;
  });
});
