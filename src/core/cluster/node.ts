import { type Instant, parseDuration, parseInstant, plus } from "../time/time.ts";

/**
 * Identifies a node. Managed instance groups reuse names, so a name alone does not: the Node object
 * is identified by its uid, the machine by its providerID, its boot by its bootID.
 */
export interface NodeIdentity {
  readonly name: string;
  readonly uid: string;
  readonly providerID?: string | undefined;
  /** `status.nodeInfo.bootID`; changes when the machine behind the Node object starts again. */
  readonly bootID?: string | undefined;
}

/** The machine behind a node, read from `spec.providerID`. */
export type Machine =
  | {
      readonly cloud: "gcp";
      readonly project: string;
      readonly zone: string;
      readonly instance: string;
    }
  | { readonly cloud: "aws"; readonly instanceId: string }
  | { readonly cloud: "azure"; readonly resourceId: string };

/**
 * One segment of a path. A providerID is written on the node, and becomes a part of the address of
 * a request to the cloud: it must not lead to another path.
 */
const segment = "(?!\\.)[^/?#%\\\\\\s]+";

const gce = new RegExp(`^gce://(${segment})/(${segment})/(${segment})$`);

const ec2 = /^aws:\/\/\/[^/]*\/(i-[0-9a-f]+)$/;

const azure = new RegExp(
  `^azure://(/subscriptions(?:/${segment})+/virtualMachines/${segment})$`,
  "i",
);

/**
 * Reads a providerID (`gce://project/zone/name`, `aws:///zone/i-0abc`, whose zone may be empty,
 * `azure:///subscriptions/…`); undefined for any other form. Source: cloud-provider-gcp
 * gce_util.go, EKS and AKS nodes.
 */
export function parseProviderId(providerID: string): Machine | undefined {
  const onGce = gce.exec(providerID);
  if (onGce) {
    const [, project, zone, instance] = onGce as unknown as [string, string, string, string];
    return { cloud: "gcp", project, zone, instance };
  }
  const onEc2 = ec2.exec(providerID);
  if (onEc2) return { cloud: "aws", instanceId: onEc2[1] as string };
  const onAzure = azure.exec(providerID);
  if (onAzure) return { cloud: "azure", resourceId: onAzure[1] as string };
  return undefined;
}

/** The name that the machine has in its cloud; undefined if the providerID has no known form. */
export function instanceIdOf({ providerID }: Pick<NodeIdentity, "providerID">): string | undefined {
  const machine = providerID === undefined ? undefined : parseProviderId(providerID);
  switch (machine?.cloud) {
    case "aws":
      return machine.instanceId;
    case "gcp":
      return machine.instance;
    case "azure":
      return machine.resourceId.split("/").at(-1);
    default:
      return undefined;
  }
}

/**
 * Identifies the machine of a providerID, however that is spelled: EC2's ids are unique without the
 * zone, and Azure ignores case.
 */
export function machineKey(providerID: string): string {
  const machine = parseProviderId(providerID);
  switch (machine?.cloud) {
    case "aws":
      return `aws/${machine.instanceId}`;
    case "azure":
      return `azure/${machine.resourceId.toLowerCase()}`;
    default:
      return providerID;
  }
}

/** The zone that a providerID names; empty if it names none. */
export function zoneInProviderId({ providerID = "" }: Pick<NodeIdentity, "providerID">): string {
  return gce.exec(providerID)?.[2] ?? /^aws:\/\/\/([^/]*)\//.exec(providerID)?.[1] ?? "";
}

/** Whether the machine behind a providerID can be identified. */
export function isKnownProviderId(providerID: string): boolean {
  return gce.test(providerID) || ec2.test(providerID) || azure.test(providerID);
}

export type IdentityMatch = "Same" | "OtherNode" | "OtherMachine" | "Rebooted";

/**
 * Compares the node as it was recorded with the node as it is now; a field that was unknown then is
 * not compared.
 */
export function compareIdentity(then: NodeIdentity, now: NodeIdentity): IdentityMatch {
  if (then.uid !== now.uid) return "OtherNode";
  if (then.providerID !== undefined && then.providerID !== now.providerID) return "OtherMachine";
  if (then.bootID !== undefined && then.bootID !== now.bootID) return "Rebooted";
  return "Same";
}

/**
 * Whether another machine may get the same providerID: a managed instance group on Compute Engine
 * recreates a machine under its name, so that a new boot there is most likely a new machine.
 */
export function mayPassOnItsName({ providerID }: NodeIdentity): boolean {
  return providerID !== undefined && gce.test(providerID);
}

/**
 * Whether two records may be of the same machine. A field that only one of them has is not
 * compared.
 */
export function mayBeSameMachine(one: NodeIdentity, other: NodeIdentity): boolean {
  const agree = (a: string | undefined, b: string | undefined): boolean =>
    a === undefined || b === undefined || a === b;
  if (one.uid !== other.uid || !agree(one.bootID, other.bootID)) return false;
  return agree(one.providerID, other.providerID);
}

