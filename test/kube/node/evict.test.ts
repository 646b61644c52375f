import { describe, expect, it } from "vitest";
import type { KubeAnswer, KubeApi, KubeRequest } from "../../../src/contracts/kube-api.ts";
import type { EvictionAnswer } from "../../../src/core/drain/drain-answer.ts";
import { seconds } from "../../../src/core/time/time.ts";
import { LastcallError } from "../../../src/errors.ts";
import { deletePod, evictPod } from "../../../src/kube/node/evict.ts";

const pod = { namespace: "shop", name: "web-0", uid: "uid-1" };

function answering(answer: KubeAnswer | Error): { api: KubeApi; sent: KubeRequest[] } {
  const sent: KubeRequest[] = [];
  const api: KubeApi = {
    async send({ bodyAtTurn, ...request }) {
      sent.push({ ...request, body: bodyAtTurn?.() });
      if (answer instanceof Error) throw answer;
      return answer;
    },
    // biome-ignore lint/correctness/useYield: no test here watches.
    async *watch() {
      throw new Error("not asked for");
    },
  };
  return { api, sent };
}

interface Failure {
  readonly message?: string;
  readonly reason?: string;
  readonly details?: unknown;
}

function failure(status: number, more: Failure, retryAfterSeconds?: number): KubeAnswer {
  const body = { kind: "Status", status: "Failure", code: status, ...more };
  return { status, body, retryAfterSeconds };
}

const violates = "Cannot evict pod as it would violate the pod's disruption budget.";
const needsTwo = "The disruption budget web needs 2 healthy pods and has 2 currently";
const stale = "The disruption budget web is still being processed by the server.";
const twoBudgets =
  "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
const otherUid =
  'Operation cannot be fulfilled on pods "web-0": the UID in the precondition (uid-1) does not match the UID in record (uid-2). The object might have been deleted and then recreated';
const otherUidInStorage =
  'Operation cannot be fulfilled on pods "web-0": Precondition failed: UID in precondition: uid-1, UID in object meta: uid-2';
const changed =
  'Operation cannot be fulfilled on pods "web-0": the object has been modified; please apply your changes to the latest version and try again';
const terminating =
  'pods "web-0" is forbidden: unable to create new content in namespace shop because it is being terminated';

function budgetCause(message: string): Failure {
  const causes = [{ reason: "DisruptionBudget", message }];
  return { reason: "TooManyRequests", message: violates, details: { causes } };
}

const denied = 'admission webhook "guard.example.com" denied the request: not found: vm-1';

