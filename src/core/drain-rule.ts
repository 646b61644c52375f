import type { Departure } from "./departure.ts";
import { drainBeganAt } from "./ledger.ts";
import type { DrainRule } from "./policy.ts";
import { between, type Instant } from "./time.ts";

/**
 * The rule that one departure is drained by. Whoever asks for it by an instant gives it until then,
 * be that more or less than the policy does; what happens when time is up stays the policy's.
 */
export function drainRuleOf(
  departure: Departure,
  { rule, now }: { readonly rule: DrainRule; readonly now: Instant },
): DrainRule {
  const { cause, deadlineAt, status } = departure;
  const beganAt = drainBeganAt(status) ?? now;
  if (cause !== "Manual" || deadlineAt === undefined || deadlineAt <= beganAt) return rule;
  return { ...rule, timeoutMs: between(beganAt, deadlineAt) };
}