export interface Taint {
  readonly key: string;
  readonly value?: string | undefined;
  readonly effect: "NoSchedule" | "PreferNoSchedule" | "NoExecute";
}

/** The key of the taint of a departing node; its value is the cause. */
export const departingTaint = "lastcall.dev/departing";

/**
 * The taint of a cordoned node. The node lifecycle controller adds and removes it as
 * `spec.unschedulable` changes; the scheduler treats that field as this taint. Source: kubernetes
 * `pkg/controller/nodelifecycle/node_lifecycle_controller.go`, doNoScheduleTaintingPass.
 */
export const cordonTaint: Taint = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };

/** A condition that is True or Unknown. Only those are kept that announce the machine's end. */
export interface NodeCondition {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  /** The status of the condition is Unknown; otherwise it is True. */
  readonly isUnknown?: boolean;
  /** Its `lastTransitionTime`, as the node wrote it; it only tells one time from another. */
  readonly since?: string | undefined;
}

/** The program that wrote an annotation, as recorded by the API server. */
export interface AnnotationWriter {
  /** As in `kubectl-annotate`. */
  readonly manager: string;
  /** The user, if the program wrote the name together with the annotation. */
  readonly user?: string | undefined;
  /** When it last wrote anything to the node. */
  readonly at?: Instant | undefined;
}

/** What core knows of a node: only the fields that a decision, or a sentence about it, needs. */
export interface NodeFacts extends NodeIdentity {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly unschedulable: boolean;
  readonly ready: boolean;
  /** The message of the Ready condition; the kubelet writes "node is shutting down" there. */
  readonly readyMessage?: string | undefined;
  /**
   * The Ready condition is Unknown or missing: nothing is known from the kubelet, neither that the
   * machine runs nor that it does not. Absent: the kubelet reports.
   */
  readonly isUnreachable?: boolean | undefined;
  /**
   * Conditions by which a platform announces that it takes the machine, while they are True or
   * Unknown; absent if there are none.
   */
  readonly noticeConditions?: readonly NodeCondition[] | undefined;
  /** The types of such conditions that are False; absent if there are none. */
  readonly clearedConditions?: readonly string[] | undefined;
  /**
   * Who set the annotation that holds the node; absent if there is none, or if it is not recorded.
   */
  readonly holdWriter?: AnnotationWriter | undefined;
  /** `status.allocatable`: what pods may request in total; absent if the Node does not list it. */
  readonly allocatable?: Amounts | undefined;
  /** The Node object's `creationTimestamp`. */
  readonly createdAt?: Instant | undefined;
  /** The instance's launch time if the cloud reported it; it takes precedence over `createdAt`. */
  readonly instanceBornAt?: Instant | undefined;
  /** Set while the Node object is being deleted. */
  readonly deletionAt?: Instant | undefined;
}

/** `linux` or `windows`, set by the kubelet. */
export const osLabel = "kubernetes.io/os";

/** A node whose label is missing counts as one of Linux, as most are. */
export function isOnWindows({ labels }: Pick<NodeFacts, "labels">): boolean {
  return labels[osLabel] === "windows";
}

export const zoneLabel = "topology.kubernetes.io/zone";

/** The zone of a node by its label; empty if it has none. */
export function zoneOf(node: NodeFacts): string {
  return node.labels[zoneLabel] ?? node.labels["failure-domain.beta.kubernetes.io/zone"] ?? "";
}

/**
 * When the machine was launched: the instance's launch time if the cloud reports it, otherwise the
 * Node's creation. A preemptible Node object may outlive its machine (same name, new boot), so the
 * instance takes precedence.
 */
export function bornAt(node: NodeFacts): Instant | undefined {
  return node.instanceBornAt ?? node.createdAt;
}

export const holdAnnotation = "lastcall.dev/hold";

/** The user who set the hold: the board writes both with one request. */
export const holdByAnnotation = "lastcall.dev/hold-by";

/** Annotations of other tools that mean the same as our own hold: keep this node. */
const foreignHolds = [
  "cluster-autoscaler.kubernetes.io/scale-down-disabled",
  "karpenter.sh/do-not-disrupt",
] as const;

/** The annotation that `holdOf` reads; undefined if there is none. */
export function holdMarkIn(annotations: NodeFacts["annotations"]): string | undefined {
  const foreign = foreignHolds.find((mark) => annotations[mark] === "true");
  if (foreign !== undefined) return foreign;
  const value = annotations[holdAnnotation];
  return value === undefined || value === "" || value === "false" ? undefined : holdAnnotation;
}

export type Hold =
  | { readonly kind: "None" }
  /** Planned as usual, but not to leave before `until`. */
  | { readonly kind: "Until"; readonly until: Instant }
  /** Not planned while the mark exists. `readable` is false if its value cannot be parsed. */
  | { readonly kind: "Always"; readonly mark: string; readonly readable: boolean };

const none: Hold = { kind: "None" };

