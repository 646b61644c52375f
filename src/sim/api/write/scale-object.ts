import type { LabelSelector } from "../../../core/cluster/label-selector.ts";
import type { ApiContext } from "../api-context.ts";
import { badRequest, notFound } from "../api-refusal.ts";
import type { ResourceType } from "../resource-registry.ts";
import { recordOf } from "../store/json-value.ts";
import type { ModelObject } from "../store/model-object.ts";
import { updateObject } from "./update-object.ts";

const scalable = new Set(["deployments.apps", "replicasets.apps", "statefulsets.apps"]);

export function isScalable(type: ResourceType): boolean {
  return scalable.has(type.storage);
}

interface ScaleTarget {
  readonly type: ResourceType;
  readonly namespace: string;
  readonly name: string;
}

/** The `Scale` of a workload: how many replicas are wanted, and how many there are. */
export function readScale(context: ApiContext, { type, namespace, name }: ScaleTarget): object {
  const object = context.store.collection(type.storage).get(namespace, name);
  if (!object) throw notFound({ type, name });
  return scaleOf(object);
}

/** Changes how many replicas are wanted; `change` gets the Scale as it is and gives the next. */
export function writeScale(
  context: ApiContext,
  target: ScaleTarget & { readonly change: (scale: object) => unknown },
): object {
  const { change, ...place } = target;
  const toReplicas = (current: ModelObject): unknown => {
    const replicas = recordOf(recordOf(change(scaleOf(current))).spec).replicas ?? 0;
    if (!Number.isInteger(replicas)) throw badRequest("spec.replicas of a Scale is an integer");
    return { ...current, spec: { ...recordOf(current.spec), replicas } };
  };
  return scaleOf(
    updateObject(context, { ...place, part: "Object", by: "Patch", change: toReplicas }),
  );
}

function scaleOf(object: ModelObject): object {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const spec = recordOf(object.spec);
  const labels = (spec.selector as LabelSelector | undefined)?.matchLabels ?? {};
  const selector = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    // autoscaling/v1 leaves a wanted zero out (`omitempty`), but not one that is there.
    spec: spec.replicas ? { replicas: spec.replicas } : {},
    status: {
      replicas: recordOf(object.status).replicas ?? 0,
      selector: selector.join(","),
    },
  };
}
