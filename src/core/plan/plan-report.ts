import { explainWaves, type WaveStanding } from "../limits/budget.ts";
import type { ReleaseStanding } from "../policy/release-answer.ts";
import type { Reason } from "../reason/reason.ts";
import {
  between,
  formatDuration,
  formatInstant,
  type Instant,
  type Millis,
  seconds,
} from "../time/time.ts";
import type {
  FleetPlan,
  Forecast,
  LaunchTimeSource,
  NotPlanned,
  PlannedDeparture,
  PolicyPlan,
  TightBudget,
} from "./fleet-plan.ts";

/** The facts for a sentence about one node's place in the plan, or outside it. */
export interface PlanFacts {
  /** The node's name. */
  readonly node: string;
  readonly policy?: string | null | undefined;
  readonly bornAt?: Instant | undefined;
  readonly bornFrom?: LaunchTimeSource | undefined;
  readonly earliestAt?: Instant | undefined;
  readonly deadlineAt?: Instant | undefined;
  readonly departAt?: Instant | undefined;
  readonly window?: string | null | undefined;
  readonly movedFrom?: Instant | undefined;
  readonly heldBackTo?: Instant | undefined;
  readonly detail?: string | undefined;
}

/** Explains in one sentence why a node leaves when it does, or has no planned departure. */
export function explainPlan(reason: Reason, facts: PlanFacts): string {
  if (facts.departAt === undefined) return explainNotPlanned(reason, facts);
  return `${explainDeparture(reason, facts)}${explainChange(facts)}`;
}

/**
 * Explains in one sentence whether the plan of a policy can be kept, and if not, what would help.
 */
export function explainForecast({
  policy,
  spacing,
  forecast,
  release,
  waves,
  departures,
  held,
}: PolicyPlan): string {
  const parts = [...lateParts(forecast), ...budgetParts(forecast)];
  if (held > 0 && !forecast.feasible) parts.unshift(heldText(held));
  const { reachedMs, wantedMs } = spacing;
  if (reachedMs !== null && wantedMs !== null && reachedMs < wantedMs) {
    const gaps = `${formatDuration(reachedMs)} instead of ${formatDuration(wantedMs)}`;
    parts.push(`departures are at least ${gaps} apart, because there is no time for more`);
  }
  const { freezeUntil } = policy.gates;
  if (freezeUntil !== undefined) parts.push(...freezeParts(departures, freezeUntil));
  if (waves !== undefined && waves.state !== "Passed") parts.push(explainWaves(waves));
  const verdict = policy.dryRun
    ? explainDryRun(forecast, departures.length)
    : explainVerdict(forecast, { planned: departures.length, held });
  if (release === undefined) return [verdict, ...parts].join("; ");
  const late = forecast.feasible ? [] : [verdict];
  return [explainRelease(release, departures.length), ...late, ...parts].join("; ");
}

/** Whether every node leaves in time: a departure that cannot start does not. */
export function isFeasible({ forecast, release }: PolicyPlan): boolean {
  return forecast.feasible && release === undefined;
}

/** A deadline overrides a freeze; departures that were overdue from the start wait for its end. */
function freezeParts(departures: PolicyPlan["departures"], freezeUntil: Instant): string[] {
  const due = departures.filter(({ departAt }) => departAt < freezeUntil);
  const forced = due.filter(
    ({ deadlineAt, reason }) => reason !== "Overdue" && deadlineAt < freezeUntil,
  );
  const freeze = `the freeze until ${formatInstant(freezeUntil)}`;
  const parts: string[] = [];
  const waiting = due.length - forced.length;
  if (waiting > 0) parts.push(`${freeze} holds back ${count(waiting, "departure")}`);
  if (forced.length > 0) {
    const which = firstNames(forced.map(({ node }) => node.name));
    const whose = `${count(forced.length, "departure")} (${which})`;
    const then = forced.length === 1 ? "leaves at its deadline" : "leave at their deadlines";
    parts.push(`${freeze} ends after the deadlines of ${whose}, which ${then}`);
  }
  return parts;
}

