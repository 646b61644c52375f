import { describe, expect, it } from "vitest";
import { audit } from "../../src/audit/audit.ts";
import { readCluster } from "../../src/cli/cluster/read-cluster.ts";
import type { KubeAnswer, KubeApi, KubeRequest } from "../../src/contracts/kube-api.ts";

/** Answers from a table of paths; no other custom resource is known, and nothing else is there. */
function apiOf(answers: Readonly<Record<string, object>>): KubeApi {
  return {
    send: async ({ path }: KubeRequest): Promise<KubeAnswer> => {
      const answer = answers[path];
      if (answer !== undefined && "status" in answer) return answer as KubeAnswer;
      if (answer !== undefined) return { status: 200, body: answer };
      const isGroup = path.split("/").length === 3;
      return isGroup ? { status: 404, body: {} } : { status: 200, body: { items: [] } };
    },
    watch: () => {
      throw new Error("nothing is watched");
    },
  };
}

/** What the API server says about a group whose versions have these resources. */
function group(name: string, versions: Readonly<Record<string, Readonly<Record<string, string>>>>) {
  const groupVersions = Object.keys(versions).map((one) => ({ groupVersion: `${name}/${one}` }));
  const about = { versions: groupVersions, preferredVersion: groupVersions[0] };
  const each = Object.entries(versions).map(([version, kinds]) => {
    const resources = Object.entries(kinds).map(([kind, resource]) => ({ name: resource, kind }));
    return [`/apis/${name}/${version}`, { resources }];
  });
  return { [`/apis/${name}`]: about, ...Object.fromEntries(each) };
}

const metadata = (name: string) => ({ name, namespace: "ml" });
const podOf = (name: string, more: object) => ({
  metadata: { ...metadata(name), ...more },
  spec: { containers: [{ name: "c" }] },
});
const spotNode = {
  metadata: { name: "n1", labels: { "cloud.google.com/gke-spot": "true" } },
  spec: { providerID: "gce://p/z/n1" },
};

async function gangs(answers: Readonly<Record<string, object>>) {
  const api = apiOf({ "/api/v1/nodes": { items: [spotNode] }, ...answers });
  const { objects, notes } = await readCluster({ api });
  const { findings } = audit({ sources: objects.map((json) => ({ json })), platforms: [] });
  const own = findings.filter(({ rule }) => rule === "gang-on-spot");
  return { gangs: own.map(({ message }) => /\((.*?)\)/.exec(message)?.[1]), notes };
}

it("finds a kind that the group's preferred version does not have", async () => {
  const cloneSet = { metadata: metadata("web"), spec: { template: { spec: { containers: [] } } } };
  const api = apiOf({
    ...group("apps.kruise.io", {
      v1beta1: { StatefulSet: "statefulsets" },
      v1alpha1: { CloneSet: "clonesets" },
    }),
    "/apis/apps.kruise.io/v1alpha1/clonesets": { items: [cloneSet] },
  });
  const path = { kind: "CloneSet", group: "apps.kruise.io", path: ["spec", "template"] };

  expect((await readCluster({ api, templatePaths: [path] })).objects).toMatchObject([
    { apiVersion: "apps.kruise.io/v1alpha1", kind: "CloneSet" },
  ]);
});

it("reads the delays of Gateways", async () => {
  const api = apiOf({
    ...group("gateway.k8s.aws", { v1beta1: { TargetGroupConfiguration: "targetgroupconfigs" } }),
    "/apis/gateway.k8s.aws/v1beta1/targetgroupconfigs": { items: [{ metadata: metadata("web") }] },
  });

  expect((await readCluster({ api })).objects).toMatchObject([
    { apiVersion: "gateway.k8s.aws/v1beta1", kind: "TargetGroupConfiguration" },
  ]);
});

it("reads an object once that a --template-path names as well", async () => {
  const spec = { leaderWorkerTemplate: { restartPolicy: "None", workerTemplate: { spec: {} } } };
  const api = apiOf({
    ...group("leaderworkerset.x-k8s.io", { v1: { LeaderWorkerSet: "leaderworkersets" } }),
    "/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets": {
      items: [{ metadata: metadata("llm"), spec }],
    },
  });
  const path = ["spec", "leaderWorkerTemplate", "workerTemplate"];
  const templatePath = { kind: "LeaderWorkerSet", group: "leaderworkerset.x-k8s.io", path };

  expect((await readCluster({ api, templatePaths: [templatePath] })).objects).toHaveLength(1);
});

describe("workloads on several nodes of a live cluster", () => {
  const volcano = (spec: object) => ({
    ...group("batch.volcano.sh", { v1alpha1: { Job: "jobs" } }),
    "/apis/batch.volcano.sh/v1alpha1/jobs": { items: [{ metadata: metadata("v"), spec }] },
    "/api/v1/pods": {
      items: ["v-0", "v-1"].map((name) => podOf(name, { labels: { "volcano.sh/job-name": "v" } })),
    },
  });
  const grouped = (needed: number) => ({
    ...group("scheduling.x-k8s.io", { v1alpha1: { PodGroup: "podgroups" } }),
    "/apis/scheduling.x-k8s.io/v1alpha1/podgroups": {
      items: [{ metadata: metadata("pg"), spec: { minMember: needed } }],
    },
    "/api/v1/pods": {
      items: ["a", "b"].map((name) =>
        podOf(name, { labels: { "scheduling.x-k8s.io/pod-group": "pg" } }),
      ),
    },
  });
  const leaderWorkers = (restartPolicy: string) => ({
    ...group("leaderworkerset.x-k8s.io", { v1: { LeaderWorkerSet: "leaderworkersets" } }),
    "/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets": {
      items: [
        { metadata: metadata("llm"), spec: { leaderWorkerTemplate: { restartPolicy, size: 2 } } },
      ],
    },
    "/api/v1/pods": {
      items: ["llm-0", "llm-0-1"].map((name) =>
        podOf(name, { labels: { "leaderworkerset.sigs.k8s.io/name": "llm" } }),
      ),
    },
  });

  it.each([
    ["Volcano Job ml/v", volcano({ minAvailable: 2 })],
    ["pod group ml/pg", grouped(2)],
    ["LeaderWorkerSet ml/llm", leaderWorkers("RecreateGroupOnPodRestart")],
  ])("are reported by their pods: %s", async (name, answers) => {
    expect(await gangs(answers)).toEqual({ gangs: [name], notes: [] });
  });

  it.each([
    ["a Volcano Job", volcano({ minAvailable: 1 })],
    ["a pod group", grouped(1)],
    ["a LeaderWorkerSet", leaderWorkers("None")],
  ])("are not reported if they go on without a pod: %s", async (_, answers) => {
    expect(await gangs(answers)).toEqual({ gangs: [], notes: [] });
  });

  it("are not reported without a pod, as those that have ended", async () => {
    const task = { replicas: 4, template: { spec: { containers: [] } } };
    const ended = { ...volcano({ tasks: [task] }), "/api/v1/pods": { items: [] } };

    expect(await gangs(ended)).toEqual({ gangs: [], notes: [] });
  });

  it("are said to be taken for such if their objects may not be listed", async () => {
    const refused = { status: 403, body: { message: "not you" } };
    const path = "/apis/batch.volcano.sh/v1alpha1/jobs";

    expect(await gangs({ ...volcano({ minAvailable: 1 }), [path]: refused })).toEqual({
      gangs: ["Volcano Job ml/v"],
      notes: [
        "A workload on several nodes is reported although it may go on without one: Cannot list jobs.batch.volcano.sh: forbidden (not you), grant list on jobs.batch.volcano.sh",
      ],
    });
  });
});
