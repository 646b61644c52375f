import { holdAnnotation, holdOf, type NodeFacts } from "../../core/cluster/node.ts";
import { type DepartStep, droppedDeadline } from "../../core/departure/decision.ts";
import {
  type Departure,
  isLive,
  isNoticed,
  isUnderWay,
  isVoluntary,
} from "../../core/departure/departure.ts";
import type { Policy } from "../../core/policy/policy.ts";
import type { Sentence } from "../../core/reason/english.ts";
import { earliest, type Instant } from "../../core/time/time.ts";
import type { NodeEnd } from "./node-end.ts";

/** What an act will do, in sentences: shown before it is confirmed. */

export function holdSays(
  { name: node, ...facts }: NodeFacts,
  value: string | null,
): readonly Sentence[] {
  const annotations = { ...facts.annotations, [holdAnnotation]: value ?? "" };
  const hold = holdOf({ ...facts, name: node, annotations });
  switch (hold.kind) {
    case "None":
      return [{ says: "act.PlannedAgain", node }];
    case "Until":
      return [{ says: "act.OnHold", node, untilTime: hold.until }, { says: "act.NoticeDrains" }];
    case "Always":
      return [{ says: "act.HeldByMark", node, mark: hold.mark }, { says: "act.NoticeDrains" }];
  }
}

export function departSays(
  facts: NodeFacts,
  request: {
    readonly departAt: Instant;
    readonly isNow: boolean;
    readonly deadlineAt: Instant | undefined;
    readonly policy: Policy | undefined;
    readonly step: DepartStep;
    readonly end: NodeEnd;
  },
): readonly Sentence[] {
  const { departAt, deadlineAt, end, policy, step } = request;
  const { name: node } = facts;
  const lastAt = end.lifetime?.deadlineAt;
  if (policy?.dryRun) return [{ says: "act.DryRun", policy: policy.name, node }];
  return [
    leavesSays(node, request),
    ...(lastAt !== undefined && departAt > lastAt
      ? [{ says: "act.AfterDeadline", deadlineTime: lastAt, node } as const]
      : shortfallSays(node, { deadlineAt, end })),
    ...droppedSays(node, step),
    ...passedSays(facts, request),
    ...waitingSays(request),
  ];
}

function leavesSays(
  node: string,
  { departAt: atTime, isNow, deadlineAt: byTime, step, end }: Parameters<typeof departSays>[1],
): Sentence {
  const endTime = byTime && endBefore(byTime, end);
  const isMoved = step.kind === "Move";
  return isNow
    ? { says: isMoved ? "act.LeavesNowInstead" : "act.LeavesNow", node, byTime, endTime }
    : { says: isMoved ? "act.LeavesAtInstead" : "act.LeavesAt", node, atTime, byTime, endTime };
}

/** The deadline of an earlier request that a later start makes void. */
export function droppedSays(node: string, step: DepartStep): readonly Sentence[] {
  const byTime = droppedDeadline(step);
  return byTime === undefined ? [] : [{ says: "act.DeadlineDropped", node, byTime }];
}

/** Whether the node ends before the deadline that a person sets for it. */
export function shortfallSays(
  node: string,
  { deadlineAt, end }: { readonly deadlineAt: Instant | undefined; readonly end: NodeEnd },
): readonly Sentence[] {
  if (deadlineAt === undefined) return [];
  const { lifetime, takenAt } = end;
  const lead = { node, untilTime: deadlineAt };
  if (takenAt !== undefined && takenAt < deadlineAt) {
    return [{ says: "act.CloudTakesIt", ...lead, endTime: takenAt }];
  }
  if (lifetime === undefined || lifetime.deadlineAt >= deadlineAt) return [];
  const { policy, endsAt: endTime, deadlineAt: deadlineTime } = lifetime;
  return [{ says: "act.LifetimeEnds", ...lead, deadlineTime, policy, endTime }];
}

/** When the machine may end before a deadline; undefined if it does not. */
export function endBefore(
  deadlineAt: Instant,
  { lifetime, takenAt }: NodeEnd,
): Instant | undefined {
  const endsAt = earliest(lifetime?.endsAt, takenAt);
  return endsAt === undefined || endsAt >= deadlineAt ? undefined : endsAt;
}

interface Request {
  readonly departAt: Instant;
  readonly policy: Policy | undefined;
  readonly step: DepartStep;
}