/** Departures that are held back are not on schedule, even if they can still leave in time. */
function explainVerdict(
  { feasible, late }: Forecast,
  { planned, held }: { readonly planned: number; readonly held: number },
): string {
  const all = count(planned, "departure");
  if (!feasible) return `${late.length} of ${all} ${late.length === 1 ? "is" : "are"} late`;
  if (planned === 0) return "No departures are planned";
  if (held === planned)
    return planned === 1 ? "The departure is held back" : `All ${heldText(held)}`;
  if (held > 0)
    return `${planned - held} of ${all} ${isOrAre(planned - held)} on schedule, ${heldText(held)}`;
  return planned === 1
    ? "The departure is on schedule"
    : `All ${planned} departures are on schedule`;
}

/** A dry run makes no promise about its instants. */
function explainDryRun({ feasible, late }: Forecast, planned: number): string {
  if (planned === 0) return "Dry run: no departures are planned";
  const all = count(planned, "departure");
  return feasible
    ? `Dry run: ${all} would be on schedule, and no node leaves`
    : `Dry run: ${late.length} of ${all} would be late, and no node leaves`;
}

function heldText(held: number): string {
  return `${count(held, "departure")} ${isOrAre(held)} held back`;
}

function isOrAre(number: number): string {
  return number === 1 ? "is" : "are";
}

/** How many nodes with the same problem are named. */
const namedNodes = 3;

/**
 * Explains which departures of a policy cannot start, as a part of a sentence.
 */
function explainRelease({ nodes, detail }: ReleaseStanding, planned: number): string {
  if (nodes.length === 0) return `the controller found: ${detail}`;
  if (nodes.length === planned) {
    const which = planned === 1 ? "The only departure cannot" : `None of ${planned} departures can`;
    return `${which} start: ${detail}`;
  }
  const which = firstNames(nodes);
  return `${nodes.length} of ${count(planned, "departure")} cannot start (${which}): ${detail}`;
}

function firstNames(nodes: readonly string[]): string {
  const named = nodes.slice(0, namedNodes);
  const more = nodes.length - named.length;
  return `${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function explainDeparture(reason: Reason, facts: PlanFacts): string {
  const departs = text(facts.departAt);
  const deadline = `its deadline ${text(facts.deadlineAt)}`;
  const launchTime = `launched ${text(facts.bornAt)} according to the ${launchTimeText(facts.bornFrom)}`;
  switch (reason) {
    case "DeadlineBeatsWindow":
      return `${facts.node} leaves at ${departs} although no window is open then: there is no allowed time between its earliest ${text(facts.earliestAt)} and ${deadline} (${launchTime})`;
    case "Missed":
      return `${facts.node} missed its departure time and leaves at ${departs}${inWindow(facts)}, as far from other departures as its lifetime allows; ${deadline} (${launchTime})`;
    case "Overdue":
      return `${facts.node} is past ${deadline} and leaves at ${departs}${inWindow(facts)}, as early as the distance from other departures allows (${launchTime})`;
    default:
      return `${facts.node} leaves at ${departs}${inWindow(facts)}, by the spacing of policy ${facts.policy ?? "unknown"}; earliest ${text(facts.earliestAt)}, deadline ${text(facts.deadlineAt)} (${launchTime})`;
  }
}

function explainChange({ departAt, movedFrom, heldBackTo }: PlanFacts): string {
  const moved = movedFrom === undefined ? "" : `; moved from ${text(movedFrom)}`;
  if (departAt === undefined || heldBackTo === undefined) return moved;
  const wait = formatDuration(between(departAt, heldBackTo));
  return `${moved}; it will be held back by about ${wait}`;
}

function explainNotPlanned(reason: Reason, { node, policy, detail }: PlanFacts): string {
  const by = policy ?? "no policy";
  const sentences: Readonly<Partial<Record<Reason, string>>> = {
    NoPolicy: `No policy selects ${node}`,
    PolicyInvalid: `A policy that might own ${node} cannot be read: ${detail}`,
    PolicyPaused: `Policy ${by} is paused: ${node} stays`,
    NoLifetimeLimit: `Policy ${by} has no lifetime.max: ${node} leaves only on a notice`,
    NodeTerminating: `${node} is already being deleted`,
    LeftToOthers: `${node} is already being disrupted by ${detail}`,
    OnHold: `${node} is on hold by its annotation ${detail}`,
    MachineStayed: `${node} was drained but its machine was not terminated; it is not drained again until ${detail}`,
    NoProviderID: `${node} has no providerID to identify its machine by`,
    UnknownProvider: `${node} has the providerID ${detail}, which is not gce://, aws:/// or azure:///`,
    NoLaunchTime: `${node} has no creation time, so its deadline is unknown`,
    Noticed: `${node} is under a notice: see departure ${detail}`,
    Requested: `${node} leaves as requested by a user: see departure ${detail}`,
    Started: `${node} is already leaving: see departure ${detail}`,
  };
  return sentences[reason] ?? `${node} has no planned departure: ${reason}`;
}

