import { crdOf } from "../../config/schema/crd.ts";
import { resourceDefinitions } from "../../config/schema/resource-definition.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { Fleet } from "../../contracts/fleet.ts";
import type { Log, Metrics } from "../../contracts/telemetry.ts";
import { seededRng } from "../../core/chance/rng.ts";
import { hours, type Instant, instant } from "../../core/time/time.ts";
import { LeaderLease } from "../../kube/lease/leader-lease.ts";
import { eventLoopTurn } from "../../runtime/real-clock.ts";
import { runAgents } from "../../sim/cloud/model-agents.ts";
import { demoInvariants, demoNoticeMs, startDemoWorld } from "../../sim/demo/demo-world.ts";
import { FleetTally } from "../../sim/demo/simulation-report.ts";
import { InvariantMonitor } from "../../sim/invariants/invariant-monitor.ts";
import type { ModelCluster } from "../../sim/model-cluster.ts";
import { type AssembledController, assembleController } from "../assemble/assemble-controller.ts";
import { ClusterAuditor } from "../cluster/cluster-auditor.ts";

/** Every run starts at this time, so that the seed alone determines it: 2026-11-20T00:00:00Z. */
export const demoStartAt: Instant = instant(1_795_132_800_000);

/** A run with the same seed and size is identical at any speed of the clock. */
export interface DemoFleet {
  readonly clock: Clock;
  readonly seed: number;
  readonly nodes: number;
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
export function startLastcallFleet(demo: DemoFleet, log: Log): LastcallFleet {
  const { clock, seed } = demo;
  const cluster = startFleet(demo);
  const tally = new FleetTally(cluster);
  const invariants = demoInvariants(clock.now());
  const monitor = new InvariantMonitor({ cluster, clock, invariants, seed, run: 0 });
  const { controller, fleet } = controllerOn(demo, { cluster, monitor, log });
  const agents = { cluster, clock, seed, noticeMs: demoNoticeMs, log };
  const run = async (signal: AbortSignal): Promise<void> => {
    // Work that the fleet's creation started settles first, whatever else is waiting.
    await eventLoopTurn();
    await Promise.all([controller.run(signal), runAgents(agents, signal)]);
  };
  return { cluster, fleet, tally, monitor, run };
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
    fetch: noNetwork,
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

/** The demo's policy has no gate that uses the network; nothing leaves this process. */
function noNetwork(): Promise<Response> {
  return Promise.reject(new TypeError("the demo reaches no network"));
}
