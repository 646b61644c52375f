import { isBegunAhead, isToFinish } from "./action/action-plan.ts";
import type { NodeFacts } from "./cluster/node.ts";
import {
  because,
  type Decision,
  firstRequest,
  isForgettable,
  type NewDeparture,
  newestStarts,
  type Snapshot,
  type Verdict,
} from "./departure/decision.ts";
import {
  type Departure,
  freeName,
  hasFinalizer,
  isLive,
  isPressing,
  isVoluntary,
  isWaitingAdvice,
  isWaitingRequest,
  mayBeIgnored,
} from "./departure/departure.ts";
import { budgetVerdict, readBudgets } from "./limits/budget.ts";
import { othersGate, wereAsked } from "./limits/gate.ts";
import {
  interruptionOf,
  makesLeave,
  orphanOn,
  policyFor,
  reactionTo,
} from "./notice/interruption.ts";
import { ask, begin } from "./plan/begin.ts";
import { drainsUnderWay, standingConflict } from "./plan/conflict-hold.ts";
import type { FleetPlan, PlannedDeparture } from "./plan/fleet-plan.ts";
import { hold, type NoteEvent, note, unreadableAs } from "./plan/hold.ts";
import { withoutEarlyMoves } from "./plan/late-move.ts";
import {
  isLeavingByAnother,
  nextLook,
  type Pass,
  type Planned,
  questionOf,
  takenBy,
  windowsAt,
} from "./plan/pass.ts";
import { planFleet } from "./plan/plan.ts";
import { explainPlan } from "./plan/plan-report.ts";
import { isHoldOver, type StartQuestion, startVerdict } from "./plan/start.ts";
import { underWay } from "./plan/under-way.ts";
import { defaultPolicy, type Policy, selectPolicy } from "./policy/policy.ts";
import { releaseVerdict } from "./policy/release-answer.ts";
import { explain } from "./reason/reason.ts";
import { earliest, formatInstant, type Instant, instant, later, plus } from "./time/time.ts";

/**
 * Decides what to do now for every node and every departure, each with its reason, and when to
 * decide again. Pure: the same snapshot at the same instant gives the same decisions. At most one
 * planned departure per policy starts in a pass, so the next is decided on with its effect.
 */
export function decide(snapshot: Snapshot, now: Instant): Verdict & { readonly plan: FleetPlan } {
  const plan = planFleet({ ...snapshot, at: now });
  const inForce = snapshot.departures.filter((one) => isLive(one) && !isWaitingAdvice(one, now));
  const indexed = indexOf(plan);
  const pass: Pass = {
    snapshot,
    now,
    ...indexed,
    former: Map.groupBy(snapshot.departures, (one) => one.node.uid),
    named: new Map(snapshot.departures.map((one) => [one.name, one])),
    nodes: new Map(snapshot.nodes.map((node) => [node.name, node])),
    lastStarts: newestStarts(snapshot.departures, now),
    live: Map.groupBy(inForce, (one) => one.node.uid),
    bad: new Map(plan.bad.map(({ policy }) => [policy.name, policy])),
    ledger: readBudgets(snapshot, now, indexed.health),
    begun: new Set(),
    leaving: new Set(),
    windows: windowsAt(now),
    drains: drainsUnderWay(snapshot.departures),
    wakeAt: undefined,
    asks: [],
  };
  const about = inTurn(snapshot, pass).flatMap((departure) => aboutDeparture(departure, pass));
  const decisions = [
    ...withoutEarlyMoves(about, pass),
    ...snapshot.nodes.flatMap((node) => aboutNode(node, pass)),
  ];
  return { decisions, plan, asks: pass.asks, askAgainAt: nextLook(decisions, pass) };
}

/**
 * The departures in the order in which they are decided on. Of several of a node, the one with a
 * pressing notice starts. Policies that share a budget take turns, and in each of them the punctual
 * departures go first.
 */
