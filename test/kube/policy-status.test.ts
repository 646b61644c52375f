import { describe, expect, it } from "vitest";
import type { KubeRequest } from "../../src/contracts/kube-api.ts";
import type { PolicyCondition, PolicyStatus } from "../../src/core/plan/plan-status.ts";
import { KubePolicyStatus } from "../../src/kube/policy-status.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { ScriptedApi } from "../support/scripted-api.ts";

const status: PolicyStatus = {
  name: "spot",
  generation: 3,
  paused: false,
  matchedNodes: 1,
  departures: { scheduled: 0, underWay: 0, done24h: 0 },
  spacing: { wantedSeconds: null, reachedSeconds: null, bestSeconds: null },
  forecast: { feasible: true, late: [], widenBySeconds: 0, explain: "all is well" },
  waves: null,
  nextDepartureAt: undefined,
  conditions: [{ type: "Ready", status: "True", reason: "Understood", message: "In force." }],
};
const ready: PolicyCondition = {
  type: "SpotReady",
  status: "False",
  reason: "FindingsOpen",
  message: "2 of 3 workloads ask for more than the 15 s that gke gives.",
};
const unchecked: PolicyCondition = {
  type: "Ready",
  status: "Unknown",
  reason: "ActionsUnchecked",
  message: "The actions of the policy have not been checked yet.",
};
const earlier = (type: string, standing: string) => ({
  type,
  status: standing,
  reason: "FindingsOpen",
  message: "said before",
  lastTransitionTime: "2026-11-01T00:00:00Z",
});

function sinkOver(conditions: readonly object[] = []) {
  const api = new ScriptedApi(() => ({
    status: 200,
    body: { kind: "DeparturePolicy", status: { conditions } },
  }));
  const sent = () => api.sent.filter(({ method }) => method === "PATCH");
  const patches = () => sent().map(conditionsIn);
  return { sink: new KubePolicyStatus(api, new ManualClock()), patches, sent };
}

function conditionsIn({ body }: KubeRequest) {
  return (body as { status: { conditions: readonly { type: string }[] } }).status.conditions;
}

