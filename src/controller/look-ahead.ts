import type { Clock } from "../contracts/clock.ts";
import type { ClusterCapacity } from "../contracts/cluster-capacity.ts";
import type { FleetView } from "../contracts/fleet.ts";
import type { NodePods } from "../contracts/node-pods.ts";
import { Wakeup } from "../contracts/wakeup.ts";
import type { Homeless } from "../core/capacity/capacity-fit.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import type { PodFacts } from "../core/cluster/pod.ts";
import { isPressing } from "../core/departure/advice.ts";
import type { BudgetDemand } from "../core/departure/drain-conflict.ts";
import { returningPods } from "../core/drain/returning-pod.ts";
import { type DrainPlan, planDrain } from "../core/drain-plan/drain-plan.ts";
import type { Policy } from "../core/policy/policy.ts";
import { earlier, minutes, plus } from "../core/time/time.ts";
import { findHomeless } from "./capacity-search.ts";
import type { CaseContext } from "./case-context.ts";
import type { DrainTurns } from "./drain-turns.ts";

export interface LookAheadTools {
  readonly pods: NodePods;
  readonly capacity: ClusterCapacity;
  readonly turns: DrainTurns;
  readonly view: () => FleetView;
  readonly clock: Clock;
  readonly self?: string | undefined;
}

export interface LookAheadOrder {
  readonly node: NodeFacts;
  readonly policy: Policy;
}

/** Budgets change without a word to us: a wait for another drain is thought over this often. */
const thinkAgainMs = minutes(1);

/** What a drain that began now would be. */
export interface Outlook {
  readonly plan: DrainPlan;
  readonly pods: readonly PodFacts[];
}

/** Which pods of the node would have no place elsewhere as things are. */
export async function homelessPods(
  order: LookAheadOrder,
  { plan, pods, tools }: Outlook & { readonly tools: LookAheadTools },
  signal: AbortSignal,
): Promise<readonly Homeless[]> {
  const scene = { ...tools.view(), node: order.node.name };
  return findHomeless(returningPods(plan.pods, pods), { scene, capacity: tools.capacity }, signal);
}

/**
 * Resolves when the drain may run beside those that do, and counts it among them from that moment;
 * with what it holds of the budgets. Under a notice, and once the departure's own deadline has
 * come, it does not wait.
 */
export async function takeTurn(
  order: LookAheadOrder,
  about: {
    readonly context: CaseContext;
    readonly tools: LookAheadTools;
    readonly outlook: Outlook;
  },
  signal: AbortSignal,
): Promise<readonly BudgetDemand[]> {
  const { context, tools } = about;
  const { turns, clock } = tools;
  const wakeup = new Wakeup(clock);
  const wake = () => wakeup.wake();
  const stops = [turns.onLeave(wake), context.onObserved(wake)];
  try {
    for (let { plan } = about.outlook; ; { plan } = await planAhead(order, tools)) {
      signal.throwIfAborted();
      const departure = context.departure();
      const { deadlineAt } = departure;
      const urgent =
        isPressing(departure, clock.now()) ||
        (deadlineAt ?? Number.POSITIVE_INFINITY) <= clock.now();
      const conflict = urgent
        ? undefined
        : turns.conflictOf(departure, plan, tools.view().departures);
      if (conflict === undefined) return turns.enter(departure, plan);
      await context.tell("ConflictWait", conflict);
      const againAt = plus(clock.now(), thinkAgainMs);
      await wakeup.sleepUntil(
        deadlineAt === undefined ? againAt : earlier(againAt, deadlineAt),
        signal,
      );
    }
  } finally {
    for (const stop of stops) stop();
  }
}

export async function planAhead(order: LookAheadOrder, tools: LookAheadTools): Promise<Outlook> {
  const { node, policy } = order;
  const [pods, budgets] = await Promise.all([tools.pods.list(node.name), tools.pods.budgets()]);
  const now = tools.clock.now();
  const plan = planDrain({ node, pods, budgets, rule: policy.drain, now, self: tools.self });
  return { plan, pods };
}
