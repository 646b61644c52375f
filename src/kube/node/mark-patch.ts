import type { DepartingMark } from "../../contracts/cluster.ts";
import type { KubeObject, PatchOperation } from "../../contracts/kube-api.ts";
import {
  cordonTaint,
  departingSoonTaint,
  departingTaint,
  type NodeFacts,
} from "../../core/cluster/node.ts";
import type { SoonStanding } from "../../core/plan/plan-status.ts";

export const departureAnnotation = "lastcall.dev/departure";
/** Records that the node had been cordoned by others before. */
const cordonedBeforeAnnotation = "lastcall.dev/cordoned-before";
const excludeLabel = "node.kubernetes.io/exclude-from-external-load-balancers";
const excludeValue = "lastcall";

interface RawTaint {
  readonly key: string;
  readonly value?: string | undefined;
  readonly effect?: string;
}

/** What the marks say, and whether the taint of a cordoned node is one of them. */
interface MarkContent extends Pick<DepartingMark, "departure" | "cause"> {
  readonly writesCordonTaint: boolean;
}

/**
 * The patch that marks a node as departing: cordon, taint, annotation and load-balancer label.
 * `node` is the object as just read. The patch tests its resourceVersion, so that the server
 * rejects it if anybody has written since; a merge patch would replace the list of taints and lose
 * theirs.
 */
export function cordonPatch(node: KubeObject, mark: MarkContent): PatchOperation[] {
  const ours = node.metadata?.annotations?.[departureAnnotation] === mark.departure;
  const marks = {
    ...node.metadata?.annotations,
    [departureAnnotation]: mark.departure,
    ...(isCordoned(node) && !ours ? { [cordonedBeforeAnnotation]: "true" } : {}),
  };
  return [
    testVersion(node),
    { op: "add", path: "/spec/unschedulable", value: true },
    { op: "add", path: "/spec/taints", value: departingTaints(taintsOf(node), mark) },
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
  mark: MarkContent,
): PatchOperation[] | undefined {
  if (seen.annotations[departureAnnotation] !== undefined) return undefined;
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
    { op: "add", path: "/spec/taints", value: departingTaints(seen.taints, mark) },
  ];
}

/** The taints of a departing node that has these. */
function departingTaints(
  taints: readonly RawTaint[],
  { cause, writesCordonTaint }: MarkContent,
): readonly RawTaint[] {
  const others = taints.filter((other) => other.key !== departingTaint);
  const isTainted = others.some(isCordonTaint);
  const cordon = writesCordonTaint && !isTainted ? [cordonTaint] : [];
  return [...others, ...cordon, { key: departingTaint, value: cause, effect: "NoSchedule" }];
}

function isCordonTaint({ key, effect }: RawTaint): boolean {
  return key === cordonTaint.key && effect === cordonTaint.effect;
}

/** A node whose kubelet has never reported has no nodeInfo to test. */
function testedBoot({ bootID }: NodeFacts): PatchOperation[] {
  if (bootID === undefined) return [];
  return [{ op: "test", path: "/status/nodeInfo/bootID", value: bootID }];
}

function setNew(map: "annotations" | "labels", key: string, value: string): PatchOperation[] {
  return [testAbsent(map, key), { op: "add", path: pathOf(map, key), value }];
}

function testAbsent(map: "annotations" | "labels", key: string): PatchOperation {
  return { op: "test", path: pathOf(map, key), value: null };
}

function pathOf(map: "annotations" | "labels", key: string): string {
  return `/metadata/${map}/${key.replaceAll("/", "~1")}`;
}

const freeing: PatchOperation = { op: "remove", path: "/spec/unschedulable" };

/** The patch that reverts what `cordonPatch` wrote, and nothing else. */
export function uncordonPatch(node: KubeObject, writesCordonTaint: boolean): PatchOperation[] {
  const {
    [departureAnnotation]: _departure,
    [cordonedBeforeAnnotation]: cordonedBefore,
    ...annotations
  } = node.metadata?.annotations ?? {};
  const { [excludeLabel]: excluded, ...labels } = node.metadata?.labels ?? {};
  const staysCordoned = isCordoned(node) && cordonedBefore !== undefined;
  const taints = withoutMarks(taintsOf(node), { staysCordoned, writesCordonTaint });
  const operations: PatchOperation[] = [
    testVersion(node),
    { op: "add", path: "/spec/taints", value: taints },
    { op: "add", path: "/metadata/annotations", value: annotations },
  ];
  if (excluded === excludeValue) {
    operations.push({ op: "add", path: "/metadata/labels", value: labels });
  }
  if (isCordoned(node) && !staysCordoned) {
    operations.push(freeing);
  }
  return operations;
}

/**
 * The same for a node as seen by a watch, if it may not be read. The patch tests what it changes,
 * so that the server rejects it if others have written that since; without marks, it only tests
 * that there are none. Undefined if the marks are those of another departure.
 */
export function uncordonPatchOfSeen(
  seen: NodeFacts,
  { departure, writesCordonTaint }: Pick<MarkContent, "departure" | "writesCordonTaint">,
): PatchOperation[] | undefined {
  const { annotations, labels, taints, unschedulable } = seen;
  const owner = annotations[departureAnnotation];
  const same: PatchOperation = { op: "test", path: "/metadata/uid", value: seen.uid };
  if (owner === undefined) return [same, testAbsent("annotations", departureAnnotation)];
  if (owner !== departure) return undefined;
  const wasCordoned = annotations[cordonedBeforeAnnotation] !== undefined;
  const staysCordoned = unschedulable && wasCordoned;
  return [
    same,
    { op: "test", path: "/spec/unschedulable", value: unschedulable || null },
    { op: "test", path: "/spec/taints", value: taints.length > 0 ? taints : null },
    ...removeOld("annotations", departureAnnotation, departure),
    ...(wasCordoned ? removeOld("annotations", cordonedBeforeAnnotation, "true") : []),
    ...(labels[excludeLabel] === excludeValue
      ? removeOld("labels", excludeLabel, excludeValue)
      : []),
    {
      op: "add",
      path: "/spec/taints",
      value: withoutMarks(taints, { staysCordoned, writesCordonTaint }),
    },
    ...(unschedulable && !staysCordoned ? [freeing] : []),
  ];
}

function removeOld(
  map: "annotations" | "labels",
  key: string,
  value: string,
): readonly PatchOperation[] {
  const path = pathOf(map, key);
  return [
    { op: "test", path, value },
    { op: "remove", path },
  ];
}

function withoutMarks(
  taints: readonly RawTaint[],
  how: { readonly staysCordoned: boolean; readonly writesCordonTaint: boolean },
): readonly RawTaint[] {
  const keepsCordon = how.staysCordoned || !how.writesCordonTaint;
  return taints.filter(
    (taint) => taint.key !== departingTaint && (keepsCordon || !isCordonTaint(taint)),
  );
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
