import { mayBeSameMachine, type NodeFacts, removesNodes } from "../cluster/node.ts";
import type { Decision, newestStarts, Snapshot } from "../departure/decision.ts";
import {
  type Departure,
  isLive,
  isNoticed,
  isUnderWay,
  pressingFrom,
} from "../departure/departure.ts";
import type { RunningDrain } from "../departure/drain-reason.ts";
import type { BudgetUsage, WaveStanding } from "../limits/budget.ts";
import type { FleetHealth } from "../limits/fleet-health.ts";
import { type GateHold, windowHold } from "../limits/gate.ts";
import type { BadPolicy, Policy } from "../policy/policy.ts";
import {
  type ReleasabilityQuestion,
  type ReleaseVerdict,
  releaseVerdict,
} from "../policy/release-answer.ts";
import { inEnglish } from "../reason/english.ts";
import { earlier, type Instant, minus, minutes, plus, seconds } from "../time/time.ts";
import type { PlannedDeparture } from "./fleet-plan.ts";
import type { NotPlanned } from "./not-planned.ts";

/** A node's entry in the plan, and the policy whose plan it is. */
export interface Planned {
  readonly entry: PlannedDeparture;
  readonly policy: Policy;
}

/** The state of one pass: the snapshot, indexed, and the plan made from it. */
export interface Pass {
  readonly snapshot: Snapshot;
  readonly now: Instant;
  readonly planned: ReadonlyMap<string, Planned>;
  readonly left: ReadonlyMap<string, NotPlanned>;
  readonly former: ReadonlyMap<string, readonly Departure[]>;
  readonly named: ReadonlyMap<string, Departure>;
  readonly nodes: ReadonlyMap<string, NodeFacts>;
  /** The last voluntary start of each policy. */
  readonly lastStarts: ReturnType<typeof newestStarts>;
  /** By node uid, without advice that waits. */
  readonly live: ReadonlyMap<string, readonly Departure[]>;
  /** Policies that cannot be read, by name. */
  readonly bad: ReadonlyMap<string, BadPolicy>;
  /**
   * Includes the starts of this pass, because all policies' budgets are checked one after the
   * other.
   */
  ledger: BudgetUsage;
  /** Policies with a start in this pass: their next departure waits until that start is visible. */
  readonly begun: Set<string>;
  /** The uids of the nodes that start to leave in this pass. */
  readonly leaving: Set<string>;
  /** By policy. */
  readonly health: ReadonlyMap<string, FleetHealth>;
  /** The progress of each policy's waves. */
  readonly waves: ReadonlyMap<string, WaveStanding | undefined>;
  /** The hold by a policy's windows now, if any; computed once per policy. */
  readonly windows: (policy: Policy) => GateHold | undefined;
  /** The drains that hold budgets. */
  readonly drains: readonly RunningDrain[];
  /** When the first hold ends. */
  wakeAt: Instant | undefined;
  /** The questions that the clouds have to answer before more can be decided. */
  readonly asks: ReleasabilityQuestion[];
}

/** Whether another departure of the node is under way, or starts in this pass. */
export function isLeavingByAnother(departure: Departure, pass: Pass): boolean {
  const { uid } = departure.node;
  if (pass.leaving.has(uid)) return true;
  const others = pass.former.get(uid) ?? [];
  return others.some((one) => one.uid !== departure.uid && isLive(one) && isUnderWay(one));
}

/**
 * Names what removed a node whose departure had not started, if it was not the cloud: another
 * departure, or a tool that removes nodes and had marked this one when last seen. A Node that was
 * simply deleted proves nothing, and counts as taken by the cloud.
 */
export function takenBy(departure: Departure, pass: Pass): string | undefined {
  const leader = leftBy(departure, pass);
  if (leader !== undefined) return inEnglish({ says: "detail.LeftWith", departure: leader });
  // The tool may merely have acted on the cloud's notice.
  if (isNoticed(departure)) return undefined;
  const { leftTo } = departure.status;
  return leftTo !== undefined && removesNodes(leftTo)
    ? inEnglish({ says: "detail.RemovedBy", tool: leftTo })
    : undefined;
}

