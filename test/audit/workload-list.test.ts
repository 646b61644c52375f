import { describe, expect, it } from "vitest";
import { auditYaml, deployment } from "./support/audit-yaml.ts";
import { ownedBy as owned } from "./support/owned-by.ts";
import { remarks } from "./support/rule-remarks.ts";

const podSpec = "terminationGracePeriodSeconds: 60, containers: [{name: main, image: main}]";
const template = `template: {spec: {${podSpec}}}`;

describe("the audit of each kind that creates pods", () => {
  it.each([
    { kind: "Deployment", apiVersion: "apps/v1", spec: template },
    { kind: "StatefulSet", apiVersion: "apps/v1", spec: template },
    { kind: "DaemonSet", apiVersion: "apps/v1", spec: template },
    { kind: "ReplicaSet", apiVersion: "apps/v1", spec: template },
    { kind: "Deployment", apiVersion: "extensions/v1beta1", spec: template },
    { kind: "ReplicationController", apiVersion: "v1", spec: template },
    { kind: "Job", apiVersion: "batch/v1", spec: template },
    { kind: "CronJob", apiVersion: "batch/v1", spec: `jobTemplate: {spec: {${template}}}` },
    { kind: "Pod", apiVersion: "v1", spec: podSpec },
  ])("judges $kind of $apiVersion", async ({ kind, apiVersion, spec }) => {
    const yaml = `{apiVersion: ${apiVersion}, kind: ${kind}, metadata: {name: x, namespace: shop}, spec: {${spec}}}`;
    const report = await auditYaml(yaml, { platforms: ["gke"] });

    expect(report.workloads).toEqual([
      {
        kind,
        namespace: "shop",
        name: "x",
        file: "web.yaml",
        line: 1,
        priority: 0,
        wantedGraceSeconds: 60,
        graceSource: "Set",
        granted: { gke: 15 },
        cut: { gke: true },
        spot: "May",
        outOfScope: false,
      },
    ]);
    expect(report.summary.cut).toEqual({ gke: 1 });
  });

  it("judges an Argo Rollout by its template, if it does not refer to a Deployment", async () => {
    const rollout = (name: string, spec: string) =>
      `{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: ${name}}, spec: {${spec}}}\n`;
    const yaml = `${rollout("api", template)}---\n${rollout("web", "workloadRef: {kind: Deployment, name: web}")}`;
    const report = await auditYaml(yaml, { platforms: ["gke"] });

    expect(report.workloads).toMatchObject([
      { kind: "Rollout", name: "api", wantedGraceSeconds: 60, granted: { gke: 15 } },
    ]);
    expect(report.notJudged).toMatchObject([{ name: "web", reason: "CustomResource" }]);
  });

  it("reads a template that is null as none", async () => {
    const yaml =
      "{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: web}, spec: {template: null}}\n";

    expect((await auditYaml(yaml)).workloads).toEqual([]);
  });

  it("lists a custom resource as not judged, because its pods are not visible", async () => {
    const report = await auditYaml(
      "{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {name: k8s}}\n",
    );

    expect(report.workloads).toEqual([]);
    expect(report.notJudged).toMatchObject([
      { kind: "Prometheus", name: "k8s", file: "web.yaml", line: 1, reason: "CustomResource" },
    ]);
  });

  it.each([
    { apiVersion: "v1", kind: "Deployment" },
    { apiVersion: "apps/v1", kind: "Job" },
    { apiVersion: "apps/v1", kind: "deployment" },
    { apiVersion: "batch/v1", kind: "Cronjob" },
  ])("notes that no API server has a $kind of $apiVersion", async (head) => {
    const yaml = `{apiVersion: ${head.apiVersion}, kind: ${head.kind}, metadata: {name: a}}\n`;
    const { notes, workloads } = await auditYaml(yaml, { platforms: ["gke"] });

    expect(workloads).toEqual([]);
    expect(notes).toEqual([
      `web.yaml:1 (${head.kind} default/a) was not judged: Kubernetes has no ${head.kind} in ${head.apiVersion}`,
    ]);
  });

  it("keeps a hostile apiVersion from starting a line of its own in a note", async () => {
    const yaml = '{apiVersion: "apps/v1\\n::error::x", kind: Job, metadata: {name: a}}\n';

    expect((await auditYaml(yaml, { platforms: ["gke"] })).notes).toEqual([
      expect.stringMatching(/has no Job in apps\/v1\ufffd::error::x$/),
    ]);
  });

  it("treats a kind of the same name in another API group as a custom resource", async () => {
    const report = await auditYaml(
      "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: x}}\n",
    );

    expect(report.workloads).toEqual([]);
    expect(report.notJudged).toHaveLength(1);
  });
});

