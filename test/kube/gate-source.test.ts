import { describe, expect, it } from "vitest";
import { defaultPolicy, type Policy } from "../../src/core/policy/policy.ts";
import { seconds } from "../../src/core/time/time.ts";
import { KubeGateSource } from "../../src/kube/fleet.ts";
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
