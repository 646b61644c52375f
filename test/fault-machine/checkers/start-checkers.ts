import { type Checker, newsMs, stopsNews } from "../checker.ts";
import {
  bestGapMs,
  deadlineOf,
  durationMs,
  endOfLife,
  isOpen,
  type StartRange,
  startRange,
} from "../policy-oracle.ts";
import type { At, TraceEvent } from "../trace.ts";
import { type DepartureObject, isVoluntary, marks, type NodeObject, type View } from "../view.ts";
import type { PolicySpec } from "../world.ts";

/** A cordon that began a departure, as the API server carried it out. */
interface Start {
  readonly node: NodeObject;
  readonly departure: DepartureObject;
  /** When the request was sent: what became true on its way could not be known. */
  readonly sentAt: At;
}

/** Calls back for every cordon that begins a departure without a notice. */
function onStart(
  judge: (start: Start, view: View) => string | undefined,
): (event: TraceEvent, view: View) => string | undefined {
  let cordoned: NodeObject | undefined;
  return (event, view) => {
    if (event.kind === "Change" && event.storage === "nodes") {
      const mark = (node: NodeObject | undefined) => node?.metadata.annotations?.[marks.departure];
      const [now, before] = [event.object as NodeObject, event.previous as NodeObject | undefined];
      const begins =
        event.type === "MODIFIED" && mark(now) !== undefined && mark(now) !== mark(before);
      cordoned = begins ? now : undefined;
      return undefined;
    }
    if (event.kind !== "Request" || cordoned === undefined) return undefined;
    const node = cordoned;
    cordoned = undefined;
    const departure = view.departures.get(node.metadata.annotations?.[marks.departure] ?? "");
    if (departure === undefined) return `${node.metadata.name} was cordoned for no Departure`;
    if (!isVoluntary(departure)) return undefined;
    return judge({ node, departure, sentAt: event.sentAt }, view);
  };
}

/** Whether news of at least this age could be known at an instant. */
function couldKnow(view: View, at: At): boolean {
  return view.troubledMs({ from: at - 120_000, to: at }, stopsNews, 30_000) === 0;
}

/** A process knows the API server's time to the second, by the `Date` of its answers. */
const dateMs = 1000;

export const startIsAllowed: Checker = {
  name: "start-is-allowed",
  rule: "what allows a start is true when the cordon is written: policy, pause, freeze, holds, windows",
  start: () =>
    onStart(({ node, departure, sentAt }, view) => {
      if (departure.spec.cause !== "Planned" || !couldKnow(view, sentAt)) return undefined;
      const { name } = node.metadata;
      const known = sentAt - newsMs;
      // By the copy, which nobody edits.
      if (view.hadCopyAfter(known)) return undefined;
      const policy = view.policyAt(known);
      const versions = view.policiesIn({ from: known, to: sentAt });
      const instants = [known, sentAt, sentAt + dateMs];
      const closed = (isClosed: (policy: PolicySpec, at: At) => boolean): boolean =>
        versions.every((one) => one && instants.every((at) => isClosed(one, at)));
      if (versions.every((one) => one === undefined)) {
        return `${name} started to leave although its policy was deleted`;
      }
      if (policy === undefined) return undefined;
      if (closed(({ paused }) => paused === true))
        return `${name} started to leave under a paused policy`;
      for (const held of [name, departure.metadata.name]) {
        const since = view.heldSince.get(held);
        if (since !== undefined && since <= known)
          return `${name} started to leave although ${held} is held`;
      }
      const machine = view.machines.get(name);
      const isForced = versions.some(
        (one) => one && machine && sentAt >= deadlineOf(one, machine.bornAt) - 60_000,
      );
      if (isForced) return undefined;
      const isFrozen = closed(({ gates }, at) => Date.parse(gates?.freezeUntil ?? "") > at);
      if (isFrozen) return `${name} started to leave under a freeze, before its deadline`;
      if (closed((one, at) => !isOpen(one, at))) {
        return `${name} started to leave outside the windows, before its deadline`;
      }
      return undefined;
    }),
};

/** Silence of this length is known to everybody who watches. */
const silentMs = 5 * 60_000;

export const startIsInformed: Checker = {
  name: "start-is-informed",
  rule: "no node starts to leave while its policy, the nodes or the Departures have not been seen for minutes",
  start: () =>
    onStart(({ node, sentAt }, view) => {
      const refused = [...view.faults.values()].find(
        ({ name, from, to }) =>
          name === "watch-refused" && from <= sentAt - silentMs && to > sentAt,
      );
      if (refused === undefined) return undefined;
      const minutes = Math.round((sentAt - refused.from) / 60_000);
      return `${node.metadata.name} started to leave, and something has not been seen for ${minutes} min`;
    }),
};

/** Of the labels that the default selector knows, that of the model's machines. */
const spotLabel = "cloud.google.com/gke-preemptible";