function inTurn(
  { departures }: Snapshot,
  { planned, now, lastStarts }: Pass,
): readonly Departure[] {
  const startOf = ({ policy = "" }: Departure): number => lastStarts.get(policy)?.at ?? 0;
  const lateness = ({ node }: Departure): number => {
    const { isLate, reason } = planned.get(node.uid)?.entry ?? {};
    return isLate === true || reason === "Overdue" ? 1 : 0;
  };
  const pressing = (departure: Departure): number => (isPressing(departure, now) ? 0 : 1);
  return departures.toSorted(
    (a, b) =>
      pressing(a) - pressing(b) ||
      startOf(a) - startOf(b) ||
      lateness(a) - lateness(b) ||
      (a.departAt ?? 0) - (b.departAt ?? 0) ||
      (a.name < b.name ? -1 : 1),
  );
}

function indexOf(plan: FleetPlan): Pick<Pass, "planned" | "left" | "waves" | "health"> {
  const planned = plan.policies.flatMap(({ policy, departures }) =>
    departures.map((entry) => [entry.node.uid, { entry, policy }] as const),
  );
  return {
    planned: new Map(planned),
    health: new Map(plan.policies.map(({ policy, health }) => [policy.name, health])),
    waves: new Map(plan.policies.map(({ policy, waves }) => [policy.name, waves])),
    left: new Map(plan.notPlanned.map((one) => [one.node.uid, one])),
  };
}

function aboutDeparture(departure: Departure, pass: Pass): Decision[] {
  const { phase } = departure.status;
  if (phase === "Ended") {
    // Its last actions are recorded first: a write in between would show them as unfinished.
    if (hasFinalizer(departure) && !isToFinish(departure)) {
      return [{ kind: "Finalize", departure, ...because("Released", departure) }];
    }
    const old = isForgettable(departure, pass.former.get(departure.node.uid) ?? [], pass.now);
    return old ? [{ kind: "Forget", departure, ...because("Released", departure) }] : [];
  }
  if (phase !== "Scheduled" && phase !== "Held") return underWay(departure, pass);
  const found = interruptionOf(departure, pass.nodes.get(departure.node.name));
  // The fast path starts departures under notice at once, according to the policy's reaction.
  if (found?.event === "Noticed" || isBegunAhead(departure)) return [];
  const isGone = found?.event === "NodeGone" || found?.event === "MachineReplaced";
  const taker = isGone ? takenBy(departure, pass) : undefined;
  if (taker !== undefined) {
    return [note(departure, "Cancelled", { reason: "PlanChanged", detail: taker })];
  }
  if (found !== undefined) return [note(departure, found.event as NoteEvent, found)];
  if (mayBeIgnored(departure.cause)) return advised(departure, pass);
  if (!isVoluntary(departure.cause)) return [];
  return departure.cause === "Manual" ? manual(departure, pass) : planned(departure, pass);
}

/**
 * A user's request waits for its own instant, while another tool removes the node, for a healthy
 * fleet, for the budgets, for drains that it could block, and until its machine can be released,
 * but for no window or other gate. Its deadline overrides fleet, budgets and drains, for one
 * request after another. If its instant is past the node's deadline, the planned departure comes
 * first; whichever starts first takes the node.
 */
