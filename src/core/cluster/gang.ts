import {
  type Fields,
  fieldsOf,
  listOf,
  textListOf,
  textOf,
  wholeNumberOf,
} from "../json/json-field.ts";
import {
  coschedulingPodGroup,
  type GangObjectKind,
  leaderWorkerSet,
  volcanoJob,
  volcanoPodGroup,
} from "./gang-object.ts";

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
  /** Whether it goes on without some of the others; see `isElastic`. */
  readonly isElastic?: boolean;
}

/** How the pods of one kind of such workloads are recognized. */
interface GangKind {
  readonly kind: string;
  /** The label of its pods whose value names the workload in its namespace. */
  readonly label?: string;
  /** The annotation instead. The API cannot select pods by it. */
  readonly annotation?: string;
  /** A label with the part of the workload that ends as a whole, if that is not all of it. */
  readonly partLabel?: string;
  /** Annotations with the number of its pods, the first that is set. */
  readonly sizeBy?: readonly string[];
  /** Marks with the name of the whole, where the value only names a part of it. */
  readonly wholeBy?: readonly string[];
  /** Whether the mark is on pods that do not end together as well, as on this one. */
  readonly isLoose?: (name: string, pod: Omit<GangPod, "node">) => boolean;
  /** Its controller ends the other pods if one is lost, also those that are elastic. */
  readonly endsElastic?: true;
  /** The kind of the object of the mark's name that says whether its pods end together. */
  readonly object?: GangObjectKind;
}

/**
 * The first that matches names the workload: what says most about which pods end together is first.
 *
 * Sources: the label constants of jobset `api/jobset/v1alpha2`, lws `api/leaderworkerset/v1`, kueue
 * `pkg/controller/jobs/pod/constants`, scheduler-plugins `apis/scheduling/v1alpha1`, volcano
 * `pkg/apis/batch/v1alpha1` and `pkg/apis/scheduling/v1beta1`, training-operator
 * `pkg/apis/kubeflow.org/v1`, grove `operator/api/common`, kuberay
 * `ray-operator/controllers/ray/utils` (1.5 and later label the workers of a replica that has
 * several hosts), yunikorn-k8shim `pkg/common/constants`, koordinator `apis/extension` and armada
 * `internal/scheduler/configuration`.
 */
const gangKinds: readonly GangKind[] = [
  { kind: "JobSet", label: "jobset.sigs.k8s.io/jobset-name" },
  {
    kind: "LeaderWorkerSet",
    label: "leaderworkerset.sigs.k8s.io/name",
    partLabel: "leaderworkerset.sigs.k8s.io/group-index",
    sizeBy: ["leaderworkerset.sigs.k8s.io/size"],
    endsElastic: true,
    object: leaderWorkerSet,
  },
  {
    kind: "pod group",
    label: "kueue.x-k8s.io/pod-group-name",
    sizeBy: ["kueue.x-k8s.io/pod-group-total-count"],
    // Kueue queues the pods of a Deployment as a group, too.
    isLoose: (_, { annotations }) => annotations["kueue.x-k8s.io/pod-group-serving"] === "true",
  },
  { kind: "pod group", label: "scheduling.x-k8s.io/pod-group", object: coschedulingPodGroup },
  { kind: "pod group", label: "pod-group.scheduling.sigs.k8s.io" },
  { kind: "Volcano Job", label: "volcano.sh/job-name", object: volcanoJob },
  { kind: "training job", label: "training.kubeflow.org/job-name" },
  { kind: "Ray worker group replica", label: "ray.io/worker-group-replica-name" },
  { kind: "Grove PodGang", label: "grove.io/podgang", endsElastic: true },
  ...["scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"].map(
    (annotation): GangKind => ({
      ...{ kind: "pod group", annotation, isLoose: isOwnersGroup, object: volcanoPodGroup },
    }),
  ),
  {
    kind: "YuniKorn application",
    annotation: "yunikorn.apache.org/task-group-name",
    // In the order in which YuniKorn reads them.
    wholeBy: ["yunikorn.apache.org/app-id", "applicationId", "spark-app-selector"],
  },
  {
    kind: "pod group",
    annotation: "gang.scheduling.koordinator.sh/name",
    // The first is by default the second, which is mandatory.
    sizeBy: [
      "gang.scheduling.koordinator.sh/total-number",
      "gang.scheduling.koordinator.sh/min-available",
    ],
  },
  {
    kind: "Armada gang",
    annotation: "armadaproject.io/gangId",
    sizeBy: ["armadaproject.io/gangCardinality"],
  },
];

/**
 * Volcano writes the annotation of a group on every pod that it schedules. The group that it makes
 * for the pods of one owner is named by the owner's uid, and needs one pod by default (volcano
 * `pkg/controllers/podgroup`, GeneratePodgroupName).
 */
function isOwnersGroup(name: string): boolean {
  return /^podgroup-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(name);
}

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

/**
 * The group of Kubernetes' workload API in a pod's spec. Source: kubernetes api core/v1:
 * `schedulingGroup` from 1.36, `workloadRef` in 1.35.
 */
export function schedulingGroupOf({ schedulingGroup, workloadRef }: Fields): string | undefined {
  const group = textOf(fieldsOf(schedulingGroup).podGroupName);
  if (group !== undefined) return group;
  const { name, podGroup, podGroupReplicaKey } = fieldsOf(workloadRef);
  const parts = [name, podGroup, podGroupReplicaKey].flatMap((part) => textOf(part) || []);
  return parts.length === 0 ? undefined : parts.join("/");
}

/** The environment variable with the number of nodes, or a range, for torchrun. */
export const nodesVariable = "PET_NNODES";

