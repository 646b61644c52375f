import { zoneLabel } from "../core/cluster/node.ts";
import type { Instant } from "../core/time/time.ts";

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

export type ModelMachineState = "Booting" | "Running" | "Noticed" | "Stopping" | "Gone";

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
export function nodeOf(machine: ModelMachine, at: string): object {
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
export function statusOf(machine: ModelMachine, at: string): object {
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
