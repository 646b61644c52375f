/** Workloads on several nodes that end as a whole. */
import { gangOf } from "../../core/cluster/gang.ts";
import { fieldsOf, listOf, valueAt, wholeNumberOf } from "../../core/json/json-field.ts";
import { type AuditedFleet, landingOf, mostReplicasOf } from "../fleet.ts";
import type { Manifest } from "../objects/manifest.ts";
import { readPodTemplate } from "../objects/pod-template.ts";
import { namesSpot } from "../objects/spot-scope.ts";
import { identityOf, type Workload } from "../objects/workload.ts";
import { type Remark, type Rule, spotWorkloads } from "../report.ts";

export const gangOnSpot: Rule = {
  id: "gang-on-spot",
  severity: "warning",
  title: "a workload on several nodes that ends as a whole can land on Spot nodes",
  why: "The pods of a JobSet, of a group of a LeaderWorkerSet, of a pod group (Kueue, coscheduling, Volcano, Koordinator, Kubernetes' workload API), of a Volcano Job, of a YuniKorn application with task groups, of a training job, of Ray workers with several hosts, of a Grove PodGang or of GKE's queued provisioning work together: if one of their nodes leaves, all of them end or start over. Each node is another chance of an interruption, so one that runs on sixteen Spot nodes is interrupted sixteen times as often as one that runs on one. Lastcall does not rotate such nodes one by one (gates.gangWorkloads of the policy), but the cloud takes them one by one.",
  fix: "Write checkpoints often, keep it on stable nodes by a node selector or required node affinity, or use capacity that is provisioned and ended as a whole.",
  whenNotToUse:
    "The workload tolerates the loss of single pods (elastic training), or its pods share one node. A LeaderWorkerSet with restartPolicy None, and a group that needs one pod, are not reported.",
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
  for (const [name, members] of markedGangs(fleet)) {
    if (podsOf(fleet, members) > 1) add(name, members[0]?.workload);
  }
  return [...remarks.values()];
}

interface GangMember {
  readonly workload: Workload;
  /** The number of pods that end together, if an object or the pods themselves say it. */
  readonly pods: number | undefined;
}

/** What the marks of pods name. */
function markedGangs(fleet: AuditedFleet): ReadonlyMap<string, readonly GangMember[]> {
  const declared = declaredSizes(fleet);
  const found = new Map<string, GangMember[]>();
  for (const workload of spotWorkloads(fleet)) {
    const { labels, annotations, schedulingGroup } = workload.template;
    const { namespace } = workload;
    const gang = gangOf({ namespace, labels, annotations, schedulingGroup });
    if (gang === undefined) continue;
    const name = gang.name.replace(/ group \d+$/, "");
    const member = { workload, pods: declared.get(name) ?? gang.pods };
    found.set(name, [...(found.get(name) ?? []), member]);
  }
  return found;
}

/** Without a statement, the pods in the input; an unknown number counts as several. */
function podsOf(fleet: AuditedFleet, members: readonly GangMember[]): number {
  const said = members.find(({ pods }) => pods !== undefined)?.pods;
  const distinct = new Map(members.map(({ workload }) => [identityOf(workload), workload]));
  const count = (sum: number, one: Workload) => sum + (mostReplicasOf(fleet, one) ?? 2);
  return said ?? distinct.values().reduce(count, 0);
}

/**
 * How many pods at a time the objects of the input say that a group needs. Sources: the fields
 * `PodGroup.spec.minMember` of scheduler-plugins and volcano; kubernetes api scheduling/v1beta1,
 * whose basic policy schedules each pod alone; lws docs, "Failure Handling": with the policy None,
 * only the pods of the node that failed are created again.
 */
function declaredSizes({ manifests }: AuditedFleet): ReadonlyMap<string, number> {
  const sizes = manifests.flatMap((manifest): readonly (readonly [string, number])[] => {
    const { kind, namespace, name, json } = manifest;
    if (kind === "LeaderWorkerSet" && keepsGroups(manifest)) {
      return [[`${kind} ${namespace}/${name}`, 1]];
    }
    if (kind !== "PodGroup") return [];
    const spec = fieldsOf(valueAt(json, ["spec"]));
    const policy = fieldsOf(spec.schedulingPolicy);
    const needed = spec.minMember ?? valueAt(policy.gang, ["minCount"]);
    const size = "basic" in policy ? 1 : wholeNumberOf(needed);
    return size === undefined ? [] : [[`pod group ${namespace}/${name}`, size]];
  });
  return new Map(sizes);
}

/** Whether the other pods of a group stay as they are if one of them fails. */
function keepsGroups({ json }: Manifest): boolean {
  return valueAt(json, ["spec", "leaderWorkerTemplate", "restartPolicy"]) === "None";
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
  const lands = parts.some((part) => {
    const pod = readPodTemplate(part.template);
    const isMeant = scope === "Possible" || namesSpot(pod);
    return part.pods > 0 && isMeant && landingOf(pod) !== "Never";
  });
  return pods > 1 && lands ? `${kind} ${namespace}/${name}` : undefined;
}

interface GangPart {
  readonly template: unknown;
  readonly pods: number;
}

/** Source: jobset `api/jobset/v1alpha2/jobset_types.go`; the numbers default to 1. */
function jobSetParts({ json }: Manifest): readonly GangPart[] {
  return listOf(valueAt(json, ["spec", "replicatedJobs"])).map((one) => {
    const replicas = wholeNumberOf(valueAt(one, ["replicas"])) ?? 1;
    const { template, ...job } = fieldsOf(valueAt(one, ["template", "spec"]));
    const parallelism = wholeNumberOf(job.parallelism) ?? 1;
    const completions = wholeNumberOf(job.completions) ?? parallelism;
    return { template, pods: replicas * Math.min(parallelism, completions) };
  });
}

/**
 * Of one group. Source: lws `api/leaderworkerset/v1/leaderworkerset_types.go`; it has one pod if
 * unset, which is the leader.
 */
function leaderWorkerParts(manifest: Manifest): readonly GangPart[] {
  const spec = fieldsOf(valueAt(manifest.json, ["spec"]));
  if (keepsGroups(manifest) || wholeNumberOf(spec.replicas) === 0) return [];
  const group = fieldsOf(spec.leaderWorkerTemplate);
  const { leaderTemplate, workerTemplate } = group;
  const size = wholeNumberOf(group.size) ?? 1;
  const leader = { template: leaderTemplate ?? workerTemplate, pods: 1 };
  return [leader, { template: workerTemplate, pods: size - 1 }];
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
