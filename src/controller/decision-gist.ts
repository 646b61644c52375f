import type { NodeFacts } from "../core/cluster/node.ts";
import type { Decision } from "../core/departure/decision.ts";
import type { Reason } from "../core/reason/reason.ts";

/**
 * What is late leaves as early as possible, counted from now: in a dry run it never does, and its
 * instant is another one in each pass.
 */
const countsFromNow: ReadonlySet<Reason> = new Set(["Overdue", "Missed"]);

/** What a decision is about, without its sentence, which may name the current time. */
export function gistOf(decision: Decision): string {
  const { kind, reason } = decision;
  if (countsFromNow.has(reason)) return `${kind} ${reason}`;
  if (kind === "Schedule") return `${kind} ${reason} ${decision.order.departAt}`;
  return kind === "Move" ? `${kind} ${reason} ${decision.departAt}` : `${kind} ${reason}`;
}

/** The node that a decision is about. */
export function aboutWhom(decision: Decision): string {
  if ("node" in decision) return (decision.node as NodeFacts).name;
  return "order" in decision ? decision.order.node.name : decision.departure.node.name;
}
