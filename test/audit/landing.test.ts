import { describe, expect, it } from "vitest";
import { auditYaml, deployment } from "./support/audit-yaml.ts";

const affinity = (...terms: string[]) =>
  `affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [${terms
    .map((term) => `{matchExpressions: [${term}]}`)
    .join(", ")}]}}}`;
const selector = (key: string, value: string) => `nodeSelector: {${key}: "${value}"}`;
const karpenter = "karpenter.sh/capacity-type";

describe("whether a workload may run on Spot nodes, according to its own spec", () => {
  it.each([
    { why: "no requirement for the node", pod: "restartPolicy: Always", spot: "May" },
    { why: "another requirement", pod: selector("disktype", "ssd"), spot: "May" },
    { why: "GKE Spot", pod: selector("cloud.google.com/gke-spot", "true"), spot: "Only" },
    { why: "Karpenter spot", pod: selector(karpenter, "spot"), spot: "Only" },
    { why: "Karpenter on demand", pod: selector(karpenter, "on-demand"), spot: "Never" },
    {
      why: "EKS on demand",
      pod: selector("eks.amazonaws.com/capacityType", "ON_DEMAND"),
      spot: "Never",
    },
    {
      why: "GKE standard",
      pod: selector("cloud.google.com/gke-provisioning", "standard"),
      spot: "Never",
    },
    {
      why: "not a GKE Spot node",
      pod: affinity("{key: cloud.google.com/gke-spot, operator: DoesNotExist}"),
      spot: "Never",
    },
    {
      why: "neither Spot nor preemptible",
      pod: affinity(
        "{key: cloud.google.com/gke-spot, operator: DoesNotExist}, {key: cloud.google.com/gke-preemptible, operator: DoesNotExist}",
      ),
      spot: "Never",
    },
    {
      why: "not Karpenter spot",
      pod: affinity(`{key: ${karpenter}, operator: NotIn, values: [spot]}`),
      spot: "Never",
    },
    {
      why: "either",
      pod: affinity(`{key: ${karpenter}, operator: In, values: [spot, on-demand]}`),
      spot: "May",
    },
    {
      why: "one of two terms allows it",
      pod: affinity(
        `{key: ${karpenter}, operator: In, values: [on-demand]}`,
        `{key: ${karpenter}, operator: In, values: [spot]}`,
      ),
      spot: "May",
    },
    {
      why: "both labels that GKE sets on a Spot node",
      pod: 'nodeSelector: {cloud.google.com/gke-spot: "true", cloud.google.com/gke-provisioning: spot}',
      spot: "Only",
    },
    {
      why: "EKS Spot by its own label, and by the one that users add",
      pod: `nodeSelector: {node.kubernetes.io/lifecycle: spot}, ${affinity("{key: eks.amazonaws.com/capacityType, operator: In, values: [SPOT]}")}`,
      spot: "Only",
    },
    {
      why: "either, by two labels",
      pod: affinity(
        `{key: ${karpenter}, operator: In, values: [spot, on-demand]}, {key: eks.amazonaws.com/capacityType, operator: In, values: [SPOT, ON_DEMAND]}`,
      ),
      spot: "May",
    },
    {
      why: "on demand by two labels",
      pod: `nodeSelector: {${karpenter}: on-demand, eks.amazonaws.com/capacityType: ON_DEMAND}`,
      spot: "Never",
    },
    {
      why: "the control plane's nodes",
      pod: 'nodeSelector: {node-role.kubernetes.io/control-plane: ""}',
      spot: "Never",
    },
    {
      why: "the control plane's nodes by affinity",
      pod: affinity("{key: node-role.kubernetes.io/control-plane, operator: Exists}"),
      spot: "Never",
    },
    {
      why: "any node except the control plane's",
      pod: affinity("{key: node-role.kubernetes.io/control-plane, operator: DoesNotExist}"),
      spot: "May",
    },
    { why: "Fargate", pod: selector("eks.amazonaws.com/compute-type", "fargate"), spot: "Never" },
    {
      why: "EC2, not Fargate",
      pod: selector("eks.amazonaws.com/compute-type", "ec2"),
      spot: "May",
    },
  ])("$why: $spot", async ({ pod, spot }) => {
    expect((await auditYaml(deployment({ pod }))).workloads).toMatchObject([{ spot }]);
  });

  it.each([
    { pod: "restartPolicy: Always", reaches: ["gke", "eks-al2023", "eks", "aks"] },
    { pod: selector("cloud.google.com/gke-spot", "true"), reaches: ["gke"] },
    { pod: selector("kubernetes.azure.com/scalesetpriority", "spot"), reaches: ["aks"] },
    {
      pod: affinity("{key: karpenter.k8s.aws/instance-family, operator: In, values: [m7i]}"),
      reaches: ["eks-al2023", "eks"],
    },
    {
      pod: affinity("{key: cloud.google.com/gke-spot, operator: DoesNotExist}"),
      reaches: ["gke", "eks-al2023", "eks", "aks"],
    },
  ])("without a platform, {$pod} is judged against $reaches", async ({ pod, reaches }) => {
    const { workloads } = await auditYaml(deployment({ pod }));

    expect(Object.keys(workloads[0]?.granted ?? {})).toEqual(reaches);
  });

  it("a named platform applies to every workload", async () => {
    const pod = selector("cloud.google.com/gke-spot", "true");
    const { workloads } = await auditYaml(deployment({ pod }), { platforms: ["eks", "gke"] });

    expect(workloads).toMatchObject([{ granted: { eks: 0, gke: 15 } }]);
  });

  it("a workload kept off Spot nodes has its numbers, but no findings", async () => {
    const pod = `${selector(karpenter, "on-demand")}, terminationGracePeriodSeconds: 60`;
    const report = await auditYaml(deployment({ pod, spec: "replicas: 1" }), {
      platforms: ["gke"],
    });

    expect(report.workloads).toMatchObject([{ cut: { gke: true }, spot: "Never" }]);
    expect(report.findings).toEqual([]);
  });
});

