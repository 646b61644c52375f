import { holdOf, type NodeFacts, rivalOf } from "../cluster/node.ts";
import { sliceOf } from "../cluster/slice.ts";
import type { GateAnswer, GateInquiry, Snapshot } from "../departure/decision.ts";
import { isUnderWay, mayBeIgnored } from "../departure/departure.ts";
import type { Policy } from "../policy/policy.ts";
import type { Reason } from "../reason/reason.ts";
import { hours, type Instant, instant, minutes, plus, type Span } from "../time/time.ts";
import { openHours } from "./windows.ts";

/** What holds a planned departure back. */
export interface GateHold {
  readonly kind: "Held";
  readonly reason: Reason;
  /** Who or what holds it, for the explanation. */
  readonly detail?: string | undefined;
  /** When the hold ends; absent if only a change in the cluster ends it. */
  readonly retryAt?: Instant | undefined;
  /** The gate has not been queried yet, and a deadline does not override what it may find. */
  readonly isUnasked?: boolean | undefined;
}

export interface GateQuestion {
  readonly policy: Policy;
  readonly node: NodeFacts;
  /** Answers of external gates. Absent: not queried yet, which counts as closed. */
  readonly answer: GateAnswer | undefined;
  /** The result of `windowHold` for the policy, the same for all of its nodes. */
  readonly window: GateHold | undefined;
  readonly now: Instant;
}

/** How long before a departure its gates are queried, so that the answers are there in time. */
const nearMs = minutes(1);

/**
 * The policies whose gates have to be queried now, because a departure is due or nearly due, and
 * the nodes of these departures.
 */
export function gatesToAsk(
  { policies, departures }: Pick<Snapshot, "policies" | "departures">,
  now: Instant,
): readonly GateInquiry[] {
  const soon = new Map<string | undefined, string[]>();
  for (const departure of departures) {
    const { cause } = departure;
    const isAsked = cause === "Planned" || mayBeIgnored(cause);
    if (isUnderWay(departure) || !isAsked) continue;
    if ((departure.departAt ?? now) > plus(now, nearMs)) continue;
    const nodes = soon.get(departure.policy) ?? [];
    nodes.push(departure.node.name);
    soon.set(departure.policy, nodes);
  }
  return policies.filter(asksOutside).flatMap((policy) => {
    const nodes = soon.get(policy.name);
    return nodes === undefined ? [] : [{ policy, nodes }];
  });
}

/** Whether the policy has no external gates, or they were asked about this node. */
export function wereAsked({ policy, node, answer }: Omit<GateQuestion, "window" | "now">): boolean {
  if (!asksOutside(policy)) return true;
  if (answer === undefined) return false;
  const isOpen = policy.gates.gangWorkloads !== "Hold" || answer.gangs === "Unknown";
  return isOpen || answer.gangs.has(node.name);
}

/** Whether the policy has external gates. */
export function asksOutside({ gates }: Policy): boolean {
  const isGated = gates.alerts !== undefined || gates.blockingPods.length > 0;
  return isGated || gates.gangWorkloads === "Hold";
}

/**
 * Every gate and window that holds a planned departure now. All fail closed: a gate that could not
 * be queried counts as closed. Whether a deadline overrides them is decided elsewhere.
 */
export function gateHolds(question: GateQuestion): readonly GateHold[] {
  const holds = [
    ...[nodeGate(question), policyGate(question), question.window],
    ...[sliceGate(question), alertGate(question), podGate(question), gangGate(question)],
  ];
  return holds.filter((hold) => hold !== undefined);
}

/**
 * What holds a node now that was allowed to start earlier. The external gates count only if they
 * were asked again.
 */
export function holdsSinceStart(question: Omit<GateQuestion, "window">): readonly GateHold[] {
  const { policy, answer, now } = question;
  const whole = { ...question, window: windowHold(policy, now) };
  if (answer !== undefined) return gateHolds(whole);
  const inner = [nodeGate(whole), policyGate(whole), whole.window, sliceGate(whole)];
  return inner.filter((hold) => hold !== undefined);
}

/** How far ahead to look for the next opening of a window. */
const lookAheadMs = hours(8 * 24);

/** Whether the windows are closed now, and until when; undefined if one is open. */
export function windowHold(policy: Policy, now: Instant): GateHold | undefined {
  const soon = openHours(policy.windows, { startAt: now, endAt: instant(now + 1) });
  if (soon.spans.length > 0) return undefined;
  const later = openHours(policy.windows, { startAt: now, endAt: plus(now, lookAheadMs) });
  return { kind: "Held", reason: "OutsideWindow", retryAt: later.spans[0]?.startAt };
}

/** What holds a node for everybody, also for a person who requests its departure. */
export function othersGate(node: NodeFacts): GateHold | undefined {
  if (node.deletionAt !== undefined) return { kind: "Held", reason: "NodeTerminating" };
  const rival = rivalOf(node);
  return rival === undefined ? undefined : { kind: "Held", reason: "LeftToOthers", detail: rival };
}

function nodeGate({ node, now }: GateQuestion): GateHold | undefined {
  const others = othersGate(node);
  if (others !== undefined) return others;
  const hold = holdOf(node);
  if (hold.kind === "Always") return { kind: "Held", reason: "OnHold", detail: hold.mark };
  if (hold.kind === "Until" && hold.until > now) {
    return { kind: "Held", reason: "OnHold", retryAt: hold.until };
  }
  return undefined;
}

