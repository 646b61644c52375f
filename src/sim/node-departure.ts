import { departureAnnotation } from "../core/notice/interruption.ts";
import type { ModelStore } from "./api/object-store.ts";
import { type DepartureObject, departureStorage } from "./departure-object.ts";

/** The Departure whose mark a node bears, if it is there and means this node. */
export function departureOfNode(store: ModelStore, nodeName: string): DepartureObject | undefined {
  const node = store.collection("nodes").get("", nodeName);
  const mark = node?.metadata.annotations?.[departureAnnotation];
  if (node === undefined || mark === undefined) return undefined;
  const found = store.collection(departureStorage).get("", mark) as DepartureObject | undefined;
  return found?.spec.node.uid === node.metadata.uid ? found : undefined;
}
