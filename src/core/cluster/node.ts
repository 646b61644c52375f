import type { Instant } from "../time/time.ts";
import type { Amounts } from "./placement.ts";
/**
 * Who a node is. Names are reused by managed instance groups, so a name alone is nobody:
 * the Node object is identified by its uid, the machine by its providerID, its boot by its bootID.
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

const gce = /^gce:\/\/([^/]+)\/([^/]+)\/([^/]+)$/;
const ec2 = /^aws:\/\/\/[^/]*\/(i-[0-9a-f]+)$/;
const azure = /^azure:\/\/(\/subscriptions\/.+\/virtualMachines\/[^/]+)$/i;

/**
 * Reads a providerID (`gce://project/zone/name`, `aws:///zone/i-0abc`, whose zone may be empty,
 * `azure:///subscriptions/…`); undefined where the form is none of these. Source:
 * cloud-provider-gcp gce_util.go, EKS and AKS nodes.
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

/** The machine as its cloud names it; undefined where the providerID is of no known form. */
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

/** Whether the machine behind a providerID could be known. */
export function isKnownProviderId(providerID: string): boolean {
  return gce.test(providerID) || ec2.test(providerID) || azure.test(providerID);
}

export type IdentityMatch = "Same" | "OtherNode" | "OtherMachine" | "Rebooted";

/** Compares who a node was with who it is now; a field that was not known then is not compared. */
export function compareIdentity(then: NodeIdentity, now: NodeIdentity): IdentityMatch {
  if (then.uid !== now.uid) return "OtherNode";
  if (then.providerID !== undefined && then.providerID !== now.providerID) return "OtherMachine";
  if (then.bootID !== undefined && then.bootID !== now.bootID) return "Rebooted";
  return "Same";
}

/** Whether two records may be of one machine: what only one of them knows is not compared. */
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

/** The key of the taint of a node that leaves; its value is the cause. */
export const departingTaint = "lastcall.dev/departing";

/** A condition that is True; of those only such as announce the machine's end are kept. */
export interface NodeCondition {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  /** The node does not know whether it holds; else it does. */
  readonly isUnknown?: boolean;
}

/** Who wrote an annotation, as the API server remembers it: a program, and no person. */
export interface AnnotationWriter {
  /** As in `kubectl-annotate`. */
  readonly manager: string;
  /** When it last wrote anything to the node. */
  readonly at?: Instant | undefined;
}

/** What core knows of a node: only the fields that a decision, or its reader, wants. */
export interface NodeFacts extends NodeIdentity {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly unschedulable: boolean;
  readonly ready: boolean;
  /** The message of the Ready condition; the kubelet writes "node is shutting down" there. */
  readonly readyMessage?: string | undefined;
  /**
   * Conditions by which a platform says that it takes the machine, while they hold or nobody knows;
   * absent where none does.
   */
  readonly noticeConditions?: readonly NodeCondition[] | undefined;
  /** Who holds the node by an annotation; absent where none does, or nobody remembers. */
  readonly holdWriter?: AnnotationWriter | undefined;
  /** `status.allocatable`: what pods may ask of it in all; absent where the Node does not say. */
  readonly allocatable?: Amounts | undefined;
  /** The Node object's `creationTimestamp`. */
  readonly createdAt?: Instant | undefined;
  /** The instance's own launch time where the cloud reported it; it beats `createdAt`. */
  readonly instanceBornAt?: Instant | undefined;
  /** Set while the Node object is being deleted. */
  readonly deletionAt?: Instant | undefined;
}

export const zoneLabel = "topology.kubernetes.io/zone";

/** The zone of a node by its label; empty where it has none. */
export function zoneOf(node: NodeFacts): string {
  return node.labels[zoneLabel] ?? node.labels["failure-domain.beta.kubernetes.io/zone"] ?? "";
}

/**
 * When the machine was launched: the instance's launch time where the cloud says it, else the
 * Node's creation. A preemptible Node object may outlive its machine (same name, new boot), so the
 * instance counts first.
 */
export function bornAt(node: NodeFacts): Instant | undefined {
  return node.instanceBornAt ?? node.createdAt;
}
