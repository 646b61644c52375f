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
import { earliest, type Instant } from "../../core/time/time.ts";
import { briefInstant } from "./act.ts";
import type { NodeEnd } from "./node-end.ts";

/** What an act will do, in sentences: shown before it is confirmed. */

export function holdSays(node: NodeFacts, value: string | null): readonly string[] {
  const annotations = { ...node.annotations, [holdAnnotation]: value ?? "" };
  const hold = holdOf({ ...node, annotations });
  switch (hold.kind) {
    case "None":
      return [`${node.name} is planned again like any other node`];
    case "Until":
      return [`${node.name} is on hold until ${briefInstant(hold.until)}`, notices];
    case "Always":
      return [
        `${node.name} has no planned departure while it has the annotation ${hold.mark}`,
        notices,
      ];
  }
}

const notices = "A notice from the cloud still drains it";

export function departSays(
  node: NodeFacts,
  request: {
    readonly departAt: Instant;
    readonly isNow: boolean;
    readonly deadlineAt: Instant | undefined;
    readonly policy: Policy | undefined;
    readonly step: DepartStep;
    readonly end: NodeEnd;
  },
): readonly string[] {
  const { departAt, end, policy } = request;
  const { name } = node;
  const lastAt = end.lifetime?.deadlineAt;
  if (policy?.dryRun) return [`Policy ${policy.name} has dryRun set: ${name} does not leave`];
  const by =
    request.deadlineAt === undefined
      ? ""
      : `, by ${briefInstant(request.deadlineAt)}${endNote(request.deadlineAt, end, briefInstant)}`;
  const moved = request.step.kind === "Move" ? ` instead of the time requested earlier` : "";
  return [
    `${name} leaves ${request.isNow ? "now" : `at ${briefInstant(request.departAt)}`}${by}${moved}`,
    ...(lastAt !== undefined && departAt > lastAt
      ? [
          `That is after its deadline ${briefInstant(lastAt)}: ${name} leaves as planned before that, unless something holds it`,
        ]
      : shortfallSays(name, request)),
    ...droppedSays(name, request.step),
    ...passedSays(node, request),
    ...waitingSays(request),
  ];
}

/** The deadline of an earlier request that a later start makes void. */
export function droppedSays(name: string, step: DepartStep): readonly string[] {
  const deadlineAt = droppedDeadline(step);
  if (deadlineAt === undefined) return [];
  return [
    `${name} was requested to leave by ${briefInstant(deadlineAt)}: that deadline is dropped, since it is over when the departure starts`,
  ];
}

/** Whether the node ends before the deadline that a person sets for it. */
export function shortfallSays(
  name: string,
  { deadlineAt, end }: { readonly deadlineAt: Instant | undefined; readonly end: NodeEnd },
): readonly string[] {
  if (deadlineAt === undefined) return [];
  const lead = `${name} may not have until ${briefInstant(deadlineAt)}`;
  const { lifetime, takenAt } = end;
  if (takenAt !== undefined && takenAt < deadlineAt) {
    return [`${lead}: the cloud takes its machine at ${briefInstant(takenAt)}`];
  }
  if (lifetime === undefined || lifetime.deadlineAt >= deadlineAt) return [];
  const { policy, endsAt } = lifetime;
  return [
    `${lead}: its deadline is ${briefInstant(lifetime.deadlineAt)}, and its lifetime.max by policy ${policy} ends at ${briefInstant(endsAt)}`,
  ];
}

/** Follows a deadline that the machine may not reach. */
export function endNote(
  deadlineAt: Instant,
  { lifetime, takenAt }: NodeEnd,
  format: (at: Instant) => string,
): string {
  const endsAt = earliest(lifetime?.endsAt, takenAt);
  if (endsAt === undefined || endsAt >= deadlineAt) return "";
  return ` (its machine may end at ${format(endsAt)})`;
}

interface Request {
  readonly departAt: Instant;
  readonly policy: Policy | undefined;
  readonly step: DepartStep;
}

