import { kuredAnnotation } from "../core/cluster/rival.ts";

/** Every key under this prefix is ours. */
const ownPrefix = "lastcall.dev/";

/** The annotations of nodes that a decision reads, beside all of `lastcall.dev/`. */
export const nodeAnnotations = [
  "cluster-autoscaler.kubernetes.io/scale-down-disabled",
  "karpenter.sh/do-not-disrupt",
  kuredAnnotation,
] as const;

/** The annotations of pods that a decision reads, beside all of `lastcall.dev/`. */
export const podAnnotations = [
  "cluster-autoscaler.kubernetes.io/safe-to-evict",
  "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes",
  "karpenter.sh/do-not-disrupt",
  "kubernetes.io/config.mirror",
] as const;

/**
 * The annotations that are read, and no others: what tools hang on objects (last-applied
 * configurations, checksums, CNI state) is most of a node's bytes, and memory is counted here.
 */
export function keptAnnotations(
  annotations: Readonly<Record<string, string>>,
  wanted: readonly string[],
): Readonly<Record<string, string>> {
  const kept: Record<string, string> = {};
  for (const [key, value] of Object.entries(annotations)) {
    if (key.startsWith(ownPrefix) || wanted.includes(key)) kept[key] = value;
  }
  return kept;
}
