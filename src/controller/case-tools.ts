import type { Clock } from "../contracts/clock.ts";
import type {
  ClusterCapacity,
  Placeholders,
  VolumeAttachments,
} from "../contracts/cluster-capacity.ts";
import type { FleetView } from "../contracts/fleet.ts";
import type { NodePods } from "../contracts/node-pods.ts";
import type { Rng } from "../core/chance/rng.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import type { TerminationMemory } from "../core/drain/termination-time.ts";
import type { ReleasabilityQuestion, ReleaseAnswer } from "../core/policy/release-answer.ts";
import type { DrainTurns } from "./drain-turns.ts";
import type { Executor } from "./executor.ts";

/** What every case works with. */
export interface CaseTools {
  readonly executor: Executor;
  readonly pods: NodePods;
  readonly placeholders: Placeholders;
  readonly capacity: ClusterCapacity;
  readonly attachments: VolumeAttachments;
  /** The drains that run, over all cases. */
  readonly turns: DrainTurns;
  /** What pods took to end, over all cases. */
  readonly terminations: TerminationMemory;
  /** The watched fleet as it is now. */
  readonly view: () => FleetView;
  readonly clock: Clock;
  readonly rng: Rng;
  /** The uid of the pod that runs this controller, where it is one. */
  readonly self?: string | undefined;
  /** Asks the cloud now, and lets the plan know what it says. */
  readonly askAboutRelease: (
    question: ReleasabilityQuestion,
    signal: AbortSignal,
  ) => Promise<ReleaseAnswer>;
  /** A fresh look at one node, past the watch. */
  readonly readNode: (name: string) => Promise<NodeFacts | undefined>;
}
