import type { NodeFacts } from "../cluster/node.ts";
import type { Reason } from "../reason/reason.ts";

/** Why a node has no planned departure. Each has its own sentence in every language. */
export type NotPlannedReason = Extract<
  Reason,
  | "NoPolicy"
  | "PolicyInvalid"
  | "PolicyPaused"
  | "NoLifetimeLimit"
  | "NodeTerminating"
  | "LeftToOthers"
  | "OnHold"
  | "GangWorkload"
  | "MachineStayed"
  | "NoProviderID"
  | "UnknownProvider"
  | "NoLaunchTime"
  | "Noticed"
  | "Requested"
  | "Started"
>;

export interface NotPlanned {
  readonly node: NodeFacts;
  /** The policy that selects it; null if there is none. */
  readonly policy: string | null;
  readonly reason: NotPlannedReason;
  /** The subject of the reason: another tool, a mark, a policy, a providerID. */
  readonly detail?: string | undefined;
  /** The unreadable policy that might select the node, if that is the reason. */
  readonly blockedBy?: string | undefined;
}
