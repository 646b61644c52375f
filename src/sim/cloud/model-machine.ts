import { zoneLabel } from "../../core/cluster/node.ts";
import { type Instant, type Millis, millis, plus, seconds } from "../../core/time/time.ts";
import type { LastcallError } from "../../errors.ts";
import { type ApiContext, timestamp } from "../api/api-context.ts";
import { type ModelObject, withMeta } from "../api/store/model-object.ts";
import { createObject } from "../api/write/create-object.ts";
import { deleteObject } from "../api/write/delete-object.ts";

/** A managed instance group of one zone. */
export interface MachineGroup {
  readonly name: string;
  /** Such as `europe-west1-b`. */
  readonly zone: string;
  readonly size: number;
  /** Preemptible machines are taken by the cloud; standard ones stay. */
  readonly price: "Preemptible" | "Standard";
  readonly machineType?: string;
  readonly capacity?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly taints?: readonly object[];
}

type ModelMachineState = "Booting" | "Running" | "Noticed" | "Stopping" | "Gone";

/** One machine as it is now; a machine recreated under the same name has another id. */
export interface ModelMachine {
  readonly id: string;
  readonly name: string;
  readonly group: MachineGroup;
  readonly bootID: string;
  readonly bornAt: Instant;
  readonly state: ModelMachineState;
  readonly noticedAt?: Instant;
}

export function providerIdOf(machine: Pick<ModelMachine, "name" | "group">): string {
  return `gce://demo/${machine.group.zone}/${machine.name}`;
}

const defaultCapacity = { cpu: "4", memory: "16Gi", pods: "110", "ephemeral-storage": "100Gi" };

/** The Node that a machine's kubelet registers, with the labels that GKE gives it. */
function nodeOf(machine: ModelMachine, at: string): object {
  const { name, group } = machine;
  const capacity = group.capacity ?? defaultCapacity;
  const spot = group.price === "Preemptible" ? { "cloud.google.com/gke-preemptible": "true" } : {};
  const labels = {
    "kubernetes.io/arch": "amd64",
    "kubernetes.io/hostname": name,
    "kubernetes.io/os": "linux",
    "node.kubernetes.io/instance-type": group.machineType ?? "n1-standard-4",
    "cloud.google.com/gke-nodepool": group.name,
    "cloud.google.com/gke-provisioning": group.price.toLowerCase(),
    "topology.kubernetes.io/region": group.zone.replace(/-[a-z]$/, ""),
    [zoneLabel]: group.zone,
    ...spot,
    ...group.labels,
  };
  const taints = group.taints === undefined ? {} : { taints: group.taints };
  return {
    metadata: { name, labels },
    spec: { providerID: providerIdOf(machine), ...taints },
    status: { capacity, allocatable: capacity, ...statusOf(machine, at) },
  };
}

/** What a kubelet says of its machine when it comes up. */
function statusOf(machine: ModelMachine, at: string): object {
  const condition = (type: string, status: string, reason: string): object => ({
    type,
    status,
    reason,
    message: reason,
    lastHeartbeatTime: at,
    lastTransitionTime: at,
  });
  return {
    conditions: [
      condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
      condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
      condition("PIDPressure", "False", "KubeletHasSufficientPID"),
      condition("Ready", "True", "KubeletReady"),
    ],
    addresses: [{ type: "Hostname", address: machine.name }],
    nodeInfo: nodeInfoOf(machine),
  };
}

function nodeInfoOf(machine: ModelMachine): object {
  const plainId = machine.id.padStart(32, "0");
  return {
    machineID: plainId,
    systemUUID: plainId,
    bootID: machine.bootID,
    kernelVersion: "6.12.0",
    osImage: "Model OS",
    containerRuntimeVersion: "containerd://2.1.0",
    kubeletVersion: "v1.36.3",
    kubeProxyVersion: "",
    operatingSystem: "linux",
    architecture: "amd64",
  };
}

/**
 * Registers the Node of a machine that came up. One whose Node object is still there comes back to
 * it: the same Node, with another bootID. A machine that was launched before the run has a Node of
 * its age.
 */
export function registerNode(
  context: ApiContext,
  { machine, boot }: { machine: ModelMachine; boot: Millis },
): void {
  const nodes = context.store.collection("nodes");
  const nowAt = context.clock.now();
  const at = timestamp(nowAt);
  const before = nodes.get("", machine.name);
  if (before) {
    const status = { ...(before.status as object), ...statusOf(machine, at) };
    nodes.put({ ...before, status });
    return;
  }
  const type = context.registry.find("v1", "nodes");
  if (!type) return;
  const node = createObject(context, { type, namespace: "", body: nodeOf(machine, at) });
  const bootedAt = plus(machine.bornAt, boot);
  if (bootedAt < nowAt) nodes.put(withMeta(node, { creationTimestamp: timestamp(bootedAt) }));
}

/** The cloud's node controller takes a Node away whose machine is no more, and no other Node. */
export function forgetNode(context: ApiContext, node: ModelObject): void {
  const { name, uid } = node.metadata;
  const now = context.store.collection("nodes").get("", name);
  const type = context.registry.find("v1", "nodes");
  if (type && now?.metadata.uid === uid) {
    deleteObject(context, { type, namespace: "", name, options: {} });
  }
}

/** An event of a machine, with the machine as it was right after. */
export interface MachineEvent {
  readonly kind: "Launched" | "Registered" | "Noticed" | "Stopping" | "Gone";
  readonly at: Instant;
  readonly machine: ModelMachine;
  /** Why it ends; set from Noticed and Stopping on. */
  readonly because?: "Preempted" | "Limit" | "Released";
}

/** A call that is to fail. */
export interface CloudFault {
  readonly on: "describe" | "check" | "release" | "launchTimes";
  readonly error: LastcallError;
  readonly times?: number;
}

/** How long things take; each has a default that is usual on GKE. */
export interface CloudTimings {
  /** From the launch of a machine until its Node is registered and ready. */
  readonly boot: Millis;
  /** From the loss of a machine until its group makes the next one. */
  readonly recreate: Millis;
  /** From an order to stop until the machine is gone. */
  readonly stop: Millis;
  /** From the notice of a preemption until the power goes. */
  readonly notice: Millis;
  /** From the notice until the machine shuts down; 0 without `preemptionNoticeDuration`. */
  readonly beforeShutdown: Millis;
  /** From the loss of a machine until its Node object is taken away. */
  readonly forgetNode: Millis;
}

export const usualTimings: CloudTimings = {
  boot: seconds(50),
  recreate: seconds(10),
  stop: seconds(20),
  notice: seconds(30),
  beforeShutdown: millis(0),
  forgetNode: seconds(5),
};
