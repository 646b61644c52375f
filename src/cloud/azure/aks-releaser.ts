import type {
  InstanceReleaser,
  Releasability,
  ReleaseQuestion,
  ReleaseRequest,
  ReleaseResult,
} from "../../contracts/cloud.ts";
import type { MachineState } from "../../core/cluster/machine.ts";
import { fieldsOf, listOf, textOf, trimmedTextOf } from "../../core/json/json-field.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import {
  type LeavingMachine,
  type ReleaseBounds,
  type ReleaseLoopOptions,
  releaseByLooking,
  type Standing,
} from "../release/release-loop.ts";
import { timeOf } from "../release/rest-exchange.ts";
import { type ArmCall, type ArmClient, awaitArmOperation } from "./arm-client.ts";
import {
  type AzureMachine,
  clusterIdOf,
  findMachineRef,
  type MachineRef,
  namesOf,
  readMachine,
  readPermissionOf,
} from "./azure-machine.ts";

/** A node pool, as AKS describes it. */
interface NodePool {
  /** Its resource id. */
  readonly id: string;
  readonly isAutoscaled: boolean;
}

interface AzureRelease {
  readonly ref: MachineRef;
  readonly machine: AzureMachine;
  readonly mode: ReleaseRequest["mode"];
  /** Undefined if AKS did not create the machine. */
  readonly pool: NodePool | undefined;
}

type ReleaseAct =
  | {
      readonly kind: "Act";
      readonly call: ArmCall;
      /** The resource on which the permission is needed. */
      readonly scope: string;
    }
  /** The pool's owner does not allow the mode; `problem` says what to set instead. */
  | { readonly kind: "Refused"; readonly problem: string };

export const computeVersion = "2024-07-01";
const aksVersion = "2026-04-01";
const deleteMachines =
  "Microsoft.ContainerService/managedClusters/agentPools/deleteMachines/action";

/** Chooses the call that releases a machine through its node pool, which is AKS's only way. */
function releaseAct({ ref, machine, mode, pool }: AzureRelease): ReleaseAct {
  if (pool === undefined) {
    return refused(
      `${ref.id} is not in an AKS node pool (its tag aks-managed-poolName is missing), set instance.release to None`,
    );
  }
  if (mode === "DeleteInstance") {
    return refused(
      `${ref.id} is in the AKS node pool ${machine.pool}, which deletes its own machines, set instance.release to Delete`,
    );
  }
  if (machine.name === undefined) {
    return refused(
      `the AKS machine name of ${ref.id} is unknown, because it has no osProfile.computerName`,
    );
  }
  if (mode === "Recreate" && !pool.isAutoscaled) {
    return refused(
      `the node pool ${machine.pool} has no autoscaler that would replace the machine, enable it or set instance.release to Delete`,
    );
  }
  return {
    kind: "Act",
    scope: pool.id,
    call: {
      method: "POST",
      path: `${pool.id}/deleteMachines`,
      apiVersion: aksVersion,
      body: { machineNames: [machine.name] },
      action: `delete ${machine.name} in the node pool ${machine.pool}`,
      permission: deleteMachines,
    },
  };
}

function refused(problem: string): ReleaseAct {
  return { kind: "Refused", problem };
}

export interface AksPoolsOptions {
  readonly client: ArmClient;
  /** Value of `--aks-cluster`; by default the owner of the nodes' resource group is looked up. */
  readonly cluster?: { readonly group: string; readonly name: string } | undefined;
}

/** Finds the AKS node pools of machines. */
export class AksPools {
  readonly #options: AksPoolsOptions;
  /** Cluster resource ids by the nodes' resource group; they never change. */
  readonly #clusters = new Map<string, string>();

  constructor(options: AksPoolsOptions) {
    this.#options = options;
  }

  /** Undefined if the machine names no pool. */
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

  /** AKS marks the resource group that it creates for a cluster's nodes in one of two ways. */
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
    throw notThere(action, "a resource group without tags that name one");
  }
}

function notThere(action: string, found: string): LastcallError {
  const wanted = "expected that of an AKS cluster, set --aks-cluster GROUP/NAME";
  return new LastcallError("CLOUD_REFUSED", `Cannot ${action}: found ${found}, ${wanted}`);
}

interface AksReleaserOptions extends ReleaseLoopOptions {
  readonly client: ArmClient;
  readonly pools: AksPools;
}

/**
 * Releases Azure virtual machines through their AKS node pool. An abort rejects with the signal's
 * reason while Azure finishes the request; calling again with the same request resumes it.
 */
export class AksReleaser implements InstanceReleaser {
  readonly #options: AksReleaserOptions;

  constructor(options: AksReleaserOptions) {
    this.#options = options;
  }

  async describe(providerID: string, signal: AbortSignal): Promise<MachineState> {
    const machine = await this.#look(machineRefOf(providerID), signal);
    if (machine === undefined) return { kind: "Absent" };
    const { vmId: id, createdAt: bornAt, asOf, stage } = machine;
    const names = namesOf(machine);
    return { kind: "Present", id, bornAt, asOf, running: stage === "Running", names };
  }

