import { describe, expect, it } from "vitest";
import type { KubeAnswer, KubeRequest } from "../../../src/contracts/kube-api.ts";
import { seededRng } from "../../../src/core/chance/chance.ts";
import type { OwnerFacts } from "../../../src/core/cluster/pod.ts";
import { seconds } from "../../../src/core/time/time.ts";
import { LastcallError } from "../../../src/errors.ts";
import { KubeNodePods } from "../../../src/kube/node/node-pods.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { type AnswerScript, ScriptedApi } from "../../support/scripted-api.ts";

const pod = { namespace: "shop", name: "web-0", uid: "uid-1" };

function marking(answer: AnswerScript) {
  const clock = new ManualClock(Date.UTC(2026, 10, 20));
  const api = new ScriptedApi(answer);
  const pods = new KubeNodePods({ api, clock, rng: seededRng(1) });
  return { clock, api, marked: pods.markDisrupted(pod, { reason: "ForcedAtDeadline" }) };
}

describe("the pods of a node", () => {
  it.each([
    { how: "listed", ask: (pods: KubeNodePods) => void pods.list("n1") },
    {
      how: "followed",
      ask: (pods: KubeNodePods) => void pods.follow("n1", { signal: AbortSignal.timeout(60_000) }),
    },
  ])("are $how in one response, since etcd reads all pods for a page", async ({ ask }) => {
    const asked = Promise.withResolvers<KubeRequest>();
    const api = new ScriptedApi((request) => {
      asked.resolve(request);
      return new Promise(() => {});
    });
    ask(new KubeNodePods({ api, clock: new ManualClock(0), rng: seededRng(1) }));
    expect((await asked.promise).query).toEqual({ fieldSelector: "spec.nodeName=n1" });
  });
});

describe("the followed pods of a node", () => {
  const forbidden = {
    kind: "Status",
    code: 403,
    reason: "Forbidden",
    message: "pods is forbidden",
  };
  const items = [{ metadata: { name: "web-0", namespace: "shop", uid: "uid-1" } }];
  const list = { kind: "PodList", metadata: { resourceVersion: "1" }, items };

  it("are watched again after the first watch was refused, which is reported", async () => {
    const clock = new ManualClock(0);
    const api = new ScriptedApi(() => ({ status: 200, body: list }));
    api.onWatch = (watch) => {
      if (api.watches.length === 1) watch.push({ type: "ERROR", object: forbidden });
    };
    const codes: string[] = [];
    const onError = ({ code }: LastcallError) => void codes.push(code);
    const pods = new KubeNodePods({ api, clock, rng: seededRng(1), onError });
    const done = new AbortController();
    const followed = pods.follow("n1", { signal: done.signal });
    await followed.synced();
    await clock.advance(seconds(10));
    expect(followed.pods()).toHaveLength(1);
    api.watching.push({ type: "DELETED", object: items[0] ?? {} });
    await clock.advance(0);
    expect(followed.pods()).toEqual([]);
    expect(codes).toEqual(["RIGHT_MISSING"]);
    done.abort();
  });
});

