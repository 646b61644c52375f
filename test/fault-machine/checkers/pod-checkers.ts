import type { Checker } from "../checker.ts";
import { isVoluntary, marks, type NodeObject, type PodObject, type View } from "../view.ts";

/** A pod that begins to leave, and the voluntary departure of its node, if there is one. */
function voluntarilyAsked(view: View, pod: PodObject): boolean {
  const node = view.nodes.get(pod.spec.nodeName ?? "");
  const departure = node && view.departureOf(node);
  return departure !== undefined && isVoluntary(departure);
}

export const graceIsKept: Checker = {
  name: "grace-is-kept",
  rule: "a pod of a voluntary departure gets its own grace, unless the policy says Proceed",
  start: () => (event, view) => {
    if (event.kind !== "Request" || !event.process.startsWith("controller")) return undefined;
    if (event.status >= 300 || event.status === 0 || event.answer === "Injected") return undefined;
    const found = /^\/api\/v1\/namespaces\/default\/pods\/([^/]+)(\/eviction)?$/.exec(event.path);
    const pod = view.pods.get(`default/${found?.[1]}`);
    if (pod === undefined || !voluntarilyAsked(view, pod)) return undefined;
    if (view.policyUnderWay().drain.onTimeout === "Proceed") return undefined;
    const { gracePeriodSeconds: given } = optionsOf(event.body);
    const { terminationGracePeriodSeconds: own = 30 } = pod.spec;
    if (given === undefined || given >= own) return undefined;
    return `${pod.metadata.name} was given ${given} s of its ${own} s`;
  },
};

/** The DeleteOptions of a deletion, or of an eviction. */
function optionsOf(body: unknown): { readonly gracePeriodSeconds?: number } {
  const fields = (body ?? {}) as { deleteOptions?: object; gracePeriodSeconds?: number };
  return fields.deleteOptions ?? fields;
}

export const undisturbedStays: Checker = {
  name: "undisturbed-stays",
  rule: "a voluntary departure asks no pod to leave that is not to be disturbed",
  start: () => (event, view) => {
    if (event.kind !== "Request" || !event.process.startsWith("controller")) return undefined;
    if (event.status >= 300 || event.status === 0 || event.answer === "Injected") return undefined;
    const found = /^\/api\/v1\/namespaces\/default\/pods\/([^/]+)\/eviction$/.exec(event.path);
    const pod = view.pods.get(`default/${found?.[1]}`);
    if (pod?.metadata.annotations?.[marks.doNotDisturb] !== "true") return undefined;
    if (!voluntarilyAsked(view, pod)) return undefined;
    return `${pod.metadata.name} is not to be disturbed, and was evicted from ${pod.spec.nodeName}`;
  },
};

export const othersCordonStays: Checker = {
  name: "others-cordon-stays",
  rule: "a node that somebody cordoned before its departure stays cordoned after it",
  start: () => {
    /** The uids of nodes that were cordoned by others when our mark came. */
    const theirs = new Set<string>();
    return (event) => {
      if (event.kind !== "Change" || event.storage !== "nodes" || event.type !== "MODIFIED") {
        return undefined;
      }
      const [now, before] = [event.object as NodeObject, event.previous as NodeObject | undefined];
      const { uid, name } = now.metadata;
      const mark = (node: NodeObject | undefined) => node?.metadata.annotations?.[marks.departure];
      const isClosed = (node: NodeObject | undefined) => node?.spec.unschedulable === true;
      if (mark(now) !== undefined && mark(before) === undefined) {
        if (isClosed(before)) theirs.add(uid);
        else theirs.delete(uid);
      }
      // Who opens it while our mark is there is a person: only the end of the mark is ours.
      if (mark(now) !== undefined && !isClosed(now)) theirs.delete(uid);
      const ends = mark(before) !== undefined && mark(now) === undefined;
      if (!ends || !theirs.delete(uid) || isClosed(now)) return undefined;
      return `${name} was cordoned by somebody else, and was uncordoned with the end of its departure`;
    };
  },
};
