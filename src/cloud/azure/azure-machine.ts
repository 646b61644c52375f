import type { MachineNames } from "../../core/cluster/machine-name.ts";
import {
  type Fields,
  fieldsOf,
  instantOf,
  listOf,
  textOf,
  trimmedTextOf,
  valueAt,
} from "../../core/json/json-field.ts";
import type { Instant } from "../../core/time/time.ts";

/**
 * A virtual machine by its resource id: an instance of a scale set, or one of a pool of single
 * machines.
 */
export interface MachineRef {
  /**
   * As in the providerID, for example
   * `/subscriptions/S/resourceGroups/G/providers/…/virtualMachines/3`.
   */
  readonly id: string;
  /** The list that contains the machine: the id without its last part. */
  readonly collection: string;
  /** Its resource group, which for AKS is that of the nodes. */
  readonly groupId: string;
  /** False for a single machine, as in pools of type VirtualMachines. */
  readonly isInSet: boolean;
}

const machineId =
  /^azure:\/\/((\/subscriptions\/[^/]+\/resourceGroups\/[^/]+)\/providers\/Microsoft\.Compute\/(virtualMachineScaleSets\/[^/]+\/)?virtualMachines)\/([^/]+)$/i;

/** The permission to read the machine's resource, or the list that contains it. */
export function readPermissionOf({ collection }: Pick<MachineRef, "collection">): string {
  const isInSet = /\/virtualMachineScaleSets\//i.test(collection);
  const type = isInSet ? "virtualMachineScaleSets/virtualMachines" : "virtualMachines";
  return `Microsoft.Compute/${type}/read`;
}

/** Parses a providerID; undefined for anything else. Source: cloud-provider-azure. */
export function findMachineRef(providerID: string): MachineRef | undefined {
  const found = machineId.exec(providerID);
  if (found === null) return undefined;
  const [, collection = "", groupId = "", scaleSet, name = ""] = found;
  const id = `${collection}/${name}`;
  // It becomes part of a URL, in which `.` and `..` would name another resource.
  if (!/^[-\w./()]+$/.test(id) || /\/\.\.?(\/|$)/.test(id)) return undefined;
  return { id, collection, groupId, isInSet: scaleSet !== undefined };
}

/** A virtual machine, as Azure describes it. */
export interface AzureMachine {
  /** Azure's own unique id, which no other machine ever has. */
  readonly vmId: string;
  readonly createdAt: Instant | undefined;
  /** When it was read, by Azure's clock; absent if the response did not say. */
  readonly asOf?: Instant | undefined;
  readonly stage: "Running" | "Leaving" | "Stopped";
  /** Azure's states, such as `Succeeded` or `PowerState/deallocated`. */
  readonly state: string;
  /** The machine's name in AKS, which is the Node's. */
  readonly name: string | undefined;
  /** The AKS node pool that created it. */
  readonly pool: string | undefined;
}

/** Undefined for a machine without a name of its own, as one made from a specialized disk. */
export function namesOf({ name }: Pick<AzureMachine, "name">): MachineNames | undefined {
  return name === undefined ? undefined : { hosts: [name] };
}

/** Parses a body with its instance view; undefined if it is not a virtual machine. */
export function readMachine(body: Fields): AzureMachine | undefined {
  const properties = fieldsOf(body.properties);
  const vmId = trimmedTextOf(properties.vmId);
  if (vmId === undefined) return undefined;
  const provisioning = textOf(properties.provisioningState) ?? "";
  const power = powerOf(valueAt(properties, ["instanceView", "statuses"]));
  return {
    vmId,
    createdAt: createdAtOf(body),
    stage: stageOf(provisioning, power),
    state: power === "" ? provisioning : `${provisioning}, ${power}`,
    name: trimmedTextOf(valueAt(properties, ["osProfile", "computerName"])),
    pool: trimmedTextOf(fieldsOf(body.tags)["aks-managed-poolName"]),
  };
}

export function createdAtOf(body: Fields): Instant | undefined {
  return instantOf(valueAt(body, ["properties", "timeCreated"]));
}

function powerOf(statuses: unknown): string {
  const codes = listOf(statuses).map((one) => textOf(fieldsOf(one).code) ?? "");
  return codes.find((code) => code.startsWith("PowerState/")) ?? "";
}

/** A deallocated machine, as an eviction may leave it, no longer runs pods. */
function stageOf(provisioning: string, power: string): AzureMachine["stage"] {
  if (/^deleting$/i.test(provisioning)) return "Leaving";
  if (/^PowerState\/(deallocated|stopped)$/i.test(power)) return "Stopped";
  return /^PowerState\/(deallocating|stopping)$/i.test(power) ? "Leaving" : "Running";
}

/** An AKS cluster by its resource id. */
export function clusterIdOf(
  groupId: string,
  cluster: { readonly group: string; readonly name: string },
) {
  const subscription = groupId.split("/").slice(0, 3).join("/");
  return `${subscription}/resourceGroups/${cluster.group}/providers/Microsoft.ContainerService/managedClusters/${cluster.name}`;
}
