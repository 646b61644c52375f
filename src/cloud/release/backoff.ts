import { halfToAll } from "../../core/chance/backoff.ts";
import type { Rng } from "../../core/chance/rng.ts";
import type { Millis } from "../../core/time/time.ts";

export interface BackoffRule {
  readonly firstMs: Millis;
  readonly capMs: Millis;
}

/**
 * The pause after the attempt number `attempt` (from 0): doubling up to the cap, and between half
 * and all of that by chance, so that fifty departures refused together do not ask again together.
 */
export function backoff(attempt: number, options: { rule: BackoffRule; rng: Rng }): Millis {
  const { rule, rng } = options;
  const fullMs = Math.min(rule.capMs, rule.firstMs * 2 ** attempt);
  return halfToAll(fullMs, rng);
}
