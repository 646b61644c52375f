import type { NodeFacts } from "./node.ts";

/**
 * Workloads that run on several nodes and end as a whole if one of them leaves: the others cannot
 * go on without it. Rotating their nodes one after the other ends them once for each node.
 */

/** A pod as far as it shows which workload it is a part of. */
export interface GangPod {
  readonly node: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** The group of Kubernetes' workload API that its spec names, if that was read. */
  readonly schedulingGroup?: string | undefined;
}

interface GangKind {
  /** The label of its pods whose value names the workload in its namespace. */
  readonly label: string;
  readonly kind: string;
  /** A label with the part of the workload that ends as a whole, if that is not all of it. */
  readonly partLabel?: string;
}

/**
 * Sources: the label constants of jobset `api/jobset/v1alpha2`, lws `api/leaderworkerset/v1`, kueue
 * `pkg/controller/jobs/pod/constants`, scheduler-plugins `apis/scheduling/v1alpha1`, volcano
 * `pkg/apis/batch/v1alpha1`, training-operator `pkg/apis/kubeflow.org/v1`, grove
 * `operator/api/common` and kuberay `ray-operator/controllers/ray/utils`: KubeRay 1.5 and later
 * label the workers of a replica that has several hosts.
 */
const gangKinds: readonly GangKind[] = [
  { kind: "JobSet", label: "jobset.sigs.k8s.io/jobset-name" },
  {
    kind: "LeaderWorkerSet",
    label: "leaderworkerset.sigs.k8s.io/name",
    partLabel: "leaderworkerset.sigs.k8s.io/group-index",
  },
  { kind: "pod group", label: "kueue.x-k8s.io/pod-group-name" },
  { kind: "pod group", label: "scheduling.x-k8s.io/pod-group" },
  { kind: "pod group", label: "pod-group.scheduling.sigs.k8s.io" },
  { kind: "Volcano Job", label: "volcano.sh/job-name" },
  { kind: "training job", label: "training.kubeflow.org/job-name" },
  { kind: "Ray worker group replica", label: "ray.io/worker-group-replica-name" },
  { kind: "Grove PodGang", label: "grove.io/podgang" },
];

/** The labels of which the pods of such workloads have one. */
export const gangLabels: readonly string[] = gangKinds.map(({ label }) => label);

/** Kueue queues the pods of a Deployment as a group, too, which does not end with one of them. */
const servingAnnotation = "kueue.x-k8s.io/pod-group-serving";

/**
 * Pods that consume a ProvisioningRequest. Only with this class all of their nodes are provisioned
 * at once. Source: kubernetes autoscaler `cluster-autoscaler/apis/provisioningrequest` and
 * `provisioningrequest/pods`.
 */
const provisioningRequest = "autoscaling.x-k8s.io/consume-provisioning-request";
const provisioningClass = "autoscaling.x-k8s.io/provisioning-class-name";
const queuedProvisioning = "queued-provisioning.gke.io";

/** The deprecated name of either annotation, which the autoscaler reads as well. */
const formerPrefix = "cluster-autoscaler.kubernetes.io/";

function readProvisioning(annotations: GangPod["annotations"], key: string): string | undefined {
  return annotations[key] ?? annotations[key.replace(/^.*\//, formerPrefix)];
}

/** The name of the workload that a pod is a part of, such as `JobSet ml/train`. */
export function gangOf(pod: Omit<GangPod, "node">): string | undefined {
  const { namespace, labels, annotations, schedulingGroup } = pod;
  const found = gangKinds.find(({ label }) => labels[label] !== undefined);
  if (found === undefined) {
    if (schedulingGroup !== undefined) return `pod group ${namespace}/${schedulingGroup}`;
    const isQueued = readProvisioning(annotations, provisioningClass) === queuedProvisioning;
    const request = isQueued ? readProvisioning(annotations, provisioningRequest) : undefined;
    return request === undefined ? undefined : `provisioning request ${namespace}/${request}`;
  }
  const isServing = annotations[servingAnnotation] === "true";
  if (isServing && found.label === "kueue.x-k8s.io/pod-group-name") return undefined;
  const part = found.partLabel === undefined ? undefined : labels[found.partLabel];
  const name = `${found.kind} ${namespace}/${labels[found.label]}`;
  return part === undefined ? name : `${name} group ${part}`;
}

/** How many nodes a sentence names. */
const mostNodes = 3;

/**
 * The workload that the departure of each node would end elsewhere, with its nodes, by the node's
 * name. One that runs on a single node leaves with it, as any other does.
 */
export function gangsByNode(pods: readonly GangPod[]): ReadonlyMap<string, string> {
  const nodesOf = new Map<string, Set<string>>();
  for (const pod of pods) {
    const gang = gangOf(pod);
    if (gang === undefined) continue;
    const nodes = nodesOf.get(gang) ?? new Set();
    nodesOf.set(gang, nodes.add(pod.node));
  }
  const found = new Map<string, string>();
  for (const [gang, nodes] of nodesOf) {
    if (nodes.size < 2) continue;
    const text = `${gang} on ${nodesText([...nodes].sort())}`;
    for (const node of nodes) if (!found.has(node)) found.set(node, text);
  }
  return found;
}

function nodesText(nodes: readonly string[]): string {
  const more = nodes.length - mostNodes;
  const shown = nodes.slice(0, mostNodes).join(", ");
  return more > 0 ? `${shown} and ${more} more` : shown;
}

/**
 * The group of machines that a node's cloud created as one, and replaces as one; undefined if the
 * node stands for itself. GKE treats the hosts of a TPU slice as a unit: if one ends, it recreates
 * all of them (cloud.google.com/kubernetes-engine/docs/concepts/tpus, "Atomicity"). Queued
 * provisioning allocates all nodes of a workload at once, and none afterwards
 * (…/docs/how-to/provisioningrequest); its label names the resize request (GoogleCloudPlatform/
 * cluster-autoscaler, ProvisioningRequestLabelKey).
 */
export function sliceOf(node: Pick<NodeFacts, "labels" | "allocatable">): string | undefined {
  const { labels } = node;
  const pool = labels["cloud.google.com/gke-nodepool"] ?? "unknown";
  const topology = labels["cloud.google.com/gke-tpu-topology"];
  if (topology !== undefined && !isSingleHost(node, topology)) {
    return `the TPU slice ${topology} of node pool ${pool}`;
  }
  const request = labels["autoscaling.gke.io/provisioning-request"];
  if (request !== undefined) return `the provisioning request ${request} of node pool ${pool}`;
  const isQueued = labels["cloud.google.com/gke-queued"] === "true";
  return isQueued ? `the queued provisioning of node pool ${pool}` : undefined;
}

/** Whether all chips of the topology are on this host. What cannot be read counts as several. */
function isSingleHost(
  { labels, allocatable }: Pick<NodeFacts, "labels" | "allocatable">,
  topology: string,
): boolean {
  const inSlice = topology.split("x").reduce((product, side) => product * Number(side), 1);
  const onHost = labels["cloud.google.com/gke-accelerator-count"];
  return inSlice <= Number(onHost ?? allocatable?.["google.com/tpu"]);
}