function lateParts(forecast: Forecast): string[] {
  const { shut, helpless, missed, overdue, expiring, widenBySeconds } = forecast;
  const parts: string[] = [];
  if (shut > 0) parts.push(`${count(shut, "node")} without an open window before the deadline`);
  if (widenBySeconds > 0) {
    const by = formatDuration(seconds(widenBySeconds));
    parts.push(`every Allow window would have to end ${by} later`);
  }
  if (helpless > 0) parts.push(`longer windows would not help ${helpless} of them`);
  if (missed > 0)
    parts.push(`${count(missed, "node")} that missed their time leave past the deadline`);
  if (overdue > 0)
    parts.push(`${count(overdue, "node")} already past the deadline, leaving one by one`);
  if (expiring > 0)
    parts.push(`lifetime.max ends first for ${expiring} of them, unless they depart by request`);
  return parts;
}

function budgetParts({ heldBack, heldPastDeadline, tight }: Forecast): string[] {
  if (heldBack + heldPastDeadline === 0) return [];
  const past = heldPastDeadline > 0 ? `, ${heldPastDeadline} of them past the deadline` : "";
  const isWave = ({ needed }: TightBudget) => needed === undefined;
  const who = !tight.some(isWave) ? "budgets" : tight.every(isWave) ? "waves" : "budgets and waves";
  const cures = tight.map(({ budget, needed }) =>
    needed === undefined ? budget : `${budget}; ${needed} would hold none back`,
  );
  return [
    `${who} hold back ${count(Math.max(heldBack, heldPastDeadline), "departure")}${past}: ${cures.join(", ")}`,
  ];
}

function inWindow({ window }: PlanFacts): string {
  return window === undefined || window === null ? "" : ` in the window ${window}`;
}

function launchTimeText(source: LaunchTimeSource | undefined): string {
  return source === "Instance" ? "cloud" : "Node object";
}

function text(at: Instant | undefined): string {
  return at === undefined ? "an unknown time" : formatInstant(at);
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}

/** The report of `lastcall plan -o json`. Programs read it, so names and shape must not change. */
export interface PlanReport {
  readonly apiVersion: "lastcall.dev/v1alpha1";
  readonly kind: "Plan";
  readonly at: string;
  readonly policies: readonly PolicyReport[];
  readonly notPlanned: readonly NotPlannedReport[];
}

export interface PolicyReport {
  readonly name: string;
  readonly matched: number;
  readonly spacing: {
    readonly wantedSeconds: number | null;
    readonly reachedSeconds: number | null;
    readonly bestSeconds: number | null;
  };
  readonly forecast: {
    readonly feasible: boolean;
    readonly late: readonly string[];
    readonly widenBySeconds: number;
    readonly explain: string;
    /** Absent if nothing is known to prevent the release of machines after the drain. */
    readonly release?: ReleaseReport;
  };
  /** How many departures have another instant than in the previous plan. */
  readonly moved: number;
  /** Absent if the policy has none. */
  readonly waves?: WaveReport;
  readonly departures: readonly DepartureReport[];
}

export interface ReleaseReport {
  readonly possible: false;
  readonly reason: Reason;
  readonly nodes: readonly string[];
}

