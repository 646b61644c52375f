import { type Checker, keepsFromNodes, newsMs, stopsActs, stopsNews } from "../checker.ts";
import { durationMs } from "../policy-oracle.ts";
import type { At } from "../trace.ts";
import {
  type DepartureObject,
  isVoluntary,
  marks,
  type PodObject,
  phaseOf,
  underWay,
  type View,
} from "../view.ts";

const minute = 60_000;

/** How long a phase may last when everybody can act; undefined: the policy sets no limit. */
function boundOf({ phase, graceMs }: Entered, view: View): number | undefined {
  const policy = view.policyUnderWay();
  if (phase === "Preparing") return 10 * minute + durationMs(policy.replacement?.timeout ?? "0s");
  if (phase === "Draining") {
    if (policy.drain.onTimeout === "Wait") return undefined;
    return 10 * minute + durationMs(policy.drain.timeout) + graceMs;
  }
  // Within an hour a machine ends by a request whose answer was lost.
  if (phase === "Releasing") return 90 * minute + durationMs(policy.instance.awaitMachine);
  return 10 * minute;
}

interface Entered {
  readonly phase: string;
  readonly node: string;
  readonly at: At;
  /** The longest grace of a pod that has been asked to leave: it has all of it, also if it ends. */
  graceMs: number;
  isTold: boolean;
}

function noteGrace({ metadata, spec }: PodObject, entered: ReadonlyMap<string, Entered>): void {
  if (metadata.deletionTimestamp === undefined) return;
  const graceMs = (spec.terminationGracePeriodSeconds ?? 30) * 1000;
  for (const its of entered.values()) {
    if (its.node === spec.nodeName) its.graceMs = Math.max(its.graceMs, graceMs);
  }
}

export const phasesEnd: Checker = {
  name: "phases-end",
  rule: "every phase of a voluntary departure ends within a bound that its policy gives",
  start: () => {
    const entered = new Map<string, Entered>();
    return (event, view) => {
      if (event.kind === "Change" && event.storage === "pods") {
        noteGrace(event.object as PodObject, entered);
      }
      if (event.kind === "Change" && event.storage.startsWith("departures.")) {
        const departure = event.object as DepartureObject;
        const { uid } = departure.metadata;
        const phase = phaseOf(departure);
        const isMeant =
          event.type !== "DELETED" && isVoluntary(departure) && underWay.includes(phase);
        if (!isMeant) entered.delete(uid);
        else if (entered.get(uid)?.phase !== phase) {
          const { name: node } = departure.spec.node;
          entered.set(uid, { phase, node, at: event.at, graceMs: 0, isTold: false });
          // A drain that was rolled back may have asked them before.
          for (const pod of view.podsOn(node)) noteGrace(pod, entered);
        }
      }
      for (const [uid, its] of entered) {
        // No bound is shorter, and this comes for every event.
        if (event.at - its.at <= 10 * minute) continue;
        const bound = boundOf(its, view);
        if (its.isTold || bound === undefined || event.at - its.at <= bound) continue;
        // A controller that is started again needs a first list of each kind.
        const isStarted = view.troubledMs({ from: its.at, to: event.at }, startsAgain) > 0;
        const isMeant = (name: string): boolean =>
          stopsActs(name) ||
          (name === "watch-refused" && isStarted) ||
          // Lists that lack a Departure, or show it before its start, hide it from whoever leads.
          name === "watch-partial" ||
          name === "watch-stale" ||
          // Nobody can uncordon a node that may not be written.
          (its.phase === "RollingBack" && keepsFromNodes(name)) ||
          (its.phase === "Releasing" && /^(slow-stop|release-forgotten|refuse-node)/.test(name));
        const troubled = view.troubledMs({ from: its.at, to: event.at }, isMeant, 2 * minute);
        if (event.at - its.at - troubled <= bound) continue;
        its.isTold = true;
        const departure = [...view.departures.values()].find((one) => one.metadata.uid === uid);
        return `${departure?.metadata.name} has been ${its.phase} for ${Math.round((event.at - its.at) / minute)} min: ${departure?.status?.reason}`;
      }
      return undefined;
    };
  },
};

function startsAgain(name: string): boolean {
  return name.startsWith("kill");
}

export const noticeIsActedOn: Checker = {
  name: "notice-is-acted-on",
  rule: "a node is cordoned within 5 s of its notice, plus the time that faults take",
  start: () => {
    const waiting = new Map<string, Noticed>();
    return (event, view) => {
      if (event.kind === "Notice") {
        const { node: name, endsInMs } = event;
        const uid = view.nodes.get(name)?.metadata.uid;
        if (endsInMs === undefined || uid === undefined) waiting.delete(name);
        else waiting.set(name, { uid, at: event.at, endsAt: event.at + endsInMs });
      }
      if (event.kind === "Change" && event.storage.startsWith("departures.")) {
        const { spec } = event.object as DepartureObject;
        const { name, uid } = spec.node;
        const before = (event.previous as DepartureObject | undefined)?.spec.noticedAt;
        const isNew = spec.noticedAt !== undefined && before === undefined;
        // Who was told by the cloud waits since then.
        if (isNew && !waiting.has(name)) waiting.set(name, { uid, at: event.at });
        if (spec.withdrawnAt !== undefined) waiting.delete(name);
      }
      for (const [name, { uid, at, endsAt }] of waiting) {
        const node = view.nodes.get(name);
        if (
          node?.metadata.uid !== uid ||
          node.spec.unschedulable === true ||
          view.machines.get(name)?.state !== "Registered" ||
          // What should have gone by now is nobody's notice any more.
          (endsAt !== undefined && event.at > endsAt)
        ) {
          waiting.delete(name);
          continue;
        }
        if (event.at - at <= newsMs) continue;
        const troubled = view.troubledMs({ from: at, to: event.at }, isInTheWay, 2 * minute);
        if (event.at - at - troubled <= newsMs) continue;
        waiting.delete(name);
        return `${name} was noticed ${(event.at - at) / 1000} s ago, and is not cordoned`;
      }
      return undefined;
    };
  },
};

