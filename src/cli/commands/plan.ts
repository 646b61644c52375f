import { reasonWords } from "../../board/reason-words.ts";
import { bornAt, isKnownProviderId } from "../../core/cluster/node.ts";
import { healthy } from "../../core/limits/fleet-health.ts";
import type { FleetPlan } from "../../core/plan/fleet-plan.ts";
import { fleetHeadline, type HeadlineLine } from "../../core/plan/headline.ts";
import { planFleet } from "../../core/plan/plan.ts";
import {
  type DepartureReport,
  type PlanReport,
  type PolicyReport,
  planReport,
  planWarnings,
} from "../../core/plan/plan-report.ts";
import { asTheyStand } from "../../core/plan/present-hold.ts";
import {
  answersByName,
  isKarpenters,
  type ReleasableNode,
} from "../../core/policy/release-answer.ts";
import { counted } from "../../core/reason/counted.ts";
import { inEnglish } from "../../core/reason/english.ts";
import type { Reason } from "../../core/reason/reason.ts";
import { between, formatInstant, hours, type Instant, parseInstant } from "../../core/time/time.ts";
import { type CommandRun, printData } from "../command-line/command.ts";
import { formatTable, relativeTime } from "../command-line/terminal.ts";
import { type FleetSnapshot, readFleet } from "../input/fleet-snapshot.ts";
import { plannedInstant } from "../input/planned-instant.ts";
import { unknownNodeMarks } from "../input/unknown-mark.ts";

/**
 * Shows which nodes leave, when and why. With `--strict`, the exit code is 3 if the plan is
 * infeasible, or a policy selects no node.
 */
export const runPlan: CommandRun<"plan"> = async ({ options, io }) => {
  const { output } = options;
  const isTable = output === "table" || output === "wide";
  const fleet = await readFleet(options, { operation: isTable }, io);
  const at = plannedInstant(options, { io, now: fleet.readAt });
  const hints = options.at === undefined ? ageHint(fleet) : earlyHint(fleet, at);
  const releaseAnswers = answersByName(fleet.nodes, hasReleaser);
  const planned = planFleet({ ...fleet, releaseAnswers, at });
  const plan = withReleaseStanding(
    hasReports(fleet, options.from.length > 0) ? planned : withoutHealth(planned),
    fleet,
  );
  if (!options.quiet)
    for (const warning of [...hints, ...warningsOf(plan, fleet)]) io.err(`lastcall: ${warning}\n`);
  const report = planReport(plan);
  const headline = fleetHeadline({ ...fleet, plan });
  if (isTable) {
    const waits = waitsOf(plan, fleet);
    io.out(tableOf(report, { headline, at, waits, isWide: output === "wide" }));
  } else await printData(report, output, io);
  const infeasible = report.policies.some((policy) => !policy.forecast.feasible);
  const idle = report.policies.some(({ matched }) => matched === 0);
  // Nodes of a policy that cannot be read do not leave at all.
  return options.strict && (infeasible || idle || fleet.badPolicies.length > 0) ? 3 : 0;
};

/** In older files, what was planned when they were written is in the past by now. */
const oldMs = hours(1);

function ageHint({ recordedAt, readAt }: FleetSnapshot): readonly string[] {
  if (recordedAt === undefined || between(recordedAt, readAt) < oldMs) return [];
  const ago = relativeTime(recordedAt, readAt);
  return [
    `The nodes were recorded ${ago} and are planned as if nothing had changed since; --at ${formatInstant(recordedAt)} plans them as of that time`,
  ];
}

/** A plan for a time before the nodes existed is of no use, and looks like one. */
function earlyHint({ nodes }: FleetSnapshot, at: Instant): readonly string[] {
  const later = nodes.filter((node) => (bornAt(node) ?? at) > at).length;
  if (later === 0) return [];
  const who = `${later} of ${counted(nodes.length, "node")}`;
  return [`--at ${formatInstant(at)} is before ${who} existed: they are planned as if they did`];
}

/** Whether it is known which nodes are Ready. Handwritten nodes have no report of a kubelet. */
function hasReports({ recordedAt }: FleetSnapshot, isFromFiles: boolean): boolean {
  return !isFromFiles || recordedAt !== undefined;
}

function withoutHealth(plan: FleetPlan): FleetPlan {
  return { ...plan, policies: plan.policies.map((one) => ({ ...one, health: healthy })) };
}

/**
 * The controller has checked releases with the clouds and recorded the result, which this command
 * shows without asking them.
 */
function withReleaseStanding(plan: FleetPlan, { unreleasable }: FleetSnapshot): FleetPlan {
  const policies = plan.policies.map((one) => ({
    ...one,
    release: one.release ?? unreleasable.get(one.policy.name),
  }));
  return { ...plan, policies };
}

function warningsOf(
  plan: FleetPlan,
  { badPolicies, policyRemarks, nodes }: FleetSnapshot,
): readonly string[] {
  const none =
    plan.policies.length + badPolicies.length === 0
      ? ["No policies found, so no node is planned; pass one with -f or create a DeparturePolicy"]
      : [];
  const bad = badPolicies.map(
    ({ name, problem }) => `Policy ${name} cannot be read, so its nodes stay: ${problem}`,
  );
  const idle = plan.policies
    .filter(({ matched }) => matched === 0)
    .map(({ policy, outranked }) =>
      outranked === 0
        ? `Policy ${policy.name} selects no node`
        : `Policy ${policy.name} applies to no node that it selects`,
    );
  const marks = unknownNodeMarks(nodes);
  return [...none, ...bad, ...idle, ...marks, ...policyRemarks, ...planWarnings(plan)];
}

