import type { Homeless } from "../core/capacity/capacity-fit.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import { isPressing } from "../core/departure/advice.ts";
import type { DrainReason } from "../core/departure/drain-reason.ts";
import type { PhaseResult } from "../core/departure/ledger.ts";
import { departureAnnotation } from "../core/notice/interruption.ts";
import type { Policy } from "../core/policy/policy.ts";
import { messageOf } from "../errors.ts";
import {
  CapacityReservation,
  type ReservationEnd,
  type ReservationTools,
} from "./capacity-reservation.ts";
import type { CaseContext } from "./case-context.ts";
import type { DepartureTelemetry } from "./departure-telemetry.ts";
import {
  homelessPods,
  type LookAheadTools,
  type Outlook,
  planAhead,
  takeTurn,
} from "./look-ahead.ts";
import type { StatusWriter } from "./status-writer.ts";

export interface PreparationOrder {
  readonly node: NodeFacts;
  readonly policy: Policy;
}

export interface PreparationParts {
  readonly context: CaseContext;
  readonly tools: LookAheadTools & ReservationTools;
  readonly telemetry: DepartureTelemetry;
  readonly ledger: StatusWriter;
}

/**
 * What comes before the mark of a departure that has the time: pods without a place elsewhere are
 * said, and a drain that could block another waits for it. A fault in looking holds nothing up.
 */
export async function lookAhead(
  order: PreparationOrder,
  parts: PreparationParts,
  signal: AbortSignal,
): Promise<void> {
  const { context, tools, telemetry, ledger } = parts;
  const departure = context.departure();
  if (isPressing(departure, tools.clock.now())) return;
  // Marked by us already: a controller before this one has looked, and may have made room since.
  const again = order.node.annotations[departureAnnotation] === departure.name;
  try {
    const outlook = await planAhead(order, tools);
    if (!again) {
      await sayImpossible(outlook, parts);
      await sayHomeless(order, { ...parts, outlook }, signal);
    }
    const held = departure.status.demands;
    ledger.holds(held ?? (await takeTurn(order, { context, tools, outlook }, signal)));
  } catch (error) {
    signal.throwIfAborted();
    telemetry.faulted("look-ahead-failed", departure, error);
  }
}

/** What a budget does that no replacement makes give way. */
const lasting: ReadonlySet<DrainReason> = new Set([
  "BudgetImpossible",
  "MultipleBudgets",
  "SingleReplica",
]);

/** A drain that such a pod holds up ends by its timeout, or by a notice, or when somebody helps. */
async function sayImpossible(
  { plan }: Outlook,
  { context, telemetry }: PreparationParts,
): Promise<void> {
  const pods = plan.pods.filter(({ reason }) => lasting.has(reason));
  if (pods.length === 0) return;
  telemetry.impossible(context.departure(), pods);
  const words = pods.map(({ namespace, name, detail }) => `${namespace}/${name} (${detail})`);
  await context.tell("BudgetImpossible", firstFew(words));
}

async function sayHomeless(
  order: PreparationOrder,
  { context, tools, telemetry, outlook }: PreparationParts & { readonly outlook: Outlook },
  signal: AbortSignal,
): Promise<void> {
  const homeless = await homelessPods(order, { ...outlook, tools }, signal);
  if (homeless.length === 0) return;
  telemetry.homeless(context.departure(), homeless);
  await context.tell("NoCapacityElsewhere", homelessWords(homeless));
}

/** What comes between the mark and the drain: room for the pods, where the policy wants it. */
export async function reserveCapacity(
  order: PreparationOrder,
  parts: PreparationParts,
  signal: AbortSignal,
): Promise<PhaseResult> {
  const { context } = parts;
  const { replacement } = order.policy;
  const isPressed = isPressing(context.departure(), parts.tools.clock.now());
  if (replacement.when === "None" || isPressed) return prepared;
  await context.tell("ReplacementWait");
  const { verdict, detail } = await reservationEnd(order, parts, signal);
  if (verdict !== "TimedOut") return prepared;
  parts.telemetry.reservationTimedOut(context.departure(), detail);
  const event = replacement.onTimeout === "Proceed" ? "Prepared" : "GaveUp";
  return { event, reason: "ReplacementTimeout", detail };
}

export const prepared: PhaseResult = { event: "Prepared", reason: "DrainRunning" };

/** Room that cannot even be looked for is room that was not found: the policy says what follows. */
async function reservationEnd(
  order: PreparationOrder,
  parts: PreparationParts,
  signal: AbortSignal,
): Promise<ReservationEnd> {
  try {
    return await new CapacityReservation(order, parts.context, parts.tools).run(signal);
  } catch (error) {
    signal.throwIfAborted();
    parts.telemetry.faulted("room-failed", parts.context.departure(), error);
    return { verdict: "TimedOut", detail: messageOf(error) };
  }
}

function homelessWords(homeless: readonly Homeless[]): string {
  return firstFew(homeless.map(({ pod, detail }) => `${pod.namespace}/${pod.name} (${detail})`));
}

function firstFew(words: readonly string[]): string {
  const others = words.length - 3;
  return [...words.slice(0, 3), ...(others > 0 ? [`and ${others} more`] : [])].join(", ");
}
