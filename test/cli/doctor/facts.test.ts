import { describe, expect, it } from "vitest";
import {
  policyFacts,
  rightsOfAccount,
  serverFacts,
} from "../../../src/cli/doctor/cluster-facts.ts";
import type { KubeAnswer, KubeApi, KubeRequest } from "../../../src/contracts/kube-api.ts";
import { instant, millis, plus, seconds } from "../../../src/core/time/time.ts";
import { ManualClock } from "../../support/manual-clock.ts";

const { signal } = new AbortController();
const account = { namespace: "lastcall", name: "lastcall" };
const me = "system:serviceaccount:lastcall:lastcall";
const rights = ["get", "patch"].map((verb) => ({ verb, group: "", resource: "nodes" }));

function apiOf(answer: (request: KubeRequest) => KubeAnswer): KubeApi {
  return { send: async (request) => answer(request), watch: () => expect.unreachable() };
}

/** A caller who may not review others; its own review allows only `get nodes`. */
function modest(username: string): KubeApi {
  return apiOf(({ path, body }) => {
    if (path.endsWith("/selfsubjectreviews")) {
      return { status: 201, body: { status: { userInfo: { username } } } };
    }
    if (path.endsWith("/subjectaccessreviews")) return { status: 403, body: { message: "no" } };
    const { spec } = body as { spec: { resourceAttributes: { verb: string } } };
    const allowed = spec.resourceAttributes.verb === "get";
    return { status: 201, body: { status: { allowed } } };
  });
}

describe("the rights of an account", () => {
  it("are reviewed by the account itself if it may not review others", async () => {
    expect(await rightsOfAccount(modest(me), account, rights, signal)).toEqual([
      { name: "get nodes", allowed: true },
      { name: "patch nodes", allowed: false },
    ]);
  });

  it("are unknown to another caller who may not review them", async () => {
    await expect(rightsOfAccount(modest("ann"), account, rights, signal)).rejects.toMatchObject({
      code: "RIGHT_MISSING",
    });
  });

  it("are reviewed in its own namespace if they apply only there", async () => {
    const asked: unknown[] = [];
    const api = apiOf(({ body }) => {
      asked.push((body as { spec: unknown }).spec);
      return { status: 201, body: { status: { allowed: true } } };
    });
    await rightsOfAccount(
      api,
      account,
      [{ verb: "create", group: "", resource: "pods", own: true }],
      signal,
    );
    const resourceAttributes = {
      verb: "create",
      group: "",
      resource: "pods",
      namespace: "lastcall",
    };
    expect(asked).toMatchObject([{ user: me, resourceAttributes }]);
  });
});

describe("the API server's clock", () => {
  const now = instant(Date.UTC(2026, 10, 20));
  it.each([
    // The Date header is cut to the second: the time may be up to a second later.
    ["the same", millis(0), 0],
    ["truncated by almost a second", millis(-999), 0],
    ["a minute ahead", seconds(60), 60_000],
    ["a minute behind", seconds(-60), -59_000],
  ])("has the expected offset when it is %s", async (_, off, ahead) => {
    const api = apiOf(() => ({
      ...{ status: 200, body: { major: "1", minor: "34+", gitVersion: "v1.34.0-gke.1" } },
      serverAt: plus(now, off),
    }));
    expect(await serverFacts(api, new ManualClock(now), signal)).toEqual({
      ...{ major: 1, minor: 34, name: "v1.34.0-gke.1", aheadMs: ahead },
    });
  });

  it("has an unknown offset if there is no header", async () => {
    const api = apiOf(() => ({ status: 200, body: {} }));
    expect((await serverFacts(api, new ManualClock(now), signal)).aheadMs).toBeUndefined();
  });
});

describe("the status that the controller wrote to a policy", () => {
  const stateOf = (...conditions: readonly object[]) =>
    policyFacts([
      {
        ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy" },
        ...{ metadata: { name: "spot" }, spec: {}, status: { observedGeneration: 2, conditions } },
      },
    ]).states.get("spot");

  it.each(["False", "Unknown"])("says why the policy is not ready: %s", (status) => {
    const ready = { type: "Ready", status, reason: "ActionInvalid", message: "no such topic" };
    expect(stateOf(ready)).toMatchObject({ notReady: { status, message: "no such topic" } });
  });

  it("shows no problem if all conditions are True", () => {
    const conditions = ["Ready", "Feasible"].map((type) => ({ type, status: "True", message: "" }));
    const nothing = { infeasible: undefined, notReady: undefined };
    expect(stateOf(...conditions)).toEqual({ observedGeneration: 2, ...nothing });
  });
});
