import { describe, expect, it } from "vitest";
import type { KubeAnswer, KubeRequest } from "../../src/contracts/kube-api.ts";
import { minutes, seconds } from "../../src/core/time/time.ts";
import type { ModelWorld } from "../support/model-world.ts";
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

function failure(code: number, message: string, more: object = {}): KubeAnswer {
  const body = { kind: "Status", status: "Failure", code, message, ...more };
  return { status: code, body };
}

const spent = "The disruption budget victim needs 1 healthy pods and has 1 currently";
const ofBudget = { details: { causes: [{ reason: "DisruptionBudget", message: spent }] } };
const down =
  'Internal error occurred: failed calling webhook "drain-cleaner.example.com": failed to call webhook: Post "https://drain-cleaner.shop.svc:443/drainer?timeout=5s": dial tcp 10.0.0.7:443: connect: connection refused';
const denied = 'admission webhook "drain-cleaner.example.com" denied the request: not now';
const two =
  "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";

/** Each answer that may last, and what is said about it. */
const answers: readonly [string, KubeAnswer, string][] = [
  ["500 of a webhook that is down", failure(500, down), `500: ${down}`],
  ["500 of a webhook that denies", failure(500, denied), `500: ${denied}`],
  ["403 of a webhook", failure(403, denied), `403: ${denied}`],
  ["429 of a webhook", failure(429, denied), `429: ${denied}`],
  ["429 of a server", { status: 429, body: "Too many requests" }, "429: Too many requests"],
  ["409", failure(409, "the object has been modified"), "409: the object has been modified"],
  ["422", failure(422, 'Eviction "x" is invalid'), '422: Eviction "x" is invalid'],
  ["404 of the path", { status: 404, body: "404 page not found" }, "404: 404 page not found"],
  ["500 of two budgets", failure(500, two), two.slice(0, -1)],
  ["429 of a budget", failure(429, "no", ofBudget), spent],
];

/** Those that are about budgets that select the pod. */
const aboutBudgets = new Set(["500 of two budgets", "429 of a budget"]);

/** One pod of `victim`, which a budget selects, on `n0`, whose eviction always gets this answer. */
async function refused(answer: KubeAnswer): Promise<ModelWorld> {
  const world = capacityStory({
    nodes: ["n0", "n1"],
    replacement: { when: "None" },
    drain: { timeout: "1m", onTimeout: "RollBack" },
  });
  close(world, ["n1"]);
  workload(world, "victim", { replicas: 1, cpu: "1", maxUnavailable: 1 });
  await world.pass(seconds(30));
  open(world, ["n1"]);
  const send = world.api.send.bind(world.api);
  world.api.send = async (request: KubeRequest) =>
    request.path.endsWith("/eviction") ? answer : send(request);
  return world;
}

function eventsOf(world: ModelWorld, reason: string) {
  return world.events.filter((event) => event.reason === reason);
}

function isAboutBudget({ about }: { readonly about: { readonly kind: string } }): boolean {
  return about.kind === "PodDisruptionBudget";
}

describe("an eviction that is always answered by", () => {
  it.each(answers)(
    "%s: a planned departure quotes it and is rolled back",
    async (name, answer, words) => {
      const world = await refused(answer);
      const messages = new Set<string | undefined>();
      const counts = new Set<unknown>();
      world.afterRequest = () => {
        const { phase, message, drain } = ledgerOf(world, "n0");
        if (phase !== "Draining") return;
        messages.add(message);
        counts.add(drain?.blocked);
      };
      depart(world, "n0");
      await told(world, hasEnded(world, "n0"), minutes(10));
      const ledger = ledgerOf(world, "n0");
      expect(ledger.outcome).toBe("RolledBack");
      expect(ledger.message).toContain(words);
      expect([...messages].some((message) => message?.includes(`blocked by default/`))).toBe(true);
      expect(counts).toContain(1);
      expect(world.logged.some((line) => line.includes(JSON.stringify(words).slice(1, -1)))).toBe(
        true,
      );
      const blocked = eventsOf(world, "DrainBlocked");
      const isOverloaded = name === "429 of a server";
      expect(blocked.some(({ message }) => message.includes(words))).toBe(!isOverloaded);
      expect(blocked.some(isAboutBudget)).toBe(aboutBudgets.has(name));
    },
  );

  it.each(answers.filter(([name]) => name !== "429 of a server"))(
    "%s: under a notice the pod is deleted, and the Event quotes it",
    async (name, answer, words) => {
      const world = await refused(answer);
      const stop = new AbortController();
      const running = world.startController(stop.signal);
      await world.pass(seconds(5));
      world.notice("n0", seconds(60));
      await world.pass(seconds(90));
      stop.abort();
      await running;
      const forced = eventsOf(world, "PodForced");
      expect(forced[0]?.message).toContain(` was deleted instead of evicted (${words}), because`);
      expect(forced.some(isAboutBudget)).toBe(aboutBudgets.has(name));
    },
  );
});

it("a drain whose pods may not be listed is given up at its timeout, in the server's words", async () => {
  const world = await refused(failure(403, denied));
  const send = world.api.send.bind(world.api);
  const code = 422;
  const message = "pods are not listed today";
  const body = { kind: "Status", status: "Failure", reason: "Invalid", code, message };
  world.api.send = async (request: KubeRequest) =>
    request.method === "GET" && request.path.startsWith("/api/v1/pods")
      ? { status: code, body }
      : send(request);
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  await world.pass(seconds(5));
  depart(world, "n0");
  await world.pass(minutes(3));
  const { outcome, reason, message: told } = (world.departureOf("n0")?.status ?? {}) as Told;
  expect({ outcome, reason }).toEqual({ outcome: "RolledBack", reason: "RequestRefused" });
  expect(told).toContain(message);
  expect(world.marksOf("n0")).toEqual([]);
  stop.abort();
  await running;
});

interface Told {
  readonly outcome?: string;
  readonly reason?: string;
  readonly message?: string;
}