/** What would hold a planned departure but does not hold a requested one. */
function passedSays(node: NodeFacts, { departAt, policy }: Request): readonly string[] {
  const hold = holdOf(node);
  const frozenUntil = policy?.gates.freezeUntil;
  const holds = [
    ...(hold.kind === "Always" ? [`its annotation ${hold.mark} holds it`] : []),
    ...(hold.kind === "Until" && hold.until > departAt
      ? [`it is held until ${briefInstant(hold.until)}`]
      : []),
    ...(frozenUntil !== undefined && frozenUntil > departAt
      ? [`policy ${policy?.name} is frozen until ${briefInstant(frozenUntil)}`]
      : []),
    ...(policy?.paused ? [`policy ${policy.name} is paused`] : []),
  ];
  return holds.map((one) => `${node.name} leaves although ${one}`);
}

/** What a requested departure waits for, as in `core/decide.ts`. */
function waitingSays({ policy, step }: Request): readonly string[] {
  const isHeld = step.kind === "Move" && step.departure.hold;
  const budgets = policy?.budgets.length ?? 0;
  return [
    ...(isHeld ? [`It waits while spec.hold of departure ${step.departure.name} is set`] : []),
    budgets === 0
      ? "It ignores windows, freezes and holds"
      : `It waits for the budgets of policy ${policy?.name}, but ignores windows, freezes and holds`,
  ];
}

export function freezeSays(
  policy: string,
  freeze: { readonly until: Instant | null; readonly now: Instant; readonly seen: Instant | null },
): readonly string[] {
  const { until, now, seen } = freeze;
  if (until === null) return [`Planned departures of policy ${policy} may start again`];
  const isShorter = seen !== null && seen > now && seen > until;
  return [
    `No planned departure of policy ${policy} starts before ${briefInstant(until)}, unless its deadline forces it`,
    ...(isShorter
      ? [
          `That ends the current freeze of policy ${policy} sooner: it is frozen until ${briefInstant(seen)}`,
        ]
      : []),
  ];
}

/** What a hold, or its end, does to the departures of its node that have been made already. */
export function heldDepartureSays(
  departures: readonly Departure[],
  value: string | null,
): readonly string[] {
  return departures.filter(isLive).flatMap((departure) => {
    const { name, node, cause, departAt, status } = departure;
    if (isNoticed(departure)) return [`${node.name} leaves on a notice even so: departure ${name}`];
    if (cause === "Manual") {
      const at =
        isUnderWay(departure) || departAt === undefined ? "" : ` at ${briefInstant(departAt)}`;
      return [`${node.name} leaves as requested${at} even so: departure ${name}`];
    }
    if (value === null || !isUnderWay(departure)) return [];
    return [
      `${node.name} is leaving (${status.phase}): the hold cancels departure ${name}, and what has been done is undone`,
    ];
  });
}

/** Whose hold is replaced or removed. */
export function replacedHoldSays(node: NodeFacts, value: string | null): readonly string[] {
  const seen = node.annotations[holdAnnotation];
  if (seen === undefined || seen === value) return [];
  const { user, manager } = node.holdWriter ?? {};
  if (value === null && user === undefined) return [];
  const by = user ?? manager;
  const whose = by === undefined ? "" : ` by ${by}`;
  return [`It ${value === null ? "ends" : "replaces"} the hold "${seen}" of ${node.name}${whose}`];
}

/** What neither a hold nor a freeze stops: nodes that reach their deadline, the earliest first. */
export function forcedSays(
  nodes: readonly { readonly name: string; readonly deadlineAt: Instant }[],
): readonly string[] {
  const [first] = nodes;
  if (first === undefined) return [];
  const at = briefInstant(first.deadlineAt);
  return nodes.length === 1
    ? [`${first.name} leaves at its deadline ${at} even so`]
    : [`${nodes.length} nodes leave at their deadlines even so, the first at ${at}: ${first.name}`];
}

export function withdrawSays(departure: Departure): readonly string[] {
  const { node, status, cause } = departure;
  const begun = status.startedAt !== undefined;
  return [
    begun
      ? `${node.name} stays: its drain is rolled back, and it is uncordoned`
      : `${node.name} does not leave as requested`,
    ...(cause === "Planned" ? ["The plan assigns it another time"] : []),
  ];
}

export function cannotWithdraw({ cause, noticedAt, status, node }: Departure): string | undefined {
  if (!isLive({ status })) return `The departure of ${node.name} has ended`;
  if (!isVoluntary(cause) || noticedAt !== undefined) {
    return `${node.name} leaves because the cloud interrupts it, which cannot be withdrawn here`;
  }
  return status.phase === "Releasing"
    ? `The machine of ${node.name} is already being released`
    : undefined;
}
