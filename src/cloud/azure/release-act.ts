import type { ReleaseRequest } from "../../contracts/cloud/instances.ts";
import type { ArmCall } from "./arm-client.ts";
import type { AzureMachine, MachineRef } from "./azure-machine.ts";

/** What AKS says of a node pool. */
export interface NodePool {
  /** Its resource id. */
  readonly id: string;
  readonly isAutoscaled: boolean;
}

export interface AzureRelease {
  readonly ref: MachineRef;
  readonly machine: AzureMachine;
  readonly mode: ReleaseRequest["mode"];
  /** Undefined where the machine is in none of AKS'. */
  readonly pool: NodePool | undefined;
  /** What `--azure-delete-instances` says. */
  readonly pastAks: "Allowed" | "Refused";
}

export type ReleaseAct =
  | {
      readonly kind: "Act";
      readonly call: ArmCall;
      /** On which resource the permission is needed. */
      readonly scope: string;
    }
  /** Its owner does not allow the mode; `problem` says what to write instead. */
  | { readonly kind: "Refused"; readonly problem: string };

export const computeVersion = "2024-07-01";
export const aksVersion = "2026-04-01";
const deleteMachines =
  "Microsoft.ContainerService/managedClusters/agentPools/deleteMachines/action";

/**
 * The call that releases a machine: by its node pool, or past AKS where that was asked for twice.
 */
export function releaseAct(target: AzureRelease): ReleaseAct {
  if (target.mode === "DeleteInstance") return deletion(target);
  const { ref, machine, mode, pool } = target;
  if (pool === undefined) {
    return refused(
      `${ref.id} is in no node pool of AKS (its tag aks-managed-poolName is missing), set instance.release to DeleteInstance and run with --azure-delete-instances, or to None`,
    );
  }
  if (machine.name === undefined) {
    return refused(`AKS' name of ${ref.id} is not known, it has no osProfile.computerName`);
  }
  if (mode === "Recreate" && !pool.isAutoscaled) {
    return refused(
      `the node pool ${machine.pool} has no autoscaler, so that nothing would come in the machine's place, enable that or set instance.release to Delete`,
    );
  }
  return {
    kind: "Act",
    scope: pool.id,
    call: {
      method: "POST",
      path: `${pool.id}/deleteMachines`,
      apiVersion: aksVersion,
      body: { machineNames: [machine.name] },
      action: `delete ${machine.name} in the node pool ${machine.pool}`,
      permission: deleteMachines,
    },
  };
}

/** AKS does not support it for its own pools. */
function deletion({ ref, pastAks, pool, machine }: AzureRelease): ReleaseAct {
  const { scaleSet } = ref;
  if (pastAks === "Refused" || scaleSet === undefined) {
    const instead = pool === undefined ? "None" : "Delete";
    const owner = pool === undefined ? "" : `, which is in the node pool ${machine.pool} of AKS`;
    return refused(
      `${ref.id}${owner} is deleted past AKS only where it is in a scale set and with --azure-delete-instances, set instance.release to ${instead}`,
    );
  }
  return {
    kind: "Act",
    scope: scaleSet.id,
    call: {
      method: "POST",
      path: `${scaleSet.id}/delete`,
      apiVersion: computeVersion,
      body: { instanceIds: [scaleSet.instance] },
      action: `delete ${ref.id}`,
      permission: "Microsoft.Compute/virtualMachineScaleSets/delete/action",
    },
  };
}

function refused(problem: string): ReleaseAct {
  return { kind: "Refused", problem };
}
