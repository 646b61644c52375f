import type { Instant } from "../time/time.ts";
import type { NodeIdentity } from "./identity.ts";
import type { Amounts } from "./placement.ts";

export interface Taint {
  readonly key: string;
  readonly value?: string | undefined;
  readonly effect: "NoSchedule" | "PreferNoSchedule" | "NoExecute";
}

/** A condition that is True; of those only such as announce the machine's end are kept. */
export interface NodeCondition {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  /** The node cannot tell whether it holds; else it does. */
  readonly isUnknown?: boolean;
}

/** What core knows of a node: only the fields that a decision reads. */
export interface NodeFacts extends NodeIdentity {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly unschedulable: boolean;
  readonly ready: boolean;
  /** The message of the Ready condition; the kubelet writes "node is shutting down" there. */
  readonly readyMessage?: string | undefined;
  /** Conditions by which a platform says that it takes the machine, while they hold or nobody knows; absent where none does. */
  readonly noticeConditions?: readonly NodeCondition[] | undefined;
  /** `status.allocatable`: what pods may ask of it in all; absent where the Node does not say. */
  readonly allocatable?: Amounts | undefined;
  /** The Node object's `creationTimestamp`. */
  readonly createdAt?: Instant | undefined;
  /** The instance's own launch time where the cloud told it; it beats `createdAt`. */
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
 * When the machine was launched: the instance's launch time where the cloud says it, else the Node's creation.
 * A preemptible Node object may outlive its machine (same name, new boot), so the instance counts first.
 */
export function bornAt(node: NodeFacts): Instant | undefined {
  return node.instanceBornAt ?? node.createdAt;
}
