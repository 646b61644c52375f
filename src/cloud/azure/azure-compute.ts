import type { Clock } from "../../contracts/clock.ts";
import type {
  InstanceReleaser,
  LaunchTimeReading,
  LaunchTimes,
} from "../../contracts/cloud/instances.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { fieldsOf, textOf } from "../../core/json/json-field.ts";
import type { Instant } from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import { type MachinePlace, placesOf, readPlaces } from "../release/launch-times.ts";
import { parseApiEndpoint } from "../release/rest-exchange.ts";
import { AksPools, type AksPoolsOptions, AksReleaser, computeVersion } from "./aks-releaser.ts";
import { ArmClient, armItems } from "./arm-client.ts";
import { azureTokens, resourceManagerOf } from "./azure-auth.ts";
import { createdAtOf, findMachineRef, type MachineRef, readPermissionOf } from "./azure-machine.ts";

export interface AzureSettings {
  /** The value of `--azure-endpoint`. */
  readonly endpoint?: string | undefined;
  /** The value of `--aks-cluster`. */
  readonly cluster?: string | undefined;
  /** The value of `--azure-delete-instances`. */
  readonly deleteInstances: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  readonly rng: Rng;
}

/** What the controller has of Azure; all over one client and one set of credentials. */
export interface AzureCompute {
  readonly releaser: InstanceReleaser;
  readonly launchTimes: LaunchTimes;
  /**
   * The machines of the same scale sets now, at most 500 of each, those of the scale sets of other
   * node pools where these may be listed, and those of pools and of Karpenter that are in none, all
   * of the same resource groups. Of 20 scale sets at most.
   */
  groupsOf(providerIDs: readonly string[], signal: AbortSignal): Promise<readonly string[]>;
}

/**
 * Puts the parts together; nothing is sent yet. Throws CONFIG_INVALID for an option that cannot be
 * one.
 */
export function createAzureCompute(settings: AzureSettings): AzureCompute {
  const { env, fetch, clock, rng } = settings;
  const manager = settings.endpoint ?? resourceManagerOf(env.AZURE_AUTHORITY_HOST);
  const endpoint = parseApiEndpoint("--azure-endpoint", manager);
  const tokens = azureTokens({ endpoint, env, fetch });
  const client = new ArmClient({ endpoint, tokens, fetch, clock, rng });
  const pools = new AksPools({ client, cluster: parseCluster(settings.cluster) });
  const pastAks = settings.deleteInstances ? "Allowed" : "Refused";
  return {
    releaser: new AksReleaser({ client, pools, pastAks, clock, rng }),
    launchTimes: new AzureLaunchTimes(client),
    groupsOf: async (providerIDs, signal) => {
      const refs = providerIDs.flatMap((id) => findMachineRef(id) ?? []);
      const groups = oneOfEach(refs.map(({ groupId }) => groupId)).slice(0, mostGroups);
      const pools = await Promise.all(groups.map((one) => poolsIn(client, one, signal)));
      const collections = refs.flatMap(({ scaleSet, collection }) => (scaleSet ? collection : []));
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

/** Azure spells its ids in either case. */
function oneOfEach(ids: readonly string[]): readonly string[] {
  const spelled = Map.groupBy(ids, (id) => id.toLowerCase());
  return [...spelled.values()].flatMap(([first]) => first ?? []);
}

/**
 * The lists of machines of all scale sets that are node pools. No role of ours holds the permission
 * to list scale sets: of who has it not, those of the nodes have to do.
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

/** By these tags a machine is meant to be a node: of a pool of single machines, or Karpenter's. */
const nodeTags = ["aks-managed-poolname", "karpenter.azure.com_cluster", "karpenter.sh_nodepool"];

/** Azure does not tell the case of a tag's letters apart. */
function isNode(tags: unknown): boolean {
  return Object.keys(fieldsOf(tags)).some((tag) => nodeTags.includes(tag.toLowerCase()));
}

/** The resource group of nodes is that of one cluster; what else it holds, is no node. */
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

/** Creation times by a list of each scale set. */
export class AzureLaunchTimes implements LaunchTimes {
  readonly #client: ArmClient;

  constructor(client: ArmClient) {
    this.#client = client;
  }

  async launchTimesOf(
    providerIDs: readonly string[],
    signal: AbortSignal,
  ): Promise<LaunchTimeReading> {
    // Azure spells its ids in either case.
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
