/** Workloads on several nodes that end as a whole. */
import { gangOf } from "../../core/cluster/gang.ts";
import { fieldsOf, listOf, valueAt, wholeNumberOf } from "../../core/json/json-field.ts";
import { type AuditedFleet, landingOf } from "../fleet.ts";
import type { Manifest } from "../objects/manifest.ts";
import { readPodTemplate } from "../objects/pod-template.ts";
import { namesSpot } from "../objects/spot-scope.ts";
import { type Remark, type Rule, spotWorkloads } from "../report.ts";

export const gangOnSpot: Rule = {
  id: "gang-on-spot",
  severity: "warning",
  title: "a workload on several nodes that ends as a whole can land on Spot nodes",
  why: "The pods of a JobSet, of a group of a LeaderWorkerSet, of a pod group (Kueue, coscheduling, Volcano, Koordinator, Kubernetes' workload API), of a Volcano Job, of a YuniKorn application with task groups, of a training job, of Ray workers with several hosts, of a Grove PodGang or of GKE's queued provisioning work together: if one of their nodes leaves, all of them end or start over. Each node is another chance of an interruption, so one that runs on sixteen Spot nodes is interrupted sixteen times as often as one that runs on one. Lastcall does not rotate such nodes one by one (gates.gangWorkloads of the policy), but the cloud takes them one by one.",
  fix: "Write checkpoints often, keep it on stable nodes by a node selector or required node affinity, or use capacity that is provisioned and ended as a whole.",
  whenNotToUse:
    "The workload tolerates the loss of single pods (elastic training), or its pods share one node.",
  bad: {
    yaml: `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
spec:
  replicatedJobs:
  - name: workers
    template:
      spec:
        parallelism: 4
        completions: 4
        template:
          spec:
            restartPolicy: Never
            containers: [{name: train, image: train}]
`,
  },
  good: {
    yaml: `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
spec:
  replicatedJobs:
  - name: workers
    template:
      spec:
        parallelism: 4
        completions: 4
        template:
          spec:
            restartPolicy: Never
            nodeSelector: {cloud.google.com/gke-provisioning: standard}
            containers: [{name: train, image: train}]
`,
  },
  check: checkGangOnSpot,
};

const fix =
  "Write checkpoints often, or keep it on stable nodes by a node selector or required node affinity";

/** One remark for each workload, however many of its objects are in the input. */
function checkGangOnSpot(fleet: AuditedFleet): readonly Remark[] {
  const remarks = new Map<string, Remark>();
  const add = (name: string, about: Remark["about"]): void => {
    const message = `Ends as a whole (${name}) when one of its nodes leaves, and may be placed on Spot nodes`;
    if (!remarks.has(name)) remarks.set(name, { severity: "warning", about, message, fix });
  };
  for (const manifest of fleet.manifests) {
    const name = ownName(manifest, fleet);
    if (name !== undefined) add(name, manifest);
  }
  for (const workload of spotWorkloads(fleet)) {
    const { labels, annotations, schedulingGroup } = workload.template;
    const { namespace } = workload;
    const name = gangOf({ namespace, labels, annotations, schedulingGroup })?.name;
    if (name !== undefined) add(name.replace(/ group \d+$/, ""), workload);
  }
  return [...remarks.values()];
}

/** What reads the parts of a kind that ends as a whole, by `Kind.group`. */
const partReaders: Readonly<Record<string, (manifest: Manifest) => readonly GangPart[]>> = {
  "JobSet.jobset.x-k8s.io": jobSetParts,
  "LeaderWorkerSet.leaderworkerset.x-k8s.io": leaderWorkerParts,
  "Job.batch.volcano.sh": volcanoParts,
  "MPIJob.kubeflow.org": trainingParts,
  "PyTorchJob.kubeflow.org": trainingParts,
  "TFJob.kubeflow.org": trainingParts,
  "XGBoostJob.kubeflow.org": trainingParts,
  "PaddleJob.kubeflow.org": trainingParts,
  "JAXJob.kubeflow.org": trainingParts,
  "RayCluster.ray.io": ({ json }) => rayParts(json, ["spec"]),
  "RayJob.ray.io": ({ json }) => rayParts(json, ["spec", "rayClusterSpec"]),
  "RayService.ray.io": ({ json }) => rayParts(json, ["spec", "rayClusterConfig"]),
};

