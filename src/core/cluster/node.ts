import type { CloudFacts, CloudMachine, RemovalMark } from "../../cloud/facts/cloud-facts.ts";
import { knownClouds } from "../../cloud/facts/known-clouds.ts";
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

/** Reads a providerID; undefined if it has the form of no known cloud. */
export function parseProviderId(providerID: string): CloudMachine | undefined {
  for (const { parseId } of knownClouds) {
    const machine = parseId(providerID);
    if (machine !== undefined) return machine;
  }
  return undefined;
}

/** The facts of the cloud of a machine; undefined if its providerID has no known form. */
export function cloudOf({ providerID }: Pick<NodeIdentity, "providerID">): CloudFacts | undefined {
  if (providerID === undefined) return undefined;
  return knownClouds.find(({ parseId }) => parseId(providerID) !== undefined);
}

/** The name that the machine has in its cloud; undefined if the providerID has no known form. */
export function instanceIdOf({ providerID }: Pick<NodeIdentity, "providerID">): string | undefined {
  return providerID === undefined ? undefined : parseProviderId(providerID)?.instance;
}

/** Identifies the machine of a providerID, however that is spelled. */
export function machineKey(providerID: string): string {
  return parseProviderId(providerID)?.key ?? providerID;
}

/** The zone that a providerID names; empty if it names none. */
export function zoneInProviderId({ providerID = "" }: Pick<NodeIdentity, "providerID">): string {
  for (const { zoneIn } of knownClouds) {
    const zone = zoneIn?.(providerID);
    if (zone !== undefined) return zone;
  }
  return "";
}

/** Whether the machine behind a providerID can be identified. */
export function isKnownProviderId(providerID: string): boolean {
  return parseProviderId(providerID) !== undefined;
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

/** Whether other machines usually get the same providerID: a new boot is most likely one. */
export function mayPassOnItsName(node: NodeIdentity): boolean {
  return cloudOf(node)?.idReuse === "Usual";
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
  /** Since when the kubelet has reported Ready, by its own clock; absent while it does not. */
  readonly readySince?: Instant | undefined;
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

/**
 * How `holdOf` understands the value of an annotation; undefined for any that is no mark of a node.
 */
export function nodeMarkReading(key: string, value: string): MarkReading | undefined {
  if (foreignHolds.some((mark) => mark === key)) return isSwitch(value) ? "Readable" : "Ignored";
  if (key !== holdAnnotation) return undefined;
  const isTimed = parseInstant(value) !== undefined || parseDuration(value) !== undefined;
  return isSwitch(value) || isTimed ? "Readable" : "CountsAsTrue";
}

/**
 * How the value of a mark is understood. `CountsAsTrue` and `Ignored`: it cannot be read, and holds
 * for good, or has no effect.
 */
export type MarkReading = "Readable" | "CountsAsTrue" | "Ignored";

/** Whether a mark is set or not; an empty value counts as not set. */
export function isSwitch(value: string): boolean {
  return value === "true" || value === "false" || value === "";
}

/**
 * Taints by which other tools mark the nodes that they drain: Karpenter's disruption controller
 * (the second key before 1.0) and its reboots (from 1.15, `pkg/controllers/nodeclaim/reboot`),
 * cluster-autoscaler's scale-down, and the tools of each cloud. Tools that only cordon (an EKS
 * managed node group, kubectl) are recognized by the cordon.
 */
const rivalMarks: readonly RemovalMark[] = [
  { rival: "Karpenter", taint: "karpenter.sh/disrupted", removes: true },
  { rival: "Karpenter", taint: "karpenter.sh/disruption", removes: true },
  { rival: "Karpenter (reboot)", taint: "karpenter.sh/rebooting" },
  { rival: "cluster-autoscaler", taint: "ToBeDeletedByClusterAutoscaler", removes: true },
  ...knownClouds.flatMap(({ removalMarks }) => removalMarks),
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
