import { randomUUID } from "node:crypto";
import type { Node } from "kubernetes-types/core/v1.js";
import type { ControlPlane } from "./control-plane.ts";
import { kubeletLabel } from "./control-plane-commands.ts";
import { waitUntil } from "./wait-until.ts";

export interface FleetNode {
  readonly name: string;
  /** Default europe-west1-b. */
  readonly zone?: string;
  /** Default gce://e2e-project/<zone>/<name>. */
  readonly providerID?: string;
  /** Default preemptible; standard nodes have neither the preemptible nor the Spot label. */
  readonly provisioning?: "preemptible" | "spot" | "standard";
  /** Default GKE, which determines the node's labels. */
  readonly platform?: "gke" | "other";
  readonly nodePool?: string;
  /** The managed instance group, as in the instance's metadata item "created-by". */
  readonly createdBy?: string;
  /** Default: a new one. If a node changes its bootID, it was restarted in place. */
  readonly bootID?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly cpu?: string;
}

/** There is no cloud, so a fake one reads the instance group from this annotation. */
export const createdByAnnotation = "e2e.lastcall.dev/created-by";

const nodeTimeoutMs = 60_000;

/**
 * Creates nodes as GKE would, and resolves when their kubelets, simulated by kwok, report them
 * ready.
 */
export async function createNodes(
  plane: ControlPlane,
  wanted: readonly FleetNode[],
): Promise<readonly Node[]> {
  await Promise.all(wanted.map((node) => registerNode(plane, node)));
  const names = new Set(wanted.map(({ name }) => name));
  // One list for all: hundreds of nodes requested one by one would keep the server busy.
  return waitUntil(() => readyNodes(plane, names), {
    what: `${names.size} nodes are ready`,
    timeoutMs: nodeTimeoutMs,
    signal: plane.signal,
    intervalMs: names.size === 1 ? 50 : 250,
  });
}

async function registerNode(plane: ControlPlane, wanted: FleetNode): Promise<void> {
  const { status, body } = await plane.request({
    method: "POST",
    path: "/api/v1/nodes",
    body: nodeObject(wanted),
  });
  if (status === 201) return;
  throw new Error(`Cannot create node ${wanted.name}: ${status} ${body.message}, expected 201`);
}

/** Removes the Node object, as a cloud provider does once the machine is gone. */
export async function deleteNode(plane: ControlPlane, name: string): Promise<void> {
  const { status, body } = await plane.request({
    method: "DELETE",
    path: `/api/v1/nodes/${name}`,
  });
  if (status === 200 || status === 404) return;
  throw new Error(`Cannot delete node ${name}: ${status} ${body.message}, expected 200`);
}

/** The Node object as the kubelet and the cloud provider of GKE register it. */
export function nodeObject(wanted: FleetNode): Node {
  const { name, zone = "europe-west1-b", nodePool = "pool-1", cpu = "4" } = wanted;
  const size = { cpu, memory: "16Gi", pods: "110" };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      labels: {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "e2-standard-4",
        "topology.kubernetes.io/region": zone.replace(/-[a-z]$/, ""),
        "topology.kubernetes.io/zone": zone,
        ...(wanted.platform !== "other" && {
          "cloud.google.com/gke-nodepool": nodePool,
          // On node pools with Workload Identity.
          "iam.gke.io/gke-metadata-server-enabled": "true",
          ...provisioningLabels(wanted.provisioning ?? "preemptible"),
        }),
        [kubeletLabel.key]: kubeletLabel.value,
        ...wanted.labels,
      },
      annotations: {
        ...(wanted.createdBy !== undefined && { [createdByAnnotation]: wanted.createdBy }),
        ...wanted.annotations,
      },
    },
    spec: { providerID: wanted.providerID ?? `gce://e2e-project/${zone}/${name}` },
    status: {
      allocatable: size,
      capacity: size,
      nodeInfo: nodeInfo(wanted.bootID ?? randomUUID()),
    },
  };
}

function provisioningLabels(provisioning: "preemptible" | "spot" | "standard") {
  const labels = { "cloud.google.com/gke-provisioning": provisioning };
  if (provisioning === "standard") return labels;
  return { ...labels, [`cloud.google.com/gke-${provisioning}`]: "true" };
}

/** The API requires every field; the stage node-initialize sets those that are empty here. */
function nodeInfo(bootID: string) {
  return {
    architecture: "",
    bootID,
    containerRuntimeVersion: "",
    kernelVersion: "",
    kubeProxyVersion: "",
    kubeletVersion: "",
    machineID: "",
    operatingSystem: "",
    osImage: "",
    systemUUID: "",
  };
}

async function readyNodes(plane: ControlPlane, names: ReadonlySet<string>) {
  const { body } = await plane.request({ path: "/api/v1/nodes" });
  const nodes: readonly Node[] = body.items;
  const ready = nodes.filter((node) => names.has(node.metadata?.name ?? "") && isReady(node));
  return ready.length === names.size && ready;
}

function isReady(node: Node): boolean {
  const ready = node.status?.conditions?.find(({ type }) => type === "Ready");
  // The node lifecycle controller removes its not-ready taint shortly after the condition changes.
  const tainted = node.spec?.taints?.some(({ key }) => key === "node.kubernetes.io/not-ready");
  return ready?.status === "True" && !tainted;
}