describe("the grace that a workload wants", () => {
  it.each([
    { why: "a number", pod: "terminationGracePeriodSeconds: 45", wanted: 45, source: "Set" },
    { why: "zero", pod: "terminationGracePeriodSeconds: 0", wanted: 0, source: "Set" },
    { why: "an explicit 30", pod: "terminationGracePeriodSeconds: 30", wanted: 30, source: "Set" },
    { why: "nothing", pod: "restartPolicy: Always", wanted: 30, source: "Default" },
    { why: "null", pod: "terminationGracePeriodSeconds: null", wanted: 30, source: "Default" },
  ])("for $why is $wanted s, $source", async ({ pod, wanted, source }) => {
    const { workloads } = await auditYaml(deployment({ pod }));

    expect(workloads).toMatchObject([{ wantedGraceSeconds: wanted, graceSource: source }]);
  });

  it.each([
    { origin: "Written", source: "Set" },
    { origin: "Recorded", source: "Default" },
  ] as const)("of 30 s with the origin $origin is: $source", async ({ origin, source }) => {
    const yaml = deployment({ pod: "terminationGracePeriodSeconds: 30" });

    expect((await auditYaml(yaml, { origin })).workloads).toMatchObject([{ graceSource: source }]);
  });

  it("of 30 s on an object with a uid, which comes from a server, is the default", async () => {
    const pod = (uid: string) =>
      `{apiVersion: v1, kind: Pod, metadata: {name: p${uid}}, spec: {terminationGracePeriodSeconds: 30}}\n`;
    const { workloads } = await auditYaml(`${pod("")}---\n${pod(", uid: a-b")}`);

    expect(workloads.map(({ graceSource }) => graceSource)).toEqual(["Set", "Default"]);
  });

  it("of 30 s on a recorded object is set if the last applied configuration has it", async () => {
    const applied = `{"spec":{"terminationGracePeriodSeconds":30}}`;
    const annotations = `annotations: {kubectl.kubernetes.io/last-applied-configuration: '${applied}'}`;
    const yaml = deployment({ pod: "terminationGracePeriodSeconds: 30" });
    const { workloads } = await auditYaml(
      yaml.replace("metadata: {name: web}", `metadata: {name: web, ${annotations}}`),
      { origin: "Recorded" },
    );

    expect(workloads).toMatchObject([{ graceSource: "Set" }]);
  });

  it.each([
    { grace: "-1", says: "is -1," },
    { grace: '"60"', says: 'is the text "60",' },
    { grace: "1.5", says: "is 1.5," },
    { grace: "60s", says: 'is the text "60s",' },
    { grace: "[60]", says: "is a list," },
  ])("of $grace is refused with file, line, object and field", async ({ grace, says }) => {
    const audited = auditYaml(deployment({ pod: `terminationGracePeriodSeconds: ${grace}` }));

    await expect(audited).rejects.toThrow(
      `Cannot audit web.yaml:4 (Deployment default/web): terminationGracePeriodSeconds ${says} expected a whole number of seconds from 0 on`,
    );
    await expect(audited).rejects.toMatchObject({ exitCode: 2 });
  });
});

describe("the priority of a workload", () => {
  const classes = `
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
`;

  it.each([
    { why: "none", pod: "restartPolicy: Always", priority: 0 },
    { why: "a class of the input", pod: "priorityClassName: high", priority: 1000 },
    {
      why: "a built-in class",
      pod: "priorityClassName: system-cluster-critical",
      priority: 2_000_000_000,
    },
    {
      why: "a built-in class",
      pod: "priorityClassName: system-node-critical",
      priority: 2_000_001_000,
    },
    { why: "a number", pod: "priority: 7, priorityClassName: high", priority: 7 },
    { why: "an unknown class", pod: "priorityClassName: lost", priority: 0 },
  ])("with $why ($pod) is $priority", async ({ pod, priority }) => {
    const { workloads } = await auditYaml(classes + deployment({ pod }));

    expect(workloads).toMatchObject([{ priority }]);
  });

  it("of a class that the input lacks is 0, with a note", async () => {
    const { notes } = await auditYaml(deployment({ pod: "priorityClassName: lost" }), {
      platforms: ["gke"],
    });

    expect(notes).toEqual([
      "The input contains no PriorityClass lost: its pods were judged at priority 0",
    ]);
  });

  it("decides the group: a critical pod gets the critical seconds", async () => {
    const pod = "terminationGracePeriodSeconds: 60, priorityClassName: system-node-critical";
    const { workloads } = await auditYaml(deployment({ pod }), { platforms: ["gke-25"] });

    expect(workloads).toMatchObject([{ granted: { "gke-25": 5 }, cut: { "gke-25": true } }]);
  });

  it("of a class without a number is refused", async () => {
    const yaml = classes.replace("value: 1000", "value: lots") + deployment({});

    await expect(auditYaml(yaml)).rejects.toThrow("value is the text");
  });
});

