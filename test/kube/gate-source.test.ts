import { describe, expect, it } from "vitest";
import type { KubeAnswer } from "../../src/contracts/kube-api.ts";
import type { GateInquiry } from "../../src/core/departure/decision.ts";
import { defaultPolicy, type Policy } from "../../src/core/policy/policy.ts";
import { seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { KubeGateSource } from "../../src/kube/gate-source.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { ScriptedApi, unreachable } from "../support/scripted-api.ts";

const { signal } = new AbortController();

function inquiry(name: string, gates: Policy["gates"], nodes: readonly string[] = []): GateInquiry {
  return { policy: { ...defaultPolicy, name, gates }, nodes };
}

function policy(name: string): GateInquiry {
  return inquiry(name, { blockingPods: [{ matchLabels: { job: "batch" } }] });
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
    const answers = await source.ask([inquiry("spot", gates)], signal);
    expect(answers.spot?.alerts).toBe(found);
  });
});

describe("workloads on several nodes", () => {
  const held = (...nodes: string[]) =>
    inquiry("spot", { blockingPods: [], gangWorkloads: "Hold" }, nodes);

  interface Member {
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly spec?: object;
  }

  /** Answers lists as an API server does, of these pods by `namespace/name node`. */
  function listed(pods: Readonly<Record<string, Member>>): ScriptedApi["answer"] {
    const objects = Object.entries(pods).map(([key, { labels, annotations, spec }]) => {
      const [namespace, name, nodeName] = key.split(/[/ ]/);
      const metadata = { namespace, name, labels, annotations };
      return { metadata, spec: { ...spec, nodeName } };
    });
    return ({ path, query }) => {
      const inNamespace = /namespaces\/(.+)\/pods$/.exec(path)?.[1];
      const onNode = /spec.nodeName=([^,]+)/.exec(query?.fieldSelector ?? "")?.[1];
      const items = objects.filter(({ metadata, spec }) => {
        const isThere = inNamespace === undefined || inNamespace === metadata.namespace;
        const isLabelled = !query?.labelSelector || query.labelSelector in (metadata.labels ?? {});
        return isThere && isLabelled && (onNode === undefined || onNode === spec.nodeName);
      });
      return { status: 200, body: { metadata: {}, items } };
    };
  }

  const train: Member = { labels: { "jobset.sigs.k8s.io/jobset-name": "train" } };

  it.each<[string, Member, string]>([
    ["a label", train, "JobSet ml/train"],
    [
      "an annotation",
      { annotations: { "scheduling.k8s.io/group-name": "pg1" } },
      "pod group ml/pg1",
    ],
    ["the spec", { spec: { schedulingGroup: { podGroupName: "pg1" } } }, "pod group ml/pg1"],
    [
      "the spec of Kubernetes 1.35",
      { spec: { workloadRef: { name: "w1", podGroup: "workers" } } },
      "pod group ml/w1/workers",
    ],
  ])("are recognized by %s of their pods", async (_, member, name) => {
    const { api, source } = scene();
    const other = { labels: { app: "web" } };
    api.answer = listed({
      ...{ "ml/a n1": member, "ml/b n2": member, "ml/c n9": other },
      ...{ "web/d n1": other, "web/e n3": other },
    });
    const { spot } = await source.ask([held("n1", "n3")], signal);
    expect(spot?.gangs).toEqual(
      new Map([
        ["n1", `${name} on n1, n2`],
        ["n3", undefined],
      ]),
    );
  });

  it("are none of pods that torchrun launches with a range of nodes", async () => {
    const { api, source } = scene();
    const env = [{ name: "PET_NNODES", value: "1:4" }];
    const elastic = { labels: { "training.kubeflow.org/job-name": "ddp" } };
    const member = { ...elastic, spec: { containers: [{ name: "pytorch", env }] } };
    api.answer = listed({ "ml/a n1": member, "ml/b n2": member });
    const { spot } = await source.ask([held("n1", "n2")], signal);
    expect(spot?.gangs).toEqual(
      new Map([
        ["n1", undefined],
        ["n2", undefined],
      ]),
    );
  });

  const volcano = (job: string): Member => ({ labels: { "volcano.sh/job-name": job } });
  const loosePath = "/apis/batch.volcano.sh/v1alpha1/namespaces/ml/jobs/loose";

  it.each<[string, KubeAnswer, boolean]>([
    ["needs one pod", { status: 200, body: { spec: { minAvailable: 1 } } }, false],
    ["needs two", { status: 200, body: { spec: { minAvailable: 2 } } }, true],
    [
      "is restarted if it loses one",
      {
        status: 200,
        body: {
          spec: { minAvailable: 1, policies: [{ event: "PodEvicted", action: "RestartJob" }] },
        },
      },
      true,
    ],
    ["does not exist", { status: 404, body: { reason: "NotFound" } }, true],
    ["may not be read", { status: 403, body: { reason: "Forbidden" } }, true],
    ["is no object", { status: 200, body: "<html>" }, true],
  ])("are Volcano Jobs, unless one %s", async (_, job, isHeld) => {
    const { api, clock, source, troubles } = scene();
    const answer = listed({
      ...{ "ml/a n1": volcano("loose"), "ml/b n2": volcano("loose"), "ml/c n3": volcano("alone") },
      ...{ "ml/d n8": volcano("else"), "ml/e n9": volcano("else") },
    });
    api.answer = (request) => (request.path === loosePath ? job : answer(request));
    const ask = async () => (await source.ask([held("n1", "n2", "n3")], signal)).spot?.gangs;
    const found = isHeld ? "Volcano Job ml/loose on n1, n2" : undefined;
    expect(await ask()).toEqual(
      new Map([
        ["n1", found],
        ["n2", found],
        ["n3", undefined],
      ]),
    );
    await clock.advance(seconds(10));
    await ask();
    // Neither the Job on one node, nor that on other nodes, and none twice in half a minute.
    const asked = api.sent.map(({ path }) => path).filter((path) => path.includes("volcano"));
    expect(asked).toEqual([loosePath]);
    expect(troubles).toEqual([]);
  });

  const loose = "loose";
  it.each<[string, Member, string, KubeAnswer["body"], string | undefined]>([
    [
      "a LeaderWorkerSet that restarts pods alone",
      {
        labels: {
          "leaderworkerset.sigs.k8s.io/name": loose,
          "leaderworkerset.sigs.k8s.io/group-index": "3",
        },
        annotations: { "leaderworkerset.sigs.k8s.io/size": "4" },
      },
      "leaderworkerset.x-k8s.io/v1/namespaces/ml/leaderworkersets",
      { spec: { leaderWorkerTemplate: { restartPolicy: "None" } } },
      undefined,
    ],
    [
      "a LeaderWorkerSet that restarts groups",
      { labels: { "leaderworkerset.sigs.k8s.io/name": loose } },
      "leaderworkerset.x-k8s.io/v1/namespaces/ml/leaderworkersets",
      { spec: { leaderWorkerTemplate: { restartPolicy: "RecreateGroupOnPodRestart" } } },
      "LeaderWorkerSet ml/loose",
    ],
    [
      "Volcano's pod group that needs one pod",
      { annotations: { "scheduling.k8s.io/group-name": loose } },
      "scheduling.volcano.sh/v1beta1/namespaces/ml/podgroups",
      { spec: { minMember: 1 } },
      undefined,
    ],
    [
      "Volcano's pod group that needs two",
      { annotations: { "scheduling.volcano.sh/group-name": loose } },
      "scheduling.volcano.sh/v1beta1/namespaces/ml/podgroups",
      { spec: { minMember: 2 } },
      "pod group ml/loose",
    ],
    [
      "coscheduling's pod group that needs one pod",
      { labels: { "scheduling.x-k8s.io/pod-group": loose } },
      "scheduling.x-k8s.io/v1alpha1/namespaces/ml/podgroups",
      { spec: { minMember: 1 } },
      undefined,
    ],
  ])("are judged by %s", async (_, member, collection, body, name) => {
    const { api, source } = scene();
    const answer = listed({ "ml/a n1": member, "ml/b n2": member });
    const asked: string[] = [];
    api.answer = (request) => {
      if (request.path.startsWith("/api/v1/")) return answer(request);
      asked.push(request.path);
      return { status: 200, body };
    };
    const { spot } = await source.ask([held("n1", "n2")], signal);
    const found = name === undefined ? undefined : `${name} on n1, n2`;
    expect(spot?.gangs).toEqual(
      new Map([
        ["n1", found],
        ["n2", found],
      ]),
    );
    expect(asked).toEqual([`/apis/${collection}/loose`]);
  });

  it("are Volcano Jobs that are not read within five seconds", async () => {
    const { api, clock, source } = scene();
    const answer = listed({ "ml/a n1": volcano("loose"), "ml/b n2": volcano("loose") });
    api.answer = (request) =>
      request.path === loosePath ? new Promise(() => {}) : answer(request);
    const asked = source.ask([held("n1")], signal);
    await clock.advance(seconds(5));
    expect((await asked).spot?.gangs).toEqual(new Map([["n1", "Volcano Job ml/loose on n1, n2"]]));
  });

  it("are Volcano Jobs of which none is read within five seconds, however many there are", async () => {
    const { api, clock, source } = scene();
    const jobs = Array.from({ length: 40 }, (_, place) => `job-${place}`);
    const answer = listed(
      Object.fromEntries(
        jobs.flatMap((job) => [
          [`ml/${job}-a n1`, volcano(job)],
          [`ml/${job}-b n2`, volcano(job)],
        ]),
      ),
    );
    api.answer = (request) =>
      request.path.includes("volcano") ? new Promise(() => {}) : answer(request);
    const asked = source.ask([held("n1")], signal);
    await clock.advance(seconds(5));
    expect((await asked).spot?.gangs).toEqual(new Map([["n1", expect.stringContaining("job-")]]));
  });

  it("are listed once in thirty seconds, from the cache of the API server", async () => {
    const { api, clock, source } = scene();
    api.answer = listed({ "ml/a n1": train, "ml/b n2": train });
    const of = (...nodes: string[]) => source.ask([held(...nodes)], signal);
    for (let pass = 0; pass < 4; pass += 1) {
      await of("n1", "n2");
      // A departure that asks again for its own node.
      await of("n2");
      await clock.advance(seconds(10));
    }
    const lists = ["spec.nodeName=n1,", "spec.nodeName=n2,", ""].map(
      (place) => `${place}status.phase!=Succeeded,status.phase!=Failed`,
    );
    expect(api.sent.map(({ query }) => query?.fieldSelector)).toEqual([...lists, ...lists]);
    for (const { query } of api.sent) {
      expect(query).toMatchObject({ resourceVersion: "0" });
      expect(query).not.toHaveProperty("limit");
    }
  });

  it("are listed by one request for a node without such pods", async () => {
    const { api, source } = scene();
    await source.ask([held("n1")], signal);
    expect(api.sent.map(({ path }) => path)).toEqual(["/api/v1/pods"]);
  });

  it.each(["spec.nodeName=n1,status.phase!=Succeeded,status.phase!=Failed", undefined])(
    "are unknown if one of the lists fails: %s",
    async (failing) => {
      const { api, source, troubles } = scene();
      const answer = listed({ "ml/a n1": train, "ml/b n2": train });
      api.answer = (request) => {
        const fails = failing
          ? request.query?.fieldSelector === failing
          : request.path !== "/api/v1/pods";
        return fails ? unreachable() : answer(request);
      };
      expect((await source.ask([held("n1", "n2")], signal)).spot?.gangs).toBe("Unknown");
      expect(troubles).toHaveLength(1);
    },
  );

  it("are unknown after five seconds without a response, however many nodes wait", async () => {
    const { api, clock, source } = scene();
    api.answer = () => new Promise(() => {});
    const nodes = Array.from({ length: 100 }, (_, at) => `n${at}`);
    const asked = source.ask([held(...nodes)], signal);
    await clock.advance(seconds(5));
    expect((await asked).spot?.gangs).toBe("Unknown");
  });

  it("are not listed for a policy that allows them to end", async () => {
    const { api, source } = scene();
    const gates = { blockingPods: [], gangWorkloads: "Allow" } as const;
    expect(await source.ask([inquiry("spot", gates, ["n1"])], signal)).toEqual({});
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
    const other = inquiry("other", { blockingPods: [{ matchLabels: { app: "db" } }] });
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
