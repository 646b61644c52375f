import { departureAnnotation } from "../core/notice/interruption.ts";
import { type Instant, minutes } from "../core/time/time.ts";
import type { ModelObject } from "./api/model-object.ts";
import type { ModelStore } from "./api/object-store.ts";
import type { NodeObject } from "./cluster-controllers/cluster-object.ts";
import { type DepartureObject, departureStorage, phaseOf } from "./departure-object.ts";
import type { Checker, Happening, Invariant } from "./happening.ts";

/** An orphaned mark is seen and cleared by the next pass, which takes at most so long. */
const clearedWithin = minutes(2);

/** Invariant 7: no node stays marked without a live Departure that says why. */
export const cordonHasDeparture: Invariant = {
  name: "cordon-has-departure",
  check: (store) => {
    const orphanSince = new Map<string, Instant>();
    return (happening) => {
      follow(happening, { store, orphanSince });
      for (const [name, since] of orphanSince) {
        if (happening.at - since <= clearedWithin) continue;
        orphanSince.delete(name);
        return `node ${name} has borne the mark of a departure that is not under way for 2 minutes`;
      }
      return undefined;
    };
  },
};

/** Keeps up which marked nodes have no live Departure; any change of either may alter that. */
function follow(
  happening: Happening,
  known: { readonly store: ModelStore; readonly orphanSince: Map<string, Instant> },
): void {
  const { store, orphanSince } = known;
  const node = nodeOf(happening, store);
  if (node === undefined) return;
  const { name } = node.metadata;
  if (!isOrphaned(node, store)) orphanSince.delete(name);
  else if (!orphanSince.has(name)) orphanSince.set(name, happening.at);
}

function nodeOf(happening: Happening, store: ModelStore): ModelObject | undefined {
  if (happening.kind !== "Change") return undefined;
  const { object } = happening.change;
  if (happening.storage === "nodes") return object;
  if (happening.storage !== departureStorage) return undefined;
  return store.collection("nodes").get("", (object as DepartureObject).spec.node.name);
}

function isOrphaned(node: ModelObject, store: ModelStore): boolean {
  const { name, uid } = node.metadata;
  const mark = node.metadata.annotations?.[departureAnnotation];
  if (mark === undefined || store.collection("nodes").get("", name)?.metadata.uid !== uid) {
    return false;
  }
  const departure = store.collection(departureStorage).get("", mark) as DepartureObject | undefined;
  return departure?.spec.node.uid !== uid || phaseOf(departure) === "Ended";
}

/** A pod leaves a departing node only after the node is closed to others, by the same Departure. */
export const cordonBeforeEviction: Invariant = {
  name: "cordon-before-eviction",
  check:
    (store): Checker =>
    (happening) => {
      const request = happening.kind === "Asked" ? happening.request : undefined;
      const path = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)(\/eviction)?$/.exec(
        request?.path ?? "",
      );
      if (path === null || request?.method === "PATCH") return undefined;
      const [, namespace = "", name = ""] = path;
      const pod = store.collection("pods").get(namespace, name);
      const nodeName = (pod?.spec as { nodeName?: string } | undefined)?.nodeName ?? "";
      const node = store.collection("nodes").get("", nodeName) as NodeObject | undefined;
      if (pod === undefined || node === undefined) return undefined;
      const mark = node.metadata.annotations?.[departureAnnotation];
      if (node.spec.unschedulable === true && mark !== undefined) return undefined;
      return `pod ${namespace}/${name} was told to leave node ${nodeName}, which was not cordoned`;
    },
};
