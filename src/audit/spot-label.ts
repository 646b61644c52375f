/** The labels by which clouds and tools mark Spot nodes, and the values that mean it. */
export const spotLabels: Readonly<Record<string, readonly string[]>> = {
  "cloud.google.com/gke-spot": ["true"],
  "cloud.google.com/gke-preemptible": ["true"],
  "cloud.google.com/gke-provisioning": ["spot", "preemptible"],
  "eks.amazonaws.com/capacityType": ["SPOT"],
  "karpenter.sh/capacity-type": ["spot"],
  "node.kubernetes.io/lifecycle": ["spot"],
  "kubernetes.azure.com/scalesetpriority": ["spot"],
};

/** Whether a node's labels say that it is a Spot or preemptible one. */
export function isSpot(labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(spotLabels).some(([key, values]) => values.includes(labels[key] ?? ""));
}
