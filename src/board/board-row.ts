import { knownClouds } from "../cloud/facts/known-clouds.ts";
import type { FleetView } from "../contracts/cluster.ts";
import { bornAt, holdAnnotation, holdOf, type NodeFacts, zoneOf } from "../core/cluster/node.ts";
import {
  type Departure,
  type DrainCounts,
  isLive,
  isNoticed,
  isUnderWay,
  policyNameOf,
} from "../core/departure/departure.ts";
import type { FleetPlan, PlannedDeparture } from "../core/plan/fleet-plan.ts";
import { lifetimeEnd } from "../core/plan/lifetime-end.ts";
import type { NotPlanned } from "../core/plan/not-planned.ts";
import { sayPlan } from "../core/plan/plan-report.ts";
import { type Policy, selectPolicy } from "../core/policy/policy.ts";
import { inEnglish } from "../core/reason/english.ts";
import { earliest, type Instant, plus } from "../core/time/time.ts";
import {
  type BoardRow,
  type PodCounts,
  plannedWaves,
  type RowHold,
  type RowState,
} from "./stream.ts";

/** A row for each node, and for each live departure whose Node object is gone. */
export function boardRows(view: FleetView, plan: FleetPlan): readonly BoardRow[] {
  const planned = new Map<string, PlannedRow>();
  for (const one of plan.policies) {
    const { policy, departures } = one;
    const { waveOf } = plannedWaves(one);
    for (const entry of departures) {
      const earliestAt = lastingEarliest(entry, { plan, policy });
      planned.set(entry.node.uid, {
        ...{ entry: { ...entry, earliestAt }, policy: policy.name },
        wave: waveOf.get(entry.node.uid) ?? null,
      });
    }
  }
  const left = new Map(plan.notPlanned.map((one) => [one.node.uid, one]));
  const live = liveByNode(view.departures, (uid) => planned.has(uid));
  const rows = view.nodes.map((node) =>
    nodeRow(node, {
      planned: planned.get(node.uid),
      left: left.get(node.uid),
      departure: live.get(node.uid),
      ownPolicy: selectPolicy(node, view.policies)?.policy,
    }),
  );
  const uids = new Set(view.nodes.map(({ uid }) => uid));
  const nodeless = [...live.values()].filter(({ node }) => !uids.has(node.uid)).map(nodelessRow);
  return [...rows, ...nodeless];
}

/**
 * For a node that may already leave, the plan's earliest instant is now. A page gets the instant
 * from which the node was allowed to leave, because that does not change.
 */
function lastingEarliest(
  { earliestAt, bornAt: born }: PlannedDeparture,
  { plan, policy }: { readonly plan: FleetPlan; readonly policy: Policy },
): Instant {
  return earliestAt > plan.at ? earliestAt : plus(born, policy.lifetime.minMs);
}

interface PlannedRow {
  readonly entry: PlannedDeparture;
  readonly policy: string;
  readonly wave: number | null;
}

interface NodeStory {
  readonly planned: PlannedRow | undefined;
  readonly left: NotPlanned | undefined;
  readonly departure: Departure | undefined;
  /** The policy that selects it. */
  readonly ownPolicy: Policy | undefined;
}

/** The live departure of each node; of several, the one that makes the node leave, or will. */
function liveByNode(
  departures: readonly Departure[],
  isPlanned: (uid: string) => boolean,
): ReadonlyMap<string, Departure> {
  const found = new Map<string, Departure>();
  for (const one of departures) {
    if (!isLive(one)) continue;
    const other = found.get(one.node.uid);
    const weight = (of: Departure): number => weightOf(of, isPlanned(of.node.uid));
    if (other === undefined || weight(one) > weight(other)) found.set(one.node.uid, one);
  }
  return found;
}

/** If a request is for later than the node's deadline, the planned departure comes first. */
function weightOf(departure: Departure, isPlanned: boolean): number {
  if (isUnderWay(departure)) return 3;
  if (isNoticed(departure)) return 2;
  if (departure.cause === "Manual") return isPlanned ? 0 : 1;
  return isPlanned ? 1 : 0;
}

/** The instant of a paused policy's departure will pass: nothing leaves then. */
function isPausedDeparture(departure: Departure, left: NotPlanned | undefined): boolean {
  const isWaiting =
    departure.cause === "Planned" && !isUnderWay(departure) && !isNoticed(departure);
  return isWaiting && left?.reason === "PolicyPaused";
}

