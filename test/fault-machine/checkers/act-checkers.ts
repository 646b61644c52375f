import { type Checker, newsMs, stopsActs, stopsNews } from "../checker.ts";
import type { At } from "../trace.ts";
import {
  type DepartureObject,
  isVoluntary,
  marks,
  type NodeObject,
  type PodObject,
  phaseOf,
  type View,
} from "../view.ts";

/** A pod that has to leave before its machine does. */
function mustLeave({ metadata, status }: PodObject): boolean {
  const isDaemon = metadata.ownerReferences?.some(({ kind }) => kind === "DaemonSet") ?? false;
  return !isDaemon && status.phase !== "Succeeded" && status.phase !== "Failed";
}

/** A release that is on its way when a kubelet falls silent arrives within this. */
const silentMs = 20_000;

/** Since when the Node has not been Ready; undefined if it is. */
function silentSince(node: NodeObject | undefined): At | undefined {
  const ready = node?.status.conditions?.find(({ type }) => type === "Ready");
  if (ready === undefined || ready.status === "True") return undefined;
  return Date.parse(ready.lastTransitionTime ?? "");
}

/** Since when the Node has been Ready; undefined if it is not. */
function readySince(node: NodeObject | undefined): At | undefined {
  const ready = node?.status.conditions?.find(({ type }) => type === "Ready");
  return ready?.status === "True" ? Date.parse(ready.lastTransitionTime ?? "") : undefined;
}

function couldKnow(view: View, at: At): boolean {
  return view.troubledMs({ from: at - 120_000, to: at }, actsLate, 60_000) === 0;
}

export const releasedWhenEmpty: Checker = {
  name: "released-when-empty",
  rule: "a machine is released voluntarily only if every pod was asked its grace before, and is gone, or the policy says Proceed",
  start: () => (event, view) => {
    if (event.kind !== "Machine" || event.what !== "Stopping" || event.because !== "Released")
      return undefined;
    const node = view.nodes.get(event.name);
    const departure = node && view.departureOf(node);
    if (departure === undefined || !isVoluntary(departure)) return undefined;
    const proceeds = view.policyUnderWay().drain.onTimeout === "Proceed";
    for (const pod of view.podsOn(event.name).filter(mustLeave)) {
      const asked = view.askedAt.get(pod.metadata.uid);
      const its = `${event.name} was released with ${pod.metadata.name} on it, which`;
      // Nobody asks these, and a policy that proceeds names them as left behind.
      const isUndisturbed = pod.metadata.annotations?.[marks.doNotDisturb] === "true";
      if (asked === undefined && proceeds && isUndisturbed) continue;
      if (asked === undefined) return `${its} was never asked to leave`;
      // What its kubelet has ended is kept by a finalizer only.
      const isOver = pod.metadata.deletionGracePeriodSeconds === 0;
      if (proceeds || isOver) continue;
      const graceMs = (pod.spec.terminationGracePeriodSeconds ?? 30) * 1000;
      // A kubelet that was cut off learns only afterwards what was asked of its pods.
      const learntAt = Math.max(asked, readySince(node) ?? asked);
      if (event.at < learntAt + graceMs)
        return `${its} could know ${(event.at - learntAt) / 1000} s before, with a grace of ${graceMs / 1000} s`;
      const since = silentSince(node);
      if (since !== undefined && since <= event.at - silentMs && couldKnow(view, event.at))
        return `${its} may still run: its kubelet has not answered for ${(event.at - since) / 1000} s`;
    }
    return undefined;
  },
};

/** Pods bound so shortly before are found by the last look before the release. */
const boundLateMs = 60_000;

