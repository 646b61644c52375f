import { wanted } from "../setup/required-option.ts";
import { type AzureSetupChoice, azureSetupScript, azureUndoScript } from "./setup-script.ts";

/** The options of `lastcall setup` that this cloud reads. */
export interface AzureSetupOptions
  extends Omit<AzureSetupChoice, "subscription" | "resourceGroup" | "cluster" | "namespace"> {
  readonly undo: boolean;
  readonly subscription?: string | undefined;
  readonly resourceGroup?: string | undefined;
  readonly cluster?: string | undefined;
  readonly namespace?: string | undefined;
}

/** The script that they ask for. Throws USAGE. */
export function scriptOf(options: AzureSetupOptions): string {
  const make = options.undo ? azureUndoScript : azureSetupScript;
  const { subscription, resourceGroup, cluster } = options;
  return make({
    ...options,
    subscription: wanted("azure", {
      flag: "--subscription",
      value: subscription,
      meaning: "the subscription that the cluster is in",
    }),
    resourceGroup: wanted("azure", {
      flag: "--resource-group",
      value: resourceGroup,
      meaning: "the resource group of the cluster itself",
    }),
    cluster: wanted("azure", {
      flag: "--cluster",
      value: cluster,
      meaning: "the cluster whose machines are released",
    }),
    namespace: options.namespace ?? "lastcall",
  });
}
