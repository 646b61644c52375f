import { readFile } from "node:fs/promises";
import type { INetworkModule } from "@azure/msal-node";
import type { Clock } from "../../contracts/clock.ts";
import type { InstanceReleaser, LaunchTimeReading, LaunchTimes } from "../../contracts/cloud.ts";
import type { Rng } from "../../core/chance/chance.ts";
import { fieldsOf, textOf } from "../../core/json/json-field.ts";
import type { Instant } from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import { type MachinePlace, placesOf, readPlaces } from "../release/release-loop.ts";
import {
  type ApiEndpoint,
  noTokens,
  parseApiEndpoint,
  type TokenSource,
} from "../release/rest-exchange.ts";
import { AksPools, type AksPoolsOptions, AksReleaser, computeVersion } from "./aks-releaser.ts";
import { ArmClient, armItems } from "./arm-client.ts";
import { createdAtOf, findMachineRef, type MachineRef, readPermissionOf } from "./azure-machine.ts";

type AzureLibrary = typeof import("@azure/msal-node");
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
 * Access tokens by Microsoft's own library: Workload Identity if the AKS webhook has named a token
 * file, otherwise the machine's managed identity. An endpoint on loopback gets none unless a token
 * file is named, so that tests and local servers need no account.
 */
export function azureTokens(options: AzureTokenOptions): TokenSource {
  const named = Boolean(options.env.AZURE_FEDERATED_TOKEN_FILE);
  return options.endpoint.loopback && !named ? noTokens : new AzureTokens(options);
}

interface TokenAnswer {
  readonly accessToken?: string;
}

type Ask = (how: { readonly forceRefresh: boolean }) => Promise<TokenAnswer | null>;

/** The library is loaded for the first token: other clouds never need it. */
class AzureTokens implements TokenSource {
  readonly #options: AzureTokenOptions;
  #ask: Ask | undefined;
  #isRejected = false;

  constructor(options: AzureTokenOptions) {
    this.#options = options;
  }

  async token(): Promise<string | undefined> {
    try {
      this.#ask ??= askBy(await import("@azure/msal-node"), this.#options);
      const answer = await this.#ask({ forceRefresh: this.#isRejected });
      if (answer?.accessToken) {
        this.#isRejected = false;
        return answer.accessToken;
      }
    } catch (error) {
      this.#ask = undefined;
      throw credentialFault(error);
    }
    throw credentialsInvalid("found no token in the response");
  }

  /**
   * The library caches tokens in the application; a new application has none. Those of a managed
   * identity it caches for the life of the process, so that the next request must force a new one.
   */
  forget(): void {
    this.#ask = undefined;
    this.#isRejected = true;
  }
}

function askBy(
  { ConfidentialClientApplication, ManagedIdentityApplication }: AzureLibrary,
  { env, fetch: send }: AzureTokenOptions,
): Ask {
  const clientId = env.AZURE_CLIENT_ID;
  const file = env.AZURE_FEDERATED_TOKEN_FILE;
  const resource = resourceManagerOf(env.AZURE_AUTHORITY_HOST);
  const system = { networkClient: networkClient(send) };
  if (!file) {
    const managedIdentityIdParams = clientId ? { userAssignedClientId: clientId } : {};
    const identity = new ManagedIdentityApplication({ managedIdentityIdParams, system });
    return ({ forceRefresh }) => identity.acquireToken({ resource, forceRefresh });
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
      // The environment names the authority: do not discover another.
      knownAuthorities: [authority.host],
      // The kubelet replaces the file each hour.
      clientAssertion: () => readFile(file, "utf8"),
    },
    system,
  });
  const request = { scopes: [`${resource}/.default`] };
  return () => application.acquireTokenByClientCredential(request);
}

/** Sends the library's requests through the process's one `fetch`. */
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
 * The library's own messages are not repeated, since they may quote from a request. The error gives
 * Entra's code, such as AADSTS700212, which Entra's documentation explains.
 */
