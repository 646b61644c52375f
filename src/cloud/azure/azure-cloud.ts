/** One of Azure's clouds, told by the host at which it signs in. */
interface AzureCloud {
  readonly authorityHost: string;
  readonly resourceManager: string;
}

const publicCloud: AzureCloud = {
  authorityHost: "login.microsoftonline.com",
  resourceManager: "https://management.azure.com",
};

/** Source: the clouds of Azure's own SDKs. */
const clouds: readonly AzureCloud[] = [
  publicCloud,
  {
    authorityHost: "login.microsoftonline.us",
    resourceManager: "https://management.usgovcloudapi.net",
  },
  {
    authorityHost: "login.chinacloudapi.cn",
    resourceManager: "https://management.chinacloudapi.cn",
  },
  {
    authorityHost: "login.partner.microsoftonline.cn",
    resourceManager: "https://management.chinacloudapi.cn",
  },
];

/**
 * Of AZURE_AUTHORITY_HOST, which AKS' webhook sets, such as `https://login.microsoftonline.com/`.
 */
export function resourceManagerOf(authority: string | undefined): string {
  const host = authority !== undefined && URL.canParse(authority) ? new URL(authority).host : "";
  const cloud = clouds.find(({ authorityHost }) => authorityHost === host) ?? publicCloud;
  return cloud.resourceManager;
}

export const defaultAuthority = `https://${publicCloud.authorityHost}/`;
