import { fieldsOf, textOf, trimmedTextOf } from "../../core/json/json-field.ts";
import { LastcallError } from "../../errors.ts";
import type { ArmClient } from "./arm-client.ts";
import { type AzureMachine, clusterIdOf, type MachineRef } from "./azure-machine.ts";
import { aksVersion, type NodePool } from "./release-act.ts";

export interface AksPoolsOptions {
  readonly client: ArmClient;
  /** What `--aks-cluster` names; absent: the resource group of the nodes is asked whose it is. */
  readonly cluster?: { readonly group: string; readonly name: string } | undefined;
}

/** The node pools of AKS, found from their machines. */
export class AksPools {
  readonly #options: AksPoolsOptions;
  /** The cluster's resource id by that of its nodes' resource group: it never changes. */
  readonly #clusters = new Map<string, string>();

  constructor(options: AksPoolsOptions) {
    this.#options = options;
  }

  /** Undefined where the machine says nothing of a pool. */
  async poolOf(
    { ref, machine }: { readonly ref: MachineRef; readonly machine: AzureMachine },
    signal: AbortSignal,
  ): Promise<NodePool | undefined> {
    if (machine.pool === undefined) return undefined;
    const cluster = await this.#clusterOf(ref.groupId, signal);
    const id = `${cluster}/agentPools/${encodeURIComponent(machine.pool)}`;
    const action = `read the node pool ${machine.pool}`;
    const call = {
      method: "GET",
      path: id,
      apiVersion: aksVersion,
      action,
      permission: "Microsoft.ContainerService/managedClusters/agentPools/read",
    } as const;
    const answer = await this.#options.client.sendPatiently(call, signal);
    if (answer.kind === "NotFound") throw notThere(action, `no node pool ${id}`);
    const isAutoscaled = fieldsOf(answer.body.properties).enableAutoScaling === true;
    return { id, isAutoscaled };
  }

  async #clusterOf(groupId: string, signal: AbortSignal): Promise<string> {
    const { cluster } = this.#options;
    if (cluster !== undefined) return clusterIdOf(groupId, cluster);
    const known = this.#clusters.get(groupId.toLowerCase());
    if (known !== undefined) return known;
    const found = await this.#ownerOf(groupId, signal);
    this.#clusters.set(groupId.toLowerCase(), found);
    return found;
  }

  /**
   * AKS marks the resource group that it makes for the nodes of a cluster, in either of two ways.
   */
  async #ownerOf(groupId: string, signal: AbortSignal): Promise<string> {
    const action = `find the cluster whose nodes are in ${groupId}`;
    const call = {
      method: "GET",
      path: groupId,
      apiVersion: "2021-04-01",
      action,
      permission: "Microsoft.Resources/subscriptions/resourceGroups/read",
    } as const;
    const answer = await this.#options.client.sendPatiently(call, signal);
    if (answer.kind === "NotFound") throw notThere(action, "no such resource group");
    const owner = textOf(answer.body.managedBy) ?? "";
    if (/^\/subscriptions\/[^?#]+\/managedClusters\/[^/?#]+$/i.test(owner)) return owner;
    const tags = fieldsOf(answer.body.tags);
    const group = trimmedTextOf(tags["aks-managed-cluster-rg"]);
    const name = trimmedTextOf(tags["aks-managed-cluster-name"]);
    if (group !== undefined && name !== undefined) {
      return clusterIdOf(groupId, {
        group: encodeURIComponent(group),
        name: encodeURIComponent(name),
      });
    }
    throw notThere(action, "a resource group that names none");
  }
}

function notThere(action: string, found: string): LastcallError {
  const wanted = "expected a cluster of AKS, or its name in --aks-cluster GROUP/NAME";
  return new LastcallError("CLOUD_REFUSED", `Cannot ${action}: found ${found}, ${wanted}`);
}
