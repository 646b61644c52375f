import type {
  CloudAccess,
  CloudAccessOptions,
  CloudAdapters,
} from "../../contracts/cloud-descriptor.ts";
import type { AzureSetupOptions } from "./setup-options.ts";

export const azureAdapters = {
  access: azureAccess,
  setupScript: async (options: AzureSetupOptions) =>
    (await import("./setup-options.ts")).scriptOf(options),
} satisfies CloudAdapters;

async function azureAccess(
  options: {
    readonly azureEndpoint?: string | undefined;
    readonly aksCluster?: string | undefined;
  },
  parts: CloudAccessOptions,
): Promise<CloudAccess> {
  const { createAzureCompute } = await import("./azure-compute.ts");
  const { azureEndpoint: endpoint, aksCluster: cluster } = options;
  return { machines: createAzureCompute({ endpoint, cluster, ...parts }) };
}