const cases: readonly [string, KubeAnswer, EvictionAnswer][] = [
  [
    "201 with Success",
    { status: 201, body: { kind: "Status", status: "Success", code: 201 } },
    { kind: "Accepted" },
  ],
  ["200 with the pod (a delete)", { status: 200, body: { kind: "Pod" } }, { kind: "Accepted" }],
  [
    "429 of an exhausted budget",
    failure(429, budgetCause(needsTwo)),
    { kind: "Blocked", budget: "web", message: needsTwo, stale: false },
  ],
  [
    "429 of a budget with a stale status",
    failure(429, budgetCause(stale), 10),
    { kind: "Blocked", budget: "web", message: stale, stale: true, retryAfterMs: seconds(10) },
  ],
  [
    "429 in plain text",
    { status: 429, body: "Too many requests, please try again later.\n", retryAfterSeconds: 1 },
    {
      kind: "Overloaded",
      message: "Too many requests, please try again later.",
      retryAfterMs: seconds(1),
    },
  ],
  [
    "429 of a storage that is initializing",
    failure(429, {
      message: "storage is (re)initializing",
      reason: "TooManyRequests",
      details: { retryAfterSeconds: 2 },
    }),
    { kind: "Overloaded", message: "storage is (re)initializing", retryAfterMs: seconds(2) },
  ],
  [
    "429 of a webhook that moves the pod itself",
    failure(429, {
      message:
        'admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request: Eviction triggered evacuation of VMI',
    }),
    {
      kind: "Refused",
      status: 429,
      message:
        'admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request: Eviction triggered evacuation of VMI',
    },
  ],
  [
    "201 with a Failure body (two budgets)",
    { status: 201, body: { kind: "Status", status: "Failure", code: 500, message: twoBudgets } },
    { kind: "MultipleBudgets", message: twoBudgets },
  ],
  [
    "500 of two budgets",
    failure(500, { message: twoBudgets }),
    { kind: "MultipleBudgets", message: twoBudgets },
  ],
  [
    "201 with any other Failure body",
    { status: 201, body: { kind: "Status", status: "Failure", code: 403, message: "no" } },
    { kind: "Refused", status: 403, message: "no" },
  ],
  [
    "404 of the pod",
    failure(404, {
      reason: "NotFound",
      message: 'pods "web-0" not found',
      details: { name: "web-0", kind: "pods" },
    }),
    { kind: "Gone" },
  ],
  [
    "404 of the path, in JSON",
    failure(404, {
      reason: "NotFound",
      message: "the server could not find the requested resource",
    }),
    { kind: "Refused", status: 404, message: "the server could not find the requested resource" },
  ],
  [
    "404 of the path, as text",
    { status: 404, body: "404 page not found\n" },
    { kind: "Refused", status: 404, message: "404 page not found" },
  ],
  ["409 of another uid", failure(409, { message: otherUid }), { kind: "Replaced" }],
  [
    "409 of another uid in storage",
    failure(409, { message: otherUidInStorage }),
    { kind: "Replaced" },
  ],
  [
    "409 of a pod that has changed",
    failure(409, { reason: "Conflict", message: changed }),
    { kind: "Failed", status: 409, retryable: true, message: changed },
  ],
  [
    "403 of a terminating namespace",
    failure(403, {
      message: terminating,
      details: { causes: [{ reason: "NamespaceTerminating", message: "…" }] },
    }),
    { kind: "NamespaceTerminating" },
  ],
  [
    "403 of a budget below zero",
    failure(403, { message: "pdb disruptions allowed is negative" }),
    { kind: "Refused", status: 403, message: "pdb disruptions allowed is negative" },
  ],
  [
    "403 of RBAC",
    failure(403, { message: 'cannot create resource "pods/eviction"' }),
    { kind: "Refused", status: 403, message: 'cannot create resource "pods/eviction"' },
  ],
  // A webhook chooses its status, and none of them is about the pod.
  ...[404, 409, 410, 422, 500, 503].map((status): (typeof cases)[number] => [
    `${status} of a webhook that denies it`,
    failure(status, { message: denied }),
    { kind: "Refused", status, message: denied },
  ]),
  [
    "a webhook that quotes a budget",
    failure(429, { message: denied, details: budgetCause(needsTwo).details }),
    { kind: "Refused", status: 429, message: denied },
  ],
  [
    "400 of a webhook",
    failure(400, { message: "denied the request" }),
    { kind: "Refused", status: 400, message: "denied the request" },
  ],
  [
    "500 of a webhook that is down",
    failure(500, { message: "failed calling webhook" }),
    { kind: "Failed", status: 500, retryable: true, message: "failed calling webhook" },
  ],
  [
    "504 of a contended budget",
    failure(504, {
      reason: "Timeout",
      message: "couldn't update PDB",
      details: { retryAfterSeconds: 10 },
    }),
    { kind: "Failed", status: 504, retryable: true, message: "couldn't update PDB" },
  ],
  [
    "503 with an empty body",
    { status: 503, body: "" },
    { kind: "Failed", status: 503, retryable: true, message: "the API server answered 503" },
  ],
  [
    "422",
    failure(422, { reason: "Invalid", message: 'Eviction "web-0" is invalid' }),
    { kind: "Refused", status: 422, message: 'Eviction "web-0" is invalid' },
  ],
  [
    "a webhook that draws on a terminal, and does not end",
    failure(403, { message: `denied:\u001b[2J\r\n ${"x".repeat(400)}` }),
    { kind: "Refused", status: 403, message: `denied:\ufffd[2J ${"x".repeat(288)}…` },
  ],
  [
    "302",
    { status: 302, body: "" },
    { kind: "Failed", status: 302, retryable: false, message: "the API server answered 302" },
  ],
];

describe("the response to an eviction", () => {
  it.each(cases)("%s is classified", async (_, answer, wanted) => {
    expect(await evictPod(answering(answer).api, pod)).toEqual(wanted);
    expect(await deletePod(answering(answer).api, pod)).toEqual(wanted);
  });

  it("is NoAnswer if it never arrived, as the eviction may have happened", async () => {
    const { api } = answering(
      new LastcallError("API_UNREACHABLE", "Cannot POST: lost, expected one"),
    );
    expect(await evictPod(api, pod)).toEqual({
      kind: "NoAnswer",
      message: "Cannot POST: lost, expected one",
    });
  });

  it("throws if the caller did not wait for it", async () => {
    const { api } = answering(new LastcallError("INTERRUPTED", "enough"));
    await expect(evictPod(api, pod)).rejects.toMatchObject({ code: "INTERRUPTED" });
  });
});

describe("an eviction", () => {
  const success: KubeAnswer = { status: 201, body: {} };

  it("identifies the pod by its uid, and leaves the grace to the pod", async () => {
    const { api, sent } = answering(success);
    await evictPod(api, pod);
    expect(sent).toEqual([
      {
        method: "POST",
        path: "/api/v1/namespaces/shop/pods/web-0/eviction",
        body: {
          apiVersion: "policy/v1",
          kind: "Eviction",
          metadata: { namespace: "shop", name: "web-0" },
          deleteOptions: { preconditions: { uid: "uid-1" } },
        },
        signal: undefined,
      },
    ]);
  });

  it("carries grace and dry run", async () => {
    const { api, sent } = answering(success);
    await evictPod(api, pod, { graceSeconds: () => 20, dryRun: true });
    expect(sent[0]?.body).toMatchObject({
      deleteOptions: { preconditions: { uid: "uid-1" }, gracePeriodSeconds: 20, dryRun: ["All"] },
    });
  });

  it("regardless of the budget is a delete with the same precondition", async () => {
    const { api, sent } = answering(success);
    await deletePod(api, pod, { graceSeconds: () => 1 });
    expect(sent[0]).toMatchObject({
      method: "DELETE",
      path: "/api/v1/namespaces/shop/pods/web-0",
      body: { kind: "DeleteOptions", preconditions: { uid: "uid-1" }, gracePeriodSeconds: 1 },
    });
  });
});
