import type { DepartingMark } from "../../contracts/cluster.ts";
import type { KubeObject } from "../../contracts/kube-api.ts";
import { departingTaint, type NodeFacts } from "../../core/cluster/node.ts";
import { departingSoonTaint, type SoonStanding } from "../../core/plan/departing-soon.ts";

/** The marks of contract.md section 3. */
export const departureAnnotation = "lastcall.dev/departure";
/** Records that the node had been cordoned by others before. */
const cordonedBeforeAnnotation = "lastcall.dev/cordoned-before";
const excludeLabel = "node.kubernetes.io/exclude-from-external-load-balancers";
const excludeValue = "lastcall";

/** An RFC 6902 operation. */
export type PatchOperation =
  | { readonly op: "test" | "add" | "replace"; readonly path: string; readonly value: unknown }
  | { readonly op: "remove"; readonly path: string };

interface RawTaint {
  readonly key: string;
}

/**
 * The patch that marks a node as departing: cordon, taint, annotation and load-balancer label.
 * `node` is the object as just read. The patch tests its resourceVersion, so that the server
 * rejects it if anybody has written since; a merge patch would replace the list of taints and lose
 * theirs.
 */
export function cordonPatch(
  node: KubeObject,
  mark: Pick<DepartingMark, "departure" | "cause">,
): PatchOperation[] {
  const taint = { key: departingTaint, value: mark.cause, effect: "NoSchedule" };
  const others = taintsOf(node).filter((other) => other.key !== departingTaint);
  const ours = node.metadata?.annotations?.[departureAnnotation] === mark.departure;
  const marks = {
    ...node.metadata?.annotations,
    [departureAnnotation]: mark.departure,
    ...(isCordoned(node) && !ours ? { [cordonedBeforeAnnotation]: "true" } : {}),
  };
  return [
    testVersion(node),
    { op: "add", path: "/spec/unschedulable", value: true },
    { op: "add", path: "/spec/taints", value: [...others, taint] },
    { op: "add", path: "/metadata/annotations", value: marks },
    {
      op: "add",
      path: "/metadata/labels",
      value: { [excludeLabel]: excludeValue, ...node.metadata?.labels },
    },
  ];
}

/**
 * The same patch for a node as seen by a watch: it tests every relevant field, so that the server
 * rejects it if any has changed, including others' taints and annotations. `null` tests for
 * absence. Undefined if the node already carries a departure's marks.
 */
export function cordonPatchOfSeen(
  seen: NodeFacts,
  mark: Pick<DepartingMark, "departure" | "cause">,
): PatchOperation[] | undefined {
  if (seen.annotations[departureAnnotation] !== undefined) return undefined;
  const taint = { key: departingTaint, value: mark.cause, effect: "NoSchedule" };
  const others = seen.taints.filter((other) => other.key !== departingTaint);
  return [
    { op: "test", path: "/metadata/uid", value: seen.uid },
    { op: "test", path: "/spec/providerID", value: seen.providerID ?? null },
    ...testedBoot(seen),
    { op: "test", path: "/spec/unschedulable", value: seen.unschedulable || null },
    { op: "test", path: "/spec/taints", value: seen.taints.length > 0 ? seen.taints : null },
    ...setNew("annotations", departureAnnotation, mark.departure),
    ...(seen.unschedulable ? setNew("annotations", cordonedBeforeAnnotation, "true") : []),
    ...(excludeLabel in seen.labels ? [] : setNew("labels", excludeLabel, excludeValue)),
    { op: "add", path: "/spec/unschedulable", value: true },
    { op: "add", path: "/spec/taints", value: [...others, taint] },
  ];
}

/** A node whose kubelet has never reported has no nodeInfo to test. */
function testedBoot({ bootID }: NodeFacts): PatchOperation[] {
  if (bootID === undefined) return [];
  return [{ op: "test", path: "/status/nodeInfo/bootID", value: bootID }];
}

function setNew(map: "annotations" | "labels", key: string, value: string): PatchOperation[] {
  const path = `/metadata/${map}/${key.replaceAll("/", "~1")}`;
  return [
    { op: "test", path, value: null },
    { op: "add", path, value },
  ];
}

/** The patch that reverts what `cordonPatch` wrote, and nothing else. */
export function uncordonPatch(node: KubeObject): PatchOperation[] {
  const {
    [departureAnnotation]: _departure,
    [cordonedBeforeAnnotation]: cordonedBefore,
    ...annotations
  } = node.metadata?.annotations ?? {};
  const { [excludeLabel]: excluded, ...labels } = node.metadata?.labels ?? {};
  const others = taintsOf(node).filter((taint) => taint.key !== departingTaint);
  const operations: PatchOperation[] = [
    testVersion(node),
    { op: "add", path: "/spec/taints", value: others },
    { op: "add", path: "/metadata/annotations", value: annotations },
  ];
  if (excluded === excludeValue) {
    operations.push({ op: "add", path: "/metadata/labels", value: labels });
  }
  if (isCordoned(node) && cordonedBefore === undefined) {
    operations.push({ op: "remove", path: "/spec/unschedulable" });
  }
  return operations;
}

/** The patch that adds or removes the taint of a node that departs soon. */
export function soonPatch(node: KubeObject, to: SoonStanding): PatchOperation[] {
  const taint = { key: departingSoonTaint, effect: "PreferNoSchedule" };
  const others = taintsOf(node).filter((other) => other.key !== departingSoonTaint);
  const value = to === "Soon" ? [...others, taint] : others;
  return [testVersion(node), { op: "add", path: "/spec/taints", value }];
}

function isCordoned(node: KubeObject): boolean {
  return (node.spec as { unschedulable?: boolean } | undefined)?.unschedulable === true;
}

function testVersion(node: KubeObject): PatchOperation {
  return {
    op: "test",
    path: "/metadata/resourceVersion",
    value: node.metadata?.resourceVersion,
  };
}

function taintsOf(node: KubeObject): readonly RawTaint[] {
  return (node.spec as { taints?: readonly RawTaint[] } | undefined)?.taints ?? [];
}
