import type { ReleaseMode } from "../../core/policy/policy.ts";

export interface ComputePermission {
  /** An IAM permission, as a custom role lists it. */
  readonly permission: string;
  /** What it is used for, as part of a sentence. */
  readonly neededFor: string;
  /** The release modes that need it. Every mode needs to look up machines. */
  readonly modes: readonly ReleaseMode[];
  /**
   * Needed only if this is in use. GKE's groups are zonal, so the role that `lastcall setup gcp`
   * creates has nothing for regional ones.
   */
  readonly only?: "RegionalGroups" | "PreemptionPoll";
}

const all = ["Recreate", "Delete", "DeleteInstance", "NodeClaim", "None"] as const;
const byGroup = ["Recreate", "Delete"] as const;

/**
 * The minimal permissions of a custom role. The names of the calls are in the API's discovery
 * document; that the group methods require `instanceGroupManagers.update` is documented, the others
 * follow the rule of one permission per method. Not tested on a real Google project.
 */
export const computePermissions: readonly ComputePermission[] = [
  { permission: "compute.instances.get", neededFor: "finding a machine", modes: all },
  {
    permission: "compute.instances.list",
    neededFor:
      "getting the launch times of machines (without it, the age of the Node object is used), and checking whether one may be deleted",
    modes: all,
  },
  {
    permission: "compute.instanceGroupManagers.update",
    neededFor: "making the group recreate or delete a machine",
    modes: byGroup,
  },
  {
    permission: "compute.instanceGroupManagers.get",
    neededFor: "calling a method of the group, which reads the group first",
    modes: byGroup,
  },
  {
    permission: "compute.instanceGroupManagers.list",
    neededFor:
      "checking before a drain whether the release will be permitted (without it, only the release itself shows that)",
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
    neededFor: "polling for preemptions (--gcp-preemption-poll), and nothing else",
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
  readonly preemptionPoll: boolean;
}

/** The permissions that a controller on GKE with these uses needs, and no more. */
export function permissionsFor(use: ComputeUse): readonly ComputePermission[] {
  const inUse = { RegionalGroups: false, PreemptionPoll: use.preemptionPoll };
  return computePermissions.filter(
    ({ modes, only }) => modes.includes(use.mode) && (only === undefined || inUse[only]),
  );
}