describe("the owners of pods", () => {
  const pod = (name: string, owner: string, phase = "Running") =>
    `---
{apiVersion: v1, kind: Pod, metadata: {name: ${name}, labels: {app: web, pod-template-hash: 5d9}, ${owner}}, spec: {${podSpec}}, status: {phase: ${phase}}}
`;

  it("in the input hide the objects that they own", async () => {
    const replicaSet = `---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-5d9, ${owned("Deployment", "web")}}, spec: {${template}}}
`;
    const yaml = deployment({}) + replicaSet + pod("web-5d9-1", owned("ReplicaSet", "web-5d9"));
    const { workloads } = await auditYaml(yaml);

    expect(workloads.map((one) => `${one.kind} ${one.name}`)).toEqual(["Deployment web"]);
  });

  it("in the input hide their pods even without the ReplicaSet in between", async () => {
    const yaml = deployment({}) + pod("web-5d9-1", owned("ReplicaSet", "web-5d9"));

    expect((await auditYaml(yaml)).workloads).toHaveLength(1);
  });

  it("are inferred from pods alone, with as many replicas", async () => {
    const owner = owned("ReplicaSet", "web-5d9");
    const report = await auditYaml(pod("web-5d9-1", owner) + pod("web-5d9-2", owner));

    expect(report.workloads.map((one) => `${one.kind} ${one.name}`)).toEqual(["Deployment web"]);
    expect(report.findings.map((one) => one.rule)).not.toContain("single-replica");
  });

  it.each([
    ["restartPolicy: Never", "Pod driver"],
    [owned("SparkApplication", "pi"), "SparkApplication pi"],
    [owned("Job", "submit"), "Pod driver"],
  ])("that are pods themselves, with {%s}, do not hide them", async (driver, name) => {
    const isOwned = driver.startsWith("owner");
    const submit = `---\n{apiVersion: batch/v1, kind: Job, metadata: {name: submit}, spec: {${template}}}\n`;
    const yaml =
      (driver.includes("submit") ? submit : "") +
      pod("driver", isOwned ? driver : "annotations: {}") +
      ["exec-1", "exec-2"].map((one) => pod(one, owned("Pod", "driver"))).join("");
    const { workloads } = await auditYaml(yaml);
    expect(workloads.map((one) => `${one.kind} ${one.name}`)).toContain(name);
    expect(workloads).toHaveLength(name === "Pod driver" && isOwned ? 2 : 1);
  });

  it("that are operators do not hide the workloads that they own", async () => {
    const metadata = `metadata: {name: brokers, ${owned("Kafka", "events")}}`;
    const { workloads } = await auditYaml(
      deployment({}).replace("metadata: {name: web}", metadata),
    );

    expect(workloads).toMatchObject([{ kind: "Deployment", name: "brokers" }]);
  });

  describe("of several revisions", () => {
    interface Revision {
      readonly name: string;
      readonly replicas: number;
      readonly grace: number;
    }
    const replicaSet = ({ name, replicas, grace }: Revision) => `---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-${name}, labels: {pod-template-hash: ${name}}, ${owned("Deployment", "web")}}, spec: {replicas: ${replicas}, template: {spec: {terminationGracePeriodSeconds: ${grace}, containers: [{name: main}]}}}}
`;
    const podsOf = ({ name, replicas, grace }: Revision) =>
      Array.from({ length: replicas }, (_, at) =>
        pod(`web-${name}-${at}`, owned("ReplicaSet", `web-${name}`))
          .replace("pod-template-hash: 5d9", `pod-template-hash: ${name}`)
          .replace("GracePeriodSeconds: 60", `GracePeriodSeconds: ${grace}`),
      ).join("");
    const [none, one, long, many, later] = [
      { name: "a1", replicas: 0, grace: 10 },
      { name: "b2", replicas: 1, grace: 600 },
      { name: "c3", replicas: 2, grace: 300 },
      { name: "d4", replicas: 3, grace: 20 },
      { name: "e5", replicas: 3, grace: 40 },
    ] as const;

    it.each([
      { revisions: [none, many], wanted: 20, why: "one has no pods" },
      { revisions: [one, many], wanted: 20, why: "one has fewer pods" },
      { revisions: [one, long, many], wanted: 20, why: "two have fewer pods" },
      { revisions: [many, later], wanted: 40, why: "the grace is longer" },
    ])("are judged by the one that asks for $wanted s: $why", async ({ revisions, wanted }) => {
      for (const write of [replicaSet, podsOf]) {
        for (const order of [revisions, revisions.toReversed()]) {
          const { workloads } = await auditYaml(order.map(write).join(""));

          expect(workloads).toMatchObject([
            { kind: "Deployment", name: "web", wantedGraceSeconds: wanted },
          ]);
        }
      }
    });
  });

  const operator = (apiVersion: string, kind: string, more = "") =>
    `---\n{apiVersion: ${apiVersion}, kind: ${kind}, metadata: {name: shop${more}}, spec: {}}\n`;
  const [prometheus, service, revision] = [
    operator("monitoring.coreos.com/v1", "Prometheus"),
    operator("serving.knative.dev/v1", "Service"),
    operator("serving.knative.dev/v1", "Revision", `, ${owned("Service", "shop")}`),
  ];
  const deploymentOf = (kind: string) =>
    deployment({}).replace("{name: web}", `{name: web, ${owned(kind, "shop")}}`);

  it.each([
    { owner: "a Prometheus", yaml: deploymentOf("Prometheus") + prometheus },
    { owner: "a Revision and its Service", yaml: deploymentOf("Revision") + revision + service },
  ])("such as $owner in the input do not hide a Deployment either", async ({ yaml }) => {
    const { workloads, notJudged } = await auditYaml(yaml);

    expect(workloads).toMatchObject([{ kind: "Deployment", name: "web" }]);
    expect(notJudged).toEqual([]);
  });

  it("without a pod template are judged by their pods", async () => {
    const yaml = prometheus + pod("shop-0", owned("Prometheus", "shop"));
    const { workloads, notJudged } = await auditYaml(yaml);

    expect(workloads).toMatchObject([{ kind: "Prometheus", name: "shop", wantedGraceSeconds: 60 }]);
    expect(notJudged).toEqual([]);
  });

  it("are listed as not judged if all of their pods have finished", async () => {
    const yaml = prometheus + pod("shop-0", owned("Prometheus", "shop"), "Failed");

    expect((await auditYaml(yaml)).notJudged).toMatchObject([{ kind: "Prometheus" }]);
  });

  describe("of which one is a Rollout that refers to a Deployment", () => {
    const rollout =
      "---\n{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: web}, spec: {workloadRef: {kind: Deployment, name: web}}}\n";
    const replicaSet = `---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-5d9, labels: {rollouts-pod-template-hash: 5d9}, ${owned("Rollout", "web")}}, spec: {replicas: 2, ${template}}}
`;

    it("are both judged, the Rollout by its ReplicaSets", async () => {
      const scaledDown = deployment({ spec: "replicas: 0" });
      const yaml = scaledDown + rollout + replicaSet + pod("p", owned("ReplicaSet", "web-5d9"));
      const { workloads, notJudged } = await auditYaml(yaml);

      expect(workloads).toMatchObject([
        { kind: "Deployment", name: "web", wantedGraceSeconds: 30 },
        { kind: "Rollout", name: "web", wantedGraceSeconds: 60 },
      ]);
      expect(notJudged).toEqual([]);
    });

    it("are judged by the Deployment where nothing else shows the pods", async () => {
      const { workloads, notJudged } = await auditYaml(deployment({}) + rollout);

      expect(workloads).toMatchObject([{ kind: "Deployment", name: "web" }]);
      expect(notJudged).toEqual([]);
    });

    const hpa =
      "---\n{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {minReplicas: 2, maxReplicas: 4, scaleTargetRef: {kind: Rollout, name: web}}}\n";

    it.each([
      { replicas: "", others: "", single: 1 },
      { replicas: "replicas: 3, ", others: "", single: 0 },
      { replicas: "", others: hpa, single: 0 },
    ])("has the Rollout's pods ($single single) with {$replicas} $others", async (row) => {
      const scaledDown = deployment({ spec: "replicas: 0" });
      const own = rollout.replace("{workloadRef", `{${row.replicas}workloadRef`);
      const found = await remarks("single-replica", scaledDown + own + row.others);

      expect(found).toHaveLength(row.single);
    });
  });

  it("are not listed for finished pods, and static pods cannot be judged", async () => {
    const yaml =
      pod("done", owned("Job", "nightly"), "Succeeded") + pod("proxy-n1", owned("Node", "n1"));
    const { workloads, notJudged } = await auditYaml(yaml);

    expect(workloads).toEqual([]);
    expect(notJudged).toMatchObject([{ name: "proxy-n1", reason: "StaticPod" }]);
  });
});
