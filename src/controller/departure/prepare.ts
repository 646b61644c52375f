import { Wakeup } from "../../contracts/clock.ts";
import type { UnplacedPod } from "../../core/capacity/capacity-fit.ts";
import type { NodeFacts } from "../../core/cluster/node.ts";
import type { PodFacts } from "../../core/cluster/pod.ts";
import { type Departure, isNoticed, isPressing } from "../../core/departure/departure.ts";
import type { BudgetDemand, DrainReason } from "../../core/departure/drain-reason.ts";
import type { PhaseResult } from "../../core/departure/ledger.ts";
import { returningPods } from "../../core/drain/placeholder-plan.ts";
import { type DrainPlan, planDrain } from "../../core/drain-plan/drain-plan.ts";
import {
  departureAnnotation,
  isMarkOutdated,
  isOvertaken,
  markOf,
  mayShowMark,
  reactionTo,
} from "../../core/notice/interruption.ts";
import { releaseModeOf } from "../../core/policy/release-answer.ts";
import { earlier, minutes, plus } from "../../core/time/time.ts";
import { findUnplacedPods } from "../capacity-search.ts";
import { heldAtTheAct } from "./asked-at-the-act.ts";
import type { DepartureTelemetry } from "./departure-telemetry.ts";
import { machineLost } from "./machine-check.ts";
import { type StepContext, targetOf } from "./step.ts";

/**
 * Cordons and marks the node in one patch that checks its identity. Before each attempt, what may
 * have changed since the start was decided is asked again.
 */
export async function cordon(
  context: StepContext,
  signal: AbortSignal,
): Promise<PhaseResult | undefined> {
  const { marks, departure, node, memory, telemetry, clock, cordons } = context;
  const result = await cordons.during(() =>
    context.retry(async () => {
      const held = await heldAtTheAct(context, signal);
      if (held) return { kind: "Held" as const, held };
      return marks.cordon(departure().node, { ...markOf(departure()), seen: node() });
    }, signal),
  );
  switch (result.kind) {
    case "Held":
      return result.held;
    case "Done":
      memory.cordonedAtMs = clock.monotonic();
      telemetry.cordoned(departure());
      return undefined;
    case "Gone":
      return { event: "NodeGone", reason: "NodeGone" };
    case "Mismatch":
      return { event: "MachineReplaced", reason: "WrongMachine", detail: result.found };
    case "NotOurs":
      return yieldTo(result.departure, context, signal);
  }
}

/** Yields to the departure that owns the node, and hands a notice over to it. */
async function yieldTo(
  owner: string,
  context: StepContext,
  signal: AbortSignal,
): Promise<PhaseResult | undefined> {
  const { marks, writer, departure, retry } = context;
  const { name, uid } = departure().node;
  if (isNoticed(departure())) {
    const handed = await retry(() => writer.handOver(departure(), owner), signal);
    if (handed === "Orphan") {
      await retry(() => marks.uncordon({ name, uid, departure: owner }), signal);
      return cordon(context, signal);
    }
  }
  return { event: "Cancelled", reason: "LeftToOthers", detail: owner };
}

/** Uncordons the node; one that Lastcall did not cordon stays as it is. */
export async function uncordon(
  { marks, departure, retry }: StepContext,
  signal: AbortSignal,
): Promise<undefined> {
  const { node, name: owner } = departure();
  const { name, uid } = node;
  await retry(() => marks.uncordon({ name, uid, departure: owner }), signal);
}

/** Ends a roll-back with the reason that started it. */
export async function rolledBack({ departure }: StepContext): Promise<PhaseResult> {
  return { event: "RolledBack", reason: departure().status.reason ?? "RolledBackByRule" };
}

type UpkeepPorts = Pick<StepContext, "marks" | "writer">;

/**
 * Updates the node's marks and the planned instant when a notice arrives for a departure that is
 * under way or planned for later. Nothing waits for these writes; failed ones are retried at the
 * next change.
 */
export class MarkUpkeep {
  readonly #ports: UpkeepPorts;
  readonly #telemetry: DepartureTelemetry;
  readonly #busy = new Set<string>();
  /** The notice of the last marks; the taint alone does not show the deadline. */
  #markedFor: string | undefined;

  constructor(ports: UpkeepPorts, telemetry: DepartureTelemetry) {
    this.#ports = ports;
    this.#telemetry = telemetry;
  }

