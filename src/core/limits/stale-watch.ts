import { inEnglish } from "../reason/english.ts";
import { type Millis, minutes, seconds } from "../time/time.ts";

/**
 * A watch that has received nothing for so long shows a state that may be gone. A silent one is
 * reopened after 70 s, or after 140 s if the server sends no bookmarks.
 */
export const staleAfterMs: Millis = minutes(3);

/** How long a watch of some kind of object has received nothing. */
interface Silence {
  readonly kind: string;
  readonly ms: Millis;
}

function oldestStale(silences: readonly Silence[]): Silence | undefined {
  const oldest = silences.toSorted((a, b) => b.ms - a.ms)[0];
  return oldest !== undefined && oldest.ms > staleAfterMs ? oldest : undefined;
}

/**
 * Why no voluntary departure may start by what the watches show: a freeze, a cordon or another
 * departure may be missing. The same text for as long as it lasts.
 */
export function unheardOf(silences: readonly Silence[]): string | undefined {
  const oldest = oldestStale(silences);
  if (oldest === undefined) return undefined;
  return inEnglish({ says: "limit.Unheard", kind: oldest.kind, silentMs: staleAfterMs });
}

/** The oldest watch, in a sentence, if it is stale. */
export function staleWatch(silences: readonly Silence[]): string | undefined {
  const oldest = oldestStale(silences);
  if (oldest === undefined) return undefined;
  const { kind, ms } = oldest;
  const wanted = `expected at most ${staleAfterMs / seconds(1)} s`;
  return `the watch of ${kind} has received nothing from the API server for ${Math.round(ms / 1000)} s, ${wanted}`;
}
