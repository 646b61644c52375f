import { Wakeup } from "../../contracts/wakeup.ts";
import type { UnplacedPod } from "../../core/capacity/capacity-fit.ts";
import type { PodFacts } from "../../core/cluster/pod.ts";
import { isNoticed, isPressing } from "../../core/departure/departure.ts";
import type { BudgetDemand } from "../../core/departure/drain-conflict.ts";
import type { DrainReason } from "../../core/departure/drain-reason.ts";
import { type PhaseResult, reasonSince } from "../../core/departure/ledger.ts";
import { returningPods } from "../../core/drain/placeholder-plan.ts";
import { type DrainPlan, planDrain } from "../../core/drain-plan/drain-plan.ts";
import { innerHold } from "../../core/limits/gate.ts";
import { departureAnnotation } from "../../core/notice/interruption.ts";
import { reactionTo } from "../../core/notice/reaction.ts";
import { releaseModeOf } from "../../core/policy/release-mode.ts";
import { earlier, minutes, plus } from "../../core/time/time.ts";
import { findUnplacedPods } from "../capacity-search.ts";
import { uncordon } from "./cordon.ts";
import { machineLost } from "./machine-check.ts";
import { type StepContext, targetOf } from "./step.ts";

/**
 * Under a notice a drain that begins so soon after the cordon, which tests who the node is, does
 * not look again.
 */
const testedForMs = 5000;

/** Nothing announces a change of a budget: a wait for another drain is judged again this often. */
const askAgainMs = minutes(1);

/** What a drain that began now would be. */
interface Outlook {
  readonly plan: DrainPlan;
  readonly pods: readonly PodFacts[];
}

/**
 * Whether nothing comes before the cordon, not even a look at the node, and no capacity is reserved
 * after it: each second counts, or the node keeps its pods.
 */
export function isToCordonAtOnce({ departure, policy, clock }: StepContext): boolean {
  return isPressing(departure(), clock.now()) || reactionTo(departure(), policy) === "Cordon";
}

/** Reads the node whose pods are to leave and tests that it is the one meant. */
export async function identifyNode(
  context: StepContext,
  signal: AbortSignal,
): Promise<PhaseResult | undefined> {
  const { departure, memory, clock, readNode } = context;
  const seen = context.node();
  const sinceMs = clock.monotonic() - (memory.cordonedAtMs ?? Number.NEGATIVE_INFINITY);
  if (isNoticed(departure()) && sinceMs <= testedForMs && seen !== undefined) {
    memory.target = seen;
    return undefined;
  }
  const node = await context.retry(() => readNode(departure().node.name), signal);
  const lost = machineLost(departure().node, node);
  if (lost === undefined && node !== undefined) memory.target = node;
  return lost;
}

/**
 * What comes before the cordon of a departure that has the time: pods without a place elsewhere are
 * reported, and a drain that could block another waits for it. A fault in looking holds nothing up.
 */
export async function lookAhead(context: StepContext, signal: AbortSignal): Promise<undefined> {
  const { clock, statusWriter } = context;
  const departure = context.departure();
  if (isPressing(departure, clock.now())) return;
  // Marked by us already: a controller before this one has looked, and may have made room since.
  const again = targetOf(context).annotations[departureAnnotation] === departure.name;
  try {
    const outlook = await planAhead(context);
    if (!again) {
      await reportImpossible(outlook, context);
      await reportHomeless(outlook, context, signal);
    }
    const held = departure.status.demands;
    statusWriter.recordDemands(held ?? (await takeTurn(outlook, context, signal)));
  } catch (error) {
    signal.throwIfAborted();
    context.telemetry.faulted("look-ahead-failed", departure, error);
  }
}

/**
 * A wait for another drain may outlast the window, and a freeze may have come meanwhile: what is
 * planned waits for that as one that has not begun.
 */
export async function checkGates(context: StepContext): Promise<PhaseResult | undefined> {
  const { departure, clock, policy, view } = context;
  const { name, cause, deadlineAt, status } = departure();
  const now = clock.now();
  if (cause !== "Planned" || isNoticed(departure()) || (deadlineAt ?? now) <= now) return undefined;
  const node = context.node() ?? targetOf(context);
  const isMarked = node.annotations[departureAnnotation] === name;
  if (isMarked || reasonSince(status, "ConflictWait") === undefined) return undefined;
  const newest = view().policies.find((one) => one.name === policy.name) ?? policy;
  const held = innerHold({ policy: newest, node, now });
  if (held === undefined) return undefined;
  return { event: "Blocked", reason: held.reason, detail: held.detail, until: held.retryAt };
}

/**
 * The last question before the cordon, which may have waited for other drains. A notice waits for
 * nothing.
 */
