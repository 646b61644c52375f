import { droppedSays, shortfallSays } from "../../board/act/act-says.ts";
import type { NodeEnd } from "../../board/act/node-end.ts";
import { holdMarkIn, holdOf, type NodeFacts } from "../../core/cluster/node.ts";
import {
  type DepartRequest,
  type DepartStep,
  deadlineAfter,
} from "../../core/departure/decision.ts";
import { type Departure, isLive } from "../../core/departure/departure.ts";
import { inEnglish } from "../../core/reason/english.ts";
import { formatInstant } from "../../core/time/time.ts";
import type { FleetSnapshot } from "../input/fleet-snapshot.ts";
import type { DepartInput } from "./depart-times.ts";

export type Steps = readonly NodeStep[];

export interface NodeStep {
  readonly node: NodeFacts;
  readonly step: DepartStep;
  /** What ends the node all the same. */
  readonly end: NodeEnd;
}

/** A user's request takes precedence over a hold: the person who held the node may be another. */
export function holdWarnings(steps: Steps, { departAt }: DepartRequest): readonly string[] {
  return steps.flatMap(({ node, step }) => {
    const hold = holdOf(node);
    if (step.kind === "Leave" || hold.kind === "None") return [];
    if (hold.kind === "Until" && hold.until <= departAt) return [];
    const until = hold.kind === "Until" ? ` until ${formatInstant(hold.until)}` : "";
    const told = `${node.name} is on hold${until} by its annotation ${holdMarkIn(node.annotations)}`;
    return [`lastcall: ${told}, which applies only to planned departures: it leaves anyway\n`];
  });
}

/**
 * A user's request takes precedence over the plan, but not over the node's deadline or over the end
 * of its machine.
 */
export function endWarnings(
  steps: Steps,
  { departAt }: DepartRequest,
  { departures }: FleetSnapshot,
): readonly string[] {
  return steps.flatMap(({ node, step, end }) => {
    const plan = departures.find((one) => isPlanOf(one, node));
    if (step.kind === "Leave") return [];
    if (plan?.deadlineAt === undefined || departAt <= plan.deadlineAt) {
      const deadlineAt = deadlineAfter(step);
      return shortfallSays(node.name, { deadlineAt, end }).map(
        (said) => `lastcall: ${inEnglish(said)}\n`,
      );
    }
    const told = `${node.name} was requested to leave after its deadline of ${formatInstant(plan.deadlineAt)}`;
    return [
      `lastcall: ${told}, so it leaves as planned before that; to choose the time, set an earlier --at\n`,
    ];
  });
}

/** A start alone may come after the deadline of an earlier request. */
export function droppedWarnings(steps: Steps): readonly string[] {
  return steps.flatMap(({ node, step }) =>
    droppedSays(node.name, step).map(
      (said) => `lastcall: ${inEnglish(said)}; to set another, add --by\n`,
    ),
  );
}

/** A departure that is under way keeps its times, whatever is requested now. */
export function ignoredWarnings(
  steps: Steps,
  { input, request }: { readonly input: DepartInput; readonly request: DepartRequest },
): readonly string[] {
  const { options } = input;
  const given = [
    ...(options.at === undefined ? [] : ["--at"]),
    ...(options.by === undefined ? [] : ["--by"]),
  ].join(" and ");
  return steps.flatMap(({ node, step }) => {
    if (given === "" || step.kind !== "Leave") return [];
    const { departAt, deadlineAt, status } = step.departure;
    const isKept = options.at === undefined || request.departAt === departAt;
    if (isKept && (options.by === undefined || request.deadlineAt === deadlineAt)) return [];
    return [
      `lastcall: ${node.name} is already leaving (${status.phase}): ${given} is not applied\n`,
    ];
  });
}

function isPlanOf(departure: Departure, { uid }: NodeFacts): boolean {
  return departure.node.uid === uid && departure.cause === "Planned" && isLive(departure);
}
