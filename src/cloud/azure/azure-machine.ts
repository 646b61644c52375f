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
 * A virtual machine by its resource id: one of a scale set, or one of a pool of single machines.
 */
export interface MachineRef {
  /**
   * As the providerID has it, such as
   * `/subscriptions/S/resourceGroups/G/providers/…/virtualMachines/3`.
   */
  readonly id: string;
  /** The list that contains the machine: the id without its last part. */
  readonly collection: string;
  /** Its resource group, which for AKS is that of the nodes. */
  readonly groupId: string;
  /** Absent: a single machine, as in pools of the type VirtualMachines. */
  readonly scaleSet?: { readonly id: string; readonly instance: string } | undefined;
}

const machineId =
  /^azure:\/\/((\/subscriptions\/[^/]+\/resourceGroups\/[^/]+)\/providers\/Microsoft\.Compute\/(virtualMachineScaleSets\/[^/]+\/)?virtualMachines)\/([^/]+)$/i;

/** Of a machine's resource, or of the list that it is in; the permission to read it. */
export function readPermissionOf({ collection }: Pick<MachineRef, "collection">): string {
  const isInSet = /\/virtualMachineScaleSets\//i.test(collection);
  const type = isInSet ? "virtualMachineScaleSets/virtualMachines" : "virtualMachines";
  return `Microsoft.Compute/${type}/read`;
}

/** Of a providerID; undefined for anything else. Source: cloud-provider-azure. */
export function findMachineRef(providerID: string): MachineRef | undefined {
  const found = machineId.exec(providerID);
  if (found === null) return undefined;
  const [, collection = "", groupId = "", scaleSet, name = ""] = found;
  // It goes into a URL, so it is held to the form of a resource's id.
  if (!/^[-\w./()]+$/.test(`${collection}/${name}`) || name === "." || name === "..")
    return undefined;
  const ref = { id: `${collection}/${name}`, collection, groupId };
  if (scaleSet === undefined) return ref;
  const id = collection.slice(0, collection.lastIndexOf("/"));
  return { ...ref, scaleSet: { id, instance: name } };
}

/** A virtual machine, as Azure describes it. */
export interface AzureMachine {
  /** Azure's own id of it, which no other machine ever has. */
  readonly vmId: string;
  readonly createdAt: Instant | undefined;
  readonly stage: "Running" | "Leaving" | "Stopped";
  /** Azure's own words, such as `Succeeded` or `PowerState/deallocated`. */
  readonly state: string;
  /** AKS' name of the machine, which is the Node's. */
  readonly name: string | undefined;
  /** The node pool of AKS that has made it. */
  readonly pool: string | undefined;
}

/** Of a body with its instance view; undefined where it is no virtual machine. */
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

/** One that is deallocated, as an eviction may leave it, runs no pods any more. */
function stageOf(provisioning: string, power: string): AzureMachine["stage"] {
  if (/^deleting$/i.test(provisioning)) return "Leaving";
  if (/^PowerState\/(deallocated|stopped)$/i.test(power)) return "Stopped";
  return /^PowerState\/(deallocating|stopping)$/i.test(power) ? "Leaving" : "Running";
}

/** A cluster of AKS by its resource id. */
export function clusterIdOf(
  groupId: string,
  cluster: { readonly group: string; readonly name: string },
) {
  const subscription = groupId.split("/").slice(0, 3).join("/");
  return `${subscription}/resourceGroups/${cluster.group}/providers/Microsoft.ContainerService/managedClusters/${cluster.name}`;
}
