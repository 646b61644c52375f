import type { Clock } from "../contracts/clock.ts";
import { Wakeup } from "../contracts/wakeup.ts";
import { cloudDeadline } from "../core/departure/departure.ts";
import { drainBeganAt } from "../core/departure/ledger.ts";
import type { Policy } from "../core/policy/policy.ts";
import { earlier, formatInstant, plus } from "../core/time/time.ts";
import { type CaseContext, isCloudsToTake } from "./case-context.ts";

/**
 * Keeps a machine that is ours to release until load balancers have heard of its node's cordon, for
 * as long as the policy says that this takes; it forwards what they still send to it. Counted from
 * the drain's beginning, which the ledger holds, so that a restart does not begin again.
 */
export async function waitForLoadBalancers(
  about: { readonly context: CaseContext; readonly policy: Policy; readonly clock: Clock },
  signal: AbortSignal,
): Promise<void> {
  const { context, policy, clock } = about;
  const wakeup = new Wakeup(clock);
  const stop = context.onObserved(() => wakeup.wake());
  try {
    for (;;) {
      signal.throwIfAborted();
      const departure = context.departure();
      // Asked again after each wait: a notice may leave the machine to the cloud.
      if (isCloudsToTake(departure, policy)) return;
      const beganAt = drainBeganAt(departure.status) ?? clock.now();
      const waitedAt = plus(beganAt, policy.instance.loadBalancerDelayMs);
      const untilAt = earlier(cloudDeadline(departure) ?? waitedAt, waitedAt);
      if (clock.now() >= untilAt) return;
      await context.tell("LoadBalancerWait", formatInstant(untilAt));
      await wakeup.sleepUntil(untilAt, signal);
    }
  } finally {
    stop();
  }
}