function manual(departure: Departure, pass: Pass): Decision[] {
  const { departAt, deadlineAt, hold: held } = departure;
  const { now, snapshot } = pass;
  if (held) return hold(departure, { reason: "HeldByPerson" }, pass);
  const node = pass.nodes.get(departure.node.name);
  if (node === undefined) return [];
  if (isLeavingByAnother(departure, pass)) return hold(departure, { reason: "Started" }, pass);
  if (departAt !== undefined && departAt > now) return early(departure, pass);
  const first = firstRequest(pass.live.get(departure.node.uid) ?? []);
  const isForced = deadlineAt !== undefined && deadlineAt <= now;
  if (first !== undefined && first.uid !== departure.uid && !isForced) {
    // What the first waits for, the others would find out again, each after its start.
    return hold(departure, { reason: "Requested", detail: first.name }, pass);
  }
  if (departure.isResting) return [];
  const others = othersGate(node);
  if (others !== undefined) return hold(departure, others, pass);
  const unread = pass.bad.get(departure.policy ?? pass.left.get(node.uid)?.blockedBy ?? "");
  if (unread !== undefined) return hold(departure, unreadableAs(unread), pass);
  // Another policy may select the node by now, and its budgets and its pace count the start.
  const selected = selectPolicy(node, snapshot.policies)?.policy;
  const policy = selected ?? policyFor(departure, node, snapshot.policies);
  if (policy.dryRun) return [{ kind: "Skip", node, ...because("DryRun", departure) }];
  const answer = snapshot.releaseAnswers.get(node.uid);
  const release = releaseVerdict({ policy, node, answer, at: now });
  // A person who asks for a departure may help with its pods.
  const isHeld = release.kind === "Held" && release.reason !== "DrainImpossible";
  if (isHeld) return hold(departure, release, pass);
  const named = underName(policy, departure, pass);
  if (named !== undefined) return named;
  const unhealthy = pass.health.get(policy.name)?.hold;
  if (pass.begun.has(policy.name) && (policy.budgets.length > 0 || unhealthy)) return [];
  const budget = budgetVerdict(pass.ledger, { policy, node });
  const standing =
    unhealthy ?? (budget.kind === "Held" ? budget : standingConflict(departure, pass));
  const forcedAt = deadlineAt && later(deadlineAt, opensAgainAt(policy, pass));
  if (standing !== undefined && (forcedAt === undefined || now < forcedAt)) {
    pass.wakeAt = earliest(pass.wakeAt, forcedAt);
    return hold(departure, standing, pass);
  }
  const start = { departure, reason: "Requested", policy, node } as const;
  return release.kind === "NotAsked" ? ask(node, release, pass) : [begin(start, pass)];
}

/** When another start may be forced: what is right for one node does not hold for a cohort. */
function opensAgainAt({ name, spacing }: Policy, { lastStarts, now }: Pass): Instant {
  const last = lastStarts.get(name);
  return last === undefined ? now : plus(last.at, spacing.minMs);
}

/**
 * Gives a departure the name of the policy that it follows: that policy's budgets, waves and gates,
 * and its pace, find it by that name. Undefined if it has it.
 */
function underName(policy: Policy, departure: Departure, { now }: Pass): Decision[] | undefined {
  const { name } = policy;
  if (policy === defaultPolicy || name === departure.policy) return undefined;
  const { departAt = now } = departure;
  const reason = isVoluntary(departure.cause) ? "Requested" : "Noticed";
  return [{ kind: "Move", departure, departAt, policy: name, ...because(reason, departure) }];
}

/** Before its instant, a request is held only if the planned departure comes first. */
function early(departure: Departure, pass: Pass): Decision[] {
  const plan = pass.planned.get(departure.node.uid);
  if (plan !== undefined && !plan.policy.dryRun) {
    const detail = formatInstant(plan.entry.deadlineAt);
    return hold(departure, { reason: "DeadlineFirst", detail }, pass);
  }
  const isFree = departure.status.phase === "Held";
  return isFree ? [note(departure, "Unblocked", { reason: "NotYet" })] : [];
}