  async check(question: ReleaseQuestion, signal: AbortSignal): Promise<Releasability> {
    const ref = machineRefOf(question.providerID);
    const machine = await this.#look(ref, signal);
    if (machine === undefined) return impossible(`Azure has no virtual machine ${ref.id}`);
    // It is already being deleted, so no permission is needed.
    const names = namesOf(machine);
    if (machine.stage !== "Running") return { kind: "Possible", permission: "Unknown", names };
    const act = await this.#actFor({ ref, machine, mode: question.mode }, signal);
    if (act.kind === "Refused") return impossible(act.problem);
    const { permission: action } = act.call;
    const { client } = this.#options;
    const permission = await permissionOn(act.scope, { action, client }, signal);
    if (permission !== "Missing") return { kind: "Possible", permission, names };
    const place = `on ${act.scope}, grant it (docs/cloud/azure.md#permissions)`;
    return impossible(`the permission ${action} is not granted ${place}`);
  }

  async release(request: ReleaseRequest, signal: AbortSignal): Promise<ReleaseResult> {
    const ref = machineRefOf(request.providerID);
    const { machineId, mode, lastLook } = request;
    const machine: LeavingMachine<AzureMachine> = {
      look: (until) => this.#look(ref, until),
      standing: (seen) => (seen.vmId === machineId ? standings[seen.stage] : "Replaced"),
      act: (seen, bounds) => this.#act({ ref, machine: seen, mode }, bounds),
      stillThere: (seen) => stillThere(ref, seen),
    };
    return releaseByLooking({ machine, lastLook }, this.#options, signal);
  }

  async #look(ref: MachineRef, signal: AbortSignal): Promise<AzureMachine | undefined> {
    const action = `read the virtual machine ${ref.id}`;
    const call = {
      method: "GET",
      path: ref.id,
      apiVersion: computeVersion,
      query: { $expand: "instanceView" },
      action,
      permission: readPermissionOf(ref),
    } as const;
    const answer = await this.#options.client.sendPatiently(call, signal);
    if (answer.kind === "NotFound") return undefined;
    const machine = readMachine(answer.body);
    if (machine !== undefined) return { ...machine, asOf: timeOf(answer) };
    const found = "found a response without vmId";
    throw new LastcallError("CLOUD_UNREACHABLE", `Cannot ${action}: ${found}, expected a machine`);
  }

  async #actFor(
    target: Pick<AzureRelease, "ref" | "machine" | "mode">,
    signal: AbortSignal,
  ): Promise<ReleaseAct> {
    const pool = await this.#options.pools.poolOf(target, signal);
    return releaseAct({ ...target, pool });
  }

  async #act(
    target: Pick<AzureRelease, "ref" | "machine" | "mode">,
    bounds: ReleaseBounds,
  ): Promise<void> {
    const { client, clock, rng } = this.#options;
    const act = await this.#actFor(target, bounds.signal);
    if (act.kind === "Refused") {
      throw new LastcallError("CLOUD_REFUSED", `Cannot release a machine: ${act.problem}`);
    }
    const started = await client.send(act.call, bounds.signal);
    await awaitArmOperation(started, { client, clock, rng, purpose: act.call }, bounds);
  }
}

const standings = {
  Running: "Staying",
  Leaving: "Leaving",
  Stopped: "Gone",
} as const satisfies Record<AzureMachine["stage"], Standing>;

/** Throws CLOUD_REFUSED if the providerID is not that of a virtual machine. */
function machineRefOf(providerID: string): MachineRef {
  const ref = findMachineRef(providerID);
  if (ref !== undefined) return ref;
  throw new LastcallError(
    "CLOUD_REFUSED",
    `Cannot release a machine: found the providerID ${providerID}, expected azure:///subscriptions/…/virtualMachines/…`,
  );
}

function stillThere({ id }: MachineRef, { state }: AzureMachine): LastcallError {
  return new LastcallError(
    "CLOUD_REFUSED",
    `Cannot release ${id}: found it still ${state} at the end of the wait, expected it deleted (az aks operation show-latest shows what AKS is doing)`,
    { retryable: true },
  );
}

function impossible(problem: string): Releasability {
  return { kind: "Impossible", problem };
}

/**
 * Whether the controller may perform `action` on a resource, according to the list of one's own
 * permissions that Azure provides to everybody. `Unknown` if that list is refused.
 */
async function permissionOn(
  scope: string,
  { action, client }: { readonly action: string; readonly client: ArmClient },
  signal: AbortSignal,
): Promise<"Granted" | "Missing" | "Unknown"> {
  const call = {
    method: "GET",
    path: `${scope}/providers/Microsoft.Authorization/permissions`,
    apiVersion: "2022-04-01",
    action: `check whether ${action} is granted`,
    permission: "Microsoft.Authorization/permissions/read",
  } as const;
  const answer = await client.sendPatiently(call, signal).catch(unlessRefused);
  if (answer?.kind !== "Found" || !Array.isArray(answer.body.value)) return "Unknown";
  const isGranted = answer.body.value
    .map(fieldsOf)
    .some(({ actions, notActions }) => names(actions, action) && !names(notActions, action));
  return isGranted ? "Granted" : "Missing";
}

/** Actions are compared case-insensitively, and `*` matches anything. */
function names(patterns: unknown, action: string): boolean {
  return listOf(patterns).some((pattern) => {
    const source = String(pattern).split("*").map(escaped).join(".*");
    return new RegExp(`^${source}$`, "i").test(action);
  });
}

function unlessRefused(error: unknown): undefined {
  const code = isLastcallError(error) ? error.code : undefined;
  if (code !== "CLOUD_RIGHT_MISSING" && code !== "CLOUD_REFUSED") throw error;
  return undefined;
}

/** `RegExp.escape` is newer than the oldest supported Node. */
function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