/** What keeps a departure from its instant. */
interface PlanDelay {
  readonly reason?: Reason | undefined;
  readonly untilAt?: Instant | undefined;
}

/** Why departures do not leave at their instants, by the uid of the node. */
function waitsOf(plan: FleetPlan, { departures }: FleetSnapshot): ReadonlyMap<string, PlanDelay> {
  const waits = new Map<string, PlanDelay>();
  for (const { node, heldBackTo, frozenUntil } of plan.policies.flatMap((one) => one.departures)) {
    if (heldBackTo !== undefined) waits.set(node.uid, { untilAt: heldBackTo });
    if (frozenUntil !== undefined) waits.set(node.uid, { reason: "Frozen" });
  }
  for (const { node, status } of asTheyStand(departures, plan)) {
    const { phase, reason } = status;
    if (phase === "Held") waits.set(node.uid, { ...waits.get(node.uid), reason });
  }
  return waits;
}

interface TableStyle {
  readonly headline: readonly HeadlineLine[];
  readonly at: Instant;
  readonly waits: ReadonlyMap<string, PlanDelay>;
  /** Whether to show the exact instants next to the relative ones. */
  readonly isWide: boolean;
}

function tableOf(report: PlanReport, { headline, at, waits, isWide }: TableStyle): string {
  const seen = (text: string): string => relativeTime(parseInstant(text) ?? at, at);
  const policies = report.policies.flatMap((policy) => {
    const heads = ["NODE", "ZONE", "DEPARTS", "DEADLINE", "WINDOW", "REASON"];
    if (isWide) heads.push("DEPARTS AT", "DEADLINE AT");
    const rows = policy.departures.map((one) => [
      ...[
        one.node,
        one.zone,
        departsText(one, { at, wait: waits.get(one.uid) }),
        seen(one.deadlineAt),
        one.window ?? "",
        reasonText(one, waits.get(one.uid)),
      ],
      ...(isWide ? [one.departAt, one.deadlineAt] : []),
    ]);
    if (rows.length === 0) return [];
    const title = report.policies.length === 1 ? "" : `Policy ${policy.name}:\n`;
    return [title + formatTable(heads, rows)];
  });
  const left = report.notPlanned.map((one) => [one.node, one.reason, one.explain]);
  const rest = left.length === 0 ? [] : [formatTable(["NOT PLANNED", "REASON", "WHY"], left)];
  const text = headlineText(report, headline);
  return [isWide ? text : withNearTimes(text, at), ...policies, ...rest].join("\n");
}

/** Nobody counts the days beyond. */
const farMs = hours(100 * 24);

/** The core writes instants to the millisecond; people want to know how far away they are. */
function withNearTimes(text: string, at: Instant): string {
  return text.replaceAll(/\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z/g, (written) => {
    const found = parseInstant(written);
    if (found === undefined) return written;
    const day = `${written.slice(0, 19).replace("T", " ")} UTC`;
    return Math.abs(between(at, found)) > farMs ? day : `${day} (${relativeTime(found, at)})`;
  });
}

/** The same lines as on the board. */
function headlineText({ policies }: PlanReport, headline: readonly HeadlineLine[]): string {
  const lines = headline.map(({ subject, policy, says, waiting }) => {
    const of = policies.find(({ name }) => name === policy);
    const nodes = of === undefined ? "" : `${counted(of.matched, "node")}. `;
    const moved = of === undefined ? "" : movedText(of);
    const reasons = waiting.map(
      ({ reason, departures }) => `${reasonWords[reason] ?? reason} (${departures})`,
    );
    const held = reasons.length === 0 ? "" : `. Held: ${reasons.join(", ")}`;
    const about = policy === null ? subject : `${subject} ${policy}`;
    return `${about}: ${nodes}${inEnglish(says)}${moved}${held}.\n`;
  });
  return lines.join("");
}

/** A departure that is due has not started: nodes that are leaving have no row. */
function departsText(
  { departAt }: DepartureReport,
  { at, wait }: { readonly at: Instant; readonly wait: PlanDelay | undefined },
): string {
  const text = relativeTime(parseInstant(departAt) ?? at, at);
  const due = text.endsWith(" ago") ? `due ${text}` : text;
  const untilAt = wait?.untilAt;
  return untilAt === undefined ? due : `${due}, expected ${relativeTime(untilAt, at)}`;
}

function reasonText({ reason }: DepartureReport, wait: PlanDelay | undefined): string {
  return wait?.reason === undefined ? reason : `${reason}, held: ${wait.reason}`;
}

function movedText({ moved }: PolicyReport): string {
  if (moved === 0) return "";
  const verb = moved === 1 ? "is" : "are";
  return `; ${counted(moved, "departure")} ${verb} at a different time than in the previous plan`;
}

/** Whether this version can release such a machine, judging by its Node alone. */
export function hasReleaser(node: ReleasableNode): boolean {
  return isKarpenters(node) || isKnownProviderId(node.providerID ?? "");
}