/** What would hold a planned departure but does not hold a requested one. */
function passedSays(facts: NodeFacts, { departAt, policy }: Request): readonly Sentence[] {
  const { name: node } = facts;
  const hold = holdOf(facts);
  const says: Sentence[] = [];
  if (hold.kind === "Always") says.push({ says: "act.LeavesThoughMarked", node, mark: hold.mark });
  if (hold.kind === "Until" && hold.until > departAt) {
    says.push({ says: "act.LeavesThoughHeld", node, untilTime: hold.until });
  }
  if (policy === undefined) return says;
  const { freezeUntil: untilTime } = policy.gates;
  if (untilTime !== undefined && untilTime > departAt) {
    says.push({ says: "act.LeavesThoughFrozen", node, policy: policy.name, untilTime });
  }
  if (policy.paused) says.push({ says: "act.LeavesThoughPaused", node, policy: policy.name });
  return says;
}

/** What a requested departure waits for, as in `core/decide.ts`. */
function waitingSays({ policy, step }: Request): readonly Sentence[] {
  const isHeld = step.kind === "Move" && step.departure.hold;
  return [
    ...(isHeld ? [{ says: "act.WaitsForHold", departure: step.departure.name } as const] : []),
    policy === undefined || policy.budgets.length === 0
      ? { says: "act.WaitsForNothing" }
      : { says: "act.WaitsForBudgets", policy: policy.name },
  ];
}

export function freezeSays(
  policy: string,
  freeze: { readonly until: Instant | null; readonly now: Instant; readonly seen: Instant | null },
): readonly Sentence[] {
  const { until, now, seen } = freeze;
  if (until === null) return [{ says: "act.MayStartAgain", policy }];
  const isShorter = seen !== null && seen > now && seen > until;
  return [
    { says: "act.Freezes", policy, untilTime: until },
    ...(isShorter ? [{ says: "act.FreezesShorter", policy, untilTime: seen } as const] : []),
  ];
}

/** What a hold, or its end, does to the departures of its node that have been made already. */
export function heldDepartureSays(
  departures: readonly Departure[],
  value: string | null,
): readonly Sentence[] {
  return departures.filter(isLive).flatMap((one): readonly Sentence[] => {
    const { cause, departAt } = one;
    const { phase } = one.status;
    const about = { node: one.node.name, departure: one.name };
    if (isNoticed(one)) return [{ says: "act.NoticedAnyway", ...about }];
    if (cause === "Manual") {
      const atTime = isUnderWay(one) ? undefined : departAt;
      return [{ says: "act.RequestedAnyway", ...about, atTime }];
    }
    if (value === null || !isUnderWay(one)) return [];
    return [{ says: "act.HoldCancels", ...about, phase }];
  });
}

/** Whose hold is replaced or removed. */
export function replacedHoldSays(node: NodeFacts, value: string | null): readonly Sentence[] {
  const seen = node.annotations[holdAnnotation];
  if (seen === undefined || seen === value) return [];
  const { user, manager } = node.holdWriter ?? {};
  if (value === null && user === undefined) return [];
  const about = { value: seen, node: node.name, by: user ?? manager };
  return [{ says: value === null ? "act.EndsHold" : "act.ReplacesHold", ...about }];
}

/** What neither a hold nor a freeze stops: nodes that reach their deadline, the earliest first. */
export function forcedSays(
  nodes: readonly { readonly name: string; readonly deadlineAt: Instant }[],
): readonly Sentence[] {
  const [first] = nodes;
  if (first === undefined) return [];
  const about = { node: first.name, deadlineTime: first.deadlineAt };
  return nodes.length === 1
    ? [{ says: "act.DeadlineAnyway", ...about }]
    : [{ says: "act.DeadlinesAnyway", nodes: nodes.length, ...about }];
}

export function withdrawSays({ node, status, cause }: Departure): readonly Sentence[] {
  const { startedAt } = status;
  return [
    { says: startedAt === undefined ? "act.RequestDropped" : "act.DrainUndone", node: node.name },
    ...(cause === "Planned" ? [{ says: "act.PlannedAnew" } as const] : []),
  ];
}

export function cannotWithdraw(departure: Departure): Sentence | undefined {
  const { cause, noticedAt, status } = departure;
  const node = departure.node.name;
  if (!isLive({ status })) return { says: "act.HasEnded", node };
  if (!isVoluntary(cause) || noticedAt !== undefined) return { says: "act.Interrupted", node };
  return status.phase === "Releasing" ? { says: "act.Releasing", node } : undefined;
}
