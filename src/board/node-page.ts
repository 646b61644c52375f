import type { FleetView } from "../contracts/fleet.ts";
import type { BudgetFacts, PodFacts } from "../core/cluster/pod.ts";
import type { ActionRecord } from "../core/departure/action-record.ts";
import {
  cloudDeadline,
  type Departure,
  isLive,
  type TimelineEntry,
} from "../core/departure/departure.ts";
import { planDrain } from "../core/drain-plan/drain-plan.ts";
import { type DrainPlanReport, drainPlanReport } from "../core/drain-plan/drain-plan-report.ts";
import { defaultPolicy, selectPolicy } from "../core/policy/policy.ts";
import { between, type Instant, type Millis, millis, seconds } from "../core/time/time.ts";
import type { DrainRecord } from "./drain-log.ts";
import { pastDeparture } from "./outcome/past-departure.ts";
import type { PastDeparture } from "./stream.ts";

/** One node, in full: what `/api/node` answers. */
export interface NodePage {
  readonly node: string;
  readonly at: Instant;
  /** Without a notice, and on the clock of each; the notice that runs, if any, comes first. */
  readonly drains: readonly ShownDrain[];
  /** Why there are no drain plans; null where there are. */
  readonly problem: string | null;
  /** Pods that have been told to end, as `namespace/name`. */
  readonly terminating: readonly string[];
  readonly departures: readonly NodeDeparture[];
}

export interface ShownDrain {
  readonly kind: "Planned" | "Notice" | "Running";
  readonly plan: DrainPlanReport;
}

export interface NodeDeparture {
  readonly name: string;
  readonly uid: string;
  readonly cause: string;
  readonly isLive: boolean;
  readonly steps: readonly TimelineEntry[];
  readonly actions: readonly ShownAction[];
  readonly past: PastDeparture | null;
  /** How its pods were to leave and how they did; null where the board was not there to see. */
  readonly record: DrainRecord | null;
}

/** What was done around the departure; what it takes to undo it is nobody's to see here. */
export type ShownAction = Pick<
  ActionRecord,
  "name" | "kind" | "at" | "state" | "seconds" | "attempts" | "detail"
>;

export interface NodePageFacts {
  readonly view: FleetView;
  /** Absent: they may not be listed, which `problem` says. */
  readonly pods?: readonly PodFacts[] | undefined;
  readonly budgets?: readonly BudgetFacts[] | undefined;
  readonly problem?: string | undefined;
  /** By the uid of a departure. */
  readonly recordOf?: ((departure: string) => DrainRecord | undefined) | undefined;
  readonly now: Instant;
}

const noticesShown: readonly Millis[] = [seconds(120), seconds(30)];
const departuresShown = 6;

/** Undefined where there is no such node, and was none. */
export function nodePage(name: string, facts: NodePageFacts): NodePage | undefined {
  const { view, pods = [], problem = null, now } = facts;
  const node = view.nodes.find((one) => one.name === name);
  const departures = view.departures.filter((one) => one.node.name === name);
  if (node === undefined && departures.length === 0) return undefined;
  return {
    node: name,
    at: now,
    drains: node === undefined || problem !== null ? [] : drainsOf(node, departures, facts),
    problem,
    terminating: pods.flatMap(({ namespace, name: pod, deletionAt }) =>
      deletionAt === undefined ? [] : [`${namespace}/${pod}`],
    ),
    departures: departures
      .toSorted(newestFirst)
      .slice(0, departuresShown)
      .map((one) => nodeDeparture(one, facts)),
  };
}

function drainsOf(
  node: FleetView["nodes"][number],
  departures: readonly Departure[],
  { view, pods = [], budgets = [], now }: NodePageFacts,
): readonly ShownDrain[] {
  const rule = (selectPolicy(node, view.policies)?.policy ?? defaultPolicy).drain;
  const planOf = (leftMs?: Millis): DrainPlanReport => {
    const notice = leftMs === undefined ? undefined : { leftMs };
    return drainPlanReport(planDrain({ node, pods, budgets, rule, notice, now }));
  };
  const noticed = departures.find((one) => isLive(one) && one.noticedAt !== undefined);
  const endsAt = noticed && cloudDeadline(noticed);
  const running: readonly ShownDrain[] =
    endsAt === undefined
      ? []
      : [{ kind: "Running", plan: planOf(millis(Math.max(0, between(now, endsAt)))) }];
  return [
    ...running,
    { kind: "Planned", plan: planOf() },
    ...noticesShown.map((span) => ({ kind: "Notice" as const, plan: planOf(span) })),
  ];
}

function newestFirst(a: Departure, b: Departure): number {
  return Number(isLive(b)) - Number(isLive(a)) || (b.createdAt ?? 0) - (a.createdAt ?? 0);
}

function nodeDeparture(departure: Departure, { recordOf }: NodePageFacts): NodeDeparture {
  const { name, uid, cause, status } = departure;
  return {
    ...{ name, uid, cause, isLive: isLive(departure), steps: status.timeline },
    actions: (status.actions ?? []).map(shownAction),
    past: pastDeparture(departure) ?? null,
    record: recordOf?.(uid) ?? null,
  };
}

function shownAction(action: ActionRecord): ShownAction {
  const { name, kind, at, state, seconds: took, attempts, detail } = action;
  return { name, kind, at, state, seconds: took, attempts, detail };
}