/** The name of such an object with several pods that may land on Spot nodes. */
function ownName(manifest: Manifest, { scope }: AuditedFleet): string | undefined {
  const { kind, group, namespace, name } = manifest;
  const parts = partReaders[`${kind}.${group}`]?.(manifest) ?? [];
  const pods = parts.reduce((sum, part) => sum + part.pods, 0);
  const lands = parts.some(({ template }) => {
    const pod = readPodTemplate(template);
    return landingOf(pod) !== "Never" && (scope === "Possible" || namesSpot(pod));
  });
  return pods > 1 && lands ? `${kind} ${namespace}/${name}` : undefined;
}

interface GangPart {
  readonly template: unknown;
  readonly pods: number;
}

/** Source: jobset `api/jobset/v1alpha2/jobset_types.go`; both numbers default to 1. */
function jobSetParts({ json }: Manifest): readonly GangPart[] {
  return listOf(valueAt(json, ["spec", "replicatedJobs"])).map((one) => {
    const replicas = wholeNumberOf(valueAt(one, ["replicas"])) ?? 1;
    const parallelism = wholeNumberOf(valueAt(one, ["template", "spec", "parallelism"])) ?? 1;
    const template = valueAt(one, ["template", "spec", "template"]);
    return { template, pods: replicas * parallelism };
  });
}

/** Source: lws `api/leaderworkerset/v1/leaderworkerset_types.go`; a group has one pod if unset. */
function leaderWorkerParts({ json }: Manifest): readonly GangPart[] {
  const group = valueAt(json, ["spec", "leaderWorkerTemplate"]);
  const size = wholeNumberOf(valueAt(group, ["size"])) ?? 1;
  return [{ template: valueAt(group, ["workerTemplate"]), pods: size }];
}

/** Source: volcano `pkg/apis/batch/v1alpha1/job.go`; a task has one pod if unset. */
function volcanoParts({ json }: Manifest): readonly GangPart[] {
  return listOf(valueAt(json, ["spec", "tasks"])).map((one) => {
    const pods = wholeNumberOf(valueAt(one, ["replicas"])) ?? 1;
    return { template: valueAt(one, ["template"]), pods };
  });
}

/**
 * Source: training-operator `pkg/apis/kubeflow.org/v1`: each kind has its roles in a field such as
 * `pytorchReplicaSpecs`; a role has one pod if unset.
 */
function trainingParts({ json }: Manifest): readonly GangPart[] {
  const spec = Object.entries(fieldsOf(valueAt(json, ["spec"])));
  const roles = spec.filter(([name]) => name.endsWith("ReplicaSpecs"));
  return roles.flatMap(([, role]) =>
    Object.values(fieldsOf(role)).map((one) => {
      const pods = wholeNumberOf(valueAt(one, ["replicas"])) ?? 1;
      return { template: valueAt(one, ["template"]), pods };
    }),
  );
}

/**
 * Source: kuberay `ray-operator/apis/ray/v1/raycluster_types.go`; a replica of a worker group with
 * several hosts is one machine to Ray, such as a TPU slice. Others lose single workers.
 */
function rayParts(json: unknown, path: readonly string[]): readonly GangPart[] {
  return listOf(valueAt(json, [...path, "workerGroupSpecs"])).flatMap((one) => {
    const pods = wholeNumberOf(valueAt(one, ["numOfHosts"])) ?? 1;
    return pods > 1 ? [{ template: valueAt(one, ["template"]), pods }] : [];
  });
}
