/** Where a permission is granted; each narrower than the subscription where Azure lets it be. */
export type AzureScope = "Cluster" | "NodeGroup" | "Subscription";

export interface AzurePermission {
  /** As a custom role lists it under Actions. */
  readonly action: string;
  /** What it is used for, as part of a sentence. */
  readonly neededFor: string;
  readonly on: AzureScope;
}

/**
 * The least that the controller's identity must hold on AKS, by Azure's lists of operations of its
 * providers. No subscription was asked.
 */
export const azurePermissions: readonly AzurePermission[] = [
  {
    action: "Microsoft.ContainerService/managedClusters/agentPools/read",
    neededFor: "learning whether the pool of a machine has an autoscaler",
    on: "Cluster",
  },
  {
    action: "Microsoft.ContainerService/managedClusters/agentPools/deleteMachines/action",
    neededFor: "having the pool delete a machine",
    on: "Cluster",
  },
  {
    action: "Microsoft.ContainerService/locations/operations/read",
    neededFor: "waiting for the deletion",
    on: "Subscription",
  },
  {
    action: "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read",
    neededFor: "learning which machine is meant, and when it was made",
    on: "NodeGroup",
  },
  {
    action: "Microsoft.Resources/subscriptions/resourceGroups/read",
    neededFor: "finding the cluster of the nodes, where --aks-cluster does not name it",
    on: "NodeGroup",
  },
  {
    action: "Microsoft.Authorization/permissions/read",
    neededFor:
      "asking before a drain whether the pool may be told, without it only the release itself tells",
    on: "Cluster",
  },
];

/** Only for scale sets that are no pool of AKS: there a machine is deleted without AKS. */
export const scaleSetPermission: AzurePermission = {
  action: "Microsoft.Compute/virtualMachineScaleSets/delete/action",
  neededFor: "deleting a machine of a scale set directly, which AKS does not support for its pools",
  on: "NodeGroup",
};

/** What a controller that is used so needs, and no more. */
export function azurePermissionsFor(use: {
  readonly scaleSets: boolean;
}): readonly AzurePermission[] {
  return use.scaleSets ? [...azurePermissions, scaleSetPermission] : azurePermissions;
}
