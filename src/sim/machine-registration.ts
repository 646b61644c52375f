import { type Millis, plus } from "../core/time/time.ts";
import { type ApiContext, timestamp } from "./api/api-context.ts";
import { createObject } from "./api/create-object.ts";
import { deleteObject } from "./api/delete-object.ts";
import { type ModelObject, withMeta } from "./api/model-object.ts";
import { type ModelMachine, nodeOf, statusOf } from "./model-machine.ts";

/**
 * Registers the Node of a machine that came up. One whose Node object is still there comes back
 * to it: the same Node, with another bootID. A machine that was born before the run has a Node of
 * its age.
 */
export function registerNode(
  context: ApiContext,
  { machine, boot }: { machine: ModelMachine; boot: Millis },
): void {
  const nodes = context.store.collection("nodes");
  const nowAt = context.clock.now();
  const at = timestamp(nowAt);
  const before = nodes.get("", machine.name);
  if (before) {
    const status = { ...(before.status as object), ...statusOf(machine, at) };
    nodes.put({ ...before, status });
    return;
  }
  const type = context.registry.find("v1", "nodes");
  if (!type) return;
  const node = createObject(context, { type, namespace: "", body: nodeOf(machine, at) });
  const bootedAt = plus(machine.bornAt, boot);
  if (bootedAt < nowAt) nodes.put(withMeta(node, { creationTimestamp: timestamp(bootedAt) }));
}

/** The cloud's node controller takes a Node away whose machine is no more, and no other Node. */
export function forgetNode(context: ApiContext, node: ModelObject): void {
  const { name, uid } = node.metadata;
  const now = context.store.collection("nodes").get("", name);
  const type = context.registry.find("v1", "nodes");
  if (type && now?.metadata.uid === uid) {
    deleteObject(context, { type, namespace: "", name, options: {} });
  }
}
