import { expect, it } from "vitest";
import { remarks } from "./support/rule-remarks.ts";

const containers = "containers: [{name: main, image: main}]";
const job = (pod: string, metadata = "") =>
  `{apiVersion: batch/v1, kind: Job, metadata: {name: train, namespace: ml}, spec: {parallelism: 4, template: {metadata: {${metadata}}, spec: {restartPolicy: Never, ${pod} ${containers}}}}}\n`;
const workers = (hosts: string, pod = "") =>
  `workerGroupSpecs: [{groupName: tpu, ${hosts} template: {spec: {${pod} ${containers}}}}]`;
const ray = (kind: string, spec: string) =>
  `{apiVersion: ray.io/v1, kind: ${kind}, metadata: {name: llm, namespace: ml}, spec: {${spec}}}\n`;
const stable = "nodeSelector: {cloud.google.com/gke-provisioning: standard},";
const queued =
  "autoscaling.x-k8s.io/provisioning-class-name: queued-provisioning.gke.io, autoscaling.x-k8s.io/consume-provisioning-request: r1";

it.each([
  [
    "a pod group of Kubernetes' workload API",
    job("schedulingGroup: {podGroupName: pg1},"),
    "pod group ml/pg1",
  ],
  [
    "the same in Kubernetes 1.35",
    job("workloadRef: {name: w1, podGroup: workers},"),
    "pod group ml/w1/workers",
  ],
  [
    "a replica of it",
    job("workloadRef: {name: w1, podGroup: workers, podGroupReplicaKey: r2},"),
    "pod group ml/w1/workers/r2",
  ],
  [
    "pods of a provisioning request",
    job("", `annotations: {${queued}}`),
    "provisioning request ml/r1",
  ],
  [
    "pods of a provisioning request by the deprecated annotations",
    job(
      "",
      `annotations: {${queued.replaceAll("autoscaling.x-k8s.io", "cluster-autoscaler.kubernetes.io")}}`,
    ),
    "provisioning request ml/r1",
  ],
  [
    "a RayCluster with several hosts",
    ray("RayCluster", workers("numOfHosts: 4,")),
    "RayCluster ml/llm",
  ],
  [
    "a Volcano Job",
    `{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: mpi, namespace: ml}, spec: {tasks: [{template: {spec: {${containers}}}}, {replicas: 2, template: {spec: {${containers}}}}]}}\n`,
    "Job ml/mpi",
  ],
  [
    "a training job with a pod for each of two roles",
    `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: ddp, namespace: ml}, spec: {pytorchReplicaSpecs: {Master: {template: {spec: {${containers}}}}, Worker: {replicas: 1, template: {spec: {${containers}}}}}}}\n`,
    "PyTorchJob ml/ddp",
  ],
  [
    "a pod group that only an annotation shows",
    job("", "annotations: {scheduling.volcano.sh/group-name: pg1}"),
    "pod group ml/pg1",
  ],
  ["a RayJob", ray("RayJob", `rayClusterSpec: {${workers("numOfHosts: 2,")}}`), "RayJob ml/llm"],
  [
    "a RayService",
    ray("RayService", `rayClusterConfig: {${workers("numOfHosts: 2,")}}`),
    "RayService ml/llm",
  ],
])("%s that may run on Spot nodes is reported", async (_, yaml, name) => {
  expect(await remarks("gang-on-spot", yaml)).toEqual([
    `warning Ends as a whole (${name}) when one of its nodes leaves, and may be placed on Spot nodes`,
  ]);
});

const volcano = (spec: string, tasks = "policies: []") =>
  `{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: mpi, namespace: ml}, spec: {${spec} tasks: [{replicas: 4, ${tasks}, template: {spec: {${containers}}}}]}}\n`;
const volcanoPods =
  "---\n{apiVersion: v1, kind: Pod, metadata: {name: mpi-0, namespace: ml, labels: {volcano.sh/job-name: mpi}, ownerReferences: [{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: mpi, controller: true}]}, spec: {containers: []}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: mpi-1, namespace: ml, labels: {volcano.sh/job-name: mpi}, ownerReferences: [{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: mpi, controller: true}]}, spec: {containers: []}}\n";
const pytorch = (policy: string, run = "") =>
  `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: ddp, namespace: ml}, spec: {${policy} pytorchReplicaSpecs: {Worker: {replicas: 4, template: {spec: {containers: [{name: pytorch, ${run}}]}}}}}}\n`;
const trainJob = (spec: string, runtimeKind = "ClusterTrainingRuntime") =>
  `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: llm, namespace: ml}, spec: {runtimeRef: {name: torch, kind: ${runtimeKind}}, ${spec}}}\n`;
const runtime = (policy: string, pod = "", kind = "ClusterTrainingRuntime", namespace = "") =>
  `---\n{apiVersion: trainer.kubeflow.org/v1alpha1, kind: ${kind}, metadata: {name: torch, ${namespace}}, spec: {mlPolicy: {${policy}}, template: {spec: {replicatedJobs: [{name: init, template: {spec: {template: {spec: {containers: []}}}}}, {name: node, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {${pod} containers: [{name: node}]}}}}}]}}}}\n`;