function credentialFault(error: unknown): LastcallError {
  if (error instanceof LastcallError) return error;
  const { errorCode, errorMessage, status, code, cause } = fieldsOf(error);
  const named = textOf(errorCode) ?? "";
  const entra = /AADSTS\d+/.exec(textOf(errorMessage) ?? "")?.[0];
  if (isTransient(status) || named === "temporarily_unavailable") {
    const found = `found that the token service responded with ${status} (${entra ?? named})`;
    const wanted = "expected a token; retrying";
    return new LastcallError("CLOUD_UNREACHABLE", `${cannot}: ${found}, ${wanted}`);
  }
  if (entra !== undefined) return credentialsInvalid(`found that Entra ID responded with ${entra}`);
  if (code === "ENOENT" || code === "EACCES") {
    return credentialsInvalid("found that the file of AZURE_FEDERATED_TOKEN_FILE is unreadable");
  }
  const isNetwork = error instanceof TypeError || cause !== undefined;
  if (isNetwork || /network|timeout|no_network|endpoints_resolution/.test(named)) {
    const found = "found no connection to the token service";
    return new LastcallError("CLOUD_UNREACHABLE", `${cannot}: ${found}, expected a response`);
  }
  return credentialsInvalid(`found credentials that cannot be used (${named || "no code"})`);
}

function isTransient(status: unknown): boolean {
  return typeof status === "number" && (status >= 500 || status === 429);
}

const cannot = "Cannot get an Azure access token";

function credentialsInvalid(found: string): LastcallError {
  const wanted =
    "expected Workload Identity (the pod's label azure.workload.identity/use) or a managed identity";
  return new LastcallError("CLOUD_CREDENTIALS", `${cannot}: ${found}, ${wanted}`);
}

/** One of Azure's clouds, by its sign-in host. */
interface AzureCloud {
  readonly authorityHost: string;
  readonly resourceManager: string;
}

const publicCloud: AzureCloud = {
  authorityHost: "login.microsoftonline.com",
  resourceManager: "https://management.azure.com",
};

/** Source: the clouds in Azure's own SDKs. */
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
 * Value of AZURE_AUTHORITY_HOST, which the AKS webhook sets, such as
 * `https://login.microsoftonline.com/`.
 */
function resourceManagerOf(authority: string | undefined): string {
  const host = authority !== undefined && URL.canParse(authority) ? new URL(authority).host : "";
  const cloud = clouds.find(({ authorityHost }) => authorityHost === host) ?? publicCloud;
  return cloud.resourceManager;
}

const defaultAuthority = `https://${publicCloud.authorityHost}/`;

export interface AzureSettings {
  /** Value of `--azure-endpoint`. */
  readonly endpoint?: string | undefined;
  /** Value of `--aks-cluster`. */
  readonly cluster?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  readonly rng: Rng;
}

/** The controller's access to Azure, with one client and one set of credentials. */
export interface AzureCompute {
  readonly releaser: InstanceReleaser;
  readonly launchTimes: LaunchTimes;
  /**
   * The machines that run in the same scale sets and resource groups as the given ones: at most 500
   * of each of their scale sets, those of other node pools' scale sets if these may be listed, and,
   * in the same resource groups, those of pools and of Karpenter that are in no scale set. At most
   * 20 scale sets are read.
   */
  groupsOf(providerIDs: readonly string[], signal: AbortSignal): Promise<readonly string[]>;
}

/** Creates the parts without sending anything. Throws CONFIG_INVALID for an invalid option. */
export function createAzureCompute(settings: AzureSettings): AzureCompute {
  const { env, fetch, clock, rng } = settings;
  const manager = settings.endpoint ?? resourceManagerOf(env.AZURE_AUTHORITY_HOST);
  const endpoint = parseApiEndpoint("--azure-endpoint", manager);
  const tokens = azureTokens({ endpoint, env, fetch });
  const client = new ArmClient({ endpoint, tokens, fetch, clock, rng });
  const pools = new AksPools({ client, cluster: parseCluster(settings.cluster) });
  return {
    releaser: new AksReleaser({ client, pools, clock, rng }),
    launchTimes: new AzureLaunchTimes(client),
    groupsOf: async (providerIDs, signal) => {
      const refs = providerIDs.flatMap((id) => findMachineRef(id) ?? []);
      const groups = oneOfEach(refs.map(({ groupId }) => groupId)).slice(0, mostGroups);
      const pools = await Promise.all(groups.map((one) => poolsIn(client, one, signal)));
      const collections = refs.flatMap(({ isInSet, collection }) => (isInSet ? collection : []));
      const scaleSets = oneOfEach([...collections, ...pools.flat()]).slice(0, mostScaleSets);
      const lists = await Promise.all([
        ...scaleSets.map((collection) => machinesIn(client, collection, signal)),
        ...groups.map((groupId) => singleNodes(client, groupId, signal)),
      ]);
      return lists.flat();
    },
  };
}

