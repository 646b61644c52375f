import type { Fleet } from "../../contracts/fleet.ts";
import type { Metrics } from "../../contracts/telemetry.ts";
import { minutes } from "../../core/time/time.ts";

/** Bookmarks come about every minute, and a watch that is silent for 70 s is opened again. */
const limitMs = minutes(3);

/** Which watch is so old that the fleet may not be what it shows, in a sentence. */
export function staleWatch(fleet: Pick<Fleet, "silences">): string | undefined {
  const oldest = fleet.silences().toSorted((a, b) => b.ms - a.ms)[0];
  if (oldest === undefined || oldest.ms <= limitMs) return undefined;
  const { kind, ms } = oldest;
  const wanted = `expected at most ${limitMs / 1000} s`;
  return `the watch of ${kind} has received nothing from the API server for ${Math.round(ms / 1000)} s, ${wanted}`;
}

/** As it is at this instant: to be called for each scrape. */
export function showSilences(fleet: Pick<Fleet, "silences">, metrics: Pick<Metrics, "set">): void {
  const series = fleet.silences().map(({ kind, ms }) => ({ labels: { kind }, value: ms / 1000 }));
  metrics.set("lastcall_watch_silence_seconds", series);
}
