import { Wakeup } from "../../contracts/clock.ts";
import type { FollowedPlaceholders, FollowedPods } from "../../contracts/cluster.ts";
import { backoffMs } from "../../core/chance/chance.ts";
import { osLabel } from "../../core/cluster/node.ts";
import type { BudgetFacts, PodFacts, PodPlacement } from "../../core/cluster/pod.ts";
import { isPressing } from "../../core/departure/departure.ts";
import { hasReserved, type PhaseResult, reasonSince } from "../../core/departure/ledger.ts";
import { nextReservationStep, type ReservationStep } from "../../core/drain/placeholder-plan.ts";
import { planDrain } from "../../core/drain-plan/drain-plan.ts";
import { earlier, type Instant, plus } from "../../core/time/time.ts";
import { messageOf } from "../../errors.ts";
import { MachineCheck } from "./machine-check.ts";
import { type StepContext, targetOf } from "./step.ts";

/** Reserves capacity for the pods of the node, if the policy asks for it and there is time. */
export async function reserveCapacity(
  context: StepContext,
  signal: AbortSignal,
): Promise<PhaseResult | undefined> {
  const { departure, clock, policy, telemetry, memory } = context;
  const { when, onTimeout } = policy.replacement;
  if (when === "None" || isPressing(departure(), clock.now())) return undefined;
  await context.report("ReplacementWait");
  const { verdict, detail } = await reservationEnd(context, signal);
  if (verdict !== "TimedOut") return undefined;
  telemetry.reservationTimedOut(departure(), detail);
  const told = { reason: "ReplacementTimeout", detail } as const;
  if (onTimeout !== "Proceed") return { event: "GaveUp", ...told };
  // Continues without the capacity, but not past the other steps before the drain.
  memory.missed = told;
  return undefined;
}

/** Treats an error as capacity that was not found: the policy decides what follows. */
async function reservationEnd(context: StepContext, signal: AbortSignal): Promise<ReservationEnd> {
  try {
    return await new CapacityReservation(context).run(signal);
  } catch (error) {
    signal.throwIfAborted();
    context.telemetry.faulted("reservation-failed", context.departure(), error);
    return { verdict: "TimedOut", detail: messageOf(error) };
  }
}

/**
 * Removes the remaining placeholders after the drain. The plan reconciler sweeps those that fail.
 */
export async function freeCapacity(context: StepContext): Promise<undefined> {
  const { departure, telemetry } = context;
  if (!hasReserved(departure().status)) return;
  await removePlaceholders(context).catch((error: unknown) =>
    telemetry.faulted("placeholders-not-removed", departure(), error),
  );
}

async function removePlaceholders({ departure, placeholders }: StepContext): Promise<void> {
  const { uid } = departure();
  const all = await placeholders.list();
  const own = all.filter((one) => one.departureUid === uid && one.leaving === "Staying");
  await Promise.all(own.map((one) => placeholders.remove(one.name)));
}

interface ReservationEnd {
  /** `Pressed`: a notice has arrived, and there is no time left to reserve capacity. */
  readonly verdict: "Ready" | "TimedOut" | "Pressed";
  readonly detail: string;
}

interface Seen {
  readonly pods: () => readonly PodFacts[];
  readonly budgets: readonly BudgetFacts[];
  readonly followed: FollowedPlaceholders;
  readonly sinceAt: Instant;
}

/**
 * Reserves capacity before a drain: lets core decide which placeholders to create, creates them,
 * and repeats when a pod changes, until all of them run or time is up. It has no state of its own:
 * after a restart it continues from the placeholders that exist.
 */
class CapacityReservation {
  readonly #context: StepContext;
  readonly #wakeup: Wakeup;
  #attempts = 0;
  #trouble: string | undefined;

  constructor(context: StepContext) {
    this.#context = context;
    this.#wakeup = new Wakeup(context.clock);
  }

