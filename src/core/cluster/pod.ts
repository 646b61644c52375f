import type { Instant } from "../time/time.ts";
import type { Amounts, NodeFacts, Taint } from "./node.ts";

export interface LabelRequirement {
  readonly key: string;
  readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt";
  /** Absent with Exists and DoesNotExist. */
  readonly values?: readonly string[] | undefined;
}

/** `{}` selects everything; as in Kubernetes. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>> | undefined;
  readonly matchExpressions?: readonly LabelRequirement[] | undefined;
}

/** Terms are ORed, the requirements of a term are ANDed, as in node affinity. */
export interface NodeSelector {
  readonly nodeSelectorTerms: readonly NodeSelectorTerm[];
}

export interface NodeSelectorTerm {
  readonly matchExpressions: readonly LabelRequirement[];
  readonly matchFields: readonly LabelRequirement[];
}

export type Labels = Readonly<Record<string, string>>;

/**
 * Whether `selector` selects `labels`: all of its requirements must hold, and `{}` selects
 * everything.
 */
export function matchesLabelSelector(selector: LabelSelector, labels: Labels): boolean {
  const exact = Object.entries(selector.matchLabels ?? {});
  return (
    exact.every(([key, value]) => labels[key] === value) &&
    (selector.matchExpressions ?? []).every((one) => meetsRequirement(labels, one))
  );
}

/**
 * Whether labels meet one requirement of a label selector or of node affinity. A missing label
 * satisfies NotIn and DoesNotExist, and Gt and Lt compare whole numbers and nothing else. Source:
 * apimachinery `pkg/labels/selector.go`, Requirement.Matches.
 */
export function meetsRequirement(labels: Labels, requirement: LabelRequirement): boolean {
  const { key, operator, values = [] } = requirement;
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "Gt":
      return isOrdered(values[0], value);
    case "Lt":
      return isOrdered(value, values[0]);
  }
}

/** Whether both are whole numbers and the first is less than the second. */
function isOrdered(low: string | undefined, high: string | undefined): boolean {
  const lower = wholeNumber(low);
  const upper = wholeNumber(high);
  return lower !== undefined && upper !== undefined && lower < upper;
}

function wholeNumber(text: string | undefined): bigint | undefined {
  return text !== undefined && /^[+-]?\d+$/.test(text) ? BigInt(text.replace("+", "")) : undefined;
}

/**
 * What the scheduler requires of a node for a pod: only what can keep a pod off a node. Preferences
 * (`preferred…`, `ScheduleAnyway`) are left out.
 */
export interface PodPlacement {
  /** The pod's requests: containers, init containers and overhead together. */
  readonly requests: Amounts;
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** Required node affinity; absent: any node. */
  readonly requiredNodes?: NodeSelector | undefined;
  /** The terms of the volumes' node affinity, as far as they are known; all of them must hold. */
  readonly volumeNodes?: readonly NodeSelector[] | undefined;
  readonly podAffinity: readonly PodTerm[];
  readonly podAntiAffinity: readonly PodTerm[];
  /** Absent: the default scheduler. */
  readonly schedulerName?: string | undefined;
}

/** A required term of pod affinity or anti-affinity, as in the pod's spec. */
export type PodTerm = Readonly<Record<string, unknown>>;