describe("with nodes in the input", () => {
  const node = (name: string, fields: { spec?: string; labels?: string; info?: string }) => `---
{apiVersion: v1, kind: Node, metadata: {name: ${name}, labels: {${fields.labels ?? ""}}}, spec: {${fields.spec ?? ""}}, status: {nodeInfo: {${fields.info ?? ""}}}}
`;
  const gkeSpot = (name: string, version: string, more = "") =>
    node(name, {
      labels: `"cloud.google.com/gke-spot": "true", ${more}`,
      spec: `providerID: "gce://p/z/${name}"`,
      info: `kubeletVersion: ${version}`,
    });
  const eks = (version: string, image: string) =>
    node("n", {
      labels: "karpenter.sh/capacity-type: spot",
      spec: 'providerID: "aws:///z/i-1"',
      info: `kubeletVersion: ${version}, osImage: ${image}`,
    });

  it.each([
    { why: "GKE", yaml: gkeSpot("n", "v1.33.1-gke.100"), platform: "gke" },
    { why: "the last old GKE", yaml: gkeSpot("n", "v1.22.8-gke.200"), platform: "gke-25" },
    { why: "the first new GKE", yaml: gkeSpot("n", "v1.22.8-gke.201"), platform: "gke" },
    { why: "an older GKE", yaml: gkeSpot("n", "v1.21.14-gke.9000"), platform: "gke-25" },
    {
      why: "AL2023 from 1.34",
      yaml: eks("v1.34.0-eks-1", "Amazon Linux 2023.9"),
      platform: "eks-al2023",
    },
    { why: "AL2023 before", yaml: eks("v1.33.9-eks-1", "Amazon Linux 2023.9"), platform: "eks" },
    { why: "AL2", yaml: eks("v1.34.0-eks-1", "Amazon Linux 2"), platform: "eks" },
    { why: "Bottlerocket", yaml: eks("v1.34.0", "Bottlerocket OS 1.40"), platform: "unknown" },
    {
      why: "AKS",
      yaml: node("n", { spec: 'providerID: "azure:///subscriptions/s"' }),
      platform: "aks",
    },
    { why: "a self-managed machine", yaml: node("n", {}), platform: "unknown" },
  ])("the platform follows from provider, version and image: $why", async ({ yaml, platform }) => {
    const report = await auditYaml(yaml + deployment({}).replace(/^/, "---\n"));

    expect(report.platforms.map((one) => one.name)).toEqual([platform]);
    expect(report.platforms[0]?.source).toBe(platform === "unknown" ? "Unknown" : "Default");
  });

  it("a workload is judged against the budgets of the nodes that it may run on", async () => {
    const fleet =
      gkeSpot("old", "v1.22.1-gke.1", "pool: old") + gkeSpot("new", "v1.33.1-gke.1", "pool: new");
    const yaml = `${fleet}---\n${deployment({ name: "both" })}---\n${deployment({ name: "picky", pod: selector("pool", "old") })}`;
    const { workloads } = await auditYaml(yaml);

    expect(workloads).toMatchObject([
      { name: "both", granted: { "gke-25": 25, gke: 15 } },
      { name: "picky", granted: { "gke-25": 25 } },
    ]);
    expect(workloads[1]?.granted).not.toHaveProperty("gke");
  });

  it.each([
    { tolerations: "[]", spot: "Never" },
    { tolerations: "[{operator: Exists}]", spot: "May" },
    { tolerations: "[{key: dedicated, operator: Exists}]", spot: "May" },
    { tolerations: "[{key: dedicated, value: batch, effect: NoSchedule}]", spot: "May" },
    { tolerations: "[{key: dedicated, value: web}]", spot: "Never" },
    { tolerations: "[{key: dedicated, value: batch, effect: NoExecute}]", spot: "Never" },
    // An empty field is not set, nor is one that is null: any effect, the operator Equal.
    { tolerations: '[{key: dedicated, value: batch, effect: ""}]', spot: "May" },
    { tolerations: "[{key: dedicated, value: batch, effect: null}]", spot: "May" },
    { tolerations: '[{key: dedicated, operator: "", value: batch}]', spot: "May" },
    { tolerations: "[{key: dedicated, operator: null, value: batch}]", spot: "May" },
    { tolerations: "[{key: dedicated, operator: Exists, value: null}]", spot: "May" },
    { tolerations: "[{key: dedicated, value: null}]", spot: "Never" },
    { tolerations: "[{key: null, operator: Exists}]", spot: "May" },
    { tolerations: '[{key: "", operator: Exists, effect: NoExecute}]', spot: "Never" },
    { tolerations: "[{key: null, operator: Equal}]", spot: "Never" },
  ])("taints count: tolerations $tolerations mean $spot", async ({ tolerations, spot }) => {
    const tainted = node("n", {
      labels: `"cloud.google.com/gke-spot": "true"`,
      spec: "taints: [{key: dedicated, value: batch, effect: NoSchedule}, {key: node.kubernetes.io/unschedulable, effect: NoSchedule}]",
    });
    const { workloads } = await auditYaml(
      `${tainted}---\n${deployment({ pod: `tolerations: ${tolerations}` })}`,
    );

    expect(workloads).toMatchObject([{ spot }]);
  });

  it("a pod that its DaemonSet's controller has bound to a node may be on any node", async () => {
    const tie =
      "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n]}]}]}}}";
    const pod = `{apiVersion: v1, kind: Pod, metadata: {name: p, ownerReferences: [{kind: DaemonSet, name: d, controller: true}]}, spec: {${tie}, containers: []}}\n`;
    const { workloads } = await auditYaml(`${gkeSpot("n", "v1.33.1-gke.1")}---\n${pod}`);

    expect(workloads).toMatchObject([{ kind: "DaemonSet", spot: "May", granted: { gke: 15 } }]);
  });

  it("a term whose matchFields are null matches no node", async () => {
    const pod =
      "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: null}]}}}";
    const yaml = `${gkeSpot("n", "v1.33.1-gke.1")}---\n${deployment({ pod })}`;

    expect((await auditYaml(yaml)).workloads).toMatchObject([{ spot: "Never", granted: {} }]);
  });

  it("a note says that GKE's default was assumed for GKE Autopilot", async () => {
    const { platforms, notes } = await auditYaml(gkeSpot("gk3-a-pool-1", "v1.33.1-gke.1"));

    expect(platforms).toMatchObject([{ name: "gke", source: "Default" }]);
    expect(notes).toEqual([
      "1 node is on GKE Autopilot, where the kubelet's setting cannot be read: GKE's default was used",
    ]);
  });

  it("a cut against an unknown budget is only information", async () => {
    const pod = "terminationGracePeriodSeconds: 60";
    const { findings } = await auditYaml(`${node("n", {})}---\n${deployment({ pod })}`);

    expect(findings.find((one) => one.rule === "grace-cut")).toMatchObject({ severity: "info" });
  });
});