/** A node that was taken out of the policy's selection, and does not leave by a departure. */
function isOfNoPolicy({ metadata }: NodeObject): boolean {
  const isSelected = metadata.labels?.[spotLabel] !== undefined;
  return !isSelected && metadata.annotations?.[marks.departure] === undefined;
}

export const startIsInBudget: Checker = {
  name: "start-is-in-budget",
  rule: "usable nodes >= nodes that should exist - budget - nodes that the cloud took",
  start: () =>
    onStart(({ node, sentAt }, view) => {
      const { name } = node.metadata;
      const known = sentAt - newsMs;
      const machine = view.machines.get(name);
      // Only the end of its life overrides the budget, for one node after another.
      const limits = view.policiesIn({ from: known, to: sentAt }).map((policy) => {
        const budget = policy?.budgets?.[0]?.nodes;
        const isLast =
          policy !== undefined &&
          machine !== undefined &&
          sentAt >= endOfLife(policy, machine.bornAt) - durationMs(policy.lifetime.reserve);
        return isLast ? undefined : budget;
      });
      const budget = Math.max(...limits.map((limit) => limit ?? Number.POSITIVE_INFINITY));
      if (!couldKnow(view, sentAt)) return undefined;
      const out = [...view.unusable].filter(([other, { since, why }]) => {
        const its = view.nodes.get(other);
        if (other === name || since > known || (its && isOfNoPolicy(its))) return false;
        return why !== "Taken" && why !== "Booting";
      });
      if (out.length + 1 <= budget) return undefined;
      const others = out.map(([other, { why }]) => `${other} (${why})`).join(", ");
      return `${name} started to leave beside ${others}, with a budget of ${budget}`;
    }),
};

/** The least share of `spacing.min` between two starts, whatever forces the second one. */
const leastShare = 1 / 15;

export const startsKeepPace: Checker = {
  name: "starts-keep-pace",
  rule: "two planned starts are never closer than half of min(spacing.min, the best gap that still fits)",
  start: () => {
    const lastOf = new Map<string, { at: At; name: string; bestMs: number }>();
    return onStart(({ node, departure, sentAt }, view) => {
      const policy = view.policyAt(sentAt);
      if (departure.spec.cause !== "Planned" || policy === undefined) return undefined;
      const { name } = node.metadata;
      const wantedMs = durationMs(policy.spacing.min);
      const rangeFrom = (at: At, other: string): readonly StartRange[] => {
        const machine = view.machines.get(other);
        return machine === undefined ? [] : [startRange(policy, machine.bornAt, at)];
      };
      const others = [...view.nodes.keys()].filter((other) => other !== name);
      const ranges = others.flatMap((other) => rangeFrom(sentAt, other));
      // Each policy keeps its own pace, whichever its nodes belonged to before.
      const { policy: ofPolicy = "" } = departure.spec;
      const last = lastOf.get(ofPolicy);
      const bestMs = bestGapMs(policy, { from: sentAt, ranges, wantedMs });
      lastOf.set(ofPolicy, { at: sentAt, name, bestMs });
      if (last === undefined || last.name === name) return undefined;
      // A server that shows Departures of long ago, or not all, hides when the last one started,
      // and by a wrong clock every node may be past its end.
      const isStale = (fault: string): boolean =>
        /^(watch-stale|watch-partial|server-clock-off)$/.test(fault);
      if (view.troubledMs({ from: last.at, to: sentAt }, isStale, 60_000) > 0) return undefined;
      // Starts are apart when they are recorded. A record that arrives late delays its cordon.
      const isLateWrite = (fault: string): boolean => /^(late-writes|flaky)$/.test(fault);
      if (view.troubledMs({ from: last.at - 120_000, to: last.at }, isLateWrite) > 0)
        return undefined;
      // A machine that has registered since the last start has to leave before the window closes as
      // well, if its deadline is after that: then the best gap is smaller than it was, by so much.
      const present = [...others, name].flatMap((other) => rangeFrom(last.at, other));
      const withNewcomers = bestGapMs(policy, { from: last.at, ranges: present, wantedMs });
      const fitMs = Math.min(wantedMs, last.bestMs, withNewcomers);
      const machine = view.machines.get(name);
      const isLate = machine !== undefined && sentAt >= endOfLife(policy, machine.bornAt);
      const floor = Math.min(wantedMs * leastShare, fitMs) - newsMs - 1000;
      const least = isLate ? floor : Math.max(fitMs / 2 - 30_000, floor);
      const gap = sentAt - last.at;
      if (gap >= least) return undefined;
      return `${name} started to leave ${gap / 1000} s after ${last.name}, expected at least ${Math.round(least / 1000)} s`;
    });
  },
};

