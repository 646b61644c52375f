import type { Node, Pod } from "kubernetes-types/core/v1.js";
import { type Change, type History, isBoundToNode, keyOf, nameOf } from "./history.ts";

/**
 * One life of a machine under a Node object: from its registration or its boot to the next boot
 * or the end of the object. Names come again and Node objects outlive machines; this does not.
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

/** Every life of every machine, in the order of their beginnings. */
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
    // Whoever makes the Node for the kubelet does not know its boot yet.
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
    // A new boot may find the cordon of the one before on its Node object: that is not its own.
    cordonedAt: undefined,
  };
}

/** What became of one pod. */
export interface PodStory {
  readonly key: string;
  readonly name: string;
  readonly namespace: string;
  readonly nodeName: string;
  readonly boundAt: number;
  /** When it began to terminate. */
  readonly leavingAt: number | undefined;
  readonly goneAt: number | undefined;
  /** Whether the eviction API has said that it was the one. */
  readonly evicted: boolean;
}

/** The pods that were ever bound to a node, without those that belong to their node. */
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

/** The pods of one life of a machine. */
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