export interface PodIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export interface OwnerFacts {
  /** The API group of the kind; empty for the core group, absent if it is not known. */
  readonly group?: string | undefined;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

export interface Toleration {
  readonly key?: string | undefined;
  readonly operator?: "Exists" | "Equal" | undefined;
  readonly value?: string | undefined;
  readonly effect?: Taint["effect"] | undefined;
}

export type PodPhase = "Pending" | "Running" | "Succeeded" | "Failed" | "Unknown";

/** What core knows of a pod: only the fields that a drain reads. */
export interface PodFacts extends PodIdentity {
  readonly nodeName?: string | undefined;
  readonly phase: PodPhase;
  readonly ready: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly priority: number;
  readonly priorityClassName?: string | undefined;
  /** `spec.terminationGracePeriodSeconds`; the API server defaults it to 30. */
  readonly graceSeconds: number;
  readonly graceSource: "Set" | "Default";
  /** The owner with `controller: true`. */
  readonly controller?: OwnerFacts | undefined;
  /** Whether it has the annotation `kubernetes.io/config.mirror`: it mirrors a static pod. */
  readonly mirror: boolean;
  readonly emptyDir: boolean;
  /** It writes to a hostPath where data is likely to be left behind (`pod-obstacle.ts`). */
  readonly hostPath: boolean;
  readonly volumeClaims: readonly string[];
  /** Those of them whose volumes are on one machine; absent if the volumes were not read. */
  readonly localClaims?: readonly string[] | undefined;
  readonly tolerations: readonly Toleration[];
  /** It was created with a node name; absent if a scheduler chose the node. */
  readonly bypassesScheduler?: true | undefined;
  /** What it requires of a node; absent if that was not read, which counts as no requirement. */
  readonly placement?: PodPlacement | undefined;
  /** `metadata.creationTimestamp`, in whole seconds. */
  readonly createdAt?: Instant | undefined;
  readonly startedAt?: Instant | undefined;
  /** `metadata.deletionTimestamp`: the deadline of a termination in progress, not its start. */
  readonly deletionAt?: Instant | undefined;
  /** The grace that it was given, while it terminates. */
  readonly deletionGraceSeconds?: number | undefined;
}

/**
 * The pod's DaemonSet of Kubernetes itself as `namespace/name`: kubectl looks up a pod's owner by
 * name as well. One of another API group, such as OpenKruise's, is another object, which nobody
 * lists.
 */
export function daemonSetOf({ namespace, controller }: PodFacts): string | undefined {
  if (controller?.kind !== "DaemonSet" || !isOfApps(controller)) return undefined;
  return `${namespace}/${controller.name}`;
}

/** Whether it is of Kubernetes' own group of workloads, by its name now or before. */
export function isOfApps({ group = "apps" }: OwnerFacts): boolean {
  return group === "apps" || group === "extensions";
}

/** A PodDisruptionBudget as a drain reads it. */
export interface BudgetFacts {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly selector: LabelSelector;
  readonly minAvailable?: number | string | undefined;
  readonly maxUnavailable?: number | string | undefined;
  readonly unhealthyPodEvictionPolicy: "IfHealthyBudget" | "AlwaysAllow";
  readonly disruptionsAllowed: number;
  readonly currentHealthy: number;
  readonly desiredHealthy: number;
  readonly expectedPods: number;
  /** False while the disruption controller has not yet seen the newest spec. */
  readonly observed: boolean;
  /**
   * Why the disruption controller cannot compute the budget, in its own words: the condition
   * `DisruptionAllowed` is false with the reason SyncFailed. It allows nothing until that changes,
   * and all other fields of its status are out of date.
   */
  readonly syncFailure?: string | undefined;
}

/** A VolumeAttachment of the node that is being drained. */
export interface AttachedVolume {
  /** The name of the VolumeAttachment. */
  readonly name: string;
  /** The persistent volume; absent for a volume that is defined inline in a pod. */
  readonly volume?: string | undefined;
  /** `namespace/name` of its claim, if known. */
  readonly claim?: string | undefined;
}

/**
 * The volumes to wait for after the last pod has left: until they are detached from this node, a
 * new pod elsewhere cannot attach them. Volumes of pods that stay (DaemonSets, static pods) end
 * with the machine.
 */
export function awaitedVolumes(
  attached: readonly AttachedVolume[],
  staying: readonly PodFacts[],
): readonly AttachedVolume[] {
  const kept = new Set(
    staying.flatMap(({ namespace, volumeClaims }) =>
      volumeClaims.map((claim) => `${namespace}/${claim}`),
    ),
  );
  return attached.filter(({ claim }) => claim === undefined || !kept.has(claim));
}

/** A pod in the phase Failed, with the facts that show which machine it ran on. */
export interface FailedPod extends PodIdentity {
  readonly nodeName: string | undefined;
  /** `status.reason`. */
  readonly reason: string | undefined;
  /** The owner with `controller: true`. */
  readonly controller: OwnerFacts | undefined;
  readonly createdAt: Instant | undefined;
  /** When a kubelet first accepted it; if none did, it never ran on a machine. */
  readonly startedAt: Instant | undefined;
}

/**
 * The reasons with which kubelets of different releases report that a pod ended because its node
 * was shut down.
 */
const shutdownReasons: ReadonlySet<unknown> = new Set(["Terminated", "NodeShutdown", "Shutdown"]);

function hasEndedWithMachine({ reason }: Pick<FailedPod, "reason">): boolean {
  return shutdownReasons.has(reason);
}

/**
 * Whether a machine that ended has left the pod behind: an earlier one with the node's name, or one
 * whose node no longer exists. If the node has kept its object, as after a stop and a start, only
 * the kubelet's reason tells; `node` is undefined if there is none of that name.
 */
export function isLeftByMachine(pod: FailedPod, node: NodeFacts | undefined): boolean {
  if (hasEndedWithMachine(pod)) return true;
  if (node !== undefined) return isOfEarlierMachine(pod, node);
  return pod.nodeName !== undefined && pod.startedAt !== undefined;
}

/**
 * Whether it ran on an earlier machine that had the node's name, whatever it failed for. Kubernetes
 * collects orphaned pods, but only those bound to a node that does not exist, and a machine has
 * reused the name. The pod was created and started before this Node was registered, so it cannot
 * have run on this machine. It must also have been replaced: a pod without an owner may be all that
 * is left of a person's work.
 */
export function isOfEarlierMachine(pod: FailedPod, node: NodeFacts): boolean {
  const { createdAt, startedAt, controller, nodeName } = pod;
  const isReplaced = controller !== undefined && controller.kind !== "Node";
  if (!isReplaced || nodeName !== node.name) return false;
  const isBefore = (at: Instant | undefined) =>
    at !== undefined && node.createdAt !== undefined && at < node.createdAt;
  return isBefore(createdAt) && isBefore(startedAt);
}