const mostGroups = 5;
const mostScaleSets = 20;

/** Azure writes resource ids in either case. */
function oneOfEach(ids: readonly string[]): readonly string[] {
  const spelled = Map.groupBy(ids, (id) => id.toLowerCase());
  return [...spelled.values()].flatMap(([first]) => first ?? []);
}

/**
 * The machine lists of all scale sets that are node pools. The roles that Lastcall sets up lack the
 * permission to list scale sets; without it, only the scale sets of the known nodes are used.
 */
async function poolsIn(
  client: ArmClient,
  groupId: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const path = `${groupId}/providers/Microsoft.Compute/virtualMachineScaleSets`;
  const permission = "Microsoft.Compute/virtualMachineScaleSets/read";
  const action = `list ${path}`;
  const call = { method: "GET", path, apiVersion: computeVersion, action, permission } as const;
  const found: string[] = [];
  try {
    for await (const { id, tags } of armItems(client, call, signal)) {
      if (typeof id === "string" && isNode(tags)) found.push(`${id}/virtualMachines`);
    }
  } catch (error) {
    if (!isLastcallError(error) || error.code !== "CLOUD_RIGHT_MISSING") throw error;
  }
  return found;
}

async function machinesIn(
  client: ArmClient,
  collection: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { id } of armItems(client, listCall({ collection }), signal)) {
    if (typeof id === "string") found.push(`azure://${id}`);
    if (found.length >= 500) break;
  }
  return found;
}

/** These tags mark a machine as a node: of a pool of single machines, or Karpenter's. */
const nodeTags = ["aks-managed-poolname", "karpenter.azure.com_cluster", "karpenter.sh_nodepool"];

/** Azure compares tag names case-insensitively. */
function isNode(tags: unknown): boolean {
  return Object.keys(fieldsOf(tags)).some((tag) => nodeTags.includes(tag.toLowerCase()));
}

/** The nodes' resource group belongs to one cluster; anything else in it is not a node. */
async function singleNodes(
  client: ArmClient,
  groupId: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const collection = `${groupId}/providers/Microsoft.Compute/virtualMachines`;
  const found: string[] = [];
  for await (const { id, tags } of armItems(client, listCall({ collection }), signal)) {
    if (typeof id === "string" && isNode(tags)) found.push(`azure://${id}`);
  }
  return found;
}

function parseCluster(text: string | undefined): AksPoolsOptions["cluster"] {
  if (text === undefined) return undefined;
  const [, group, name] = /^([-\w.()]+)\/([-\w]+)$/.exec(text) ?? [];
  if (group !== undefined && name !== undefined) return { group, name };
  throw new LastcallError(
    "CONFIG_INVALID",
    `Cannot use --aks-cluster: found ${JSON.stringify(text)}, expected GROUP/NAME`,
  );
}

/** Creation times, by listing each scale set. */
export class AzureLaunchTimes implements LaunchTimes {
  readonly #client: ArmClient;

  constructor(client: ArmClient) {
    this.#client = client;
  }

  async launchTimesOf(
    providerIDs: readonly string[],
    signal: AbortSignal,
  ): Promise<LaunchTimeReading> {
    // Azure writes resource ids in either case.
    const places = placesOf(providerIDs, (providerID) => {
      const ref = findMachineRef(providerID);
      return ref && { ref, key: ref.collection.toLowerCase(), id: ref.id.toLowerCase() };
    });
    return readPlaces(
      places,
      (place, bornAt) => this.#readPlace(place, { bornAt, signal }),
      signal,
    );
  }

  async #readPlace(
    { ref, wanted }: MachinePlace<MachineRef>,
    into: { readonly bornAt: Map<string, Instant>; readonly signal: AbortSignal },
  ): Promise<void> {
    for await (const item of armItems(this.#client, listCall(ref), into.signal)) {
      const providerID = wanted.get((textOf(item.id) ?? "").toLowerCase());
      const createdAt = createdAtOf(item);
      if (providerID !== undefined && createdAt !== undefined) {
        into.bornAt.set(providerID, createdAt);
      }
    }
  }
}

function listCall({ collection }: Pick<MachineRef, "collection">) {
  return {
    method: "GET",
    path: collection,
    apiVersion: computeVersion,
    action: `list ${collection}`,
    permission: readPermissionOf({ collection }),
  } as const;
}
