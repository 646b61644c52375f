import type { CloudFacts } from "../facts/cloud-facts.ts";

const idForm = /^aws:\/\/\/[^/]*\/(i-[0-9a-f]+)$/;

/** Reads `aws:///zone/i-0abc`, whose zone may be empty. Source: EKS nodes. */
export function parseInstanceId(providerID: string) {
  const instanceId = idForm.exec(providerID)?.[1];
  if (instanceId === undefined) return undefined;
  // Ids are unique without the zone.
  const key = `aws/${instanceId}`;
  return { cloud: "aws", instanceId, instance: instanceId, key } as const;
}

/** EC2, and EKS. */
export const awsFacts = {
  name: "aws",
  kubernetes: "eks",
  scheme: "aws://",
  idForm: "aws:///",
  parseId: parseInstanceId,
  zoneIn: (providerID) => /^aws:\/\/\/([^/]*)\//.exec(providerID)?.[1],
  idReuse: "Never",

  // EKS does not label nodes of a self-managed group: their kubelets do, with the last one.
  // Karpenter's labels are the same in every cloud.
  spotLabels: {
    "eks.amazonaws.com/capacityType": { spot: ["SPOT"], stable: "ON_DEMAND" },
    "karpenter.sh/capacity-type": { spot: ["spot"], stable: "on-demand" },
    "node.kubernetes.io/lifecycle": { spot: ["spot"] },
  },
  poolLabels: [
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "karpenter.sh/nodepool",
  ],
  removalMarks: [{ rival: "aws-node-termination-handler", taint: "aws-node-termination-handler/" }],

  // Metadata and Pod Identity.
  metadataAddresses: [{ subnet: "fd00:ec2::", bits: 32 }],
} as const satisfies CloudFacts;
