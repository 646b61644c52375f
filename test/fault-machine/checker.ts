import type { TraceEvent } from "./trace.ts";
import type { View } from "./view.ts";

/** Sees every event of a run, after `view` has; returns what the event has broken, if anything. */
export type Judge = (event: TraceEvent, view: View) => string | undefined;

/** A rule that holds whatever happens, judged from outside. It knows nothing of how it is kept. */
export interface Checker {
  readonly name: string;
  /** The rule, as in docs/testing.md. */
  readonly rule: string;
  /** Judges one run. */
  readonly start: () => Judge;
}

export interface Violation {
  readonly checker: string;
  readonly at: number;
  readonly what: string;
}

/** How long news take to reach a process when nothing is wrong. */
export const newsMs = 5_000;

/** Faults under which nobody can act, or nobody can write down that they did. */
export function stopsActs(name: string): boolean {
  return (
    ["blackout", "kill", "kill-all", "kill-at-write", "pause", "throttled", "flaky"].includes(
      name,
    ) ||
    ["refuse-status", "refuse-lease", "late-writes", "lost-answers", "clock-off"].includes(name)
  );
}

/** Faults under which a Node may not be read or written, so that nobody can mark it or free it. */
export function keepsFromNodes(name: string): boolean {
  return /^(refuse-cordon|refuse-node|right-removed (get|patch) nodes$)/.test(name);
}

const newsFaults: ReadonlySet<string> = new Set(["blackout", "flaky", "pause", "server-clock-off"]);

/** Faults under which a process knows an older state, or another time. */
export function stopsNews(name: string): boolean {
  return name.startsWith("watch-") || newsFaults.has(name);
}
