import { type LabelRequirement, meetsRequirement } from "../core/cluster/placement.ts";
import type { Toleration } from "../core/cluster/pod.ts";
import { type AuditNode, spotLabels } from "./objects/audit-node.ts";
import type { PodTemplate } from "./objects/pod-template.ts";

/** Whether a workload's pods can be placed on Spot nodes: nowhere else, also there, or never. */
export type Landing = "Only" | "May" | "Never";

/**
 * What the pod's own node selector and required affinity say, without any node at hand. Only the
 * labels that mark Spot nodes count; whatever else is asked of the node might be met. Taints do
 * not count either: a manifest does not show what admission adds, and GKE's Spot pools have none.
 */
export function landingOf(template: PodTemplate): Landing {
  if (isTiedElsewhere(template)) return "Never";
  const named = Object.keys(spotLabels).filter((key) => namesLabel(template, key));
  if (named.length === 0) return "May";
  const [, ...spot] = markings(named, (key) => spotLabels[key] ?? []);
  if (!spot.some((marks) => fits(template, marks))) return "Never";
  const stable = markings(named, (key) => [notSpot(key)]);
  return stable.some((marks) => fits(template, marks)) ? "May" : "Only";
}

/**
 * All that nodes may say by some of these labels, the node that says nothing first: more than one
 * tool may mark the same node, as GKE itself does with two labels.
 */
function markings(
  keys: readonly string[],
  wordsOf: (key: string) => readonly string[],
): readonly Readonly<Record<string, string>>[] {
  let made: readonly Readonly<Record<string, string>>[] = [{}];
  for (const key of keys) {
    const marked = made.flatMap((marks) => wordsOf(key).map((word) => ({ ...marks, [key]: word })));
    made = [...made, ...marked];
  }
  return made;
}

/** Labels that only one cloud sets, by what they begin with. */
const cloudLabels: Readonly<Record<string, RegExp>> = {
  gke: /^cloud\.google\.com\//,
  eks: /^(eks\.amazonaws\.com|karpenter\.k8s\.aws)\//,
  aks: /^(kubernetes\.azure\.com|karpenter\.azure\.com)\//,
};

/** The cloud whose labels the pods ask their node to have; undefined where they ask for none. */
export function cloudOf({ nodeSelector, nodeTerms }: PodTemplate): string | undefined {
  const terms = (nodeTerms ?? []).map((term) =>
    term.filter(({ operator }) => operator === "In" || operator === "Exists"),
  );
  return Object.keys(cloudLabels).find((cloud) => {
    const isOf = (key: string): boolean => cloudLabels[cloud]?.test(key) === true;
    if (Object.keys(nodeSelector).some(isOf)) return true;
    return terms.length > 0 && terms.every((term) => term.some(({ key }) => isOf(key)));
  });
}

/** Whether the scheduler could place the pods on this node: selector, affinity and taints. */
export function canRunOn(template: PodTemplate, node: AuditNode): boolean {
  const selected = Object.entries(template.nodeSelector).every(
    ([key, value]) => node.labels[key] === value,
  );
  if (!selected) return false;
  const terms = template.nodeTerms;
  const placed =
    terms === undefined ||
    terms.some(
      (term) => term.length > 0 && term.every((one) => meetsRequirement(node.labels, one)),
    );
  return placed && node.taints.every((taint) => isTolerated(taint, template.tolerations));
}

/** Control planes and Fargate are no Spot nodes, whatever else their labels say. */
function isTiedElsewhere({ nodeSelector, nodeTerms }: PodTemplate): boolean {
  const selected = Object.entries(nodeSelector).some(([key, value]) => isElsewhere(key, [value]));
  const terms = nodeTerms ?? [];
  return (
    selected ||
    (terms.length > 0 &&
      terms.every((term) =>
        term.some(
          ({ key, operator, values }) =>
            (operator === "Exists" && isElsewhere(key, undefined)) ||
            (operator === "In" && isElsewhere(key, values)),
        ),
      ))
  );
}

function isElsewhere(key: string, values: readonly string[] | undefined): boolean {
  if (/^node-role\.kubernetes\.io\/(control-plane|master)$/.test(key)) return true;
  return key === "eks.amazonaws.com/compute-type" && values?.join() === "fargate";
}

function namesLabel(template: PodTemplate, key: string): boolean {
  if (Object.hasOwn(template.nodeSelector, key)) return true;
  return (template.nodeTerms ?? []).some((term) => term.some((one) => one.key === key));
}

/** Whether a node that is marked so and no other way could be meant. */
function fits(template: PodTemplate, marks: Readonly<Record<string, string>>): boolean {
  const selected = Object.entries(template.nodeSelector).every(
    ([key, value]) => !Object.hasOwn(spotLabels, key) || marks[key] === value,
  );
  const terms = template.nodeTerms;
  return selected && (terms === undefined || terms.some((term) => termFits(term, marks)));
}

function termFits(
  term: readonly LabelRequirement[],
  marks: Readonly<Record<string, string>>,
): boolean {
  return term.every((one) => !Object.hasOwn(spotLabels, one.key) || meetsRequirement(marks, one));
}

/** The value of the same label on a node that is not Spot, where there is one. */
function notSpot(key: string): string {
  const words: Readonly<Record<string, string>> = {
    "cloud.google.com/gke-provisioning": "standard",
    "eks.amazonaws.com/capacityType": "ON_DEMAND",
    "karpenter.sh/capacity-type": "on-demand",
    "kubernetes.azure.com/scalesetpriority": "regular",
  };
  return words[key] ?? "normal";
}

/** Taints that come and go with a node's health or a drain say nothing of who may run there. */
const passing =
  /^(node\.kubernetes\.io\/|lastcall\.dev\/|ToBeDeleted|DeletionCandidate|karpenter\.sh\/disrupt)/;

function isTolerated(
  taint: AuditNode["taints"][number],
  tolerations: readonly Toleration[],
): boolean {
  if (taint.effect === "PreferNoSchedule" || passing.test(taint.key)) return true;
  return tolerations.some((one) => {
    if (one.effect !== undefined && one.effect !== taint.effect) return false;
    if (one.key === undefined || one.key === "") return one.operator === "Exists";
    if (one.key !== taint.key) return false;
    return one.operator === "Exists" || (one.value ?? "") === (taint.value ?? "");
  });
}