interface Noticed {
  /** Of the Node whose machine will be taken. */
  readonly uid: string;
  readonly at: At;
  /** Undefined: only a Departure tells of it. */
  readonly endsAt?: At;
}

/** A fault that can keep a cordon from being decided, sent or carried out. */
function isInTheWay(name: string): boolean {
  return (
    stopsActs(name) ||
    stopsNews(name) ||
    keepsFromNodes(name) ||
    /^(policy-|node-relabelled|node-deleted|registered-again)/.test(name) ||
    ["agent-dead", "departure-deleted", "reboot"].includes(name)
  );
}

export const calmIsRest: Checker = {
  name: "calm-is-rest",
  rule: "when faults have ended and hours have passed, nothing of a departure is left: no mark, no placeholder, no phase",
  start: () => (event, view) => {
    if (event.kind !== "End") return undefined;
    const waits = view.policyUnderWay().drain.onTimeout === "Wait";
    for (const [name, node] of view.nodes) {
      const departure = view.departureOf(node);
      const isDraining = departure !== undefined && phaseOf(departure) === "Draining";
      if (waits && isDraining) continue;
      if (node.metadata.annotations?.[marks.departure] !== undefined) {
        return `${name} still carries the mark of ${departure?.metadata.name ?? "no Departure"} (${departure?.status?.phase} ${departure?.status?.reason})`;
      }
      if (node.spec.taints?.some(({ key }) => key === marks.taint))
        return `${name} still has our taint`;
      if (node.spec.unschedulable === true) return `${name} is still cordoned, and nobody says why`;
    }
    for (const [name, departure] of view.departures) {
      const phase = phaseOf(departure);
      if (departure.metadata.deletionTimestamp !== undefined)
        return `${name} is deleted and does not go`;
      if (underWay.includes(phase) && !(waits && phase === "Draining"))
        return `${name} is still ${phase}: ${departure.status?.reason}`;
    }
    // A drain that waits without end keeps what it has reserved.
    const isWaiting =
      waits && [...view.departures.values()].some((one) => phaseOf(one) === "Draining");
    for (const [name, pod] of isWaiting ? [] : view.pods) {
      if (pod.metadata.labels?.[marks.placeholder] !== undefined)
        return `the placeholder ${name} is still there`;
    }
    return undefined;
  },
};

/** At rest, an hour has room for a few reports about each node, and no more. */
const restWritesPerNode = 4;
const restWrites = 10;
/** Of everything but evictions, in any minute: a departure takes about thirty. */
const busyWrites = 120;
const busyWritesPerNode = 60;

export const writesAreFew: Checker = {
  name: "writes-are-few",
  rule: "a fleet at rest causes few writes an hour, and nothing causes hundreds a minute",
  start: () => {
    let calmWrites = 0;
    let isAtRest = false;
    let minuteAt = 0;
    let inMinute = 0;
    let isTold = false;
    return (event, view) => {
      if (event.kind === "Person" && event.what.includes('"paused":true') && view.isCalm)
        isAtRest = true;
      const nodes = view.machines.size;
      if (event.kind === "End" && calmWrites > restWrites + restWritesPerNode * nodes) {
        return `${calmWrites} writes in the last hour at rest, with ${nodes} nodes`;
      }
      if (
        event.kind !== "Request" ||
        event.method === "GET" ||
        !event.process.startsWith("controller")
      )
        return undefined;
      if (event.path.includes("/leases") || event.path.endsWith("/eviction")) return undefined;
      const end = view.restFrom;
      // A drain that its pods keep for hours comes to rest later.
      const isLeaving = [...view.departures.values()].some((one) =>
        underWay.includes(phaseOf(one)),
      );
      if (isLeaving) calmWrites = 0;
      else if (isAtRest && end !== undefined && event.at >= end) calmWrites += 1;
      if (event.at - minuteAt >= minute) {
        minuteAt = event.at;
        inMinute = 0;
      }
      inMinute += 1;
      if (isTold || inMinute <= busyWrites + busyWritesPerNode * nodes) return undefined;
      isTold = true;
      return `${inMinute} writes within a minute: ${event.method} ${event.path}`;
    };
  },
};

export const nothingBreaks: Checker = {
  name: "nothing-breaks",
  rule: "no process fails, loops without a pause, or logs a broken invariant",
  start: () => (event) => {
    if (event.kind === "Log" && /BROKEN_INVARIANT|UNEXPECTED/.test(event.text))
      return `${event.process} logs ${event.text}`;
    if (event.kind !== "Process") return undefined;
    if (event.what.startsWith("loops")) return `${event.process} ${event.what}`;
    // A process that may not list its resources ends, and says so.
    if (event.what.startsWith("fails") && !/RIGHT_MISSING|CRD_MISSING|forbidden/.test(event.what))
      return `${event.process} ${event.what}`;
    return undefined;
  },
};
