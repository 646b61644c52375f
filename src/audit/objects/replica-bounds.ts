import { fieldsOf, textOf, valueAt, wholeNumberOf } from "../../core/json/json-field.ts";
import type { Manifest } from "./manifest.ts";

/** The bounds that an autoscaler sets for the number of a workload's pods. */
export interface ReplicaBounds {
  readonly least: number;
  readonly most: number;
  /** Whether it also scales a workload that was set to 0 replicas. */
  readonly fromZero: boolean;
}

/** Of a HorizontalPodAutoscaler, or of KEDA's ScaledObject, which creates one. */
function readBounds({ kind, group, json }: Manifest): ReplicaBounds | undefined {
  const spec = fieldsOf(valueAt(json, ["spec"]));
  if (kind === "HorizontalPodAutoscaler" && group === "autoscaling") {
    const least = wholeNumberOf(spec.minReplicas) ?? 1;
    return { least, most: wholeNumberOf(spec.maxReplicas) ?? least, fromZero: false };
  }
  if (kind !== "ScaledObject" || group !== "keda.sh") return undefined;
  const least = wholeNumberOf(spec.minReplicaCount) ?? 0;
  return { least, most: wholeNumberOf(spec.maxReplicaCount) ?? 100, fromZero: true };
}

/**
 * By `namespace/Kind/name` of what is scaled. Several for one workload are copies of one, or a
 * ScaledObject and what it created.
 */
export function readAutoscaled(manifests: readonly Manifest[]): ReadonlyMap<string, ReplicaBounds> {
  const found = new Map<string, ReplicaBounds>();
  for (const manifest of manifests) {
    const bounds = readBounds(manifest);
    if (bounds === undefined) continue;
    const target = fieldsOf(valueAt(manifest.json, ["spec", "scaleTargetRef"]));
    const kind = textOf(target.kind) ?? "Deployment";
    const key = `${manifest.namespace}/${kind}/${textOf(target.name)}`;
    const { least, most, fromZero } = found.get(key) ?? bounds;
    found.set(key, {
      least: Math.min(least, bounds.least),
      most: Math.max(most, bounds.most),
      fromZero: fromZero || bounds.fromZero,
    });
  }
  return found;
}
