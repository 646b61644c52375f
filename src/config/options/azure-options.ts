import type { Option } from "./option.ts";

/** What `lastcall run` takes for the release of machines of Azure. */
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
    name: "azure-delete-instances",
    type: "switch",
    default: "false",
    commands: ["run", "doctor"],
    help: "Let instance.release: DeleteInstance delete instances of scale sets past AKS, which does not support that",
  },
] as const satisfies readonly Option[];