export async function checkRelease(
  context: StepContext,
  signal: AbortSignal,
): Promise<PhaseResult | undefined> {
  const { policy, departure } = context;
  const node = targetOf(context);
  const mode = releaseModeOf(node, policy.instance);
  if (mode === "None" || isNoticed(departure())) return undefined;
  const over = new AbortController();
  const stopObserving = context.onObserved(() => {
    if (isNoticed(departure())) over.abort();
  });
  const until = AbortSignal.any([signal, over.signal]);
  try {
    const answer = await context.askAboutRelease({ node, mode }, until);
    if (answer.kind === "Possible" || over.signal.aborted) return undefined;
    // A controller before this one may have cordoned it, and begun what is done around that.
    await context.actions.suspend(signal);
    await uncordon(context, signal);
    return { event: "Blocked", reason: answer.reason, detail: answer.detail };
  } catch (error) {
    if (!over.signal.aborted || signal.aborted) throw error;
    return undefined;
  } finally {
    stopObserving();
  }
}

/** What a budget does that no replacement makes give way. */
const lasting: ReadonlySet<DrainReason> = new Set([
  "BudgetImpossible",
  "MultipleBudgets",
  "SingleReplica",
]);

/** A drain that such a pod holds up ends by its timeout, or by a notice, or when somebody helps. */
async function reportImpossible(
  { plan }: Outlook,
  { departure, telemetry, report }: StepContext,
): Promise<void> {
  const pods = plan.pods.filter(({ reason }) => lasting.has(reason));
  if (pods.length === 0) return;
  telemetry.impossible(departure(), pods);
  await report("BudgetImpossible", firstFew(pods.map((pod) => ({ pod, detail: pod.detail }))));
}

/** Pods of the node that would have no place elsewhere as things are. */
async function reportHomeless(
  { plan, pods }: Outlook,
  context: StepContext,
  signal: AbortSignal,
): Promise<void> {
  const { departure, telemetry, report, capacity } = context;
  const scene = { ...context.view(), node: targetOf(context).name };
  const leaving = returningPods(plan.pods, pods);
  const unplaced: readonly UnplacedPod[] = await findUnplacedPods(
    leaving,
    { scene, capacity },
    signal,
  );
  if (unplaced.length === 0) return;
  telemetry.unplaced(departure(), unplaced);
  await report("NoCapacityElsewhere", firstFew(unplaced));
}

function firstFew(
  found: readonly {
    readonly pod: { readonly namespace: string; readonly name: string };
    readonly detail?: string | undefined;
  }[],
): string {
  const named = found.slice(0, 3);
  const words = named.map(({ pod, detail }) => `${pod.namespace}/${pod.name} (${detail})`);
  const others = found.length - named.length;
  return [...words, ...(others > 0 ? [`and ${others} more`] : [])].join(", ");
}

/**
 * Resolves when the drain may run beside those that do, and counts it among them from that moment;
 * with what it holds of the budgets. Under a notice, and once the departure's own deadline has
 * come, it does not wait.
 */
async function takeTurn(
  outlook: Outlook,
  context: StepContext,
  signal: AbortSignal,
): Promise<readonly BudgetDemand[]> {
  const { runningDrains, clock, report, view } = context;
  const wakeup = new Wakeup(clock);
  const wake = () => wakeup.wake();
  const stops = [runningDrains.onLeave(wake), context.onObserved(wake)];
  try {
    for (let { plan } = outlook; ; { plan } = await planAhead(context)) {
      signal.throwIfAborted();
      const departure = context.departure();
      const { deadlineAt } = departure;
      const isDue = deadlineAt !== undefined && deadlineAt <= clock.now();
      const conflict =
        isDue || isPressing(departure, clock.now())
          ? undefined
          : runningDrains.conflictOf(departure, plan, view().departures);
      if (conflict === undefined) return runningDrains.enter(departure, plan);
      await report("ConflictWait", conflict);
      const againAt = plus(clock.now(), askAgainMs);
      await wakeup.sleepUntil(
        deadlineAt === undefined ? againAt : earlier(againAt, deadlineAt),
        signal,
      );
    }
  } finally {
    for (const stop of stops) stop();
  }
}

async function planAhead(context: StepContext): Promise<Outlook> {
  const { policy, clock, self } = context;
  const node = targetOf(context);
  const [pods, budgets] = await Promise.all([context.pods.list(node.name), context.pods.budgets()]);
  const plan = planDrain({ node, pods, budgets, rule: policy.drain, now: clock.now(), self });
  return { plan, pods };
}

/**
 * Ends the phase Preparing: the node is cordoned, and what had to come first is there, or is gone
 * on without.
 */
export async function prepared({ memory }: StepContext): Promise<PhaseResult> {
  return { event: "Prepared", ...(memory.missed ?? { reason: "DrainRunning" }) };
}
