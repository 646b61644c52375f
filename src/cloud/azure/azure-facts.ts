import { type CloudFacts, idSegment } from "../facts/cloud-facts.ts";

const idForm = new RegExp(
  `^azure://(/subscriptions(?:/${idSegment})+/virtualMachines/${idSegment})$`,
  "i",
);

/** Reads `azure:///subscriptions/…`. Source: AKS nodes. */
function parseResourceId(providerID: string) {
  const resourceId = idForm.exec(providerID)?.[1];
  if (resourceId === undefined) return undefined;
  const instance = resourceId.slice(resourceId.lastIndexOf("/") + 1);
  // Azure ignores case.
  return {
    cloud: "azure",
    resourceId,
    instance,
    key: `azure/${resourceId.toLowerCase()}`,
  } as const;
}

/**
 * What an event of Scheduled Events means. `Terminate` comes from the scale set itself, and only if
 * its owner enabled it. A freeze of a few seconds leaves the machine as it is.
 */
export const eventCauses = {
  Preempt: "SpotInterruption",
  Terminate: "LifecycleHook",
  Reboot: "ScheduledMaintenance",
  Redeploy: "ScheduledMaintenance",
  Freeze: "LeavesNothing",
} as const;

/** Azure's virtual machines, and AKS. */
export const azureFacts = {
  name: "azure",
  kubernetes: "aks",
  scheme: "azure://",
  idForm: "azure:///",
  parseId: parseResourceId,
  idReuse: "Possible",

  spotLabels: {
    "kubernetes.azure.com/scalesetpriority": { spot: ["spot"], stable: "regular" },
  },
  poolLabels: ["kubernetes.azure.com/agentpool", "agentpool"],
  removalMarks: [
    { rival: "AKS node auto-drain", taint: "remediator.kubernetes.azure.com/unschedulable" },
  ],

  // Sources: azure-docs "Node Problem Detector (NPD) in AKS nodes"; Azure/AKS#2062 for the four
  // conditions named by an event, which older nodes have instead of `VMEventScheduled`: their
  // problem detector reports each as "Node condition RebootScheduled is now: True"
  // (node-problem-detector, pkg/util/helpers.go).
  noticeConditions: {
    types: [
      "PreemptionScheduled",
      "PreemptScheduled",
      "RebootScheduled",
      "RedeployScheduled",
      "TerminateScheduled",
      "VMEventScheduled",
    ],
    causes: {
      PreemptionScheduled: "SpotInterruption",
      PreemptScheduled: eventCauses.Preempt,
      SpotEvictionIncoming: "SpotInterruption",
      TerminateScheduled: eventCauses.Terminate,
      RebootScheduled: eventCauses.Reboot,
      RedeployScheduled: eventCauses.Redeploy,
    },
    eventCauses: Object.fromEntries(
      Object.entries(eventCauses).map(([event, cause]) => [event.toLowerCase(), cause]),
    ),
  },

  // The host of the virtual machine.
  metadataAddresses: [{ subnet: "168.63.129.16", bits: 32 }],
} as const satisfies CloudFacts;
