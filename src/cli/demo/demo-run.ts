import { crdOf } from "../../config/schema/crd.ts";
import { resourceDefinitions } from "../../config/schema/resource-definition.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { Fleet } from "../../contracts/cluster.ts";
import type { Log, Metrics } from "../../contracts/telemetry.ts";
import { seededRng } from "../../core/chance/chance.ts";
import { counted } from "../../core/reason/counted.ts";
import {
  formatInstant,
  hours,
  type Instant,
  instant,
  minutes,
  plus,
} from "../../core/time/time.ts";
import { LeaderLease } from "../../kube/lease/leader-lease.ts";
import { eventLoopTurn } from "../../runtime/real-clock.ts";
import {
  demoInvariants,
  demoNoticeMs,
  type FleetCourse,
  fleetInvariants,
  startDemoWorld,
} from "../../sim/demo/demo-world.ts";
import { type Setback, sumSetbacks } from "../../sim/demo/setback.ts";
import {
  addCounts,
  type FleetCounts,
  FleetTally,
  type SimulationFacts,
} from "../../sim/demo/simulation-report.ts";
import { InvariantMonitor, type Violation } from "../../sim/invariants/invariant.ts";
import { type ModelCluster, runAgents } from "../../sim/model-cluster.ts";
import { VirtualClock } from "../../sim/time/virtual-clock.ts";
import { type AssembledController, assembleController } from "../assemble/assemble-controller.ts";
import { ClusterAuditor } from "../cluster/cluster-auditor.ts";
import { formatTable } from "../command-line/terminal.ts";

/** Every run starts at this time, so that the seed alone determines it: 2026-11-20T00:00:00Z. */
export const demoStartAt: Instant = instant(1_795_132_800_000);

/** A run with the same seed and size is identical at any speed of the clock. */
export interface DemoFleet {
  readonly clock: Clock;
  readonly seed: number;
  readonly nodes: number;
  /** Default: the demo's policy, with its own invariants. */
  readonly policies?: readonly object[] | undefined;
  readonly course?: FleetCourse | undefined;
}

/** The demo controller's name in its Lease and its Events. */
const demoActor = "lastcall-demo";

/** The demo's fleet before anything acts on it. */
export function startFleet(fleet: DemoFleet): ModelCluster {
  return startDemoWorld({ ...fleet, definitions: resourceDefinitions.map(crdOf) });
}

/** A fleet that Lastcall works on, and its observers. */
export interface LastcallFleet {
  readonly cluster: ModelCluster;
  /** The controller's view. */
  readonly fleet: Fleet;
  readonly tally: FleetTally;
  readonly monitor: InvariantMonitor;
  /**
   * Starts the controller and an agent for each machine. Rejects if one fails; resolves once the
   * signal has aborted and all have stopped.
   */
  run(signal: AbortSignal): Promise<void>;
}

/** The demo's fleet with the real controller, including leader election; nothing runs yet. */
export function startLastcallFleet(demo: DemoFleet, log: Log, run = 0): LastcallFleet {
  const { clock, seed } = demo;
  const cluster = startFleet(demo);
  const tally = new FleetTally(cluster);
  // With other machines, the demo's policy may have no time to keep its spacing.
  const isDemo = demo.policies === undefined && demo.course === undefined;
  const invariants = isDemo ? demoInvariants(clock.now()) : fleetInvariants;
  const monitor = new InvariantMonitor({ cluster, clock, invariants, seed, run });
  const { controller, fleet } = controllerOn(demo, { cluster, monitor, log });
  const agents = { cluster, clock, seed, noticeMs: demoNoticeMs, log };
  const start = async (signal: AbortSignal): Promise<void> => {
    // Work that the fleet's creation started settles first, whatever else is waiting.
    await eventLoopTurn();
    await Promise.all([controller.run(signal), runAgents(agents, signal)]);
  };
  return { cluster, fleet, tally, monitor, run: start };
}

interface World {
  readonly cluster: ModelCluster;
  readonly monitor: InvariantMonitor;
  readonly log: Log;
}

function controllerOn(
  { clock, seed }: DemoFleet,
  { cluster, monitor, log }: World,
): AssembledController {
  const api = monitor.api(demoActor);
  // Its own random stream, so that the controller's draws do not change the fleet's course.
  const rng = seededRng(seed + 1);
  const identity = demoActor;
  const lease = { api, clock, rng, namespace: "lastcall", name: "lastcall", identity };
  return assembleController({
    api,
    clock,
    rng,
    log,
    metrics: noMetrics,
    namespace: "lastcall",
    identity,
    leadership: new LeaderLease(lease),
    releaserFor: () => monitor.releaser(demoActor),
    launchTimes: cluster.cloud,
    // No pause: in virtual time nothing is more urgent.
    audit: { auditor: new ClusterAuditor(api, () => Promise.resolve()), everyMs: hours(6) },
    dryRun: false,
  });
}

const noMetrics: Metrics = { count: () => {}, set: () => {}, observe: () => {} };