describe("the status of a policy", () => {
  it("says once that the plan failed, keeps other conditions, and is complete again after that", async () => {
    const { sink, sent } = sinkOver([earlier("Ready", "True"), earlier("Feasible", "True")]);
    await sink.unplanned(["spot"], "Invalid time value");
    const [said] = sent();
    expect(said && conditionsIn(said)).toEqual([
      earlier("Ready", "True"),
      {
        ...{ type: "Feasible", status: "Unknown", reason: "PlanFailed" },
        message: "The plan cannot be made, so no planned departure starts: Invalid time value",
        ...{ observedGeneration: undefined, lastTransitionTime: "2026-11-20T00:00:00.000Z" },
      },
    ]);
    await sink.write([status]);
    expect(sent()).toHaveLength(2);
    await sink.write([status]);
    expect(sent()).toHaveLength(2);
  });

  it.each([
    ["an overloaded server", { status: 500, body: { kind: "Status", status: "Failure" } }],
    ["a missing right", { status: 403, body: { kind: "Status", reason: "Forbidden" } }],
    ["a proxy's page", { status: 200, body: "<html>welcome</html>" }],
  ])("overwrites no condition that %s kept it from reading", async (_what, answer) => {
    const api = new ScriptedApi(() => answer);
    const sink = new KubePolicyStatus(api, new ManualClock());
    await expect(sink.unplanned(["spot"], "Invalid time value")).rejects.toThrow(/spot/);
    await expect(sink.write([status])).rejects.toThrow(/spot/);
    expect(api.sent.map(({ method }) => method)).toEqual(["GET", "GET"]);
  });

  it("is read at most twice while the API server hangs, however many passes fail", async () => {
    const hung = Promise.withResolvers<void>();
    const api = new ScriptedApi(async () => {
      await hung.promise;
      return { status: 200, body: { kind: "DeparturePolicy" } };
    });
    const sink = new KubePolicyStatus(api, new ManualClock());
    const first = sink.unplanned(["spot"], "Invalid time value");
    await Promise.resolve();
    const later = Array.from({ length: 50 }, () => sink.unplanned(["spot"], "Invalid time value"));
    hung.resolve();
    await Promise.all([first, ...later]);
    expect(api.sent.filter(({ method }) => method === "GET").length).toBeLessThanOrEqual(2);
  });

  it("includes a condition from another loop, and writes it only once", async () => {
    const { sink, patches } = sinkOver();
    await sink.write([status]);
    await sink.add("spot", ready);
    await sink.write([status]);

    expect(patches().map((one) => one.map(({ type }) => type))).toEqual([
      ["Ready"],
      ["Ready", "SpotReady"],
    ]);
  });

  it("is written again if only the message of that condition changes", async () => {
    const { sink, patches } = sinkOver();
    await sink.add("spot", ready);
    await sink.write([status]);
    await sink.add("spot", {
      ...ready,
      message: "3 of 3 workloads ask for more than the 15 s that gke gives.",
    });

    expect(patches()).toHaveLength(2);
  });

  it("keeps the workload condition of a previous leader until there is a newer one", async () => {
    const { sink, patches } = sinkOver([earlier("Ready", "True"), earlier("SpotReady", "True")]);
    await sink.write([status]);
    expect(patches()[0]).toMatchObject([
      { type: "Ready", lastTransitionTime: "2026-11-01T00:00:00.000Z" },
      { type: "SpotReady", message: "said before", lastTransitionTime: "2026-11-01T00:00:00.000Z" },
    ]);

    await sink.add("spot", ready);
    expect(patches()[1]).toMatchObject([
      { type: "Ready", lastTransitionTime: "2026-11-01T00:00:00.000Z" },
      { type: "SpotReady", status: "False", lastTransitionTime: "2026-11-20T00:00:00.000Z" },
    ]);
  });

  it("is written again if the policy was deleted and recreated unchanged", async () => {
    const { sink, sent } = sinkOver();
    await sink.write([{ ...status, uid: "first" }]);
    await sink.write([{ ...status, uid: "first" }]);
    await sink.write([{ ...status, uid: "second" }]);
    const bodies = sent().map(({ body }) => body as { status: object });
    expect(bodies).toHaveLength(2);
    for (const body of bodies) expect(body.status).not.toHaveProperty("uid");
  });

  it("is not written for a policy from a file", async () => {
    const { sink, patches } = sinkOver();
    await sink.write([{ ...status, generation: undefined }]);
    await sink.add("spot", ready);

    expect(patches()).toEqual([]);
  });

  it("is the newest one in the cluster, even if an older write arrives late", async () => {
    const late = Promise.withResolvers<void>();
    const inCluster: unknown[] = [];
    const api = new ScriptedApi(async (request) => {
      if (request.method !== "PATCH") return { status: 200, body: { kind: "DeparturePolicy" } };
      const isLate = (request.body as { status: PolicyStatus }).status.matchedNodes === 2;
      if (isLate && !inCluster.includes("late")) {
        inCluster.push("late");
        await late.promise;
      }
      inCluster.push(...conditionsIn(request));
      return { status: 200, body: {} };
    });
    const sink = new KubePolicyStatus(api, new ManualClock());
    await sink.write([status]);
    const older = sink.write([{ ...status, matchedNodes: 2 }]);
    const newer = sink.add("spot", unchecked);
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    late.resolve();
    await Promise.all([older, newer]);
    expect(inCluster.at(-1)).toMatchObject(unchecked);
  });

  it.each([403, 422, 503])("that is refused (%s) is an error", async (code) => {
    const refusal = { kind: "Status", code, message: "said" };
    const api = new ScriptedApi(({ method }) =>
      method === "PATCH"
        ? { status: code, body: refusal }
        : { status: 200, body: { kind: "DeparturePolicy" } },
    );
    const sink = new KubePolicyStatus(api, new ManualClock());
    await expect(sink.write([status])).rejects.toThrow(/spot.*said/);
    await expect(sink.add("spot", ready)).rejects.toThrow(/spot.*said/);
    await expect(sink.unplanned(["spot"], "Invalid time value")).rejects.toThrow(/spot.*said/);
  });

  it("is not written to a policy that was deleted meanwhile", async () => {
    const missing = { kind: "Status", code: 404, reason: "NotFound", message: "not found" };
    const api = new ScriptedApi(({ method }) =>
      method === "PATCH"
        ? { status: 404, body: missing }
        : { status: 200, body: { kind: "DeparturePolicy" } },
    );
    const sink = new KubePolicyStatus(api, new ManualClock());
    await sink.write([status]);
    await sink.unplanned(["spot"], "Invalid time value");
    expect(api.sent.filter(({ method }) => method === "PATCH")).toHaveLength(2);
  });

  it("is written by the next pass if the API server has refused it", async () => {
    const answers: Record<string, number[]> = { PATCH: [503, 200] };
    const api = new ScriptedApi(({ method }) => ({
      status: answers[method]?.shift() ?? 200,
      body: { kind: "DeparturePolicy" },
    }));
    const sink = new KubePolicyStatus(api, new ManualClock());
    await expect(sink.write([status])).rejects.toThrow(/503/);
    for (let pass = 0; pass < 2; pass += 1) await sink.write([status]);
    expect(api.sent.filter(({ method }) => method === "PATCH")).toHaveLength(2);
  });

  it("is retried once, not once for each pass during an outage", async () => {
    const over = Promise.withResolvers<void>();
    const api = new ScriptedApi(async ({ method }) => {
      if (method === "PATCH") await over.promise;
      return { status: method === "PATCH" ? 503 : 200, body: { kind: "DeparturePolicy" } };
    });
    const sink = new KubePolicyStatus(api, new ManualClock());
    const passes = [sink.write([status])];
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    for (let pass = 0; pass < 50; pass += 1) passes.push(sink.write([status]));
    over.resolve();
    const ends = await Promise.allSettled(passes);
    expect(new Set(ends.map((end) => end.status))).toEqual(new Set(["rejected"]));
    expect(api.sent.filter(({ method }) => method === "PATCH")).toHaveLength(2);
  });
});
