import type { Log } from "../../contracts/telemetry.ts";
import { formatInstant, hours, minutes, plus } from "../../core/time/time.ts";
import { eventLoopTurn } from "../../runtime/real-clock.ts";
import {
  type FleetCounts,
  FleetTally,
  type SimulationFacts,
} from "../../sim/demo/simulation-report.ts";
import type { Violation } from "../../sim/invariants/invariant.ts";
import { VirtualClock } from "../../sim/time/virtual-clock.ts";
import { formatTable } from "../command-line/table.ts";
import { demoStartAt, startFleet, startLastcallFleet } from "./demo-run.ts";

export interface HeadlessOptions {
  readonly seed: number;
  readonly nodes: number;
  readonly hours: number;
  readonly log: Log;
  /** The length of a time slice; interrupts are handled between two of them. */
  readonly signal: AbortSignal;
  /** Called with the completed share, 0 to 1. */
  readonly onProgress: (share: number) => void;
}

const slice = minutes(30);

/** Runs the same course of a fleet twice, without Lastcall and with it, and counts the outcomes. */
export async function runHeadless(
  options: HeadlessOptions,
): Promise<Omit<SimulationFacts, "wallSeconds">> {
  const without = await runWithout(options);
  const { counts, violations } = await runWith(options);
  return {
    seed: options.seed,
    runs: 1,
    nodeHours: options.nodes * options.hours,
    policies: [
      { name: "none", counts: without },
      { name: "lastcall", counts },
    ],
    violations,
  };
}

async function runWithout(options: HeadlessOptions): Promise<FleetCounts> {
  const clock = new VirtualClock({ startAt: demoStartAt, settle: eventLoopTurn });
  const cluster = startFleet({ ...options, clock });
  const tally = new FleetTally(cluster);
  await passHours(clock, options, (share) => options.onProgress(share / 2));
  cluster.stop();
  return tally.counts();
}

async function runWith(
  options: HeadlessOptions,
): Promise<{ counts: FleetCounts; violations: readonly Violation[] }> {
  const { log, signal } = options;
  const clock = new VirtualClock({ startAt: demoStartAt, settle: eventLoopTurn });
  const { cluster, tally, monitor, run } = startLastcallFleet({ ...options, clock }, log);
  const over = new AbortController();
  const running = run(AbortSignal.any([signal, over.signal]));
  await passHours(clock, options, (share) => options.onProgress(0.5 + share / 2));
  const violations = monitor.finish();
  const counts = tally.counts();
  over.abort();
  await running;
  cluster.stop();
  return { counts, violations };
}

async function passHours(
  clock: VirtualClock,
  options: HeadlessOptions,
  onProgress: (share: number) => void,
): Promise<void> {
  const endAt = plus(demoStartAt, hours(options.hours));
  while (clock.now() < endAt) {
    options.signal.throwIfAborted();
    const nextAt = plus(clock.now(), slice);
    await clock.runUntil(nextAt < endAt ? nextAt : endAt);
    onProgress((clock.now() - demoStartAt) / (endAt - demoStartAt));
  }
}

/** The report for people. */
export function headlessTable(facts: SimulationFacts): string {
  const { seed, nodeHours, policies, violations, wallSeconds } = facts;
  const heads = [
    "POLICY",
    "PLANNED",
    "PREEMPTED",
    "AT 24 H",
    "FORCED",
    "EXPIRED",
    "PODS CUT",
    "PODS KILLED",
    "REPLACED",
    // Per hour, as on the board.
    "AT ONCE",
    "WITHIN 60 S",
  ];
  const rows = policies.map(({ name, counts }) => [
    name,
    ...[counts.plannedDepartures, counts.preempted, counts.preemptedAtLimit].map(String),
    ...[counts.forced, counts.expired].map(String),
    ...[counts.podsCut, counts.podsLost, counts.replacements].map(String),
    ...[counts.largestLossIn1h, counts.largestLossIn60s].map(String),
  ]);
  const broken = violations.map(
    ({ invariant, at, what }) => `violated: ${invariant} at ${formatInstant(at)}: ${what}\n`,
  );
  const foot = `${nodeHours} node-hours, the same interruptions for each policy (seed ${seed}), in ${wallSeconds} s; violated invariants: ${violations.length}\n`;
  return formatTable(heads, rows) + foot + broken.join("");
}

/** For a run whose only output is its report. */
export const silentLog: Log = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
};