const patch = (job: string) =>
  `trainer: {numNodes: 4}, runtimePatches: [{manager: me, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: ${job}, template: {spec: {template: {spec: {${stable}}}}}}]}}}}]`;
const override = (list: string, pod: string) =>
  `trainer: {numNodes: 4}, ${list}: [{targetJobs: [{name: node}], ${pod}}]`;
const trainJobSet = job("")
  .replace("apiVersion: batch/v1, kind: Job", "apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet")
  .replace(
    /spec: {parallelism.*/,
    `spec: {replicatedJobs: [{name: node, replicas: 4, template: {spec: {template: {spec: {${containers}}}}}}]}}\n`,
  )
  .replace(
    "name: train,",
    "name: llm, ownerReferences: [{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, name: llm, controller: true}],",
  );

it.each([
  ["that needs two of its pods", volcano("minAvailable: 2,"), "Job ml/mpi"],
  ["that says nothing about that", volcano("minAvailable: 0,"), "Job ml/mpi"],
  [
    "that is restarted if a pod is evicted",
    volcano("minAvailable: 1, policies: [{event: PodEvicted, action: RestartJob}],"),
    "Job ml/mpi",
  ],
  [
    "that is aborted on any event",
    volcano("minAvailable: 1, policies: [{events: ['*'], action: AbortJob}],"),
    "Job ml/mpi",
  ],
  [
    "whose task is restarted",
    volcano("minAvailable: 1,", "policies: [{event: PodFailed, action: RestartTask}]"),
    "Job ml/mpi",
  ],
  [
    "that is terminated by an exit code",
    volcano("minAvailable: 1, policies: [{exitCode: 137, action: TerminateJob}],"),
    "Job ml/mpi",
  ],
  ["with its pods", volcano("") + volcanoPods, "Job ml/mpi"],
  [
    "with a range of one",
    pytorch("elasticPolicy: {minReplicas: 4, maxReplicas: 4},"),
    "PyTorchJob ml/ddp",
  ],
  [
    "with one limit, which is both",
    pytorch("elasticPolicy: {minReplicas: 2},"),
    "PyTorchJob ml/ddp",
  ],
  ["with no limit", pytorch("elasticPolicy: {rdzvBackend: c10d},"), "PyTorchJob ml/ddp"],
  ["whose runtime is unknown", trainJob("trainer: {numNodes: 4}"), "TrainJob ml/llm"],
  ["with the nodes of its runtime", trainJob("") + runtime("numNodes: 4"), "TrainJob ml/llm"],
  [
    "with the nodes of its namespace's runtime",
    trainJob("", "TrainingRuntime") +
      runtime("numNodes: 4", "", "TrainingRuntime", "namespace: ml"),
    "TrainJob ml/llm",
  ],
  // The operator sets the number, and ignores the policy.
  [
    "of an elastic runtime, with a number of its own",
    trainJob("trainer: {numNodes: 4}") +
      runtime("torch: {elasticPolicy: {minNodes: 1, maxNodes: 4}}"),
    "TrainJob ml/llm",
  ],
  ["of which another job is elsewhere", trainJob(patch("init")), "TrainJob ml/llm"],
  [
    "with its JobSet",
    `${trainJobSet}---\n${trainJob("trainer: {numNodes: 4}")}`,
    "TrainJob ml/llm",
  ],
])("a workload %s is reported once", async (_, yaml, name) => {
  expect(await remarks("gang-on-spot", yaml)).toEqual([
    `warning Ends as a whole (${name}) when one of its nodes leaves, and may be placed on Spot nodes`,
  ]);
});

it.each([
  ["that needs one pod", volcano("minAvailable: 1,")],
  ["that needs one pod, with its pods", volcano("minAvailable: 1,") + volcanoPods],
  [
    "that ends when a task is complete",
    volcano("minAvailable: 1,", "policies: [{event: TaskCompleted, action: CompleteJob}]"),
  ],
  [
    "that restarts only the pod that failed",
    volcano("minAvailable: 1, policies: [{events: [PodFailed, PodEvicted], action: RestartPod}],"),
  ],
  ["that may be smaller", pytorch("elasticPolicy: {minReplicas: 1, maxReplicas: 4},")],
  ["that torchrun may make smaller", pytorch("", "command: [torchrun, '--nnodes=2:4', t.py]")],
  [
    "of a JobSet that is elastic",
    trainJobSet.replace("image: main}", "env: [{name: PET_NNODES, value: '1:4'}]}"),
  ],
  [
    "of pods that are elastic",
    job("", "labels: {training.kubeflow.org/job-name: ddp}").replace(
      "image: main}",
      "env: [{name: PET_NNODES, value: '1:4'}]}",
    ),
  ],
  ["of one node by default", trainJob("") + runtime("torch: {numProcPerNode: auto}")],
  ["of one node by its own", trainJob("trainer: {numNodes: 1}") + runtime("numNodes: 4")],
  [
    "whose runtime is in another namespace",
    trainJob("", "TrainingRuntime") + runtime("numNodes: 4", "", "TrainingRuntime", "namespace: x"),
  ],
  [
    "whose runtime is on stable nodes",
    trainJob("trainer: {numNodes: 4}") + runtime("numNodes: 4", stable),
  ],
  ["that is patched to be on stable nodes", trainJob(patch("node")) + runtime("numNodes: 4")],
  [
    "that overrides the pod templates",
    trainJob(override("podTemplateOverrides", `spec: {${stable}}`)),
  ],
  ["that overrides the pod specs", trainJob(override("podSpecOverrides", stable))],
])("no workload %s is reported", async (_, yaml) => {
  expect(await remarks("gang-on-spot", yaml)).toEqual([]);
});

const lws = (policy: string) =>
  `{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: llm, namespace: ml}, spec: {leaderWorkerTemplate: {${policy} size: 4, workerTemplate: {spec: {${containers}}}}}}\n`;
const lwsPods =
  "---\n{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: llm-0, namespace: ml}, spec: {replicas: 3, template: {metadata: {labels: {leaderworkerset.sigs.k8s.io/name: llm}, annotations: {leaderworkerset.sigs.k8s.io/size: '4'}}, spec: {containers: []}}}}\n";
const one = (yaml: string, name = "train") =>
  yaml.replace("parallelism: 4", "parallelism: 1").replace("name: train", `name: ${name}`);
const grouped = job("", "labels: {scheduling.x-k8s.io/pod-group: pg1}");
const podGroup = (group: string, spec: string) =>
  `---\n{apiVersion: ${group}, kind: PodGroup, metadata: {name: pg1, namespace: ml}, spec: {${spec}}}\n`;
const kueue = (count: number) =>
  `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ml, labels: {kueue.x-k8s.io/pod-group-name: pg1}, annotations: {kueue.x-k8s.io/pod-group-total-count: "${count}"}}, spec: {${containers}}}\n`;

it.each([
  ["a LeaderWorkerSet", lws(""), "LeaderWorkerSet ml/llm"],
  [
    "one that creates a group again after its start",
    lws("restartPolicy: RecreateGroupAfterStart,"),
    "LeaderWorkerSet ml/llm",
  ],
  [
    "one of which only the leader may be there",
    lws("leaderTemplate: {spec: {containers: []}},").replace(
      "workerTemplate: {spec: {",
      `workerTemplate: {spec: {${stable} `,
    ),
    "LeaderWorkerSet ml/llm",
  ],
  ["one of which only the pods are there", lwsPods.slice(4), "LeaderWorkerSet ml/llm"],
  ["a group of two Jobs", `${one(grouped)}---\n${one(grouped, "other")}`, "pod group ml/pg1"],
  ["a group of two pods, of which one is there", kueue(2), "pod group ml/pg1"],
  [
    "a group that needs two pods, of which one is there",
    one(grouped) + podGroup("scheduling.x-k8s.io/v1alpha1", "minMember: 2"),
    "pod group ml/pg1",
  ],
])("%s is reported by the number of pods that end together", async (_, yaml, name) => {
  expect(await remarks("gang-on-spot", yaml)).toEqual([
    `warning Ends as a whole (${name}) when one of its nodes leaves, and may be placed on Spot nodes`,
  ]);
});

it.each([
  ["that creates only the pod that failed again", lws("restartPolicy: None,")],
  ["of the same kind with its pods", lws("restartPolicy: None,") + lwsPods],
  ["of the same kind without a replica", lws("").replace("spec: {", "spec: {replicas: 0, ")],
  [
    "that completes with one pod",
    `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: j}, spec: {replicatedJobs: [{name: w, template: {spec: {parallelism: 4, completions: 1, template: {spec: {${containers}}}}}}]}}\n`,
  ],
  ["of one pod, although it names a group", one(grouped)],
  ["of one pod, twice in the input", `${one(grouped)}---\n${one(grouped)}`],
  ["that is a group of one pod to Kueue", kueue(1)],
  ["whose group needs one pod", grouped + podGroup("scheduling.x-k8s.io/v1alpha1", "minMember: 1")],
  [
    "whose group is only a label to the scheduler",
    job("schedulingGroup: {podGroupName: pg1},") +
      podGroup("scheduling.k8s.io/v1beta1", "schedulingPolicy: {basic: {}}"),
  ],
  ["whose workers are on one host each", ray("RayCluster", workers(""))],
  [
    "of one training pod",
    `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: ddp, namespace: ml}, spec: {pytorchReplicaSpecs: {Master: {template: {spec: {${containers}}}}}}}\n`,
  ],
  ["on stable nodes", ray("RayCluster", workers("numOfHosts: 4,", stable))],
  [
    "of another group named alike",
    ray("RayCluster", workers("numOfHosts: 4,")).replace("ray.io", "x.io"),
  ],
  [
    "that only waits for capacity, and is not provisioned at once",
    job("", `annotations: {${queued.replace("queued-provisioning.gke.io", "check-capacity.x")}}`),
  ],
])("no workload %s is reported", async (_, yaml) => {
  expect(await remarks("gang-on-spot", yaml)).toEqual([]);
});