/**
 * Whether torchrun, which launches the containers, may go on with fewer nodes: it is told a range,
 * by `--nnodes` or by its environment, which the flag overrides. Sources: pytorch
 * `torch/distributed/run.py`; training-operator `pkg/controller.v1/pytorch/elastic.go` sets the
 * variable by the `elasticPolicy` of a PyTorchJob.
 */
export function isElastic({ containers }: Fields): boolean {
  return listOf(containers).some((container) => {
    const { command, args, env } = fieldsOf(container);
    const words = [...textListOf(command), ...textListOf(args)].join(" ");
    const flag = /--nnodes[=\s]+["']?([\d:]+)/.exec(words)?.[1];
    const variable = listOf(env)
      .map(fieldsOf)
      .find(({ name }) => name === nodesVariable);
    const [, least, most] = /^(\d+):(\d+)$/.exec(flag ?? textOf(variable?.value) ?? "") ?? [];
    return Number(least) < Number(most);
  });
}

/** A workload on several nodes, as one of its pods shows it. */
export interface Gang {
  /** Such as `JobSet ml/train`. */
  readonly name: string;
  readonly namespace: string;
  /** The label that selects its pods; undefined if they have none in common. */
  readonly label: string | undefined;
  /** How many pods it has, if they say so; always several. */
  readonly pods?: number;
  /** The object in the namespace that says whether its pods end together. */
  readonly object?: { readonly kind: GangObjectKind; readonly name: string };
}

/**
 * The workload on several nodes that a pod is a part of. One of a single pod is none, nor is one
 * that goes on without it.
 */
export function gangOf(pod: Omit<GangPod, "node">): Gang | undefined {
  const { namespace, isElastic: staysWithout = false } = pod;
  for (const kind of gangKinds) {
    if (staysWithout && !kind.endsElastic) continue;
    const name = nameBy(kind, pod);
    const pods = sizeOf(kind, pod);
    if (name === undefined || pods === 1) continue;
    const object = kind.object && { kind: kind.object, name: markOf(kind, pod) };
    return {
      ...{ name, namespace, label: kind.label },
      ...(pods === undefined ? {} : { pods }),
      ...(object && { object }),
    };
  }
  if (staysWithout) return undefined;
  const { schedulingGroup } = pod;
  const name =
    schedulingGroup === undefined
      ? provisionedBy(pod)
      : `pod group ${namespace}/${schedulingGroup}`;
  return name === undefined ? undefined : { name, namespace, label: undefined };
}

function nameBy(gang: GangKind, pod: Omit<GangPod, "node">): string | undefined {
  const { partLabel, wholeBy = [], isLoose } = gang;
  const { namespace, labels, annotations } = pod;
  const marked = markOf(gang, pod);
  if (!marked || isLoose?.(marked, pod)) return undefined;
  const whole = wholeBy.map((mark) => labels[mark] ?? annotations[mark]).find(Boolean) ?? marked;
  const part = partLabel === undefined ? undefined : labels[partLabel];
  const name = `${gang.kind} ${namespace}/${whole}`;
  return part === undefined ? name : `${name} group ${part}`;
}

/** The value of the mark that names the workload; empty without one. */
function markOf({ label, annotation }: GangKind, pod: Omit<GangPod, "node">): string {
  const { labels, annotations } = pod;
  return (label === undefined ? annotations[annotation ?? ""] : labels[label]) ?? "";
}

/** What cannot be read counts as several. */
function sizeOf({ sizeBy = [] }: GangKind, { annotations }: Omit<GangPod, "node">) {
  const written = sizeBy.map((key) => annotations[key]).find((text) => text !== undefined);
  const pods = wholeNumberOf(Number(written ?? ""));
  return pods === undefined || pods < 1 ? undefined : pods;
}

function provisionedBy({ namespace, annotations }: Omit<GangPod, "node">): string | undefined {
  if (readProvisioning(annotations, provisioningClass) !== queuedProvisioning) return undefined;
  const request = readProvisioning(annotations, provisioningRequest);
  return request === undefined ? undefined : `provisioning request ${namespace}/${request}`;
}

/** How many nodes a sentence names. */
const mostNodes = 3;

/** A workload with the nodes on which it runs, always several. */
export interface SpreadGang {
  readonly gang: Gang;
  readonly nodes: ReadonlySet<string>;
}

/** The gangs of the pods that are on more than one node: any other leaves with its node, whole. */
export function spreadGangs(pods: readonly GangPod[]): readonly SpreadGang[] {
  const found = new Map<string, { readonly gang: Gang; readonly nodes: Set<string> }>();
  for (const pod of pods) {
    const gang = gangOf(pod);
    if (gang === undefined) continue;
    const one = found.get(gang.name) ?? { gang, nodes: new Set() };
    found.set(gang.name, one);
    one.nodes.add(pod.node);
  }
  return [...found.values()].filter(({ nodes }) => nodes.size > 1);
}

/**
 * The workload that the departure of each node would end elsewhere, with its nodes, by the node's
 * name.
 */
export function gangsByNode(gangs: readonly SpreadGang[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  // In an order of their own: lists arrive in any, and a node names the same one each time.
  const inOrder = gangs.toSorted((a, b) => (a.gang.name < b.gang.name ? -1 : 1));
  for (const { gang, nodes } of inOrder) {
    const text = `${gang.name} on ${nodesText([...nodes].sort())}`;
    for (const node of nodes) if (!found.has(node)) found.set(node, text);
  }
  return found;
}

function nodesText(nodes: readonly string[]): string {
  const more = nodes.length - mostNodes;
  const shown = nodes.slice(0, mostNodes).join(", ");
  return more > 0 ? `${shown} and ${more} more` : shown;
}
