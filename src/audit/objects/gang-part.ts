import { isElastic } from "../../core/cluster/gang.ts";
import { type GangObjectKind, gangObjectKinds } from "../../core/cluster/gang-object.ts";
import {
  type Fields,
  fieldsOf,
  listOf,
  textOf,
  valueAt,
  wholeNumberOf,
} from "../../core/json/json-field.ts";
import type { Manifest } from "./manifest.ts";

/** Pods of one template in an object whose pods end together. */
export interface GangPart {
  readonly template: unknown;
  readonly pods: number;
}

type PartReader = (manifest: Manifest, manifests: readonly Manifest[]) => readonly GangPart[];

/** What reads the parts of a kind that ends as a whole, by `Kind.group`. */
const partReaders: Readonly<Record<string, PartReader>> = {
  "JobSet.jobset.x-k8s.io": ({ json }) => inelastic(jobSetParts(valueAt(json, ["spec"]))),
  "LeaderWorkerSet.leaderworkerset.x-k8s.io": leaderWorkerParts,
  "Job.batch.volcano.sh": (manifest) =>
    looseKindOf(manifest) ? [] : inelastic(volcanoParts(manifest)),
  "MPIJob.kubeflow.org": trainingParts,
  "PyTorchJob.kubeflow.org": trainingParts,
  "TFJob.kubeflow.org": trainingParts,
  "XGBoostJob.kubeflow.org": trainingParts,
  "PaddleJob.kubeflow.org": trainingParts,
  "JAXJob.kubeflow.org": trainingParts,
  "TrainJob.trainer.kubeflow.org": trainJobParts,
  "RayCluster.ray.io": ({ json }) => rayParts(json, ["spec"]),
  "RayJob.ray.io": ({ json }) => rayParts(json, ["spec", "rayClusterSpec"]),
  "RayService.ray.io": ({ json }) => rayParts(json, ["spec", "rayClusterConfig"]),
};

/** The pods of an object that end together; none if it is of another kind, or goes on. */
export const gangPartsOf: PartReader = (manifest, manifests) =>
  partReaders[`${manifest.kind}.${manifest.group}`]?.(manifest, manifests) ?? [];

/**
 * The name of the gang whose pods do not end together, whatever their marks say; undefined if
 * the object does not say so.
 */
export function looseGangOf(manifest: Manifest): string | undefined {
  const { namespace, name } = manifest;
  const loose = looseKindOf(manifest);
  return loose && `${loose.workload} ${namespace}/${name}`;
}

/** The kind of an object that says that its other pods stay as they are if one of them is lost. */
function looseKindOf({ kind, group, json }: Manifest): GangObjectKind | undefined {
  const found = gangObjectKinds.find((one) => one.kind === kind && one.group === group);
  return found?.goesOn(fieldsOf(valueAt(json, ["spec"]))) ? found : undefined;
}

/** Without the pods that torchrun launches with a range of nodes. */
function inelastic(parts: readonly GangPart[]): readonly GangPart[] {
  return parts.filter(({ template }) => !isElastic(fieldsOf(valueAt(template, ["spec"]))));
}

/** Source: jobset `api/jobset/v1alpha2/jobset_types.go`; the numbers default to 1. */
function jobSetParts(spec: unknown): readonly GangPart[] {
  return listOf(valueAt(spec, ["replicatedJobs"])).map((one) => {
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
  if (looseKindOf(manifest) || wholeNumberOf(spec.replicas) === 0) return [];
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
 * `pytorchReplicaSpecs`; a role has one pod if unset. If `elasticPolicy` has one limit, that is
 * both (`pytorch_defaults.go`, setElasticPolicy).
 */
function trainingParts({ json }: Manifest): readonly GangPart[] {
  const spec = fieldsOf(valueAt(json, ["spec"]));
  const { minReplicas, maxReplicas } = fieldsOf(spec.elasticPolicy);
  if (Number(wholeNumberOf(minReplicas)) < Number(wholeNumberOf(maxReplicas))) return [];
  const roles = Object.entries(spec).filter(([name]) => name.endsWith("ReplicaSpecs"));
  const parts = roles.flatMap(([, role]) =>
    Object.values(fieldsOf(role)).map((one) => {
      const pods = wholeNumberOf(valueAt(one, ["replicas"])) ?? 1;
      return { template: valueAt(one, ["template"]), pods };
    }),
  );
  return inelastic(parts);
}

/** The name of the job of a runtime that trains, and the label of one with another name. */
const trainerJob = "node";
const step = "trainer.kubeflow.org/trainjob-ancestor-step";

/**
 * Kubeflow Trainer creates a JobSet of the runtime that the TrainJob names, with `numNodes` pods in
 * the job that trains. A runtime is usually in the cluster only: then the TrainJob alone says how
 * many pods there are. The elastic policy of a runtime has no effect yet. Source: trainer
 * `pkg/apis/trainer/v1alpha1` and `pkg/runtime/framework/plugins/torch/torch.go`, EnforceMLPolicy.
 */
function trainJobParts(manifest: Manifest, manifests: readonly Manifest[]): readonly GangPart[] {
  const spec = fieldsOf(valueAt(manifest.json, ["spec"]));
  const runtime = runtimeOf(manifest, manifests);
  const written =
    valueAt(spec, ["trainer", "numNodes"]) ?? valueAt(runtime, ["mlPolicy", "numNodes"]);
  const pods = wholeNumberOf(written) ?? 1;
  const jobs = listOf(valueAt(runtime, ["template", "spec", "replicatedJobs"]));
  const trainer = jobs.find((one) => {
    const labels = fieldsOf(valueAt(one, ["template", "metadata", "labels"]));
    return labels[step] === "trainer" || fieldsOf(one).name === trainerJob;
  });
  const template = fieldsOf(valueAt(trainer, ["template", "spec", "template"]));
  const patches = podPatches(spec, textOf(fieldsOf(trainer).name) ?? trainerJob);
  const placed: Fields = Object.assign({}, template.spec, ...patches);
  return inelastic([{ template: { ...template, spec: placed }, pods }]);
}

/** What a TrainJob changes of a job's pods: `runtimePatches`, and the fields before those. */
function podPatches(spec: Fields, job: string): readonly Fields[] {
  const { podSpecOverrides, podTemplateOverrides, runtimePatches } = spec;
  const former = [...listOf(podTemplateOverrides), ...listOf(podSpecOverrides)].map(fieldsOf);
  const ofJob = former.filter(({ targetJobs }) => {
    const names = listOf(targetJobs).map((one) => fieldsOf(one).name);
    return names.length === 0 || names.includes(job);
  });
  const jobsPath = ["trainingRuntimeSpec", "template", "spec", "replicatedJobs"];
  const patched = listOf(runtimePatches)
    .flatMap((one) => listOf(valueAt(one, jobsPath)))
    .filter((one) => fieldsOf(one).name === job)
    .map((one) => valueAt(one, ["template", "spec", "template", "spec"]));
  return [...ofJob.map((one) => one.spec ?? one), ...patched].map(fieldsOf);
}

/** The spec of the runtime that a TrainJob names, if it is in the input. */
function runtimeOf({ json, namespace }: Manifest, manifests: readonly Manifest[]): unknown {
  const { name, kind: written } = fieldsOf(valueAt(json, ["spec", "runtimeRef"]));
  const kind = textOf(written) ?? "ClusterTrainingRuntime";
  const found = manifests.find(
    (one) =>
      one.kind === kind &&
      one.name === name &&
      (kind !== "TrainingRuntime" || one.namespace === namespace),
  );
  return valueAt(found?.json, ["spec"]);
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
