import { readFile } from "node:fs/promises";
import type { INetworkModule } from "@azure/msal-node";
import { fieldsOf, textOf } from "../../core/json/json-field.ts";
import { LastcallError } from "../../errors.ts";
import { type ApiEndpoint, noTokens, type TokenSource } from "../release/rest-exchange.ts";

type Library = typeof import("@azure/msal-node");
type Environment = Readonly<Record<string, string | undefined>>;

interface AzureTokenOptions {
  readonly endpoint: ApiEndpoint;
  /**
   * AZURE_CLIENT_ID, AZURE_TENANT_ID, AZURE_FEDERATED_TOKEN_FILE and AZURE_AUTHORITY_HOST are read.
   */
  readonly env: Environment;
  readonly fetch: typeof fetch;
}

/**
 * Access tokens by Microsoft's own library: Workload Identity where AKS' webhook has named a token
 * file, the machine's managed identity where it has not. An endpoint on loopback gets none unless a
 * token file is named, so that tests and local servers need no account.
 */
export function azureTokens(options: AzureTokenOptions): TokenSource {
  const named = Boolean(options.env.AZURE_FEDERATED_TOKEN_FILE);
  return options.endpoint.loopback && !named ? noTokens : new AzureTokens(options);
}

interface TokenAnswer {
  readonly accessToken?: string;
}

/** Loads the library at the first token only: other clouds never need it. */
class AzureTokens implements TokenSource {
  readonly #options: AzureTokenOptions;
  #ask: (() => Promise<TokenAnswer | null>) | undefined;

  constructor(options: AzureTokenOptions) {
    this.#options = options;
  }

  async token(): Promise<string | undefined> {
    try {
      this.#ask ??= askBy(await import("@azure/msal-node"), this.#options);
      const answer = await this.#ask();
      if (answer?.accessToken) return answer.accessToken;
    } catch (error) {
      this.forget();
      throw credentialFault(error);
    }
    throw credentialsInvalid("found no token in the answer");
  }

  /** The library keeps its tokens in the application; a new one has none. */
  forget(): void {
    this.#ask = undefined;
  }
}

function askBy(
  { ConfidentialClientApplication, ManagedIdentityApplication }: Library,
  { env, fetch: send }: AzureTokenOptions,
): () => Promise<TokenAnswer | null> {
  const clientId = env.AZURE_CLIENT_ID;
  const file = env.AZURE_FEDERATED_TOKEN_FILE;
  const resource = resourceManagerOf(env.AZURE_AUTHORITY_HOST);
  const system = { networkClient: networkClient(send) };
  if (!file) {
    const managedIdentityIdParams = clientId ? { userAssignedClientId: clientId } : {};
    const identity = new ManagedIdentityApplication({ managedIdentityIdParams, system });
    return () => identity.acquireToken({ resource });
  }
  const tenant = env.AZURE_TENANT_ID;
  if (!clientId || !tenant) {
    throw credentialsInvalid("found a token file without AZURE_CLIENT_ID and AZURE_TENANT_ID");
  }
  const authority = new URL(tenant, env.AZURE_AUTHORITY_HOST || defaultAuthority);
  const application = new ConfidentialClientApplication({
    auth: {
      clientId,
      authority: authority.href,
      // The environment names it: it is not to be looked up at another.
      knownAuthorities: [authority.host],
      // The kubelet replaces the file each hour.
      clientAssertion: () => readFile(file, "utf8"),
    },
    system,
  });
  const request = { scopes: [`${resource}/.default`] };
  return () => application.acquireTokenByClientCredential(request);
}

/** The library's requests over the one `fetch` of the process. */
function networkClient(send: typeof fetch): INetworkModule {
  const request =
    (method: "GET" | "POST") =>
    async <T>(url: string, options: { headers?: Record<string, string>; body?: string } = {}) => {
      const { headers, body } = options;
      const init: RequestInit = { method, redirect: "error" };
      if (headers !== undefined) init.headers = headers;
      if (body !== undefined) init.body = body;
      const response = await send(url, init);
      return {
        status: response.status,
        headers: Object.fromEntries(response.headers),
        body: (await response.json()) as T,
      };
    };
  return { sendGetRequestAsync: request("GET"), sendPostRequestAsync: request("POST") };
}

/**
 * The library's own messages are not repeated, since they may quote from a request: the error says
 * Entra's code, such as AADSTS700212, which its documentation explains.
 */
function credentialFault(error: unknown): LastcallError {
  if (error instanceof LastcallError) return error;
  const { errorCode, errorMessage, code, cause } = fieldsOf(error);
  const entra = /AADSTS\d+/.exec(textOf(errorMessage) ?? "")?.[0];
  if (entra !== undefined) return credentialsInvalid(`found that Entra ID answered ${entra}`);
  if (code === "ENOENT" || code === "EACCES") {
    return credentialsInvalid("found that the file of AZURE_FEDERATED_TOKEN_FILE is unreadable");
  }
  const isNetwork = error instanceof TypeError || cause !== undefined;
  const named = textOf(errorCode) ?? "";
  if (isNetwork || /network|timeout|no_network|endpoints_resolution/.test(named)) {
    const found = "found no connection to the token service";
    return new LastcallError("CLOUD_UNREACHABLE", `${cannot}: ${found}, expected an answer`);
  }
  return credentialsInvalid(`found credentials that cannot be used (${named || "no code"})`);
}

const cannot = "Cannot get an Azure access token";

function credentialsInvalid(found: string): LastcallError {
  const wanted =
    "expected Workload Identity (the pod's label azure.workload.identity/use) or a managed identity";
  return new LastcallError("CLOUD_CREDENTIALS", `${cannot}: ${found}, ${wanted}`);
}

/** One of Azure's clouds, by the host of its sign-in. */
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

const defaultAuthority = `https://${publicCloud.authorityHost}/`;
