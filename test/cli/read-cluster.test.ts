import { describe, expect, it } from "vitest";
import { audit } from "../../src/audit/audit.ts";
import { proxiedKubelet, readCluster } from "../../src/cli/cluster/read-cluster.ts";
import type { KubeAnswer, KubeApi, KubeRequest } from "../../src/contracts/kube-api.ts";

const empty = { kind: "List", apiVersion: "v1", metadata: {}, items: [] };
const node = {
  metadata: { name: "n1", labels: { "cloud.google.com/gke-spot": "true" } },
  spec: { providerID: "gce://p/z/n1" },
};
const deployment = (name: string) => ({
  metadata: { name, namespace: "shop", uid: name },
  spec: { replicas: 2, template: { spec: { terminationGracePeriodSeconds: 60, containers: [] } } },
});
const list = (kind: string, items: readonly unknown[], next = "") => ({
  kind: `${kind}List`,
  apiVersion: kind === "Deployment" ? "apps/v1" : "v1",
  metadata: { continue: next },
  items,
});

/** Answers from a table of paths; a further page has the key `PATH?continue=TOKEN`. */
function apiOf(answers: Readonly<Record<string, KubeAnswer | object>>) {
  const asked: string[] = [];
  const api: KubeApi = {
    send: async ({ path, query }: KubeRequest): Promise<KubeAnswer> => {
      const page = query?.continue;
      const key = page === undefined ? path : `${path}?continue=${page}`;
      asked.push(key);
      const answer = answers[key] ?? empty;
      return "status" in answer ? (answer as KubeAnswer) : { status: 200, body: answer };
    },
    watch: () => {
      throw new Error("nothing is watched");
    },
  };
  return { api, asked };
}