/**
 * The hold that annotations on a node request. `"true"` holds indefinitely, an RFC 3339 instant
 * until then. A duration such as `"4h"` counts from the machine's launch time, just as the duration
 * of a pod's `do-not-disturb` counts from the pod's start: an annotation has no timestamp of its
 * own. A value that cannot be parsed holds indefinitely, because the person who wrote it wanted the
 * node to stay.
 */
export function holdOf(node: NodeFacts): Hold {
  const mark = holdMarkIn(node.annotations);
  if (mark === undefined) return none;
  const value = node.annotations[mark] ?? "";
  if (value === "true") return { kind: "Always", mark, readable: true };
  const named = parseInstant(value);
  if (named !== undefined) return { kind: "Until", until: named };
  const age = parseDuration(value);
  const born = bornAt(node);
  if (age !== undefined && born !== undefined) return { kind: "Until", until: plus(born, age) };
  return { kind: "Always", mark, readable: age !== undefined };
}

interface RivalMark {
  readonly rival: string;
  /** A taint key, or a prefix if it ends in a slash. */
  readonly taint: string;
  /** Whether the tool removes nodes on its own initiative; the others follow the cloud. */
  readonly removes?: boolean;
}

/**
 * Taints by which other tools mark the nodes that they remove. Sources: Karpenter's disruption
 * controller (the second key before 1.0), cluster-autoscaler's scale-down, the AWS node termination
 * handler, AKS node auto-drain, GKE's maintenance handler and termination handler. Tools that only
 * cordon (an EKS managed node group, kubectl) are recognized by the cordon.
 */
const rivalMarks: readonly RivalMark[] = [
  { rival: "Karpenter", taint: "karpenter.sh/disrupted", removes: true },
  { rival: "Karpenter", taint: "karpenter.sh/disruption", removes: true },
  { rival: "cluster-autoscaler", taint: "ToBeDeletedByClusterAutoscaler", removes: true },
  { rival: "aws-node-termination-handler", taint: "aws-node-termination-handler/" },
  { rival: "AKS node auto-drain", taint: "remediator.kubernetes.azure.com/unschedulable" },
  { rival: "GKE", taint: "cloud.google.com/impending-node-termination" },
];

/** The instant at which estafette's killer deletes a node. */
export const killerAnnotation = "estafette.io/gke-preemptible-killer-state";

/** Set by kured's `--annotate-nodes` while it drains and reboots the node. */
export const kuredAnnotation = "weave.works/kured-reboot-in-progress";

/** Whether a tool removes nodes on its own initiative, and not because of a cloud's notice. */
export function removesNodes(rival: string): boolean {
  return rivalMarks.some((one) => one.rival === rival && one.removes);
}

/** The tool that is already removing this node; undefined if none is. */
export function rivalOf(node: NodeFacts): string | undefined {
  for (const { key } of node.taints) {
    for (const { rival, taint } of rivalMarks) {
      if (key === taint || (taint.endsWith("/") && key.startsWith(taint))) return rival;
    }
  }
  return node.annotations[kuredAnnotation] === undefined ? undefined : "kured";
}

/** Its effect is PreferNoSchedule: the scheduler places pods elsewhere if they fit there. */
export const departingSoonTaint = "lastcall.dev/departing-soon";

/** Amounts by resource name, in base units: cores, bytes, pieces. `{cpu: 0.25, memory: 1048576}` */
export type Amounts = Readonly<Record<string, number>>;

export function sumOf(a: Amounts, b: Amounts): Amounts {
  const sum: Record<string, number> = { ...a };
  for (const [resource, amount] of Object.entries(b)) {
    sum[resource] = (sum[resource] ?? 0) + amount;
  }
  return sum;
}

export function largerOf(a: Amounts, b: Amounts): Amounts {
  const larger: Record<string, number> = { ...a };
  for (const [resource, amount] of Object.entries(b)) {
    larger[resource] = Math.max(larger[resource] ?? 0, amount);
  }
  return larger;
}

/** The factor of each suffix. Source: apimachinery `pkg/api/resource/suffix.go`. */
const suffixFactors: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

const quantityPattern = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d+)|([numkMGTPE]|[KMGTPE]i))?$/;

/**
 * Reads a Kubernetes quantity such as `250m`, `4`, `1.5Gi` or `12e6`; undefined for anything else.
 */
export function parseQuantity(value: unknown): number | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? value : undefined;
  const match = typeof value === "string" ? quantityPattern.exec(value) : null;
  if (match === null) return undefined;
  const [, digits, exponent, suffix] = match;
  if (exponent !== undefined) return Number(`${digits}e${exponent}`);
  return Number(digits) * (suffix === undefined ? 1 : (suffixFactors[suffix] ?? 0));
}

/** Writes an amount as a quantity, rounded up: cores as `250m`, everything else as an integer. */
export function formatQuantity(resource: string, amount: number): string {
  // Sums of fractions of a core carry binary rounding errors, which must not round up.
  const milli = Math.ceil(Math.round(amount * 1e6) / 1e3);
  return resource === "cpu" ? `${milli}m` : String(Math.ceil(amount));
}
