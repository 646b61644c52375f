/** Options of the controller and the agent. */
export const azureOptions = [
  {
    name: "azure-endpoint",
    type: "url",
    value: "URL",
    commands: ["run", "doctor"],
    help: "URL of the Azure Resource Manager; default: that of the cloud in AZURE_AUTHORITY_HOST, or Azure's public one",
  },
  {
    name: "aks-cluster",
    type: "text",
    value: "GROUP/NAME",
    commands: ["run", "doctor"],
    help: "Resource group and name of the cluster in AKS; default: found by the resource group of its nodes",
  },
  {
    name: "azure-acknowledge",
    type: "switch",
    default: "false",
    commands: ["agent"],
    help: "Acknowledge an Azure event once the node is drained, if the event concerns no other machine",
  },
] as const;

/** Options of `lastcall setup azure`, in addition to those of every cloud. */
export const azureSetupOptions = [
  {
    name: "subscription",
    type: "text",
    value: "ID",
    commands: ["setup"],
    parts: ["azure"],
    help: "With azure, required: the id of the cluster's subscription",
  },
  {
    name: "resource-group",
    type: "text",
    value: "NAME",
    commands: ["setup"],
    parts: ["azure"],
    help: "With azure, required: the resource group of the cluster itself, not that of its nodes",
  },
  {
    name: "managed-identity",
    type: "text",
    value: "NAME",
    default: "lastcall",
    commands: ["setup"],
    parts: ["azure"],
    help: "With azure: user-assigned identity to create in the cluster's resource group",
  },
] as const;
