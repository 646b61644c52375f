/** Where a permission is granted: narrower than the subscription wherever Azure allows it. */
export type AzureScope = "Cluster" | "NodeGroup" | "Subscription";

export interface AzurePermission {
  /** As listed under Actions of a custom role. */
  readonly action: string;
  /** What it is used for, as part of a sentence. */
  readonly neededFor: string;
  readonly on: AzureScope;
}

/**
 * The minimal permissions of the controller's identity on AKS, according to Azure's lists of
 * resource provider operations. Not tested on a real subscription.
 */
export const azurePermissions: readonly AzurePermission[] = [
  {
    action: "Microsoft.ContainerService/managedClusters/agentPools/read",
    neededFor: "reading whether the pool of a machine has an autoscaler",
    on: "Cluster",
  },
  {
    action: "Microsoft.ContainerService/managedClusters/agentPools/deleteMachines/action",
    neededFor: "making the pool delete a machine",
    on: "Cluster",
  },
  {
    action: "Microsoft.ContainerService/locations/operations/read",
    neededFor: "waiting for the deletion",
    on: "Subscription",
  },
  {
    action: "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read",
    neededFor: "finding a machine, and its launch time",
    on: "NodeGroup",
  },
  {
    action: "Microsoft.Compute/virtualMachines/read",
    neededFor: "the same, in a node pool of the type VirtualMachines",
    on: "NodeGroup",
  },
  {
    action: "Microsoft.Resources/subscriptions/resourceGroups/read",
    neededFor: "finding the cluster of the nodes if --aks-cluster does not name it",
    on: "NodeGroup",
  },
  {
    action: "Microsoft.Authorization/permissions/read",
    neededFor:
      "checking before a drain whether the release will be permitted (without it, only the release itself shows that)",
    on: "Cluster",
  },
];

/** Not in the roles that Lastcall sets up: `lastcall doctor` works without it. */
export const scaleSetListPermission: AzurePermission = {
  action: "Microsoft.Compute/virtualMachineScaleSets/read",
  neededFor: "finding node pools none of whose machines became nodes",
  on: "NodeGroup",
};