function planned(departure: Departure, pass: Pass): Decision[] {
  const found = pass.planned.get(departure.node.uid);
  if (found === undefined) return unplanned(departure, pass);
  const { entry } = found;
  const moves = moved(departure, found, pass.now);
  // The policy that selects the node now starts the departure, and only after the Departure names
  // it. If the departure moves, the gates of that policy must have been queried first.
  const answer = pass.snapshot.gateAnswers[found.policy.name];
  const isAsked = wereAsked({ policy: found.policy, node: entry.node, answer });
  const isReady = departure.policy === found.policy.name && (moves.length === 0 || isAsked);
  if (!isReady) return moves;
  if (entry.beginAt > pass.now) {
    const question = questionOf(found, pass);
    if (question !== undefined) ask(entry.node, question, pass);
    const isAhead = entry.departAt > pass.now;
    const isHeld = departure.status.phase === "Held";
    if (!isHeld || !(isAhead || isOver(departure, found, pass))) return moves;
    const retryAt = isAhead ? undefined : (entry.heldBackTo ?? entry.beginAt);
    return [...moves, note(departure, "Unblocked", { reason: "NotYet", retryAt })];
  }
  return [...moves, ...due(departure, { policy: found.policy, planned: entry }, pass)];
}

/** Whether a due departure only waits for its turn. A budget's hold is its place in the queue. */
function isOver(departure: Departure, { entry, policy }: Planned, pass: Pass): boolean {
  if (departure.status.reason === "BudgetSpent") return false;
  return isHoldOver(startQuestion(departure, { policy, node: entry.node, planned: entry }, pass));
}

/**
 * Advice from the cloud is a planned departure moved forward to now. Whether the machine can be
 * released is not checked, because the cloud takes it. The fast path starts pressing departures as
 * well, but only this pass is scheduled for the instant at which one becomes pressing.
 */
function advised(departure: Departure, pass: Pass): Decision[] {
  const { now, snapshot } = pass;
  const node = pass.nodes.get(departure.node.name);
  const policy = policyFor(departure, node, snapshot.policies);
  // If the reaction keeps the node running, the fast path ends the departure.
  if (node === undefined || !makesLeave(reactionTo(departure, policy))) return [];
  if (isPressing(departure, now)) {
    if (pass.leaving.has(node.uid)) return [];
    return [begin({ departure, reason: "DeadlineForces", policy, node }, pass)];
  }
  // Starting it would hand the notice over to the other departure, which would then leave the
  // machine to the cloud.
  if (isLeavingByAnother(departure, pass)) return hold(departure, { reason: "Started" }, pass);
  const bad = pass.bad.get(policy.name);
  if (bad !== undefined) return hold(departure, unreadableAs(bad), pass);
  const named = underName(policy, departure, pass);
  if (named !== undefined) return named;
  const planned = { reason: "Spaced", deadlineAt: never, overridesBudgetAt: never } as const;
  return due(departure, { policy, planned }, pass);
}

type Due = Pick<StartQuestion, "policy" | "planned">;

function due(departure: Departure, about: Due, pass: Pass): Decision[] {
  const { policy } = about;
  const node = pass.nodes.get(departure.node.name);
  if (node === undefined || pass.begun.has(policy.name)) return [];
  if (pass.leaving.has(node.uid) || departure.isResting) return [];
  const verdict = startVerdict(startQuestion(departure, { ...about, node }, pass));
  if (verdict.kind === "Held") return hold(departure, verdict, pass);
  if (verdict.kind === "NotAsked") return ask(node, verdict, pass);
  if (policy.dryRun) return [{ kind: "Skip", node, ...because("DryRun", departure) }];
  const reason = isVoluntary(departure.cause) ? verdict.reason : "Noticed";
  return [begin({ departure, reason, policy, node }, pass)];
}

function startQuestion(
  departure: Departure,
  { policy, node, ...about }: Due & Pick<StartQuestion, "node">,
  pass: Pass,
): StartQuestion {
  const { ledger, now, snapshot } = pass;
  const isOurs = isVoluntary(departure.cause);
  return {
    ...{ departure, node, policy, ledger, now, ...about },
    window: pass.windows(policy),
    waves: pass.waves.get(policy.name),
    unhealthy: pass.health.get(policy.name)?.hold,
    conflict: standingConflict(departure, pass),
    gateAnswer: snapshot.gateAnswers[policy.name],
    releaseAnswer: isOurs ? snapshot.releaseAnswers.get(node.uid) : { kind: "Possible" },
  };
}

