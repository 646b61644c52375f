import { spotLabels } from "../../cloud/facts/cloud-marks.ts";
import type { PodTemplate } from "./pod-template.ts";

/**
 * Which workloads are checked. Named: those whose node selector, required affinity or tolerations
 * name Spot nodes. Possible: all that do not exclude Spot nodes, which may be placed there if the
 * nodes have no taint, as those of GKE.
 */
export type SpotScope = "Named" | "Possible";

/** The labels that mark Spot nodes, which are the keys of their taints, too. */
export const spotKeys: readonly string[] = Object.keys(spotLabels);

/** The labels with the values that mark Spot nodes, as `KEY=VALUE`. */
export const spotPairs: readonly string[] = Object.entries(spotLabels).flatMap(([key, { spot }]) =>
  spot.map((value) => `${key}=${value}`),
);

/** Whether a pod names Spot nodes. The admission policy has the same rule in CEL. */
export function namesSpot({ nodeSelector, nodeTerms, tolerations }: PodTemplate): boolean {
  const isPair = (key: string, value: string) => spotPairs.includes(`${key}=${value}`);
  return (
    Object.entries(nodeSelector).some(([key, value]) => isPair(key, value)) ||
    tolerations.some(({ key }) => key !== undefined && spotKeys.includes(key)) ||
    (nodeTerms ?? []).some((term) =>
      term.some(
        ({ key, operator, values }) =>
          operator === "In" && (values ?? []).some((value) => isPair(key, value)),
      ),
    )
  );
}
