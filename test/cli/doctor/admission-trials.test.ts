import { describe, expect, it } from "vitest";
import {
  agentTrials,
  controllerTrials,
  podTrial,
  type TrialGround,
} from "../../../src/cli/doctor/admission-trials.ts";
import type { KubeAnswer, KubeApi, KubeRequest } from "../../../src/contracts/kube-api.ts";
import type { OwnPod, WorkloadFacts } from "../../../src/doctor/facts.ts";
import { LastcallError } from "../../../src/errors.ts";
import { at, green, nodeOf } from "../../doctor/green-facts.ts";

const agent = (green.agent as { value: WorkloadFacts }).value;
const controller = (green.controller as { value: WorkloadFacts }).value;
const pods = (green.ownPods as { value: readonly OwnPod[] }).value;
const nodes = [nodeOf("m0"), nodeOf("n0"), nodeOf("n1")];
const uses = { placeholders: true, restarts: true };

const denial =
  "departures.lastcall.dev \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no";
const noRight = 'pods is forbidden: User "x" cannot create resource "pods" in API group ""';
const noImpersonation = 'users "x" is forbidden: User "ann" cannot impersonate resource "groups"';

/** Answers each request about admission; the access review allows to act as another account. */
function ground(answer: (request: KubeRequest) => KubeAnswer, mayAct = true) {
  const sent: KubeRequest[] = [];
  const api: KubeApi = {
    send: async (request) => {
      if (request.path.endsWith("/selfsubjectaccessreviews"))
        return { status: 201, body: { status: { allowed: mayAct } } };
      sent.push(request);
      return answer(request);
    },
    watch: () => expect.unreachable(),
  };
  const { signal } = new AbortController();
  return { sent, ground: { api, at, nodes, pods, signal } satisfies TrialGround };
}

function refusal(message: string, status = 403): KubeAnswer {
  return { status, body: { kind: "Status", reason: "Forbidden", message } };
}

const accepted: KubeAnswer = { status: 201, body: {} };

