import { type Millis, millis } from "../time/time.ts";
import type { Rng } from "./rng.ts";

/**
 * Between nine and eleven tenths of a span, so that many who ask again and again are not in step.
 */
export function around(spanMs: number, rng: Rng): Millis {
  return millis(Math.round(spanMs * (0.9 + 0.2 * rng())));
}

/**
 * Between half and all of a span, so that many who were refused together do not return together.
 */
export function halfToAll(spanMs: number, rng: Rng): Millis {
  return millis(Math.round(spanMs * (0.5 + rng() / 2)));
}

export interface BackoffLimits {
  /** The whole of the first pause. Default 100 ms. */
  readonly firstMs?: Millis | undefined;
  /** Default 10 s. */
  readonly mostMs?: Millis | undefined;
}

/**
 * The pause after the attempt number `attempt` (from 0): it doubles from `firstMs` to `mostMs`, and
 * between half and all of that counts (`halfToAll`).
 */
export function backoffMs(attempt: number, rng: Rng, limits: BackoffLimits = {}): Millis {
  const { firstMs = 100, mostMs = 10_000 } = limits;
  return halfToAll(Math.min(mostMs, firstMs * 2 ** attempt), rng);
}