function nodeRow(node: NodeFacts, { departure: live, ...story }: NodeStory): BoardRow {
  const { planned, left } = story;
  const departure = live && isPausedDeparture(live, left) ? undefined : live;
  const entry = planned?.entry;
  const policy = planned?.policy ?? left?.policy ?? (departure && policyNameOf(departure)) ?? null;
  const departAt = departure?.departAt ?? entry?.departAt ?? null;
  const state = stateOf(departure, departAt !== null);
  const said = state === "Leaving" || state === "Held" ? departure?.status : undefined;
  const why = whyOf(node, { ...story, departure });
  return {
    ...{ id: node.uid, uid: node.uid, node: node.name },
    ...{ zone: zoneOf(node), pool: poolOf(node), policy, state },
    phase: departure?.status.phase ?? null,
    cause: departure?.cause ?? null,
    departure: departure?.name ?? null,
    departureUid: departure?.uid ?? null,
    bornAt: entry?.bornAt ?? bornAt(node) ?? null,
    earliestAt: entry?.earliestAt ?? null,
    departAt,
    deadlineAt: deadlineOf(node, { ...story, departure }) ?? null,
    noticedAt: departure?.noticedAt ?? null,
    startedAt: departure?.status.startedAt ?? null,
    heldBackTo: entry?.heldBackTo ?? null,
    frozenUntil: entry?.frozenUntil ?? null,
    window: entry?.window ?? null,
    wave: planned?.wave ?? null,
    reason: said?.reason ?? why.reason,
    plannedBy: entry?.reason ?? null,
    explain: said?.message ?? why.explain,
    hold: rowHold(node, departure),
    pods: podCounts(departure?.status.drain),
  };
}

/** A person's request does not move the deadline that the node has by its policy. */
function deadlineOf(
  node: NodeFacts,
  { departure, planned, ownPolicy }: NodeStory,
): Instant | undefined {
  const deadlineAt = departure?.deadlineAt ?? planned?.entry.deadlineAt;
  if (departure?.cause !== "Manual" || isNoticed(departure)) return deadlineAt;
  const own = ownPolicy && lifetimeEnd(node, ownPolicy);
  return earliest(deadlineAt, own?.deadlineAt);
}

function stateOf(departure: Departure | undefined, hasInstant: boolean): RowState {
  if (departure === undefined) return hasInstant ? "Scheduled" : "Stays";
  if (isUnderWay(departure)) return "Leaving";
  return departure.status.phase === "Held" ? "Held" : "Scheduled";
}

/** Why the node leaves when it does, or stays, in the words of the plan. */
function whyOf(node: NodeFacts, { planned, left, departure }: NodeStory) {
  if (planned !== undefined) {
    const { entry, policy } = planned;
    const facts = { ...entry, ...settledBy(departure), node: node.name, policy };
    const explain = sayPlan(entry.reason, facts);
    return { reason: entry.reason, explain };
  }
  if (left !== undefined) {
    const { reason, policy, detail } = left;
    return { reason, explain: sayPlan(reason, { node: node.name, policy, detail }) };
  }
  const reason = departure?.status.reason ?? "NoPolicy";
  const explain = departure?.status.message ?? sayPlan(reason, { node: node.name });
  return { reason, explain };
}

/** Until the controller moves it, a departure has the instants in its spec. */
function settledBy(departure: Departure | undefined) {
  const { departAt, deadlineAt } = departure ?? {};
  return {
    ...(departAt !== undefined && { departAt, movedFrom: undefined }),
    ...(deadlineAt !== undefined && { deadlineAt }),
  };
}

function nodelessRow(departure: Departure): BoardRow {
  const { node, status } = departure;
  const policy = policyNameOf(departure) ?? null;
  return {
    ...{ id: node.uid, uid: node.uid, node: node.name, zone: "", pool: "", policy },
    state: stateOf(departure, true),
    phase: status.phase,
    cause: departure.cause,
    departure: departure.name,
    departureUid: departure.uid,
    ...{
      bornAt: null,
      earliestAt: null,
      heldBackTo: null,
      frozenUntil: null,
      window: null,
      wave: null,
      plannedBy: null,
    },
    departAt: departure.departAt ?? null,
    deadlineAt: departure.deadlineAt ?? null,
    noticedAt: departure.noticedAt ?? null,
    startedAt: status.startedAt ?? null,
    reason: status.reason ?? "NodeGone",
    explain: status.message ?? `${inEnglish({ says: "drain.NoNode", node: node.name })}.`,
    hold: null,
    pods: podCounts(status.drain),
  };
}

function rowHold(node: NodeFacts, departure: Departure | undefined): RowHold | null {
  if (departure?.hold) {
    return { mark: "spec.hold", untilAt: null, isOurs: false, by: null, sinceAt: null };
  }
  const hold = holdOf(node);
  if (hold.kind === "None") return null;
  const { user, manager, at: sinceAt = null } = node.holdWriter ?? {};
  const by = user ?? manager ?? null;
  if (hold.kind === "Until") {
    return { mark: holdAnnotation, untilAt: hold.until, isOurs: true, by, sinceAt };
  }
  return { mark: hold.mark, untilAt: null, isOurs: hold.mark === holdAnnotation, by, sinceAt };
}

/** The labels by which platforms name the group of machines of a node. */
const poolLabels: readonly string[] = knownClouds.flatMap((cloud) => cloud.poolLabels);

function poolOf({ labels }: NodeFacts): string {
  for (const label of poolLabels) {
    const pool = labels[label];
    if (pool !== undefined) return pool;
  }
  return "";
}

export function podCounts(drain: DrainCounts | undefined): PodCounts | null {
  if (drain === undefined) return null;
  const { total, left, evicted, forced, waiting, blocked, cut } = drain;
  const { killed = 0, leftBehind = 0 } = drain;
  return { total, left, evicted, forced, waiting, blocked, cut, killed, leftBehind };
}
