import { describe, expect, it } from "vitest";
import { gangLabels } from "../../src/core/cluster/gang.ts";
import { defaultPolicy, type Policy } from "../../src/core/policy/policy.ts";
import { seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { KubeGateSource } from "../../src/kube/gate-source.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { ScriptedApi, unreachable } from "../support/scripted-api.ts";

const { signal } = new AbortController();

function policy(name: string): Policy {
  return { ...defaultPolicy, name, gates: { blockingPods: [{ matchLabels: { job: "batch" } }] } };
}

function scene() {
  const clock = new ManualClock();
  const api = new ScriptedApi(() => ({
    status: 200,
    body: {
      metadata: {},
      items: [{ metadata: { namespace: "default", name: "b" }, spec: { nodeName: "n1" } }],
    },
  }));
  const troubles: unknown[] = [];
  const source = new KubeGateSource({
    ...{ api, clock, firingAlerts: async () => [] },
    onError: (error) => troubles.push(error),
  });
  return { api, clock, source, troubles };
}

describe("alerts", () => {
  it.each([
    ["ACTION_HOST_FORBIDDEN", "NotAllowed"],
    ["ACTION_UNREACHABLE", "Unknown"],
  ] as const)("are not known after the error %s: %s", async (code, found) => {
    const { api, clock } = scene();
    const source = new KubeGateSource({
      ...{ api, clock, onError: () => {} },
      firingAlerts: () => Promise.reject(new LastcallError(code, "Cannot ask Alertmanager")),
    });
    const gates = { alerts: { url: "http://a", matchers: [] }, blockingPods: [] };
    const answers = await source.ask([{ ...defaultPolicy, name: "spot", gates }], signal);
    expect(answers.spot?.alerts).toBe(found);
  });
});

describe("workloads on several nodes", () => {
  const held: Policy = {
    ...{ ...defaultPolicy, name: "spot" },
    gates: { blockingPods: [], gangWorkloads: "Hold" },
  };
  const member = (node: string | undefined, name: string) => ({
    metadata: { namespace: "ml", name, labels: { "jobset.sigs.k8s.io/jobset-name": "train" } },
    spec: { nodeName: node },
  });

  it("are listed once in thirty seconds, from the cache of the API server", async () => {
    const { api, clock, source } = scene();
    const pods = [member("n1", "a"), member("n2", "b"), member(undefined, "waiting")];
    api.answer = ({ query }) => {
      const isAsked = query?.labelSelector === "jobset.sigs.k8s.io/jobset-name";
      return { status: 200, body: { metadata: {}, items: isAsked ? pods : [] } };
    };
    for (let pass = 0; pass < 4; pass += 1) {
      const { spot } = await source.ask([held], signal);
      expect(spot?.gangs).toEqual(
        new Map([
          ["n1", "JobSet ml/train on n1, n2"],
          ["n2", "JobSet ml/train on n1, n2"],
        ]),
      );
      await clock.advance(seconds(10));
    }
    // At 0 s and at 30 s, one list for each label.
    expect(api.sent).toHaveLength(2 * gangLabels.length);
    for (const { query } of api.sent) {
      expect(query).toMatchObject({ resourceVersion: "0" });
      expect(query).not.toHaveProperty("limit");
    }
  });

  it("are unknown if one of the lists fails", async () => {
    const { api, source, troubles } = scene();
    const { answer } = api;
    api.answer = (request) =>
      request.query?.labelSelector === "volcano.sh/job-name" ? unreachable() : answer(request);
    expect((await source.ask([held], signal)).spot?.gangs).toBe("Unknown");
    expect(troubles).toHaveLength(1);
  });

  it("are not listed for a policy that allows them to end", async () => {
    const { api, source } = scene();
    const gates = { blockingPods: [], gangWorkloads: "Allow" } as const;
    expect(await source.ask([{ ...held, gates }], signal)).toEqual({});
    expect(api.sent).toEqual([]);
  });
});

describe("blocking pods", () => {
  it("are listed once in five seconds, however many policies and passes need them", async () => {
    const { api, clock, source } = scene();
    const policies = [policy("spot"), policy("preemptible")];
    for (let pass = 0; pass < 50; pass += 1) {
      const answers = await source.ask(policies, signal);
      expect(answers.preemptible?.blockingPods).toEqual(new Map([["n1", "default/b"]]));
      await clock.advance(seconds(0.2));
    }
    // 50 passes a fifth of a second apart: at 0 s and at 5 s.
    expect(api.sent).toHaveLength(2);
  });

  it("are unknown for five seconds if the API server cannot be reached", async () => {
    const { api, clock, source, troubles } = scene();
    const { answer } = api;
    api.answer = unreachable;
    expect((await source.ask([policy("spot")], signal)).spot?.blockingPods).toBe("Unknown");
    api.answer = answer;
    expect((await source.ask([policy("spot")], signal)).spot?.blockingPods).toBe("Unknown");
    expect(troubles).toHaveLength(1);
    await clock.advance(seconds(5));
    expect((await source.ask([policy("spot")], signal)).spot?.blockingPods).toEqual(
      new Map([["n1", "default/b"]]),
    );
  });

  it("are unknown after five seconds without a response, which delays no other policy", async () => {
    const { api, clock, source, troubles } = scene();
    const { answer } = api;
    api.answer = (request) =>
      request.query?.labelSelector === "job=batch" ? new Promise(() => {}) : answer(request);
    const other = { ...policy("other"), gates: { blockingPods: [{ matchLabels: { app: "db" } }] } };
    const asked = source.ask([policy("spot"), other], signal);
    await clock.advance(seconds(5));
    const answers = await asked;
    expect(answers.spot?.blockingPods).toBe("Unknown");
    expect(answers.other?.blockingPods).toEqual(new Map([["n1", "default/b"]]));
    expect(troubles.map(String)).toEqual([
      expect.stringContaining("job=batch, which hold departures back: the API server did not"),
    ]);
  });
});