  async run(signal: AbortSignal): Promise<ReservationEnd> {
    const { pods, placeholders, clock } = this.#context;
    const node = targetOf(this.#context);
    const departure = this.#context.departure();
    // The watches end with the reservation, not with the caller's signal.
    const done = new AbortController();
    const stop = AbortSignal.any([signal, done.signal]);
    const nodePods = pods.follow(node.name, { signal: stop });
    const followed = placeholders.follow(departure.uid, stop);
    const wake = () => this.#wakeup.wake();
    const machine = new MachineCheck({
      ...{ departure, node, tools: this.#context },
      ...{ onLooked: wake, signal: stop },
    });
    const stops = [
      nodePods.onChange(wake),
      followed.onChange(wake),
      this.#context.onObserved(wake),
    ];
    try {
      const sinceAt = reasonSince(departure.status, "ReplacementWait") ?? clock.now();
      const lists = Promise.all([pods.budgets(), nodePods.synced(), followed.synced()]);
      const early = await this.#endBefore(lists, { nodePods, sinceAt, signal: stop });
      if (early !== undefined) return early;
      const [budgets] = await lists;
      machine.trust(nodePods.pods());
      const reach = await this.#placements(nodePods.pods());
      // If the machine has been replaced, the drain detects that before it starts.
      const ownPods = () => machine.ownOf(nodePods.pods()).map(reach);
      const seen = { pods: ownPods, budgets, followed, sinceAt };
      return await this.#untilThere(seen, signal);
    } finally {
      for (const stopListening of stops) stopListening();
      done.abort();
    }
  }

  /** The end of the reservation while it waits for lists; undefined once they are there. */
  async #endBefore(
    lists: Promise<unknown>,
    about: {
      readonly nodePods: FollowedPods;
      readonly sinceAt: Instant;
      readonly signal: AbortSignal;
    },
  ): Promise<ReservationEnd | undefined> {
    const { clock, policy } = this.#context;
    const { nodePods, sinceAt, signal } = about;
    const endsAt = plus(sinceAt, policy.replacement.timeoutMs);
    let areThere = false;
    const listed = lists.then(() => {
      areThere = true;
    });
    // Nobody waits for them after an early end.
    listed.catch(() => undefined);
    for (;;) {
      if (areThere) return undefined;
      if (this.#isPressed()) return { verdict: "Pressed", detail: "" };
      if (clock.now() >= endsAt) {
        const detail = nodePods.refusal() ?? "the API server has not listed its pods";
        return { verdict: "TimedOut", detail };
      }
      await Promise.race([listed, this.#wakeup.sleepUntil(endsAt, signal)]);
    }
  }

  async #untilThere(seen: Seen, signal: AbortSignal): Promise<ReservationEnd> {
    for (;;) {
      signal.throwIfAborted();
      if (this.#isPressed()) return { verdict: "Pressed", detail: "" };
      const step = this.#step(seen);
      const detail = this.#trouble === undefined ? step.detail : `${step.detail}; ${this.#trouble}`;
      if (step.verdict !== "Waiting") return { verdict: step.verdict, detail };
      const againAt = await this.#carryOut(step, signal);
      await this.#wakeup.sleepUntil(againAt, signal);
    }
  }

  #isPressed(): boolean {
    return isPressing(this.#context.departure(), this.#context.clock.now());
  }

  #step({ pods, budgets, followed, sinceAt }: Seen): ReservationStep {
    const { policy, clock, self } = this.#context;
    const now = clock.now();
    const livePods = pods();
    const node = targetOf(this.#context);
    const plan = planDrain({ node, pods: livePods, budgets, rule: policy.drain, now, self });
    return nextReservationStep({
      departure: this.#context.departure(),
      plan,
      nodeOs: node.labels[osLabel],
      pods: livePods,
      placeholders: followed.placeholders(),
      rule: policy.replacement,
      sinceAt,
      now,
    });
  }

  /** Performs a step. Returns when to evaluate again, which is sooner after an error. */
  async #carryOut(step: ReservationStep, signal: AbortSignal): Promise<Instant> {
    const { placeholders, clock, rng } = this.#context;
    const results = await Promise.allSettled([
      ...step.create.map((order) => placeholders.create(order)),
      ...step.remove.map((name) => placeholders.remove(name)),
    ]);
    signal.throwIfAborted();
    const failed = results.find((result) => result.status === "rejected");
    this.#trouble = failed === undefined ? undefined : messageOf(failed.reason);
    this.#attempts = failed === undefined ? 0 : this.#attempts + 1;
    if (failed === undefined) return step.endsAt;
    return earlier(step.endsAt, plus(clock.now(), backoffMs(this.#attempts, rng)));
  }

  /** Looks up once where volumes can be attached, because volumes do not move. */
  async #placements(pods: readonly PodFacts[]): Promise<(pod: PodFacts) => PodFacts> {
    const placements = new Map<string, PodPlacement | undefined>();
    for (const { uid, placement } of await this.#context.capacity.withVolumes(pods)) {
      placements.set(uid, placement);
    }
    return (pod) => ({ ...pod, placement: placements.get(pod.uid) ?? pod.placement });
  }
}
