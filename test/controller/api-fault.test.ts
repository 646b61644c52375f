import { describe, expect, it } from "vitest";
import type { KubeAnswer, KubeRequest, KubeWatchEvent } from "../../src/contracts/kube-api.ts";
import { minutes, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { ModelWorld, webWorkload } from "../support/model-world.ts";
import { capacityStory, close, depart, open, workload } from "./capacity-story.ts";

/** `Page` and `Object` are responses with 200 from something other than the API server. */
type Fault = number | "Lost" | "Hangs" | "Page" | "Object";

/** The requests that a notice causes, by name. */
const acts: Readonly<Record<string, (request: KubeRequest) => boolean>> = {
  "the cordon": ({ method, path }) => method === "PATCH" && path === "/api/v1/nodes/n1",
  "the list of the pods": ({ method, path, query }) =>
    method === "GET" && path === "/api/v1/pods" && query?.fieldSelector !== undefined,
  "the list of the budgets": ({ method, path }) =>
    method === "GET" && path === "/apis/policy/v1/poddisruptionbudgets",
  "an eviction": ({ path }) => path.endsWith("/eviction"),
  "the first write of the ledger": ({ method, path }) =>
    method === "PATCH" && path.includes("/departures/"),
};

function failing(fault: Fault): Promise<KubeAnswer> {
  if (fault === "Hangs") return new Promise(() => {});
  if (fault === "Lost") {
    return Promise.reject(
      new LastcallError("API_UNREACHABLE", "Cannot reach the API server: reset"),
    );
  }
  if (fault === "Page") {
    const message =
      "Cannot PATCH: answered with a page, check whether a proxy responds in its place";
    return Promise.reject(new LastcallError("API_ANSWER_INVALID", message));
  }
  if (fault === "Object") return Promise.resolve({ status: 200, body: { message: "log in" } });
  const message = `injected ${fault}`;
  return Promise.resolve({ status: fault, body: { kind: "Status", code: fault, message } });
}

/** Fails the next `times` requests of a kind. */
function inject(
  { api }: ModelWorld,
  fault: { readonly act: string; readonly fault: Fault; readonly times: number },
): { readonly failed: () => number } {
  const isIt = acts[fault.act] as (request: KubeRequest) => boolean;
  const send = api.send.bind(api);
  let failed = 0;
  api.send = (request) => {
    if (failed >= fault.times || !isIt(request)) return send(request);
    failed += 1;
    return failing(fault.fault);
  };
  return { failed: () => failed };
}

/** Gives a notice of 30 s for n1, whose pods terminate at once. */
async function noticeWith(about: {
  readonly act: string;
  readonly fault: Fault;
  readonly times: number;
}) {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, name);
  webWorkload(world, { replicas: 6, maxUnavailable: 6 });
  await world.pass(seconds(5));
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  await world.pass(seconds(5));
  const { failed } = inject(world, about);
  world.notice("n1", seconds(30));
  const isCordoned = () =>
    (world.get("/api/v1/nodes/n1") as { spec?: { unschedulable?: boolean } }).spec
      ?.unschedulable === true;
  const leaving = () => world.podsOn("n1").filter((pod) => !pod.metadata?.deletionTimestamp).length;
  return {
    ...{ world, failed, isCordoned, leaving },
    end: async () => {
      stop.abort();
      await world.pass(minutes(1));
      await running;
    },
  };
}

const faults: readonly Fault[] = [429, 500, 503, 401, 403, 400, "Lost", "Page"];

describe.each(Object.keys(acts))("after a notice, %s", (act) => {
  it.each(faults)("that fails once (%s) costs less than three seconds", async (fault) => {
    const told = await noticeWith({ act, fault, times: 1 });
    await told.world.pass(seconds(3));
    expect(told.failed()).toBe(1);
    expect(told.isCordoned()).toBe(true);
    expect(told.leaving()).toBe(0);
    await told.end();
  });

  it.each(faults)("that fails ten times (%s) is retried every second or so", async (fault) => {
    const told = await noticeWith({ act, fault, times: 10 });
    await told.world.pass(seconds(14));
    expect(told.isCordoned()).toBe(true);
    expect(told.leaving()).toBe(0);
    await told.end();
  });
});

describe("a response that is not what was requested", () => {
  it.each(["an eviction", "the list of the pods", "the list of the budgets"])(
    "(%s) does not count, and the request is retried",
    async (act) => {
      const told = await noticeWith({ act, fault: "Object", times: 1 });
      await told.world.pass(seconds(3));
      expect(told.failed()).toBe(1);
      expect(told.leaving()).toBe(0);
      await told.end();
    },
  );
});

describe("a watch of the node's pods that is refused once", () => {
  it.each([400, 401, 403, 404])("(%s) does not keep the drain from its end", async (code) => {
    const drain = { timeout: "5m", onTimeout: "RollBack" };
    const world = capacityStory({ nodes: ["n0", "n1"], replacement: { when: "None" }, drain });
    close(world, ["n1"]);
    workload(world, "web", { replicas: 2, cpu: "1" });
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(seconds(30));
    open(world, ["n1"]);
    const { watched } = world;
    const watch = watched.watch.bind(watched);
    let refused = 0;
    watched.watch = (request) => {
      const isIt = request.query?.fieldSelector === "spec.nodeName=n0";
      if (!isIt || refused > 0) return watch(request);
      refused += 1;
      return refusing(code);
    };
    depart(world, "n0");
    await world.passUntil(() => world.statusOf("n0").phase === "Ended", minutes(10));
    expect(refused).toBe(1);
    expect(world.statusOf("n0")).toMatchObject({ outcome: "Planned", drain: { left: 0 } });
    stop.abort();
    await world.pass(minutes(1));
    await running;
  });
});

async function* refusing(code: number): AsyncGenerator<KubeWatchEvent, void, void> {
  yield { type: "ERROR", object: { kind: "Status", code, message: `injected ${code}` } };
}

describe("an unreadable list of budgets", () => {
  it.each<Fault>([403, "Hangs"])("(%s) does not delay the evictions at a notice", async (fault) => {
    const about = { act: "the list of the budgets", fault, times: Number.POSITIVE_INFINITY };
    const told = await noticeWith(about);
    await told.world.pass(seconds(3));
    expect(told.failed()).toBeGreaterThan(0);
    expect(told.leaving()).toBe(0);
    await told.end();
  });
});

describe("a planned departure", () => {
  it.each([
    [1, "Planned"],
    [Number.POSITIVE_INFINITY, "RolledBack"],
  ])("is tried again for a minute after a permanent error, %d times: %s", async (times, end) => {
    const world = new ModelWorld();
    for (const name of ["n0", "n1", "n2"]) world.addNode(name, name);
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(seconds(5));
    const { failed } = inject(world, { act: "the cordon", fault: 403, times });
    depart(world, "n1");
    await world.passUntil(() => failed() === 1, seconds(10));
    const tried = () => world.steps.filter((step) => step === "cordon n1").length;
    await world.pass(seconds(10));
    expect(tried()).toBe(1);
    const outcome = () => (world.departureOf("n1")?.status as { outcome?: string })?.outcome;
    await world.passUntil(() => outcome() !== undefined, minutes(5));
    expect(outcome()).toBe(end);
    expect(tried()).toBeLessThanOrEqual(5);
    stop.abort();
    await world.pass(minutes(1));
    await running;
  });
});
