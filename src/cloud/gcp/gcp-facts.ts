import { type CloudFacts, idSegment } from "../facts/cloud-facts.ts";

const idForm = new RegExp(`^gce://(${idSegment})/(${idSegment})/(${idSegment})$`);

/** Reads `gce://project/zone/name`. Source: cloud-provider-gcp gce_util.go. */
export function parseComputeId(providerID: string) {
  const found = idForm.exec(providerID);
  if (found === null) return undefined;
  const [, project, zone, instance] = found as unknown as [string, string, string, string];
  return { cloud: "gcp", project, zone, instance, key: providerID } as const;
}

/** Compute Engine, and GKE. */
export const gcpFacts = {
  name: "gcp",
  kubernetes: "gke",
  scheme: "gce://",
  idForm: "gce://",
  parseId: parseComputeId,
  zoneIn: (providerID) => parseComputeId(providerID)?.zone,
  // Managed instance groups recreate a machine under its name.
  idReuse: "Usual",

  spotLabels: {
    "cloud.google.com/gke-spot": { spot: ["true"] },
    "cloud.google.com/gke-preemptible": { spot: ["true"] },
    "cloud.google.com/gke-provisioning": { spot: ["spot", "preemptible"], stable: "standard" },
  },
  // https://cloud.google.com/compute/docs/instances/preemptible: Spot VMs have no such limit.
  lifetimeLimits: [
    { label: "cloud.google.com/gke-preemptible", value: "true", hours: 24 },
    { label: "cloud.google.com/gke-provisioning", value: "preemptible", hours: 24 },
  ],
  poolLabels: ["cloud.google.com/gke-nodepool"],
  // GKE's maintenance handler and its older termination handler.
  removalMarks: [{ rival: "GKE", taint: "cloud.google.com/impending-node-termination" }],

  metadataAddresses: [{ subnet: "fd20:ce::", bits: 32 }],
} as const satisfies CloudFacts;