  /**
   * `departure` is the run's state; `seen` is the watch's, which is what the cluster has.
   */
  look(departure: Departure, seen: Departure, node: NodeFacts | undefined): void {
    const { marks, writer } = this.#ports;
    if (isOvertaken(seen)) {
      this.#once("instant-not-dropped", departure, () => writer.dropInstant(seen));
    }
    const notice = noticeOf(departure);
    this.#markedFor ??= notice;
    if (node === undefined || !mayShowMark(departure, node)) return;
    if (this.#markedFor === notice && !isMarkOutdated(departure, node)) return;
    this.#once("mark-not-renewed", departure, async () => {
      await marks.cordon(departure.node, { ...markOf(departure), renews: true });
      this.#markedFor = notice;
    });
  }

  #once(fault: string, departure: Departure, work: () => Promise<void>): void {
    if (this.#busy.has(fault)) return;
    this.#busy.add(fault);
    work()
      .catch((error: unknown) => this.#telemetry.faulted(fault, departure, error))
      .finally(() => this.#busy.delete(fault));
  }
}

/** Identifies the current notice, to detect a new one. */
export function noticeOf({ cause, deadlineAt, noticedAt }: Departure): string {
  return `${cause} ${deadlineAt} ${noticedAt}`;
}

/** Whether the policy only cordons. A drain that has started continues, whatever the cause. */
export function isOnlyCordoned({ departure, policy, memory }: StepContext): boolean {
  const hasBegun = (memory.counts ?? departure().status.drain) !== undefined;
  return !hasBegun && reactionTo(departure(), policy) === "Cordon";
}

/**
 * How long the identity check of the cordon is valid under a notice, so that the node is not read
 * again.
 */
const identityValidMs = 5000;

/** Budgets are not watched: a departure that waits for another drain is evaluated this often. */
const askAgainMs = minutes(1);

/** The drain as it would be if it started now. */
interface Outlook {
  readonly plan: DrainPlan;
  readonly pods: readonly PodFacts[];
}

/**
 * Whether to cordon first, without reading the node or reserving capacity: either every second
 * counts, or the node keeps its pods.
 */
export function isToCordonAtOnce({ departure, policy, clock }: StepContext): boolean {
  return isPressing(departure(), clock.now()) || reactionTo(departure(), policy) === "Cordon";
}

/** Reads the node to drain and checks that it is still the intended machine. */
export async function identifyNode(
  context: StepContext,
  signal: AbortSignal,
): Promise<PhaseResult | undefined> {
  const { departure, memory, clock, readNode } = context;
  const seen = context.node();
  const sinceMs = clock.monotonic() - (memory.cordonedAtMs ?? Number.NEGATIVE_INFINITY);
  if (isNoticed(departure()) && sinceMs <= identityValidMs && seen !== undefined) {
    memory.target = seen;
    return undefined;
  }
  const node = await context.retry(() => readNode(departure().node.name), signal);
  const lost = machineLost(departure().node, node);
  if (lost === undefined && node !== undefined) memory.target = node;
  return lost;
}

/**
 * Before the cordon of a departure that has time: reports pods that fit on no other node, and waits
 * for other drains that this one would compete with for a budget. Errors do not delay it.
 */
export async function lookAhead(context: StepContext, signal: AbortSignal): Promise<undefined> {
  const { clock, statusWriter } = context;
  const departure = context.departure();
  if (isPressing(departure, clock.now())) return;
  // Already marked: an earlier leader has looked, and may have reserved capacity since.
  const again = targetOf(context).annotations[departureAnnotation] === departure.name;
  try {
    const outlook = await planAhead(context);
    if (!again) {
      await reportImpossible(outlook, context);
      await reportUnplaced(outlook, context, signal);
    }
    const held = departure.status.demands;
    statusWriter.recordDemands(held ?? (await takeTurn(outlook, context, signal)));
  } catch (error) {
    signal.throwIfAborted();
    context.telemetry.faulted("look-ahead-failed", departure, error);
  }
}

/**
 * Checks, last before the cordon, that the machine can be released, and that no pod is known to
 * keep it. A notice that arrives meanwhile ends the check.
 */
export async function checkRelease(
  context: StepContext,
  signal: AbortSignal,
): Promise<PhaseResult | undefined> {
  const { policy, departure } = context;
  const node = targetOf(context);
  const mode = releaseModeOf(node, policy.instance);
  if (isNoticed(departure())) return undefined;
  const over = new AbortController();
  const stopObserving = context.onObserved(() => {
    if (isNoticed(departure())) over.abort();
  });
  const until = AbortSignal.any([signal, over.signal]);
  try {
    const answer = await context.askAboutRelease({ node, mode }, until);
    if (answer.kind === "Possible" || over.signal.aborted) return undefined;
    // A person who asks for a departure may help with its pods.
    if (answer.reason === "DrainImpossible" && departure().cause === "Manual") return undefined;
    // An earlier leader may have cordoned the node and started its actions.
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

/** Reasons that a replacement pod cannot resolve. */
const permanentReasons: ReadonlySet<DrainReason> = new Set([
  "BudgetImpossible",
  "MultipleBudgets",
  "SingleReplica",
]);

/** Reports pods that will block the drain until its timeout, a notice, or manual help. */
async function reportImpossible(
  { plan }: Outlook,
  { departure, telemetry, report }: StepContext,
): Promise<void> {
  const pods = plan.pods.filter(({ reason }) => permanentReasons.has(reason));
  if (pods.length === 0) return;
  telemetry.impossible(departure(), pods);
  await report("BudgetImpossible", firstFew(pods.map((pod) => ({ pod, detail: pod.detail }))));
}

/** Reports pods that currently fit on no other node. */
async function reportUnplaced(
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
 * Waits until the drain can run beside the running ones, and registers it. Returns what it holds of
 * the budgets. Does not wait under a notice or past the departure's own deadline.
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
 * Ends the phase Preparing: the node is cordoned, and the preconditions of the drain are met or
 * given up.
 */
export async function prepared({ memory }: StepContext): Promise<PhaseResult> {
  return { event: "Prepared", ...(memory.missed ?? { reason: "DrainRunning" }) };
}