/**
 * The name of the other departure by which this one's machine left; undefined if this one counts as
 * its end. A departure that never started gives way to one that did. Of several that never started,
 * one counts: one with a notice before a planned one. The Node object may have had other machines
 * before.
 */
function leftBy(departure: Departure, { former }: Pass): string | undefined {
  const others = former.get(departure.node.uid) ?? [];
  return others.find((one) => {
    const { startedAt, outcome } = one.status;
    const stayed = outcome === "RolledBack" || outcome === "Cancelled" || outcome === "Failed";
    if (one.uid === departure.uid || stayed) return false;
    // A request that names another Node with this uid is about neither.
    if (one.node.name !== departure.node.name) return false;
    if (startedAt === undefined && standing(one) <= standing(departure)) return false;
    return mayBeSameMachine(one.node, departure.node);
  })?.name;
}

function standing(departure: Departure): number {
  if (isNoticed(departure)) return 2;
  return departure.cause === "Planned" ? 1 : 0;
}

/** A held departure is checked again at least this often. */
const heldAgainMs = minutes(1);

/** How long before its instant a departure's cloud is asked, so that the answer arrives in time. */
const askAheadMs = seconds(15);

/** When to decide again about a departure that has not started, even if nothing changes. */
function looksAt(departure: Departure, now: Instant): readonly Instant[] {
  if (isUnderWay(departure)) return [];
  const { departAt = now, status } = departure;
  const againAt = status.phase === "Held" ? plus(now, heldAgainMs) : now;
  return [departAt > now ? departAt : againAt, pressingFrom(departure) ?? now];
}

/** What its cloud has to be asked by now; undefined if nothing, or not yet. */
export function questionOf(
  planned: Planned,
  pass: Pass,
): Pick<ReleasabilityQuestion, "mode"> | undefined {
  if (minus(planned.entry.beginAt, askAheadMs) > pass.now) return undefined;
  const release = releaseAtBegin(planned, pass);
  return release.kind === "NotAsked" ? release : undefined;
}

/** The departure's instant, or the earlier one at which its cloud has to be asked. */
function beforeBegin(planned: Planned, pass: Pass): Instant {
  const { beginAt } = planned.entry;
  const askAt = minus(beginAt, askAheadMs);
  return releaseAtBegin(planned, pass).kind === "NotAsked" && askAt > pass.now ? askAt : beginAt;
}

function releaseAtBegin({ entry, policy }: Planned, { snapshot }: Pass): ReleaseVerdict {
  const { node, beginAt: at } = entry;
  return releaseVerdict({ policy, node, answer: snapshot.releaseAnswers.get(node.uid), at });
}

/**
 * When to decide again: the earliest of the next departure's instant, the end of a hold, an instant
 * from which fewer holds apply to a due departure, and the next check of held departures.
 */
export function nextLook(decisions: readonly Decision[], pass: Pass): Instant | undefined {
  const { now, wakeAt } = pass;
  let at = wakeAt !== undefined && wakeAt > now ? wakeAt : undefined;
  const look = (next: Instant): void => {
    if (next > now) at = at === undefined ? next : earlier(at, next);
  };
  for (const planned of pass.planned.values()) {
    const { entry } = planned;
    look(beforeBegin(planned, pass));
    if (entry.beginAt > now) continue;
    for (const next of [entry.deadlineAt, entry.overridesBudgetAt, plus(now, heldAgainMs)])
      look(next);
  }
  for (const departure of pass.snapshot.departures) {
    for (const next of looksAt(departure, now)) look(next);
  }
  const waits = decisions.some((one) => one.kind === "Note" && one.event === "Blocked");
  if (waits) look(plus(now, heldAgainMs));
  return at;
}

/** Returns the hold by a policy's windows now, if any; computed once for all of its nodes. */
export function windowsAt(now: Instant): Pass["windows"] {
  const asked = new Map<string, GateHold | undefined>();
  return (policy) => {
    const { name } = policy;
    if (!asked.has(name)) asked.set(name, windowHold(policy, now));
    return asked.get(name);
  };
}
