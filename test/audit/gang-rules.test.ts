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
