import { describe, expect, it } from "vitest";
import { audit, sumUp } from "../../src/audit/audit.ts";
import { ClusterAuditor } from "../../src/cli/cluster/cluster-auditor.ts";
import { clusterKinds, namespacedKinds } from "../../src/cli/cluster/read-cluster.ts";
import type { KubeAnswer, KubeObject, KubeRequest } from "../../src/contracts/kube-api.ts";
import { translateNode } from "../../src/kube/object/translate-node.ts";
import { ScriptedApi } from "../support/scripted-api.ts";

const never = new AbortController().signal;
const turn = () => Promise.resolve();

type Cluster = Readonly<Record<string, readonly KubeObject[]>>;

/**
 * Lists each kind in the server's key order, in pages, without the apiVersion and kind that list
 * items lack.
 */
function serve(cluster: Cluster): ScriptedApi {
  const kinds = [...clusterKinds, ...namespacedKinds];
  return new ScriptedApi(({ path, query }: KubeRequest): KubeAnswer => {
    const kind = kinds.find((one) => one.path === path)?.kind ?? "";
    const items = (cluster[kind] ?? []).toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
    const from = Number(query?.continue ?? 0);
    const to = from + Number(query?.limit);
    const next = to < items.length ? String(to) : "";
    return { status: 200, body: { metadata: { continue: next }, items: items.slice(from, to) } };
  });
}

function keyOf({ metadata = {} }: KubeObject): string {
  return `${metadata.namespace ?? ""}/${metadata.name}`;
}

const node = (name: string, labels: Readonly<Record<string, string>> = {}): KubeObject => ({
  metadata: { name, labels: { "cloud.google.com/gke-spot": "true", ...labels } },
  spec: { providerID: `gce://p/z/${name}` },
  status: { nodeInfo: { kubeletVersion: "v1.33.1-gke.100", osImage: "COS" } },
});

const deployment = (namespace: string, name: string, pod: object = {}): KubeObject => ({
  metadata: { name, namespace, managedFields: [{}] },
  spec: {
    replicas: 2,
    template: {
      metadata: { labels: { app: name } },
      spec: { terminationGracePeriodSeconds: 60, containers: [{ name: "main" }], ...pod },
    },
  },
});

const budget = (namespace: string, name: string): KubeObject => ({
  metadata: { name, namespace },
  spec: { maxUnavailable: 1, selector: { matchLabels: { app: name } } },
});

/**
 * 250 namespaces with a Deployment each, 120 of them with a budget: several pages of both kinds.
 */
function largeCluster(): Cluster {
  const names = Array.from({ length: 250 }, (_, at) => `team-${at}${at % 3 === 0 ? "-eu" : ""}`);
  return {
    Node: [node("n1"), node("n2")],
    PriorityClass: [{ metadata: { name: "high" }, value: 1000 }],
    Deployment: names.map((name) => deployment(name, "web", { priorityClassName: "high" })),
    PodDisruptionBudget: names.slice(0, 120).map((name) => budget(name, "web")),
  };
}

const spotPolicy = (cluster: Cluster, policy = "spot") => ({
  policy,
  nodes: (cluster.Node ?? []).map(translateNode),
});

