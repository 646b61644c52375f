import type { Node, Pod } from "kubernetes-types/core/v1.js";
import { type Change, type History, isBoundToNode, keyOf, nameOf } from "./history.ts";

/**
 * One life of a machine under a Node object: from its registration or its boot to the next boot or
 * the deletion of the object. Names are reused and Node objects may outlive machines, unlike this.
 */
export interface Incarnation {
  readonly name: string;
  readonly uid: string;
  readonly bootID: string;
  readonly zone: string;
  readonly from: number;
  /** Absent while it lasts. */
  readonly to: number | undefined;
  /** When it was first seen cordoned. */
  readonly cordonedAt: number | undefined;
  readonly last: Node;
}

type Draft = { -readonly [Field in keyof Incarnation]: Incarnation[Field] };

/** Every life of every machine, ordered by its start. */
export function incarnationsOf(history: History): readonly Incarnation[] {
  const all: Draft[] = [];
  for (const change of history.changes) {
    if (change.kind !== "Node") continue;
    const open = all.find((one) => one.uid === keyOf(change.object) && one.to === undefined);
    if (change.type === "Gone") {
      if (open !== undefined) open.to = change.order;
      continue;
    }
    const bootID = change.object.status?.nodeInfo?.bootID ?? "";
    // A test that creates the Node for the kubelet does not know its boot yet.
    if (open?.bootID === "") open.bootID = bootID;
    if (open === undefined || open.bootID !== bootID) {
      if (open !== undefined) open.to = change.order;
      all.push(begin(change.object, change.order));
      continue;
    }
    open.last = change.object;
    if (change.object.spec?.unschedulable === true) open.cordonedAt ??= change.order;
  }
  return all;
}

function begin(node: Node, from: number): Draft {
  return {
    name: nameOf(node),
    uid: keyOf(node),
    bootID: node.status?.nodeInfo?.bootID ?? "",
    zone: node.metadata?.labels?.["topology.kubernetes.io/zone"] ?? "",
    ...{ from, to: undefined, last: node },
    // A new boot may find its predecessor's cordon on the Node object, which is not its own.
    cordonedAt: undefined,
  };
}

/** The fate of one pod. */
export interface PodStory {
  readonly key: string;
  readonly name: string;
  readonly namespace: string;
  readonly nodeName: string;
  readonly boundAt: number;
  /** When it started to terminate. */
  readonly leavingAt: number | undefined;
  readonly goneAt: number | undefined;
  /** Whether a condition shows that the eviction API deleted it. */
  readonly evicted: boolean;
}

/** All pods that were ever bound to a node, except DaemonSet and mirror pods. */
export function podStoriesOf(changes: readonly Change[]): readonly PodStory[] {
  const stories = new Map<string, { -readonly [Field in keyof PodStory]: PodStory[Field] }>();
  for (const change of changes) {
    if (change.kind !== "Pod" || isBoundToNode(change.object)) continue;
    const pod = change.object;
    const nodeName = pod.spec?.nodeName;
    if (nodeName === undefined) continue;
    const story = stories.get(keyOf(pod)) ?? {
      ...{ key: keyOf(pod), name: nameOf(pod), namespace: pod.metadata?.namespace ?? "" },
      ...{ nodeName, boundAt: change.order, leavingAt: undefined, goneAt: undefined },
      evicted: false,
    };
    stories.set(story.key, story);
    if (pod.metadata?.deletionTimestamp !== undefined) story.leavingAt ??= change.order;
    if (change.type === "Gone") story.goneAt = change.order;
    story.evicted ||= wasEvicted(pod);
  }
  return [...stories.values()];
}

function wasEvicted(pod: Pod): boolean {
  const target = pod.status?.conditions?.find(({ type }) => type === "DisruptionTarget");
  return target?.status === "True" && target.reason === "EvictionByEvictionAPI";
}

/** The pods of a machine during one life. */
export function podsOf(
  incarnation: Incarnation,
  stories: readonly PodStory[],
): readonly PodStory[] {
  return stories.filter(
    ({ nodeName, boundAt }) =>
      nodeName === incarnation.name &&
      boundAt >= incarnation.from &&
      (incarnation.to === undefined || boundAt < incarnation.to),
  );
}