export const drainedIsTrue: Checker = {
  name: "drained-is-true",
  rule: "a node is said to be drained only if every pod that had to leave has left it",
  start: () => {
    /** When each pod came to its node, by uid. */
    const boundAt = new Map<string, At>();
    return (event, view) => {
      if (event.kind !== "Change") return undefined;
      if (event.storage === "pods") {
        const { metadata, spec } = event.object as PodObject;
        if (event.type === "DELETED") boundAt.delete(metadata.uid);
        else if (spec.nodeName !== undefined && !boundAt.has(metadata.uid))
          boundAt.set(metadata.uid, event.at);
        return undefined;
      }
      if (!event.storage.startsWith("departures.")) return undefined;
      const { status, spec } = event.object as DepartureObject;
      const before = (event.previous as DepartureObject | undefined)?.status;
      const isSaid = status?.message?.startsWith(`${spec.node.name} is drained`) === true;
      if (!isSaid || status.message === before?.message) return undefined;
      if (view.nodes.get(spec.node.name)?.metadata.uid !== spec.node.uid) return undefined;
      if (!couldKnow(view, event.at)) return undefined;
      const left = view.podsOn(spec.node.name).find((pod) => {
        const isOver = pod.metadata.deletionGracePeriodSeconds === 0;
        const wasThere = (boundAt.get(pod.metadata.uid) ?? event.at) < event.at - boundLateMs;
        return mustLeave(pod) && !isOver && wasThere;
      });
      return left && `${spec.node.name} is said to be drained, and ${left.metadata.name} is on it`;
    };
  },
};

export const releasedRightMachine: Checker = {
  name: "released-right-machine",
  rule: "the released machine is the one behind the node that was drained for it",
  start: () => (event, view) => {
    if (event.kind !== "Machine" || event.what !== "Stopping" || event.because !== "Released")
      return undefined;
    const named = [...view.departures.values()].some(
      (one) => one.status?.machine?.id === event.id && phaseOf(one) !== "Ended",
    );
    return named
      ? undefined
      : `machine ${event.name} (${event.id}) was released, and no live Departure names it`;
  },
};

/** Faults that keep news away, or that let a request act late. */
function actsLate(name: string): boolean {
  return stopsNews(name) || stopsActs(name) || /^(cloud-|release-|refuse-node)/.test(name);
}

export const givenBackStays: Checker = {
  name: "given-back-stays",
  rule: "a node that somebody uncordons in its voluntary departure is not released",
  start: () => {
    /** By uid: since when a node with our mark has been open. */
    const openSince = new Map<string, At>();
    return (event, view) => {
      if (event.kind === "Change" && event.storage === "nodes") {
        const { metadata, spec } = event.object as NodeObject;
        const isMarked = metadata.annotations?.[marks.departure] !== undefined;
        const isOpen = isMarked && spec.unschedulable !== true;
        if (!isOpen || event.type === "DELETED") openSince.delete(metadata.uid);
        else if (!openSince.has(metadata.uid)) openSince.set(metadata.uid, event.at);
        return undefined;
      }
      if (event.kind !== "Machine" || event.what !== "Stopping" || event.because !== "Released")
        return undefined;
      const node = view.nodes.get(event.name);
      const departure = node && view.departureOf(node);
      const since = openSince.get(node?.metadata.uid ?? "");
      if (since === undefined || departure === undefined || !isVoluntary(departure))
        return undefined;
      const isKnown =
        view.troubledMs({ from: since - 60_000, to: event.at }, actsLate, 60_000) === 0;
      if (!isKnown || event.at - since <= newsMs) return undefined;
      return `${event.name} was released ${(event.at - since) / 1000} s after somebody uncordoned it`;
    };
  },
};

export const actsOnOwnNode: Checker = {
  name: "acts-on-own-node",
  rule: "a Departure marks no other node than its own, whatever bears its name now",
  start: () => (event, view) => {
    if (event.kind !== "Change" || event.storage !== "nodes") return undefined;
    const [now, before] = [event.object as NodeObject, event.previous as NodeObject | undefined];
    const name = now.metadata.annotations?.[marks.departure];
    const isNew = name !== undefined && name !== before?.metadata.annotations?.[marks.departure];
    const departure = isNew ? view.departures.get(name) : undefined;
    if (departure === undefined || departure.spec.node.uid === now.metadata.uid) return undefined;
    return `${now.metadata.name} (${now.metadata.uid}) was marked for ${name}, which is about ${departure.spec.node.uid}`;
  },
};

export const dyingStaysCordoned: Checker = {
  name: "dying-stays-cordoned",
  rule: "a node whose machine is being deleted is not uncordoned",
  start: () => (event, view) => {
    if (event.kind !== "Change" || event.storage !== "nodes" || event.type !== "MODIFIED") {
      return undefined;
    }
    const [now, before] = [event.object as NodeObject, event.previous as NodeObject | undefined];
    // Who uncordons by hand leaves our mark; we take it away in the same write.
    const isOurs = (node: NodeObject | undefined): boolean =>
      node?.metadata.annotations?.[marks.departure] !== undefined;
    const opens = before?.spec.unschedulable === true && now.spec.unschedulable !== true;
    const machine = view.machines.get(now.metadata.name);
    const dies = machine?.state === "Stopping" && machine.because === "Released";
    return isOurs(before) && !isOurs(now) && opens && dies
      ? `${now.metadata.name} was uncordoned while its machine is deleted`
      : undefined;
  },
};

