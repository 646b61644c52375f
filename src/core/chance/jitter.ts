import { type Millis, millis } from "../time/time.ts";
import type { Rng } from "./rng.ts";

/** Between nine and eleven tenths of a span, so that many who ask again and again are not in step. */
export function around(spanMs: number, rng: Rng): Millis {
  return millis(Math.round(spanMs * (0.9 + 0.2 * rng())));
}

/** Between half and all of a span, so that many who were refused together do not return together. */
export function halfToAll(spanMs: number, rng: Rng): Millis {
  return millis(Math.round(spanMs * (0.5 + rng() / 2)));
}
