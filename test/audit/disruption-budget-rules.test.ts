import { describe, expect, it } from "vitest";
import { deployment } from "./support/audit-yaml.ts";
import { remarks } from "./support/rule-remarks.ts";

describe("what a PodDisruptionBudget allows", () => {
  it.each([
    { term: "maxUnavailable: 0", replicas: 5, blocks: true },
    { term: "maxUnavailable: 0%", replicas: 5, blocks: true },
    { term: "maxUnavailable: 1%", replicas: 5, blocks: false },
    { term: "minAvailable: 5", replicas: 5, blocks: true },
    { term: "minAvailable: 6", replicas: 5, blocks: true },
    { term: "minAvailable: 4", replicas: 5, blocks: false },
    { term: "minAvailable: 100%", replicas: 5, blocks: true },
    { term: "minAvailable: 81%", replicas: 5, blocks: true },
    { term: "minAvailable: 80%", replicas: 5, blocks: false },
    { term: "minAvailable: 1", replicas: 1, blocks: true },
    { term: "minAvailable: 1", replicas: 0, blocks: false },
    { term: "minAvailable: 1, maxUnavailable: null", replicas: 1, blocks: true },
    { term: "minAvailable: 1, maxUnavailable: null", replicas: 5, blocks: false },
    { term: "minAvailable: null, maxUnavailable: 0", replicas: 5, blocks: true },
    { term: "minAvailable: null", replicas: 5, blocks: true },
    { term: "unhealthyPodEvictionPolicy: AlwaysAllow", replicas: 5, blocks: true },
    { term: 'maxUnavailable: "some"', replicas: 5, blocks: false },
  ])("$term of $replicas blocks forever: $blocks", async ({ term, replicas, blocks }) => {
    const pdb = `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b}, spec: {${term}, selector: {matchLabels: {app: web}}}}\n---\n`;
    const yaml = pdb + deployment({ spec: `replicas: ${replicas}` });

    expect(await remarks("pdb-blocks-forever", yaml)).toHaveLength(blocks ? 1 : 0);
  });

  const budget = (term: string) =>
    `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b}, spec: {${term}, selector: {matchLabels: {app: web}}}}\n`;
  const template = "template: {metadata: {labels: {app: web}}, spec: {containers: [{name: m}]}}";
  const owner = (apiVersion: string, kind: string, spec: string) =>
    `---\n{apiVersion: ${apiVersion}, kind: ${kind}, metadata: {name: web}, spec: {${spec}}}\n`;
  const kinds = {
    Deployment: owner("apps/v1", "Deployment", `replicas: 3, ${template}`),
    Unknown: owner("apps/v1", "Deployment", `replicas: "{{n}}", ${template}`),
    None: owner("apps/v1", "StatefulSet", `replicas: 0, ${template}`),
    CronJob: owner("batch/v1", "CronJob", `jobTemplate: {spec: {${template}}}`),
    OneCronJob: owner(
      "batch/v1",
      "CronJob",
      `concurrencyPolicy: Forbid, jobTemplate: {spec: {${template}}}`,
    ),
    Job: owner("batch/v1", "Job", template),
    Jobs3: owner("batch/v1", "Job", `parallelism: 3, ${template}`),
    Jobs3of2: owner("batch/v1", "Job", `parallelism: 3, completions: 2, ${template}`),
    Suspended: owner("batch/v1", "Job", `suspend: true, parallelism: 3, ${template}`),
    Rollout: owner("argoproj.io/v1alpha1", "Rollout", `replicas: 3, ${template}`),
    DaemonSet: owner("apps/v1", "DaemonSet", template),
    Pod: "---\n{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {app: web}}, spec: {containers: []}}\n",
    OtherPod:
      "---\n{apiVersion: v1, kind: Pod, metadata: {name: q, labels: {app: web}}, spec: {containers: []}}\n",
  };

  it.each<{ term: string; of: readonly (keyof typeof kinds)[]; blocks: boolean | "warning" }>([
    { term: "maxUnavailable: 0", of: ["Deployment", "CronJob"], blocks: true },
    { term: "maxUnavailable: 0%", of: ["Job"], blocks: true },
    { term: "paused: false", of: ["Job"], blocks: true },
    { term: "maxUnavailable: 1", of: ["Deployment", "CronJob"], blocks: true },
    { term: "maxUnavailable: 1", of: ["Job"], blocks: true },
    { term: "maxUnavailable: 50%", of: ["Job"], blocks: true },
    { term: "minAvailable: 50%", of: ["Deployment", "Job"], blocks: true },
    // A number is compared with the healthy pods, of whatever owner.
    { term: "minAvailable: 1", of: ["Job"], blocks: true },
    { term: "minAvailable: 2", of: ["Jobs3"], blocks: false },
    { term: "minAvailable: 3", of: ["Jobs3"], blocks: true },
    { term: "minAvailable: 3", of: ["Suspended"], blocks: true },
    { term: "minAvailable: 2", of: ["Jobs3of2"], blocks: true },
    { term: "minAvailable: 1", of: ["OneCronJob"], blocks: true },
    // A run may still be going on when the next one starts.
    { term: "minAvailable: 1", of: ["CronJob"], blocks: "warning" },
    // Once the Job has ended, no pod of the Deployment may leave.
    { term: "minAvailable: 3", of: ["Deployment", "Job"], blocks: "warning" },
    { term: "minAvailable: 4", of: ["Deployment", "Job"], blocks: true },
    // How many pods a DaemonSet has depends on the nodes.
    { term: "minAvailable: 3", of: ["Deployment", "DaemonSet"], blocks: false },
    { term: "minAvailable: 1", of: ["DaemonSet"], blocks: false },
    { term: "minAvailable: 1", of: ["Deployment", "CronJob"], blocks: false },
    { term: "maxUnavailable: 1", of: ["Deployment", "DaemonSet"], blocks: true },
    { term: "maxUnavailable: 1", of: ["DaemonSet"], blocks: "warning" },
    { term: "maxUnavailable: 1", of: ["Pod"], blocks: true },
    { term: "minAvailable: 50%", of: ["Pod"], blocks: true },
    { term: "minAvailable: 1", of: ["Pod"], blocks: true },
    { term: "minAvailable: 1", of: ["Pod", "OtherPod"], blocks: false },
    { term: "minAvailable: 3", of: ["Deployment", "Pod"], blocks: false },
    { term: "minAvailable: 4", of: ["Deployment", "Pod"], blocks: true },
    { term: "minAvailable: 100%", of: ["Deployment", "Pod"], blocks: false },
    { term: "minAvailable: 1", of: ["Pod", "Job"], blocks: "warning" },
    { term: "maxUnavailable: 1", of: ["Deployment", "Pod"], blocks: false },
    { term: "maxUnavailable: 1", of: ["Deployment", "None"], blocks: false },
    { term: "maxUnavailable: 0", of: ["Unknown"], blocks: true },
    { term: "maxUnavailable: 0", of: ["None"], blocks: false },
    { term: "maxUnavailable: 0", of: ["DaemonSet"], blocks: "warning" },
    { term: "maxUnavailable: 0", of: ["Pod"], blocks: true },
    // A pod without an owner is healthy, but not expected: as many others may be evicted.
    { term: "maxUnavailable: 0", of: ["Deployment", "Pod"], blocks: false },
    { term: "maxUnavailable: 0", of: ["Rollout"], blocks: true },
    { term: "minAvailable: 3", of: ["Rollout"], blocks: true },
    { term: "minAvailable: 100%", of: ["Rollout", "Deployment"], blocks: true },
    { term: "minAvailable: 2", of: ["Rollout"], blocks: false },
  ])("$term of the kinds $of blocks forever: $blocks", async ({ term, of, blocks }) => {
    const yaml = budget(term) + of.map((kind) => kinds[kind]).join("");
    const found = await remarks("pdb-blocks-forever", yaml);

    const severity = blocks === true ? ["error"] : [];
    expect(found.map((one) => one.split(" ")[0])).toEqual(
      blocks === "warning" ? ["warning"] : severity,
    );
  });

  it.each<{ term: string; first: string; again: string; says: string | undefined }>([
    { term: "minAvailable: 3", first: "replicas: 3", again: "replicas: 3", says: "error" },
    { term: "minAvailable: 100%", first: "replicas: 3", again: "replicas: 3", says: "error" },
    { term: "minAvailable: 3", first: "replicas: 3", again: "replicas: 4", says: "warning" },
    { term: "minAvailable: 2", first: "replicas: 3", again: "replicas: 4", says: undefined },
  ])("$term counts a Deployment once that is there with $first and $again: $says", async (row) => {
    const yaml = [row.first, row.again].map((spec) => deployment({ spec })).join("---\n");
    const found = await remarks("pdb-blocks-forever", `${budget(row.term)}---\n${yaml}`);

    expect(found[0]?.split(" ")[0]).toBe(row.says);
  });

  it("counts pods once that two recordings contain, and Jobs without a name each", async () => {
    const recorded =
      "---\n{apiVersion: v1, kind: Pod, metadata: {name: web-1, labels: {app: web, pod-template-hash: h}, ownerReferences: [{kind: ReplicaSet, name: web-h, controller: true}]}, spec: {containers: []}}\n";
    const generated = `---\n{apiVersion: batch/v1, kind: Job, metadata: {generateName: j-}, spec: {${template}}}\n`;
    const found = (yaml: string) => remarks("pdb-blocks-forever", budget("minAvailable: 1") + yaml);

    expect(await found(kinds.Pod + kinds.Pod)).toHaveLength(1);
    expect(await found(recorded + recorded)).toHaveLength(1);
    expect(await found(generated + generated)).toEqual([]);
  });

  it.each([
    [
      "a finished pod of a Job that is gone",
      "status: {phase: Succeeded}",
      "{apiVersion: batch/v1, kind: Job, name: backup, controller: true}",
      "Job default/backup has",
    ],
    [
      "a static pod",
      "status: {phase: Running}",
      "{apiVersion: v1, kind: Node, name: n1, controller: true}",
      "Node n1 has",
    ],
    [
      "a pod of a pod, such as an executor of Spark",
      "status: {phase: Running}",
      "{apiVersion: v1, kind: Pod, name: driver, controller: true}",
      "Pod default/driver has",
    ],
  ])("cannot compute a budget over %s beside a Deployment", async (_, status, ref, cause) => {
    const pod = `---\n{apiVersion: v1, kind: Pod, metadata: {name: b, labels: {app: web}, ownerReferences: [${ref}]}, spec: {containers: []}, ${status}}\n`;
    const yaml = budget("maxUnavailable: 1") + kinds.Deployment + pod;

    const [found] = await remarks("pdb-blocks-forever", yaml);
    expect(found).toMatch(/^error maxUnavailable 1 never allows a pod of Deployment default\/web/);
    expect(found).toContain(`to be evicted, because ${cause} no number of replicas`);
  });

  it("says of a DaemonSet alone whom a budget holds up", async () => {
    expect(
      await remarks("pdb-blocks-forever", budget("maxUnavailable: 1") + kinds.DaemonSet),
    ).toEqual([
      "warning maxUnavailable 1 never allows a pod of DaemonSet default/web to be evicted, because DaemonSet default/web has no number of replicas; a drain leaves such pods, but Karpenter and podRules evict them",
    ]);
  });

  it.each([
    { bounds: "minReplicas: 3, maxReplicas: 5", replicas: 0, says: undefined },
    { bounds: "minReplicas: 3, maxReplicas: 5", replicas: 1, says: "warning" },
  ])("an autoscaler with {$bounds} leaves $replicas replicas: $says", async (row) => {
    const hpa = `---\n{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {${row.bounds}, scaleTargetRef: {kind: Deployment, name: web}}}\n`;
    const yaml = `${budget("minAvailable: 3")}---\n${deployment({ spec: `replicas: ${row.replicas}` })}${hpa}`;

    expect((await remarks("pdb-blocks-forever", yaml))[0]?.split(" ")[0]).toBe(row.says);
  });

  it("warns of a budget that holds the last pod of a workload that KEDA scales", async () => {
    const keda =
      "---\n{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: k}, spec: {scaleTargetRef: {name: web}}}\n";

    expect(
      await remarks("pdb-blocks-forever", budget("minAvailable: 1") + kinds.Deployment + keda),
    ).toEqual([
      "warning minAvailable 1 allows no eviction of a pod of Deployment default/web while there is only 1 pod",
    ]);
  });

  it.each([
    ["CloneSet", "replicas: 2", "error"],
    ["CloneSet", "paused: false", "error"],
    ["StatefulSet", "replicas: 2", "error"],
    ["CloneSet", "replicas: 3", undefined],
    ["DaemonSet", "minReadySeconds: 1", undefined],
  ])("counts the pods of an OpenKruise %s with {%s}: %s", async (kind, spec, says) => {
    const yaml = `${budget("minAvailable: 2")}${owner("apps.kruise.io/v1alpha1", kind, `${spec}, ${template}`)}`;

    expect((await remarks("pdb-blocks-forever", yaml))[0]?.split(" ")[0]).toBe(says);
  });

  it("is an error with the words of the cluster, if a recorded budget cannot be computed", async () => {
    const status =
      "status: {conditions: [{type: DisruptionAllowed, status: 'False', reason: SyncFailed, message: jobs.batch does not implement the scale subresource}]}";
    const yaml = budget("maxUnavailable: 1").replace(/\}\n$/, `, ${status}}\n`) + kinds.Deployment;

    expect(await remarks("pdb-blocks-forever", yaml)).toEqual([
      "error maxUnavailable 1 never allows a pod of Deployment default/web to be evicted, because the cluster cannot compute the budget: jobs.batch does not implement the scale subresource",
    ]);
  });

  it.each<readonly [readonly (keyof typeof kinds)[], string]>([
    [["Pod"], "Pod default/p to be evicted, because pods without an owner are not expected"],
    [
      ["Job", "CronJob"],
      "a pod of Job default/web, CronJob default/web to be evicted, because Job default/web, CronJob default/web have no number of replicas",
    ],
  ])("names %j as what it never lets go, and why", async (of, held) => {
    const yaml = budget("maxUnavailable: 1") + of.map((kind) => kinds[kind]).join("");
    const said = `error maxUnavailable 1 never allows ${held}`;
    expect(await remarks("pdb-blocks-forever", yaml)).toEqual([said]);
  });

  it("is an error for a maxUnavailable of 0, even if KEDA scales to zero", async () => {
    const keda =
      "---\n{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: k}, spec: {scaleTargetRef: {name: web}}}\n";
    const yaml = budget("maxUnavailable: 0") + kinds.Deployment + keda;

    expect(await remarks("pdb-blocks-forever", yaml)).toEqual([
      "error maxUnavailable 0 never allows a pod of Deployment default/web to be evicted",
    ]);
  });

  it("counts all workloads that it selects together", async () => {
    const pdb =
      "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b}, spec: {minAvailable: 1, selector: {matchLabels: {team: a}}}}\n---\n";
    const one = deployment({ name: "a", spec: "replicas: 1", labels: "team: a" });
    const two = deployment({ name: "b", spec: "replicas: 1", labels: "team: a" });

    expect(await remarks("pdb-blocks-forever", pdb + one)).toHaveLength(1);
    expect(await remarks("pdb-blocks-forever", `${pdb}${one}---\n${two}`)).toHaveLength(0);
  });

  it("depends on an autoscaler's lower bound", async () => {
    const hpa =
      "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {minReplicas: 3, scaleTargetRef: {kind: Deployment, name: web}}}\n---\n";

    expect(await remarks("single-replica", hpa + deployment({ spec: "paused: false" }))).toEqual(
      [],
    );
    expect(await remarks("single-replica", deployment({ spec: "paused: false" }))).toHaveLength(1);
  });

  it.each([
    { bound: "minReplicaCount: 3,", single: 0 },
    { bound: "minReplicaCount: 1,", single: 1 },
    { bound: "", single: 0 },
  ])("depends on a KEDA ScaledObject with {$bound}", async ({ bound, single }) => {
    const keda = `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: k}, spec: {${bound} scaleTargetRef: {name: web}}}\n---\n`;

    expect(
      await remarks("single-replica", keda + deployment({ spec: "paused: false" })),
    ).toHaveLength(single);
  });

  it.each([
    { term: "minAvailable: 1", bounds: "minReplicas: 1, maxReplicas: 5", says: "warning" },
    { term: "minAvailable: 5", bounds: "minReplicas: 1, maxReplicas: 5", says: "error" },
    { term: "minAvailable: 100%", bounds: "minReplicas: 1, maxReplicas: 5", says: "error" },
    { term: "maxUnavailable: 0", bounds: "minReplicas: 1, maxReplicas: 5", says: "error" },
    { term: "minAvailable: 1", bounds: "maxReplicas: 1", says: "error" },
    { term: "minAvailable: 1", bounds: "minReplicas: 2, maxReplicas: 5", says: undefined },
  ])("$term under an autoscaler with {$bounds}: $says", async ({ term, bounds, says }) => {
    const hpa = `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {${bounds}, scaleTargetRef: {kind: Deployment, name: web}}}\n---\n`;
    const pdb = `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b}, spec: {${term}, selector: {matchLabels: {app: web}}}}\n---\n`;
    const found = await remarks(
      "pdb-blocks-forever",
      hpa + pdb + deployment({ spec: "paused: false" }),
    );

    expect(found[0]?.split(" ")[0]).toBe(says);
  });

  it("does not apply to another namespace", async () => {
    const pdb = (namespace: string) =>
      `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: ${namespace}}, spec: {maxUnavailable: 1, selector: {}}}\n---\n`;

    expect(await remarks("pdb-missing", pdb("other") + deployment({}))).toHaveLength(1);
    expect(await remarks("pdb-missing", pdb("default") + deployment({}))).toHaveLength(0);
  });
});