export const evictedFromCordoned: Checker = {
  name: "evicted-from-cordoned",
  rule: "pods leave only a node that is cordoned for a live Departure, and by eviction if it is voluntary",
  start: () => {
    const openSince = new Map<string, At>();
    return (event, view) => {
      if (event.kind === "Change" && event.storage === "nodes") {
        const { name } = event.object.metadata;
        const isCordoned = view.nodes.get(name)?.spec.unschedulable === true;
        if (isCordoned) openSince.delete(name);
        else if (!openSince.has(name)) openSince.set(name, event.at);
        return undefined;
      }
      // The pod is still there when its eviction is carried out: judged when it begins to leave.
      if (event.kind !== "Request" || !event.process.startsWith("controller")) return undefined;
      const found = /^\/api\/v1\/namespaces\/default\/pods\/([^/]+)(\/eviction)?$/.exec(event.path);
      if (
        found === null ||
        event.status === 0 ||
        event.status >= 300 ||
        event.answer === "Injected"
      )
        return undefined;
      if (event.method !== "POST" && event.method !== "DELETE") return undefined;
      const pod = view.pods.get(`default/${found[1]}`);
      const node = view.nodes.get(pod?.spec.nodeName ?? "");
      if (pod === undefined || node === undefined) return undefined;
      // What is left of a machine that is gone was asked before, by others.
      const leavingAt = view.leavingAt.get(pod.metadata.uid);
      if (leavingAt !== undefined && leavingAt < event.at) return undefined;
      const { name } = node.metadata;
      const open = openSince.get(name);
      const knew =
        view.troubledMs({ from: event.sentAt - 60_000, to: event.sentAt }, stopsNews, 30_000) === 0;
      const departure = view.departureOf(node);
      // The cloud takes the machine, whoever has uncordoned the node.
      const isNoticed = departure !== undefined && !isVoluntary(departure);
      if (open !== undefined && open <= event.sentAt - newsMs && knew && !isNoticed) {
        return `${pod.metadata.name} was evicted from ${name}, which is not cordoned`;
      }
      if (view.policyUnderWay().drain.onTimeout === "Proceed") return undefined;
      if (event.method === "DELETE" && departure !== undefined && !isNoticed && mustLeave(pod)) {
        return `${pod.metadata.name} was deleted past its budget in a voluntary departure`;
      }
      return undefined;
    };
  },
};

/** A request that changes the world outside of Lastcall's own records. */
function isAct(method: string, path: string): boolean {
  if (path.endsWith("/eviction")) return true;
  return (
    method !== "GET" && /^\/api\/v1\/(nodes\/[^/]+|namespaces\/[^/]+\/pods(\/[^/]+)?)$/.test(path)
  );
}

/**
 * Of a pod, a request names the uid at most, and one that creates a placeholder nothing: no other
 * leader's write refuses one that is late. The next leader removes placeholders without a use.
 */
function isAboutPod(path: string): boolean {
  return /\/pods(\/[^/]+(\/eviction)?)?$/.test(path);
}

export const oneActor: Checker = {
  name: "one-actor",
  rule: "what is carried out was sent by the holder of the Lease, and comes while it holds it, unless it is about a pod",
  start: () => (event, view) => {
    if (event.kind !== "Request" || !event.process.startsWith("controller")) return undefined;
    if (event.status === 0 || event.status >= 300 || event.answer === "Injected") return undefined;
    const { leader } = view;
    if (!isAct(event.method, event.path) || leader === undefined || leader === event.process)
      return undefined;
    if (isAboutPod(event.path) && view.leaderAt(event.sentAt) === event.process) return undefined;
    return `${event.process} carried out ${event.method} ${event.path} while ${leader} leads`;
  },
};

