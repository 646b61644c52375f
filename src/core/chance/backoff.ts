import { type Millis, millis } from "../time/time.ts";
import type { Rng } from "./rng.ts";

/** Between nine and eleven tenths of a span, so that many clients that poll do not stay in step. */
export function around(spanMs: number, rng: Rng): Millis {
  return millis(Math.round(spanMs * (0.9 + 0.2 * rng())));
}

/**
 * Between half and all of a span, so that many clients that were refused together do not retry
 * together.
 */
export function halfToAll(spanMs: number, rng: Rng): Millis {
  return millis(Math.round(spanMs * (0.5 + rng() / 2)));
}

export interface BackoffLimits {
  /** The longest first pause. Default 100 ms. */
  readonly firstMs?: Millis | undefined;
  /** The longest pause. Default 10 s. */
  readonly mostMs?: Millis | undefined;
}

/**
 * The pause after attempt number `attempt` (from 0). Its upper bound doubles from `firstMs` to
 * `mostMs`, and the pause is between half and all of that (`halfToAll`).
 */
export function backoffMs(attempt: number, rng: Rng, limits: BackoffLimits = {}): Millis {
  const { firstMs = 100, mostMs = 10_000 } = limits;
  return halfToAll(Math.min(mostMs, firstMs * 2 ** attempt), rng);
}