function policyGate({ policy, now }: GateQuestion): GateHold | undefined {
  if (policy.paused) return { kind: "Held", reason: "PolicyPaused" };
  const { freezeUntil } = policy.gates;
  if (freezeUntil !== undefined && now < freezeUntil) {
    return { kind: "Held", reason: "Frozen", retryAt: freezeUntil };
  }
  return undefined;
}

/** How many alerts a sentence names. */
const mostAlerts = 10;

function alertGate({ policy, answer }: GateQuestion): GateHold | undefined {
  if (policy.gates.alerts === undefined) return undefined;
  const alerts = answer?.alerts ?? "Unknown";
  const { url } = policy.gates.alerts;
  if (alerts === "Unknown") return { kind: "Held", reason: "AlertsUnknown", detail: url };
  if (alerts === "NotAllowed") return { kind: "Held", reason: "AlertsNotAllowed", detail: url };
  if (alerts.length === 0) return undefined;
  const more = alerts.length - mostAlerts;
  const shown = alerts.slice(0, mostAlerts).join(", ");
  const detail = more > 0 ? `${shown} and ${more} more` : shown;
  return { kind: "Held", reason: "AlertsFiring", detail };
}

function podGate({ policy, node, answer }: GateQuestion): GateHold | undefined {
  if (policy.gates.blockingPods.length === 0) return undefined;
  const pods = answer?.blockingPods ?? "Unknown";
  if (pods === "Unknown") return { kind: "Held", reason: "BlockingPodsUnknown" };
  const pod = pods.get(node.name);
  return pod === undefined ? undefined : { kind: "Held", reason: "BlockingPod", detail: pod };
}

/** Holds a machine that its cloud replaces only together with others. */
function sliceGate({ policy, node }: GateQuestion): GateHold | undefined {
  const slice = policy.gates.gangWorkloads === "Hold" ? sliceOf(node) : undefined;
  return slice === undefined ? undefined : { kind: "Held", reason: "GangWorkload", detail: slice };
}

function gangGate({ policy, node, answer }: GateQuestion): GateHold | undefined {
  if (policy.gates.gangWorkloads !== "Hold") return undefined;
  if (answer === undefined || !wereAsked({ policy, node, answer })) {
    return { kind: "Held", reason: "GangsUnknown", isUnasked: true };
  }
  if (answer.gangs === "Unknown") return { kind: "Held", reason: "GangsUnknown" };
  const gang = answer.gangs.get(node.name);
  return gang === undefined ? undefined : { kind: "Held", reason: "GangWorkload", detail: gang };
}

/**
 * The instants at which a start is allowed, for the optimiser: sorted closed ranges of whole
 * milliseconds, `lows[i]` to `highs[i]`, with at least one forbidden millisecond between two. Plain
 * numbers in two arrays, because a search reads them a million times.
 */
export interface OpenTime {
  readonly lows: readonly number[];
  readonly highs: readonly number[];
}

/** Closed ranges of whole milliseconds, sorted by `lows`; they may overlap. */
export interface ClosedRanges {
  readonly lows: ArrayLike<number>;
  readonly highs: ArrayLike<number>;
}

export function openTime(spans: readonly Span[]): OpenTime {
  return {
    lows: spans.map((span) => span.startAt),
    highs: spans.map((span) => span.endAt - 1),
  };
}

/** The same ranges with time reversed: an instant t becomes -t. */
export function mirrored(open: OpenTime): OpenTime {
  return {
    lows: open.highs.map((high) => -high).reverse(),
    highs: open.lows.map((low) => -low).reverse(),
  };
}

export function withoutRanges(open: OpenTime, holes: ClosedRanges): OpenTime {
  if (holes.lows.length === 0) return open;
  const lows: number[] = [];
  const highs: number[] = [];
  let next = 0;
  for (let at = 0; at < open.lows.length; at += 1) {
    const high = open.highs[at] as number;
    let low = open.lows[at] as number;
    // A hole that extends beyond this range is considered again for the next one.
    while (next < holes.lows.length && (holes.lows[next] as number) <= high) {
      const holeLow = holes.lows[next] as number;
      const holeHigh = holes.highs[next] as number;
      if (holeLow > low) {
        lows.push(low);
        highs.push(holeLow - 1);
      }
      if (holeHigh + 1 > low) low = holeHigh + 1;
      if (holeHigh > high) break;
      next += 1;
    }
    if (low <= high) {
      lows.push(low);
      highs.push(high);
    }
  }
  return { lows, highs };
}

/** `open` without the instants closer than `gap` to one of the sorted `fixed` ones. */
export function keptAway(open: OpenTime, fixed: readonly number[], gap: number): OpenTime {
  if (gap <= 0 || fixed.length === 0) return open;
  const lows = fixed.map((at) => at - gap + 1);
  return withoutRanges(open, { lows, highs: fixed.map((at) => at + gap - 1) });
}

/** The index of the last range that starts at or before `at`; -1 if all start later. */
export function rangeIndexAt(open: OpenTime, at: number): number {
  const { lows } = open;
  let low = 0;
  let high = lows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((lows[middle] as number) <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The first allowed instant at or after `at`; Infinity if there is none. */
export function nextOpen(open: OpenTime, at: number): number {
  const index = rangeIndexAt(open, at);
  if (index >= 0 && (open.highs[index] as number) >= at) return at;
  return open.lows[index + 1] ?? Number.POSITIVE_INFINITY;
}

/** The last allowed instant at or before `at`; -Infinity if there is none. */
export function previousOpen(open: OpenTime, at: number): number {
  const index = rangeIndexAt(open, at);
  if (index < 0) return Number.NEGATIVE_INFINITY;
  return Math.min(at, open.highs[index] as number);
}