describe("a trial of admission", () => {
  it("sends every request as a dry run, with the account's own groups and the node of its token", async () => {
    const { sent, ground: on } = ground(() => accepted);
    await agentTrials(agent, on);
    await controllerTrials(controller, uses, on);
    for (const { query, method, body } of sent) {
      expect(query).toEqual({ dryRun: "All" });
      // The API server ignores the query of a deletion that has a body.
      if (method === "DELETE") expect(body).toMatchObject({ dryRun: ["All"] });
    }
    const first = sent.find(({ path }) => path.endsWith("/departures"));
    expect(first?.as).toEqual({
      user: "system:serviceaccount:lastcall:lastcall-agent",
      groups: ["system:serviceaccounts", "system:serviceaccounts:lastcall", "system:authenticated"],
      extra: {
        "authentication.kubernetes.io/pod-name": "a-0",
        "authentication.kubernetes.io/pod-uid": "a-0",
        "authentication.kubernetes.io/node-name": "n0",
        "authentication.kubernetes.io/node-uid": "uid-n0",
      },
    });
  });

  it("tries each act of an agent on its own node and on another node that has one", async () => {
    const { sent, ground: on } = ground(() => accepted);
    await agentTrials(agent, on);
    const nodeNames = sent.map(({ path, body }) => {
      const { spec } = (body ?? {}) as { spec?: { node?: { name: string } } };
      return `${path} ${spec?.node?.name ?? ""}`;
    });
    const departures = "/apis/lastcall.dev/v1alpha1/departures";
    const podPath = "/api/v1/namespaces/lastcall/pods";
    expect(nodeNames.map((one) => one.trim()).toSorted()).toEqual(
      [
        ...[`${departures} n0`, `${departures} n1`],
        ...["/api/v1/nodes/n0", "/api/v1/nodes/n1"],
        ...["/api/v1/nodes/n0/status", "/api/v1/nodes/n1/status"],
        ...[`${podPath}/a-0`, `${podPath}/a-1`],
        ...[`${podPath}/a-0/eviction`, `${podPath}/a-1/eviction`],
      ].toSorted(),
    );
  });

  it.each([
    ["passes", accepted, { kind: "Accepted" }],
    [
      "finds that the name is taken, which is after the admission",
      refusal('departures.lastcall.dev "x" already exists', 409),
      { kind: "Accepted" },
    ],
    ["lacks the permission", refusal(noRight), { kind: "NotGranted" }],
    ["is denied by a policy", refusal(denial), { kind: "Denied", policy: "p", message: "no" }],
    [
      "is denied by a policy as invalid",
      refusal(denial, 422),
      { kind: "Denied", policy: "p", message: "no" },
    ],
    [
      "is denied by a quota",
      refusal('pods "lastcall-agent-x1" is forbidden: exceeded quota: x'),
      { kind: "Denied", policy: undefined, message: "exceeded quota: x" },
    ],
    [
      "is denied by a webhook",
      refusal('admission webhook "w" denied the request: no', 400),
      {
        ...{ kind: "Denied", policy: undefined },
        message: 'admission webhook "w" denied the request: no',
      },
    ],
    [
      "meets a webhook that supports no dry run",
      refusal("admission webhook w does not support dry run", 400),
      { kind: "Unknown", why: expect.stringContaining("does not support dry run") },
    ],
    [
      "has no answer of the API server",
      refusal("etcd is slow", 503),
      { kind: "Unknown", why: expect.stringContaining("etcd is slow") },
    ],
  ])("tells when a request %s", async (_, answer, found) => {
    const { ground: on } = ground(() => answer);
    const [trial] = await agentTrials(agent, on);
    expect(trial?.forbidden).toEqual(found);
  });

  it("is unknown if the connection fails, and the others are not", async () => {
    const { ground: on } = ground(({ path }) => {
      if (path.endsWith("/departures")) throw new LastcallError("API_UNREACHABLE", "gone");
      return accepted;
    });
    const [first, second] = await agentTrials(agent, on);
    expect(first?.forbidden).toEqual({ kind: "Unknown", why: "gone" });
    expect(second?.forbidden).toEqual({ kind: "Accepted" });
  });

  it("tells without agents, too, that RBAC grants no deletion of pods", async () => {
    const { ground: on } = ground(({ method }) =>
      method === "DELETE" ? refusal(noRight) : accepted,
    );
    const trials = await agentTrials(agent, { ...on, pods: [] });
    const deletion = trials.find(({ act }) => act.startsWith("delete"));
    expect(deletion).toMatchObject({ needed: { kind: "NotGranted" } });
  });

  it("has no result in a cluster of one node", async () => {
    const { sent, ground: on } = ground(() => accepted);
    expect(await agentTrials(agent, { ...on, nodes: nodes.slice(1, 2) })).toEqual([]);
    expect(sent).toEqual([]);
  });

  it("sends nothing for a caller who may not act as the account", async () => {
    const { sent, ground: on } = ground(() => accepted, false);
    const told = /may not act as lastcall\/lastcall-agent .* grant impersonate on/;
    await expect(agentTrials(agent, on)).rejects.toThrow(told);
    expect(sent).toEqual([]);
  });

  it("names the part of the account that the caller may not act as", async () => {
    const { ground: on } = ground(() => refusal(noImpersonation));
    await expect(controllerTrials(controller, uses, on)).rejects.toThrow(noImpersonation);
  });
});

it("one more pod of a workload is tried as its creator would make it", async () => {
  const { sent, ground: on } = ground(() => refusal("exceeded quota: x"));
  const template = { metadata: { labels: { a: "b" } }, spec: { hostNetwork: true } };
  const workload = {
    metadata: { name: "lastcall-agent", namespace: "lastcall" },
    spec: { template },
  };
  const found = await podTrial(
    { who: "the agents", creator: "daemon-set-controller", workload },
    on,
  );
  expect(found).toEqual([
    {
      who: "the agents",
      answer: { kind: "Denied", policy: undefined, message: "exceeded quota: x" },
    },
  ]);
  expect(sent).toMatchObject([
    {
      ...{ path: "/api/v1/namespaces/lastcall/pods", query: { dryRun: "All" } },
      as: { user: "system:serviceaccount:kube-system:daemon-set-controller" },
      body: {
        metadata: { generateName: "lastcall-agent-", labels: { a: "b" } },
        spec: { hostNetwork: true },
      },
    },
  ]);
});