/** A pod that nobody may evict: it says so, or its budget allows no disruption whatever happens. */
function isImmovable(pod: PodObject, view: View): boolean {
  if (pod.metadata.annotations?.[marks.doNotDisturb] === "true") return true;
  // In a world a budget has the name of the workload whose pods it selects.
  const budget = view.budgets.get(`${pod.metadata.namespace}/${pod.metadata.labels?.app}`);
  return (budget?.spec as { maxUnavailable?: number } | undefined)?.maxUnavailable === 0;
}

/** A first drain finds out, and a last one at the deadline may try. */
const drainsInVain = 2;

/** So long, at least, rests a node that was drained for others who did not take its machine. */
const leastRestMs = 3_600_000;
/** Clocks that differ by less are taken for right. */
const clockMs = 3000;

/** After a reboot, whoever terminates machines may have another chance. */
function bootOf(node: NodeObject | undefined): string {
  const { nodeInfo } = (node?.status ?? {}) as { nodeInfo?: { bootID?: string } };
  return `${node?.metadata.uid} ${nodeInfo?.bootID}`;
}

export const notDrainedInVain: Checker = {
  name: "not-drained-in-vain",
  rule: "what blocked a drain and has not changed since is not tried again and again",
  start: () => {
    /** By the uid of a node: how many drains were rolled back while the same pods blocked them. */
    const blocked = new Map<string, { readonly pods: string; times: number }>();
    /** By uid and boot of a node: when it was last given back because nobody took its machine. */
    const untaken = new Map<string, At>();
    const pinned = (node: string, view: View): string =>
      view
        .podsOn(node)
        .filter((pod) => isImmovable(pod, view))
        .map(({ metadata }) => metadata.uid)
        .toSorted()
        .join();
    return (event, view) => {
      if (event.kind !== "Change") return undefined;
      if (event.storage.startsWith("departures.")) {
        const { spec, status } = event.object as DepartureObject;
        const before = (event.previous as DepartureObject | undefined)?.status?.outcome;
        if (before !== undefined || status?.outcome !== "RolledBack") return undefined;
        // It may have ended long before that could be recorded.
        const endedAt = Math.min(event.at, Date.parse(status.endedAt ?? "") || event.at);
        if (status.reason === "MachineNotTaken")
          untaken.set(`${spec.node.uid} ${spec.node.bootID}`, endedAt);
        // Such a policy leaves behind what does not go: that blocks nothing.
        if (view.policyUnderWay().drain.onTimeout === "Proceed") return undefined;
        // One that never drained, or that a refused request has ended, has found nothing out.
        const hasDrained = status.timeline?.some(({ step }) => step === "Draining");
        if (!hasDrained || status.reason === "RequestRefused") return undefined;
        const pods = pinned(spec.node.name, view);
        const known = blocked.get(spec.node.uid);
        const times = known?.pods === pods ? known.times + 1 : 1;
        if (pods !== "") blocked.set(spec.node.uid, { pods, times });
        return undefined;
      }
      const isAsked =
        event.storage === "pods" &&
        event.object.metadata.deletionTimestamp !== undefined &&
        event.previous?.metadata.deletionTimestamp === undefined;
      const node = view.nodes.get((event.object as PodObject).spec.nodeName ?? "");
      const departure = node && view.departureOf(node);
      if (!isAsked || node === undefined || departure === undefined || !isVoluntary(departure)) {
        return undefined;
      }
      const since = untaken.get(bootOf(node)) ?? Number.NEGATIVE_INFINITY;
      // A rest is counted between two instants of the API server's clock.
      const isReset =
        view.troubledMs({ from: since, to: event.at }, (name) => name === "server-clock-off") > 0;
      if (
        departure.spec.cause === "Planned" &&
        event.at < since + leastRestMs - clockMs &&
        !isReset
      ) {
        return `${event.object.metadata.name} was evicted from ${node.metadata.name}, ${Math.round((event.at - since) / 60_000)} min after nobody had taken its machine`;
      }
      const known = blocked.get(node.metadata.uid);
      // A person who asks for a departure may help with its pods.
      const isPersons = departure.spec.cause === "Manual";
      if (known === undefined || known.times < drainsInVain || isPersons) return undefined;
      if (known.pods !== pinned(node.metadata.name, view)) return undefined;
      blocked.delete(node.metadata.uid);
      return `${event.object.metadata.name} was evicted from ${node.metadata.name}, where the same pods had blocked ${known.times} drains before`;
    };
  },
};
