import type { MachineAddresses } from "../../contracts/action-runner.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { ClusterPorts, FleetView, GateSource } from "../../contracts/cluster.ts";
import type { Telemetry } from "../../contracts/telemetry.ts";
import type { Rng } from "../../core/chance/chance.ts";
import type { NodeFacts } from "../../core/cluster/node.ts";
import type { TerminationMemory } from "../../core/drain/drain-time.ts";
import type { ReleasabilityQuestion, ReleaseAnswer } from "../../core/policy/release-answer.ts";
import type { DepartureWriter } from "../departure-writer.ts";
import type { PendingCordons } from "./pending-cordons.ts";

/** What all departures under way share. */
export interface DepartureOptions extends ClusterPorts, Telemetry {
  readonly writer: DepartureWriter;
  readonly cordons: PendingCordons;
  /** How long pods took to terminate, learned over all drains. */
  readonly terminations: TerminationMemory;
  /** The current state of the watched fleet. */
  readonly view: () => FleetView;
  /** Why that may be out of date; see `unheardOf`. */
  readonly unheard: () => string | undefined;
  readonly clock: Clock;
  readonly rng: Rng;
  /** The uid of the controller's own pod, if it runs in one. */
  readonly self?: string | undefined;
  /** Checks with the cloud now and shares the answer with the planner. */
  readonly askAboutRelease: (
    question: ReleasabilityQuestion,
    signal: AbortSignal,
  ) => Promise<ReleaseAnswer>;
  /** The external gates, asked again before a cordon that had to wait. */
  readonly gates: GateSource;
  /** Reads one node from the API server, not from the watch cache. */
  readonly readNode: (name: string) => Promise<NodeFacts | undefined>;
}

/** Used if this process runs no actions, so that nothing reads the addresses. */
export async function noAddresses(): Promise<MachineAddresses> {
  return { node: [], pods: [] };
}
