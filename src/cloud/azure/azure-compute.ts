import type { Clock } from "../../contracts/clock.ts";
import type { InstanceReleaser } from "../../contracts/cloud/instance-releaser.ts";
import type { LaunchTimeReading, LaunchTimes } from "../../contracts/cloud/launch-times.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { fieldsOf, textOf } from "../../core/json/json-field.ts";
import type { Instant } from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import { parseApiEndpoint } from "../release/api-endpoint.ts";
import { AksPools, type AksPoolsOptions } from "./aks-pools.ts";
import { AksReleaser } from "./aks-releaser.ts";
import { ArmClient, armItems } from "./arm-client.ts";
import { azureTokens, resourceManagerOf } from "./azure-auth.ts";
import { createdAtOf, findMachineRef, type MachineRef, readPermissionOf } from "./azure-machine.ts";
import { computeVersion } from "./release-act.ts";

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
   * The machines of the same scale set now, at most 500, and those of node pools and of Karpenter
   * that are in none, all of the same resource group.
   */
  groupOf(providerID: string, signal: AbortSignal): Promise<readonly string[]>;
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
    groupOf: async (providerID, signal) => {
      const ref = findMachineRef(providerID);
      if (ref === undefined) return [];
      const lists = await Promise.all([
        ref.scaleSet === undefined ? [] : machinesIn(client, ref, signal),
        singleNodes(client, ref, signal),
      ]);
      return lists.flat();
    },
  };
}

async function machinesIn(
  client: ArmClient,
  scaleSet: MachineRef,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { id } of armItems(client, listCall(scaleSet), signal)) {
    if (typeof id === "string") found.push(`azure://${id}`);
    if (found.length >= 500) break;
  }
  return found;
}

/** By these tags a machine is meant to be a node: of a pool of single machines, or Karpenter's. */
const nodeTags = ["aks-managed-poolname", "karpenter.azure.com_cluster", "karpenter.sh_nodepool"];

/** The resource group of nodes is that of one cluster; what else it holds, is no node. */
async function singleNodes(
  client: ArmClient,
  { groupId }: MachineRef,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const collection = `${groupId}/providers/Microsoft.Compute/virtualMachines`;
  const found: string[] = [];
  for await (const { id, tags } of armItems(client, listCall({ collection }), signal)) {
    // Azure does not tell the case of a tag's letters apart.
    const isNode = Object.keys(fieldsOf(tags)).some((tag) => nodeTags.includes(tag.toLowerCase()));
    if (typeof id === "string" && isNode) found.push(`azure://${id}`);
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

/** Machines of one scale set, or single ones of a resource group: what one list covers. */
interface Place {
  /** Any of them. */
  readonly ref: MachineRef;
  /** The providerID by the machine's id in lower case, since Azure spells its ids in either. */
  readonly wanted: Map<string, string>;
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
    signal.throwIfAborted();
    const bornAt = new Map<string, Instant>();
    const faults: LastcallError[] = [];
    const places = placesOf(providerIDs).map(async (place) => {
      try {
        await this.#readPlace(place, { bornAt, signal });
      } catch (error) {
        signal.throwIfAborted();
        if (!isLastcallError(error)) throw error;
        faults.push(error);
      }
    });
    await Promise.all(places);
    return { bornAt, faults };
  }

  async #readPlace(
    { ref, wanted }: Place,
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

function listCall(ref: Pick<MachineRef, "collection" | "scaleSet">) {
  return {
    method: "GET",
    path: ref.collection,
    apiVersion: computeVersion,
    action: `list ${ref.collection}`,
    permission: readPermissionOf(ref),
  } as const;
}

/** Machines of other clouds, and what is no virtual machine, are asked of nobody. */
function placesOf(providerIDs: readonly string[]): readonly Place[] {
  const places = new Map<string, Place>();
  for (const providerID of providerIDs) {
    const ref = findMachineRef(providerID);
    if (ref === undefined) continue;
    const key = ref.collection.toLowerCase();
    const place = places.get(key) ?? { ref, wanted: new Map() };
    place.wanted.set(ref.id.toLowerCase(), providerID);
    places.set(key, place);
  }
  return [...places.values()];
}
