import type { ReleaseMode } from "../../core/policy/policy.ts";

export interface ComputePermission {
  /** An IAM permission, as a custom role lists it. */
  readonly permission: string;
  /** What it is used for, as part of a sentence. */
  readonly neededFor: string;
  /** The release modes that need it; looking a machine up counts as needed by all. */
  readonly modes: readonly ReleaseMode[];
  /** Needed only where this is in use. */
  readonly only?: "RegionalGroups" | "PreemptionPoll";
}

const all = ["Recreate", "Delete", "DeleteInstance", "None"] as const;
const byGroup = ["Recreate", "Delete"] as const;

/**
 * The least that a custom role must hold. The names of the calls are in the API's discovery
 * document; that the group methods ask for `instanceGroupManagers.update` is documented, the
 * others follow the rule of one permission a method. No project of Google's was asked.
 */
export const computePermissions: readonly ComputePermission[] = [
  { permission: "compute.instances.get", neededFor: "looking a machine up", modes: all },
  {
    permission: "compute.instances.list",
    neededFor:
      "learning how old machines are, without it the age of the Node object counts; asking whether one may be deleted",
    modes: all,
  },
  {
    permission: "compute.instanceGroupManagers.update",
    neededFor: "having the group recreate or delete a machine",
    modes: byGroup,
  },
  {
    permission: "compute.instanceGroupManagers.get",
    neededFor: "the group methods, which read the group first",
    modes: byGroup,
  },
  {
    permission: "compute.instanceGroupManagers.list",
    neededFor:
      "asking before a drain whether the group may be told, without it only the release itself tells",
    modes: byGroup,
  },
  {
    permission: "compute.instances.delete",
    neededFor: "deleting a machine without its group",
    modes: ["DeleteInstance"],
  },
  {
    permission: "compute.zoneOperations.get",
    neededFor: "waiting for an operation in a zone",
    modes: ["Recreate", "Delete", "DeleteInstance"],
  },
  {
    permission: "compute.zoneOperations.list",
    neededFor: "asking for preemptions (--gcp-preemption-poll), and for nothing else",
    modes: all,
    only: "PreemptionPoll",
  },
  {
    permission: "compute.regionOperations.get",
    neededFor: "waiting for an operation of a regional group",
    modes: byGroup,
    only: "RegionalGroups",
  },
];

export interface ComputeUse {
  readonly mode: ReleaseMode;
  readonly regionalGroups: boolean;
  readonly preemptionPoll: boolean;
}

/** What a controller that is used so needs, and no more. */
export function permissionsFor(use: ComputeUse): readonly ComputePermission[] {
  const inUse = { RegionalGroups: use.regionalGroups, PreemptionPoll: use.preemptionPoll };
  return computePermissions.filter(
    ({ modes, only }) => modes.includes(use.mode) && (only === undefined || inUse[only]),
  );
}
