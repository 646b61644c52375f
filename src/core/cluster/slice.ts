import type { NodeFacts } from "./node.ts";

/**
 * The group of machines that a node's cloud created as one, and replaces as one; undefined if the
 * node stands for itself. GKE treats the hosts of a TPU slice as a unit: if one ends, it recreates
 * all of them (cloud.google.com/kubernetes-engine/docs/concepts/tpus, "Atomicity"). Queued
 * provisioning allocates all nodes of a workload at once, and none afterwards
 * (…/docs/how-to/provisioningrequest); its label names the resize request (GoogleCloudPlatform/
 * cluster-autoscaler, ProvisioningRequestLabelKey).
 */
export function sliceOf(node: Pick<NodeFacts, "labels" | "allocatable">): string | undefined {
  const { labels } = node;
  const pool = labels["cloud.google.com/gke-nodepool"] ?? "unknown";
  const topology = labels["cloud.google.com/gke-tpu-topology"];
  if (topology !== undefined && !isSingleHost(node, topology)) {
    return `the TPU slice ${topology} of node pool ${pool}`;
  }
  const request = labels["autoscaling.gke.io/provisioning-request"];
  if (request !== undefined) return `the provisioning request ${request} of node pool ${pool}`;
  const isQueued = labels["cloud.google.com/gke-queued"] === "true";
  return isQueued ? `the queued provisioning of node pool ${pool}` : undefined;
}

/** Whether all chips of the topology are on this host. What cannot be read counts as several. */
function isSingleHost(
  { labels, allocatable }: Pick<NodeFacts, "labels" | "allocatable">,
  topology: string,
): boolean {
  const inSlice = topology.split("x").reduce((product, side) => product * Number(side), 1);
  const onHost = labels["cloud.google.com/gke-accelerator-count"];
  return inSlice <= Number(onHost ?? allocatable?.["google.com/tpu"]);
}