describe("the live cluster", () => {
  const fleet = {
    "/api/v1/nodes": list("Node", [node]),
    "/apis/apps/v1/deployments": list("Deployment", [deployment("a")], "two"),
    "/apis/apps/v1/deployments?continue=two": list("Deployment", [deployment("b")]),
    "/apis/autoscaling/v2/horizontalpodautoscalers": { status: 404, body: {} },
    "/api/v1/nodes/n1/proxy/configz": {
      kubeletconfig: { shutdownGracePeriod: "120s", shutdownGracePeriodCriticalPods: "30s" },
    },
  };

  it("is read page by page, and audited against the platform defaults of its nodes", async () => {
    const { api } = apiOf(fleet);
    const live = await readCluster({ api });
    const report = audit({
      ...live,
      sources: live.objects.map((json) => ({ json })),
      platforms: [],
    });

    expect(report.platforms).toMatchObject([{ name: "gke", source: "Default" }]);
    expect(report.workloads).toMatchObject([
      { kind: "Deployment", name: "a", granted: { gke: 15 }, file: null },
      { kind: "Deployment", name: "b", granted: { gke: 15 }, file: null },
    ]);
  });

  it("adds only the pods whose workload is not listed", async () => {
    const owned = (name: string, kind: string, owner: string, labels: object = {}) => ({
      metadata: {
        ...{ name, namespace: "default", labels },
        ownerReferences: [{ kind, name: owner, controller: true }],
      },
      spec: { containers: [{ name: "c", env: [{ name: "A" }] }] },
      status: { phase: "Running", podIP: "10.0.0.1" },
    });
    const { api } = apiOf({
      "/api/v1/nodes": list("Node", [node]),
      "/apis/apps/v1/deployments": list("Deployment", [
        { metadata: { name: "web", namespace: "default" }, spec: {} },
      ]),
      "/apis/apps/v1/daemonsets": list("DaemonSet", [
        { metadata: { name: "log", namespace: "default" }, spec: {} },
      ]),
      "/api/v1/pods": list("Pod", [
        owned("web-5d9f8c-a", "ReplicaSet", "web-5d9f8c", { "pod-template-hash": "5d9f8c" }),
        owned("log-a", "DaemonSet", "log"),
        owned("kafka-0", "Kafka", "kafka"),
        owned("proxy-n1", "Node", "n1"),
        { metadata: { name: "bare", namespace: "default" }, spec: {} },
      ]),
    });
    const { objects } = await readCluster({ api });
    const pods = objects.filter((one) => (one as { kind: string }).kind === "Pod");

    expect(pods).toMatchObject(
      ["kafka-0", "proxy-n1", "bare"].map((name) => ({ metadata: { name } })),
    );
    expect(pods[0]).toMatchObject({
      spec: { containers: [{ name: "c" }] },
      status: { phase: "Running" },
    });
    expect(JSON.stringify(pods)).not.toMatch(/podIP|env/);
  });

  describe("with a custom resource and its --template-path", () => {
    const group = { preferredVersion: { groupVersion: "example.com/v1" } };
    const resources = [
      { name: "sandboxes/status", kind: "Sandbox" },
      { name: "sandboxes", kind: "Sandbox" },
    ];
    const sandbox = deployment("box");
    const discovery = {
      "/apis/example.com": group,
      "/apis/example.com/v1": { resources },
      "/apis/example.com/v1/sandboxes": list("Sandbox", [sandbox]),
      "/api/v1/pods": list("Pod", [
        {
          metadata: {
            ...{ name: "box-0", namespace: "shop" },
            ownerReferences: [
              { apiVersion: "example.com/v1", kind: "Sandbox", name: "box", controller: true },
            ],
          },
        },
      ]),
    };
    const sandboxes = { kind: "Sandbox", group: "example.com", path: ["spec", "template"] };

    it("reads it in the server's preferred version, and skips its pods", async () => {
      const { api } = apiOf(discovery);
      const { objects } = await readCluster({ api, templatePaths: [sandboxes] });
      const { workloads } = audit({
        sources: objects.map((json) => ({ json })),
        platforms: [],
        templatePaths: [sandboxes],
      });

      expect(workloads).toMatchObject([{ kind: "Sandbox", name: "box", wantedGraceSeconds: 60 }]);
    });

    it("keeps the pods of one that has no template", async () => {
      const bare = { ...sandbox, spec: {} };
      const { api } = apiOf({
        ...discovery,
        "/apis/example.com/v1/sandboxes": list("Sandbox", [bare]),
      });
      const { objects } = await readCluster({ api, templatePaths: [sandboxes] });

      expect(objects).toMatchObject([{ kind: "Sandbox" }, { kind: "Pod" }]);
    });

    it.each([
      { why: "the group does not exist", answers: {} },
      { why: "the kind is not in it", answers: { ...discovery, "/apis/example.com/v1": {} } },
    ])("is rejected if $why", async ({ answers }) => {
      const { api } = apiOf({ "/apis/example.com": { status: 404, body: {} }, ...answers });

      await expect(readCluster({ api, templatePaths: [sandboxes] })).rejects.toMatchObject({
        code: "USAGE",
        message:
          "Cannot use --template-path Sandbox.example.com=spec.template: the API server has no such kind, " +
          "check kind and group with: kubectl api-resources",
      });
    });

    it("rejects a kind without its API group", async () => {
      const { api } = apiOf({});
      const sandbox = { ...sandboxes, group: undefined };

      await expect(readCluster({ api, templatePaths: [sandbox] })).rejects.toMatchObject({
        code: "USAGE",
        message: expect.stringContaining("name its API group"),
      });
    });
  });

  it("queries no kubelet unless asked to", async () => {
    const { api, asked } = apiOf(fleet);
    await readCluster({ api });

    expect(asked.filter((path) => path.includes("proxy"))).toEqual([]);
  });

  it("is audited against the budgets of its kubelets if they are queried", async () => {
    const { api } = apiOf(fleet);
    const live = await readCluster({ api, askKubelet: proxiedKubelet(api) });
    const report = audit({
      ...live,
      sources: live.objects.map((json) => ({ json })),
      platforms: [],
    });

    expect(report.platforms).toEqual([
      {
        name: "kubelet:0=90s,2000000000=30s",
        groups: [
          { priority: 0, seconds: 90 },
          { priority: 2_000_000_000, seconds: 30 },
        ],
        source: "Read",
      },
    ]);
    expect(report.summary.cut).toEqual({ "kubelet:0=90s,2000000000=30s": 0 });
  });

  it("is read in one namespace only, except for cluster-scoped kinds", async () => {
    const { api, asked } = apiOf({});
    await readCluster({ api, namespace: "shop" });

    expect(asked).toContain("/api/v1/namespaces/shop/persistentvolumeclaims");
    expect(asked).toContain("/api/v1/persistentvolumes");
    expect(asked).toContain("/apis/apps/v1/namespaces/shop/deployments");
    expect(asked).toContain("/api/v1/nodes");
    expect(asked).not.toContain("/apis/apps/v1/deployments");
  });

  it("says that other classes of ALBs are not recognized if they may not be listed", async () => {
    const path = "/apis/networking.k8s.io/v1/ingressclasses";
    const known = await readCluster({
      api: apiOf({ [path]: { items: [{ metadata: { name: "web" } }] } }).api,
    });
    expect(known.objects).toMatchObject([{ kind: "IngressClass" }]);

    const { api } = apiOf({ [path]: { status: 403, body: { message: "not you" } } });
    expect((await readCluster({ api })).notes).toEqual([
      "Of ALBs, only those of the class alb are recognized: Cannot list ingressclasses.networking.k8s.io: forbidden (not you), grant list on ingressclasses.networking.k8s.io",
    ]);
  });

  it("is not called empty if the namespace does not exist", async () => {
    const missing = { "/api/v1/namespaces/shopp": { status: 404, body: {} } };
    const namespaces = list("Namespace", [{ metadata: { name: "shop" } }]);
    const refused = { status: 403, body: { message: "not you" } };
    const says = (found: string) => ({
      code: "NOT_FOUND",
      message: `Cannot audit: ${found}, list them with: kubectl get namespaces`,
    });
    const read = (answers: Parameters<typeof apiOf>[0]) =>
      readCluster({ api: apiOf(answers).api, namespace: "shopp" });

    await expect(read({ ...missing, "/api/v1/namespaces": namespaces })).rejects.toMatchObject(
      says("the namespace shopp does not exist (did you mean shop?)"),
    );
    await expect(read({ ...missing, "/api/v1/namespaces": refused })).rejects.toMatchObject(
      says("the namespace shopp does not exist"),
    );
    // It exists for all that the caller may read.
    expect((await read({ "/api/v1/namespaces/shopp": refused })).objects).toEqual([]);
  });

  it("says that local volumes are not recognized if they may not be listed", async () => {
    const refused = { status: 403, body: { message: "not you" } };
    const { api } = apiOf({ ...fleet, "/apis/storage.k8s.io/v1/storageclasses": refused });
    const live = await readCluster({ api });

    expect(live.objects).toHaveLength(3);
    expect(live.notes).toEqual([
      "Volumes on local disks are not recognized: Cannot list storageclasses.storage.k8s.io: forbidden (not you), grant list on storageclasses.storage.k8s.io",
    ]);
  });

  it.each([
    {
      status: 401,
      code: "API_UNAUTHORIZED",
      found: "the API server rejected the credentials (not you)",
    },
    { status: 403, code: "RIGHT_MISSING", found: "forbidden (not you)" },
    { status: 500, code: "API_REFUSED", found: "500 not you" },
  ])(
    "fails with $code and the server's message on a response of $status",
    async ({ status, code, found }) => {
      const { api } = apiOf({ "/api/v1/nodes": { status, body: { message: "not you" } } });

      await expect(readCluster({ api })).rejects.toMatchObject({
        code,
        message: expect.stringContaining(`Cannot list nodes: ${found}`),
      });
    },
  );
});