/**
 * So many nodes, at least, are sick in an unhealthy fleet; kubernetes: ComputeZoneState in
 * `pkg/controller/nodelifecycle/node_lifecycle_controller.go`.
 */
const fewestSick = 3;

export const startWaitsForFleet: Checker = {
  name: "start-waits-for-fleet",
  rule: "no voluntary start while most of the fleet is not ready",
  start: () =>
    onStart(({ node, sentAt }, view) => {
      const known = sentAt - 120_000;
      const sick = [...view.unusable].filter(
        ([, { since, why }]) => why === "NotReady" && since <= known,
      );
      const size = view.machines.size;
      if (sick.length < fewestSick || sick.length / size < 0.55 || !couldKnow(view, sentAt)) {
        return undefined;
      }
      return `${node.metadata.name} started to leave while ${sick.length} of ${size} nodes were not ready`;
    }),
};

/** The taints of other tools that drain or remove a node, as their projects document them. */
const rivalTaints: ReadonlySet<string> = new Set([
  "ToBeDeletedByClusterAutoscaler",
  "karpenter.sh/disrupted",
]);

export const startLeavesRivalsAlone: Checker = {
  name: "start-leaves-rivals-alone",
  rule: "no voluntary start on a node that another tool has marked as its own",
  start: () => {
    const markedSince = new Map<string, At>();
    const judge = onStart(({ node, sentAt }, view) => {
      const since = markedSince.get(node.metadata.uid);
      if (since === undefined || since > sentAt - newsMs || !couldKnow(view, sentAt)) {
        return undefined;
      }
      return `${node.metadata.name} started to leave although another tool had marked it`;
    });
    return (event, view) => {
      if (event.kind === "Change" && event.storage === "nodes") {
        const { metadata, spec } = event.object as NodeObject;
        const isMarked = spec.taints?.some(({ key }) => rivalTaints.has(key)) ?? false;
        if (!isMarked || event.type === "DELETED") markedSince.delete(metadata.uid);
        else if (!markedSince.has(metadata.uid)) markedSince.set(metadata.uid, event.at);
      }
      return judge(event, view);
    };
  },
};

/** How late a start may be at its deadline: a pass, and the requests before the cordon. */
const punctualMs = 60_000;

export const startIsInTime: Checker = {
  name: "start-is-in-time",
  rule: "a node that nothing holds, and no other before it, starts to leave before its reserve begins",
  start: () => {
    let firstFaultAt: At | undefined;
    let firstLedAt: At | undefined;
    let wasHeld = false;
    const judge = onStart(({ node, departure, sentAt }, view) => {
      const { name } = node.metadata;
      const policy = view.policyAt(sentAt);
      const machine = view.machines.get(name);
      if (departure.spec.cause !== "Planned" || policy === undefined || machine === undefined) {
        return undefined;
      }
      // The API server writes an empty list where a policy has none.
      const isHeld = [policy.budgets, policy.windows].some((list = []) => list.length > 0);
      if (isHeld || wasHeld || firstFaultAt !== undefined || policy.drain.onTimeout === "Wait")
        return undefined;
      // A drain in vain is tried again later, whenever that is.
      const isAgain = [...view.departures.values()].some(
        ({ spec, status }) => spec.node.uid === node.metadata.uid && status?.outcome !== undefined,
      );
      const deadline = deadlineOf(policy, machine.bornAt);
      // One that was past it when it was first planned takes what the plan of the others leaves.
      const isOverdue = firstLedAt !== undefined && deadline <= firstLedAt + newsMs;
      if (isAgain || isOverdue || sentAt <= deadline + punctualMs) return undefined;
      return `${name} started to leave ${Math.round((sentAt - deadline) / 1000)} s after its deadline`;
    });
    return (event, view) => {
      if (event.kind === "Fault" && event.name !== "refuse-events") firstFaultAt ??= event.at;
      if (view.leader !== undefined) firstLedAt ??= event.at;
      if (event.kind === "Change" && event.storage.startsWith("departures."))
        wasHeld ||= (event.object as DepartureObject).status?.phase === "Held";
      return judge(event, view);
    };
  },
};

export const fleetIsNotEmptied: Checker = {
  name: "fleet-is-not-emptied",
  rule: "no voluntary start while a third of the fleet, and two at least, went by us and did not come back in half an hour",
  start: () =>
    onStart(({ node, sentAt }, view) => {
      const known = sentAt - 30 * 60_000;
      // A node may have been cordoned for hours before its machine went.
      const gone = [...view.unusable].filter(
        ([, { whySince, why }]) => why === "Released" && whySince <= known,
      );
      if (gone.length < 2 || gone.length * 3 < view.machines.size || !couldKnow(view, sentAt)) {
        return undefined;
      }
      const names = gone.map(([name]) => name).join(", ");
      return `${node.metadata.name} started to leave although ${names} did not come back`;
    }),
};