describe("the auditor of a live cluster", () => {
  it("comes to the same result as one audit of the whole cluster", async () => {
    const cluster = largeCluster();
    const [verdict] = await new ClusterAuditor(serve(cluster), turn).judge(
      [spotPolicy(cluster)],
      never,
    );
    const sources = [...clusterKinds, ...namespacedKinds].flatMap(({ kind, apiVersion }) =>
      (cluster[kind] ?? []).map((object) => ({
        json: { ...object, kind, apiVersion },
        origin: "Recorded" as const,
      })),
    );
    const whole = sumUp(audit({ sources, platforms: [] }));

    expect(verdict?.workloads).toEqual([{ platform: "gke", cut: 250, whole: 0 }]);
    expect(new Map(verdict?.findings.map(({ rule, count }) => [rule, count]))).toEqual(
      new Map(whole.counts.map(({ rule, count }) => [rule, count])),
    );
    expect(verdict?.findings).toContainEqual({ rule: "pdb-missing", severity: "info", count: 130 });
    expect(verdict?.condition).toMatchObject({ type: "SpotReady", status: "False" });
  });

  it("reads in pages of 100 with the urgency Later, and lists no pods", async () => {
    const cluster = largeCluster();
    const api = serve(cluster);
    await new ClusterAuditor(api, turn).judge([spotPolicy(cluster)], never);

    const deployments = api.sent.filter(({ path }) => path.endsWith("/deployments"));
    expect(deployments.map(({ query }) => query)).toEqual([
      { limit: "100" },
      { limit: "100", continue: "100" },
      { limit: "100", continue: "200" },
    ]);
    expect(api.sent.every(({ urgency }) => urgency === "Later")).toBe(true);
    expect(api.sent.some(({ path }) => path.endsWith("/pods"))).toBe(false);
  });

  it("judges each policy by its own nodes", async () => {
    const pinned = deployment("shop", "gpu", { nodeSelector: { pool: "gpu" } });
    const cluster = {
      Node: [node("a"), node("b", { pool: "gpu" })],
      Deployment: [deployment("shop", "web"), pinned],
    };
    const nodes = cluster.Node.map(translateNode);
    const verdicts = await new ClusterAuditor(serve(cluster), turn).judge(
      [
        { policy: "plain", nodes: nodes.slice(0, 1) },
        { policy: "gpu", nodes: nodes.slice(1) },
        { policy: "empty", nodes: [] },
      ],
      never,
    );

    expect(verdicts.map(({ workloads }) => workloads)).toEqual([
      [{ platform: "gke", cut: 1, whole: 0 }],
      [{ platform: "gke", cut: 2, whole: 0 }],
      [],
    ]);
    expect(verdicts[2]?.condition).toMatchObject({ status: "Unknown", reason: "NoNodes" });
  });

  it("treats a policy's nodes as preemptible, whatever their labels say", async () => {
    const plain = { ...node("n"), metadata: { name: "n", labels: { pool: "cheap" } } };
    const cluster = { Node: [plain], Deployment: [deployment("shop", "web")] };
    const [verdict] = await new ClusterAuditor(serve(cluster), turn).judge(
      [spotPolicy(cluster)],
      never,
    );

    expect(verdict?.workloads).toEqual([{ platform: "gke", cut: 1, whole: 0 }]);
  });

  it("sends no request if there is no policy", async () => {
    const api = serve(largeCluster());

    expect(await new ClusterAuditor(api, turn).judge([], never)).toEqual([]);
    expect(api.sent).toEqual([]);
  });

  it("skips a kind that the server does not know", async () => {
    const cluster = { Node: [node("n")], Deployment: [deployment("shop", "web")] };
    const known = serve(cluster);
    const api = new ScriptedApi((request) =>
      request.path.includes("autoscaling") ? { status: 404, body: {} } : known.answer(request),
    );

    const [verdict] = await new ClusterAuditor(api, turn).judge([spotPolicy(cluster)], never);
    expect(verdict?.workloads).toEqual([{ platform: "gke", cut: 1, whole: 0 }]);
  });

  it("names the missing right", async () => {
    const cluster = { Node: [node("n")] };
    const known = serve(cluster);
    const api = new ScriptedApi((request) =>
      request.path.endsWith("/cronjobs") ? { status: 403, body: {} } : known.answer(request),
    );

    await expect(
      new ClusterAuditor(api, turn).judge([spotPolicy(cluster)], never),
    ).rejects.toMatchObject({
      code: "RIGHT_MISSING",
      message: expect.stringContaining("cronjobs.batch"),
    });
  });
});
