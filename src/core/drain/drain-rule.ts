import { cloudDeadline, type Departure, isNoticed, mayBeIgnored } from "../departure/departure.ts";
import { drainBeganAt } from "../departure/ledger.ts";
import type { DrainRule } from "../policy/policy.ts";
import { between, type Instant } from "../time/time.ts";

/**
 * The rule that one departure is drained by. Whoever asks for it by an instant gives it until then,
 * be that more or less than the policy does; what happens when time is up stays the policy's. But a
 * machine that the cloud takes at an instant that it does not name is not put back to work after the
 * policy's time: what is held is asked until it gives way or the machine is gone.
 */
export function drainRuleOf(
  departure: Departure,
  { rule, now }: { readonly rule: DrainRule; readonly now: Instant },
): DrainRule {
  const { cause } = departure;
  const endsAt = cloudDeadline(departure);
  const goesSometime = isNoticed(departure) && endsAt === undefined && !mayBeIgnored(cause);
  const wanted = withPersonsTime(departure, { rule, now });
  return goesSometime && rule.onTimeout === "RollBack" ? { ...wanted, onTimeout: "Wait" } : wanted;
}

function withPersonsTime(
  { cause, deadlineAt, status }: Departure,
  { rule, now }: { readonly rule: DrainRule; readonly now: Instant },
): DrainRule {
  const beganAt = drainBeganAt(status) ?? now;
  if (cause !== "Manual" || deadlineAt === undefined || deadlineAt <= beganAt) return rule;
  return { ...rule, timeoutMs: between(beganAt, deadlineAt) };
}