/**
 * Handles a node that the plan has dropped: holds the departure if that may change, else cancels
 * it.
 */
function unplanned(departure: Departure, pass: Pass): Decision[] {
  const dropped = pass.left.get(departure.node.uid);
  const reason = dropped?.reason ?? "PlanChanged";
  const detail = dropped?.detail;
  const forGood = reason === "NoPolicy" || reason === "NoLifetimeLimit" || reason === "PlanChanged";
  if (forGood) return [note(departure, "Cancelled", { reason: "PlanChanged", detail: reason })];
  // While a policy cannot be read, it is unknown which policy owns the node.
  const owner = reason === "PolicyInvalid" ? undefined : dropped?.policy;
  const policy = owner ?? departure.policy;
  const { departAt } = departure;
  if (policy === departure.policy || departAt === undefined) {
    return hold(departure, { reason, detail }, pass);
  }
  return [{ kind: "Move", departure, departAt, policy, ...because(reason, departure, { policy }) }];
}

/** A departure that is due, and that the plan would move to now, stays where it is. */
function moved(departure: Departure, { entry, policy }: Planned, now: Instant): Decision[] {
  const { departAt, deadlineAt, reason } = entry;
  const isDue = departAt <= now && departure.departAt !== undefined && departure.departAt <= now;
  const isThere = departure.departAt === departAt || isDue;
  if (isThere && departure.deadlineAt === deadlineAt && departure.policy === policy.name) return [];
  const words = { reason, explain: sentenceOf(entry, policy.name) };
  // Not compared: definitions of an older version drop it, and a deadline changes with it.
  const launchedAt = entry.node.instanceBornAt;
  const to = { departAt, deadlineAt, launchedAt, policy: policy.name };
  return [{ kind: "Move", departure, ...to, ...words }];
}

function aboutNode(node: NodeFacts, pass: Pass): Decision[] {
  const live = pass.live.get(node.uid) ?? [];
  const departure = orphanOn(node, live);
  if (departure !== undefined) {
    const reason = "OrphanedCordon";
    const words = explain(reason, { node: node.name });
    return [{ kind: "ClearOrphan", node, departure, reason, explain: words }];
  }
  // A waiting request does not replace the planned departure if the plan includes the node anyway.
  if (live.some((one) => !isWaitingRequest(one) || !pass.planned.has(node.uid))) return [];
  const found = pass.planned.get(node.uid);
  if (found !== undefined) return schedule(node, found, pass);
  const left = pass.left.get(node.uid);
  if (left === undefined) return [];
  const { reason } = left;
  return [
    { kind: "Skip", node, reason, explain: explainPlan(reason, { ...left, node: node.name }) },
  ];
}

function schedule(node: NodeFacts, { entry, policy }: Planned, pass: Pass): Decision[] {
  const words = { reason: entry.reason, explain: sentenceOf(entry, policy.name) };
  if (policy.dryRun) return [{ kind: "Skip", node, ...words }];
  const order: NewDeparture = {
    ...freeName(node, (name) => pass.named.get(name)),
    node: { name: node.name, uid: node.uid, providerID: node.providerID, bootID: node.bootID },
    cause: "Planned",
    departAt: entry.departAt,
    deadlineAt: entry.deadlineAt,
    launchedAt: entry.node.instanceBornAt,
    source: "planner",
    policy: policy.name,
    reason: words.reason,
    message: words.explain,
  };
  return [{ kind: "Schedule", order, ...words }];
}

function sentenceOf(entry: PlannedDeparture, policy: string | undefined): string {
  return explainPlan(entry.reason, { ...entry, node: entry.node.name, policy });
}

const never = instant(Number.MAX_SAFE_INTEGER);