export interface SimulationOptions {
  /** The seed of the first run; each further run has the next one. */
  readonly seed: number;
  readonly runs: number;
  readonly nodes: number;
  readonly hours: number;
  /** Default: the demo's machines. */
  readonly course?: FleetCourse | undefined;
  /** What is compared on the same course; a fleet without Lastcall is always the first. */
  readonly sides: readonly {
    readonly name: string;
    /** DeparturePolicy objects; default: the demo's. */
    readonly policies?: readonly object[] | undefined;
  }[];
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Called with the completed share, 0 to 1. */
  readonly onProgress: (share: number) => void;
}

type SimulatedSide = SimulationOptions["sides"][number];

/** The length of a time slice; interrupts are handled between two of them. */
const slice = minutes(30);

/**
 * Runs the same course of a fleet without Lastcall and with each side's policies, and counts the
 * outcomes.
 */
export async function runSimulation(
  options: SimulationOptions,
): Promise<Omit<SimulationFacts, "wallSeconds">> {
  const { seed, runs, nodes, sides } = options;
  const all: readonly (SimulatedSide | undefined)[] = [undefined, ...sides];
  // By side and not by name: the file of a policy may be named as the fleet without Lastcall is.
  const sums = new Map<SimulatedSide | undefined, FleetSum>();
  const violations: Violation[] = [];
  let done = 0;
  for (let run = 0; run < runs; run += 1) {
    for (const side of all) {
      const onProgress = (share: number) =>
        options.onProgress((done + share) / (runs * all.length));
      const pass = { ...options, seed: seed + run, onProgress };
      const end = side === undefined ? await runUnmanaged(pass) : await runWith(pass, side, run);
      const sum = sums.get(side);
      sums.set(side, sum === undefined ? end : addEnds(sum, end));
      violations.push(...end.violations);
      done += 1;
    }
  }
  const policies = [...sums].map(([side, { counts, setbacks }]) => ({
    ...{ name: side?.name ?? "none", counts, setbacks },
  }));
  return { seed, runs, nodeHours: nodes * options.hours * runs, policies, violations };
}

interface FleetSum {
  readonly counts: FleetCounts;
  readonly setbacks: readonly Setback[];
}

function addEnds(a: FleetSum, b: FleetSum): FleetSum {
  const setbacks = sumSetbacks([...a.setbacks, ...b.setbacks]);
  return { counts: addCounts(a.counts, b.counts), setbacks };
}

interface RunEnd extends FleetSum {
  readonly violations: readonly Violation[];
}

type CourseRun = Omit<SimulationOptions, "sides" | "runs">;

function startOf({ course }: CourseRun): Instant {
  return course?.startAt ?? demoStartAt;
}

async function runUnmanaged(pass: CourseRun): Promise<RunEnd> {
  const clock = new VirtualClock({ startAt: startOf(pass), settle: eventLoopTurn });
  const cluster = startFleet({ ...pass, clock });
  const tally = new FleetTally(cluster);
  await passHours(clock, pass);
  cluster.stop();
  return { counts: tally.counts(), setbacks: [], violations: [] };
}

async function runWith(
  pass: CourseRun,
  { policies }: SimulatedSide,
  runIndex: number,
): Promise<RunEnd> {
  const { log, signal } = pass;
  const clock = new VirtualClock({ startAt: startOf(pass), settle: eventLoopTurn });
  const started = startLastcallFleet({ ...pass, policies, clock }, log, runIndex);
  const { cluster, tally, monitor, run } = started;
  const over = new AbortController();
  const running = run(AbortSignal.any([signal, over.signal]));
  await passHours(clock, pass);
  const violations = monitor.finish();
  const [counts, setbacks] = [tally.counts(), tally.setbacks()];
  over.abort();
  await running;
  cluster.stop();
  return { counts, setbacks, violations };
}

async function passHours(clock: VirtualClock, pass: CourseRun): Promise<void> {
  const startAt = startOf(pass);
  const endAt = plus(startAt, hours(pass.hours));
  while (clock.now() < endAt) {
    pass.signal.throwIfAborted();
    const nextAt = plus(clock.now(), slice);
    await clock.runUntil(nextAt < endAt ? nextAt : endAt);
    pass.onProgress((clock.now() - startAt) / (endAt - startAt));
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
  const setbacks = policies.flatMap((one) => one.setbacks.map((its) => setbackLine(one.name, its)));
  return formatTable(heads, rows) + foot + setbacks.join("") + broken.join("");
}

/** Why planned departures did not take place, so that a table without any explains itself. */
function setbackLine(policy: string, setback: Setback): string {
  const { outcome, reason, departures, example, podsWithoutNode: pods } = setback;
  const were = `${counted(departures, "planned departure")} ${departures === 1 ? "was" : "were"}`;
  const what = outcome === "RolledBack" ? "rolled back" : "held until the cloud took the node";
  const noRoom =
    pods === 0 ? "" : `, with no node for ${pods === 1 ? "1 pod" : `up to ${pods} pods`}`;
  return `${policy}: ${were} ${what} (${reason})${noRoom}, such as: ${example}\n`;
}

/** For a run whose only output is its report. */
export const silentLog: Log = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
};