export interface WaveReport {
  readonly state: "UnderWay" | "Passed" | "Halted";
  readonly wave: number;
  readonly of: number;
  readonly size: number;
  readonly leftWell: number;
  readonly underWay: number;
  /** The name of a Departure; null if nothing halts them. */
  readonly haltedBy: string | null;
}

export interface DepartureReport {
  readonly node: string;
  readonly uid: string;
  readonly providerID: string;
  readonly zone: string;
  readonly bornAt: string;
  /** The source of the launch time: the cloud's record of the instance, or the Node object. */
  readonly bornFrom: "Instance" | "Node";
  readonly earliestAt: string;
  readonly deadlineAt: string;
  readonly departAt: string;
  readonly window: string | null;
  readonly reason: Reason;
  readonly explain: string;
}

export interface NotPlannedReport {
  readonly node: string;
  readonly policy: string | null;
  readonly reason: Reason;
  readonly explain: string;
}

/** The plan as JSON: instants in RFC 3339 with milliseconds, spans in seconds. */
export function planReport(plan: FleetPlan): PlanReport {
  return {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Plan",
    at: formatInstant(plan.at),
    policies: plan.policies.map(policyReport),
    notPlanned: plan.notPlanned.map(notPlannedReport),
  };
}

/**
 * The warnings for stderr: policies of the same weight that select the same nodes, and machines
 * that could not be released.
 */
export function planWarnings(plan: FleetPlan): readonly string[] {
  const stays = plan.policies.flatMap(({ policy, release, departures }) =>
    release === undefined
      ? []
      : `Policy ${policy.name}: ${explainRelease(release, departures.length)}`,
  );
  return [...tieWarnings(plan), ...stays];
}

function tieWarnings(plan: FleetPlan): readonly string[] {
  return plan.ties.map(({ policy, tiedWith, nodes }) => {
    const others = tiedWith.join(", ");
    const matched = `${nodes} ${nodes === 1 ? "node" : "nodes"}`;
    return `Policies ${policy} and ${others} have the same weight and select the same ${matched}: ${policy} applies, as the first by name`;
  });
}

function policyReport(plan: PolicyPlan): PolicyReport {
  const { policy, matched, spacing, forecast, moved } = plan;
  return {
    name: policy.name,
    matched,
    moved,
    spacing: {
      wantedSeconds: inSeconds(spacing.wantedMs),
      reachedSeconds: inSeconds(spacing.reachedMs),
      bestSeconds: inSeconds(spacing.bestMs),
    },
    forecast: {
      feasible: isFeasible(plan),
      late: forecast.late,
      widenBySeconds: forecast.widenBySeconds,
      explain: explainForecast(plan),
      ...(plan.release && { release: releaseReport(plan.release) }),
    },
    ...(plan.waves && { waves: waveReport(plan.waves) }),
    departures: plan.departures.map((one) => departureReport(one, policy.name)),
  };
}

function releaseReport({ reason, nodes }: ReleaseStanding): ReleaseReport {
  return { possible: false, reason, nodes };
}

export function waveReport({ haltedBy, ...standing }: WaveStanding): WaveReport {
  return { ...standing, haltedBy: haltedBy?.departure ?? null };
}

function departureReport(one: PlannedDeparture, policy: string): DepartureReport {
  const { node, zone, window, reason } = one;
  return {
    node: node.name,
    uid: node.uid,
    providerID: node.providerID ?? "",
    zone,
    bornAt: formatInstant(one.bornAt),
    bornFrom: one.bornFrom,
    earliestAt: formatInstant(one.earliestAt),
    deadlineAt: formatInstant(one.deadlineAt),
    departAt: formatInstant(one.departAt),
    window,
    reason,
    explain: explainPlan(reason, { ...one, node: node.name, policy }),
  };
}

function notPlannedReport({ node, policy, reason, detail }: NotPlanned): NotPlannedReport {
  const explain = explainPlan(reason, { node: node.name, policy, detail });
  return { node: node.name, policy, reason, explain };
}

function inSeconds(span: Millis | null): number | null {
  return span === null ? null : span / 1000;
}
