import type { Cloud, CloudAccount, NoticeSourceOptions } from "../../contracts/cloud-descriptor.ts";
import { seconds } from "../../core/time/time.ts";
import { azureFacts } from "./azure-facts.ts";
import { azureOptions, azureSetupOptions } from "./azure-options.ts";

/** Azure's virtual machines, and AKS. */
export const azure = {
  facts: azureFacts,
  options: azureOptions,
  setup: {
    options: azureSetupOptions,
    examples: [
      "--subscription 1b2e6f80-0000-4000-8000-000000000000 --resource-group shop --cluster main",
    ],
    cluster: ", required: the cluster",
    asksRelease: false,
  },
  audit: {
    ownLabels: /^(kubernetes\.azure\.com|karpenter\.azure\.com)\//,
    // No field of AKS sets it.
    platforms: { aks: { totalSeconds: 0, criticalSeconds: 0, what: "AKS" } },
    usualPlatforms: ["aks"],
    platformOf: () => "aks",
  },
  doctor: { tools: [], identityProblem },
  probe: {
    request: {
      path: "/metadata/instance/compute/name?api-version=2021-02-01&format=text",
      headers: { metadata: "true" },
      timeoutMs: seconds(2),
    },
    fits: ({ status, text }) =>
      status === 200 && /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(text.trim()),
  },
  noticeSource: async (options: NoticeSourceOptions) =>
    new (await import("./notice-source.ts")).AzureNoticeSource(options),
  acknowledges: (options: { readonly azureAcknowledge: boolean }) => options.azureAcknowledge,
} as const satisfies Cloud;

function identityProblem({ annotations, podLabels }: CloudAccount): string | undefined {
  if (annotations["azure.workload.identity/client-id"] === undefined) return undefined;
  if (podLabels["azure.workload.identity/use"] === "true") return undefined;
  const lack = "its pods lack the label azure.workload.identity/use: true";
  return `the ServiceAccount names an Azure identity, but ${lack}`;
}