describe("the restart of a pod's owner", () => {
  const replicaSet = { kind: "ReplicaSet", name: "web-5d", uid: "rs-1" };
  const statefulSet = { kind: "StatefulSet", name: "web", uid: "set-1" };
  const deployment = { kind: "Deployment", name: "web", uid: "dep-1", controller: true };

  async function restarting(owner: OwnerFacts, patched: KubeAnswer) {
    const api = new ScriptedApi(({ method }) =>
      method === "GET"
        ? { status: 200, body: { metadata: { ownerReferences: [deployment] } } }
        : patched,
    );
    const pods = new KubeNodePods({ api, clock: new ManualClock(0), rng: seededRng(1) });
    const answer = await pods.restartOwner(pod, owner, { onTurn: () => {} });
    const patches = api.sent.filter(({ method }) => method === "PATCH");
    const patch = patches.at(-1);
    const trial = patches[0]?.query;
    return { answer, trial, path: patch?.path, body: patch?.bodyAtTurn?.(), sent: patches.length };
  }

  it.each([
    [replicaSet, "/apis/apps/v1/namespaces/shop/deployments/web", "dep-1"],
    [statefulSet, "/apis/apps/v1/namespaces/shop/statefulsets/web", "set-1"],
  ])(
    "is one annotation on its template, with the uid as a precondition: $kind",
    async (owner, path, uid) => {
      const annotations = { "lastcall.dev/restarted-for": "uid-1" };
      expect(await restarting(owner, { status: 200, body: { spec: { replicas: 1 } } })).toEqual({
        answer: { kind: "Accepted" },
        trial: { dryRun: "All" },
        sent: 2,
        path,
        body: { metadata: { uid }, spec: { template: { metadata: { annotations } } } },
      });
    },
  );

  const conflict = {
    kind: "Status",
    message: "Precondition failed: UID in precondition: dep-1, UID in object meta: dep-2",
  };
  const immutable = { kind: "Status", message: "metadata.uid: Invalid value: field is immutable" };
  const missing = { kind: "Status", message: 'deployments.apps "web" not found' };

  it.each<[string, OwnerFacts, KubeAnswer, string]>([
    ["it is gone, but its pod is not", replicaSet, { status: 404, body: missing }, "not found"],
    [
      "another object has its name",
      replicaSet,
      { status: 409, body: conflict },
      "another one of that name",
    ],
    [
      "another object has its name, on an older server",
      replicaSet,
      { status: 422, body: immutable },
      "uid",
    ],
    [
      "its budget selects one of its replicas, such as a primary",
      statefulSet,
      { status: 200, body: { spec: { replicas: 3 } } },
      "StatefulSet web has 3 replicas, and a restart would delete them all",
    ],
    [
      "its rollouts are paused",
      replicaSet,
      { status: 200, body: { spec: { paused: true } } },
      "Deployment web is paused",
    ],
    [
      "it waits for somebody to delete its pods",
      statefulSet,
      { status: 200, body: { spec: { updateStrategy: { type: "OnDelete" } } } },
      "StatefulSet web has the updateStrategy OnDelete",
    ],
  ])("is refused permanently if %s", async (_, owner, patched, message) => {
    const { answer, sent } = await restarting(owner, patched);
    expect(answer).toMatchObject({ kind: "Refused", message: expect.stringContaining(message) });
    expect(sent).toBe(1);
  });
});

describe("the mark on a pod that is about to be deleted", () => {
  it("is the condition DisruptionTarget in its status, with the uid as a precondition", async () => {
    const sent: KubeRequest[] = [];
    const { marked } = marking((request) => {
      sent.push(request);
      return { status: 200, body: {} };
    });
    expect(await marked).toBeUndefined();
    const condition = {
      ...{ type: "DisruptionTarget", status: "True", reason: "DeletionByLastcall" },
      message:
        "Lastcall: the pod was deleted instead of evicted, because the deadline left no more time to wait",
      lastTransitionTime: "2026-11-20T00:00:00.000Z",
    };
    expect(sent).toMatchObject([
      {
        method: "PATCH",
        path: "/api/v1/namespaces/shop/pods/web-0/status",
        patchType: "application/strategic-merge-patch+json",
        body: { metadata: { uid: "uid-1" }, status: { conditions: [condition] } },
      },
    ]);
  });

  it.each<[string, KubeAnswer | Error, string | undefined]>([
    ["a pod that is gone", { status: 404, body: "" }, undefined],
    ["a missing right", { status: 403, body: "no" }, "no"],
    ["another pod of that name", { status: 422, body: "field is immutable" }, "immutable"],
    ["a lost connection", new LastcallError("API_UNREACHABLE", "it broke"), "it broke"],
  ])("never throws: %s", async (_, answer, problem) => {
    const found = await marking(() => answer).marked;
    if (problem === undefined) expect(found).toBeUndefined();
    else expect(found).toContain(problem);
  });

  it("is given up after half a second, and its request aborted", async () => {
    let signal: AbortSignal | undefined;
    const { clock, marked } = marking((request) => {
      signal = request.signal;
      return new Promise(() => {});
    });
    let found: string | undefined;
    void marked.then((problem) => {
      found = problem;
    });
    await clock.advance(499);
    expect([found, signal?.aborted]).toEqual([undefined, false]);
    await clock.advance(1);
    expect([found, signal?.aborted]).toEqual(["no response within 500 ms", true]);
  });
});
