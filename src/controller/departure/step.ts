import type { ActionPorts } from "../../contracts/action-runner.ts";
import type { Clock } from "../../contracts/clock.ts";
import type {
  ClusterCapacity,
  Placeholders,
  VolumeAttachments,
} from "../../contracts/cluster-capacity.ts";
import type { FleetView } from "../../contracts/fleet.ts";
import type { NodePods } from "../../contracts/node-pods.ts";
import type { Rng } from "../../core/chance/rng.ts";
import type { NodeFacts } from "../../core/cluster/node.ts";
import type { PodFacts } from "../../core/cluster/pod.ts";
import { type Departure, type DrainCounts, isNoticed } from "../../core/departure/departure.ts";
import type { PhaseResult } from "../../core/departure/ledger.ts";
import type { DrainVerdict } from "../../core/drain/drain-step.ts";
import type { TerminationMemory } from "../../core/drain/termination-time.ts";
import { reactionTo } from "../../core/notice/reaction.ts";
import type { DrainRule, Policy } from "../../core/policy/policy.ts";
import type { ReleasabilityQuestion, ReleaseAnswer } from "../../core/policy/release-answer.ts";
import type { Reason } from "../../core/reason/reason.ts";
import type { Instant } from "../../core/time/time.ts";
import { assert, type LastcallError } from "../../errors.ts";
import type { ActionPipeline } from "../action/action-pipeline.ts";
import type { PendingCordons } from "../action/pending-cordons.ts";
import type { Executor } from "../executor.ts";
import type { DepartureTelemetry } from "./departure-telemetry.ts";
import type { RunningDrains } from "./running-drains.ts";
import type { StatusWriter } from "./status-writer.ts";

/** What all runs work with. */
export interface RunOptions {
  readonly executor: Executor;
  readonly pods: NodePods;
  readonly placeholders: Placeholders;
  readonly capacity: ClusterCapacity;
  readonly attachments: VolumeAttachments;
  /** Absent: no action can be carried out. */
  readonly actionPorts?: ActionPorts | undefined;
  readonly cordons: PendingCordons;
  readonly runningDrains: RunningDrains;
  /** What pods took to end, over all drains. */
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

/** What a step works with: the tools of all runs, and the one departure. */
export interface StepContext extends RunOptions {
  readonly policy: Policy;
  readonly telemetry: DepartureTelemetry;
  readonly statusWriter: StatusWriter;
  readonly memory: RunMemory;
  readonly actions: ActionPipeline;
  /** The departure as it is now. */
  readonly departure: () => Departure;
  /** Its node as the watch has shown it last. */
  readonly node: () => NodeFacts | undefined;
  /** Writes what goes on inside the phase: status, timeline, log. */
  readonly report: (reason: Reason, detail?: string) => Promise<void>;
  /** Calls back whenever the departure was seen again; gives the way to stop it. */
  readonly onObserved: (listener: () => void) => () => void;
  /**
   * Tries until it works, the signal aborts, a fault comes that trying again cannot mend, or
   * `isEnough` says of one that it was tried for long enough.
   */
  readonly retry: <T>(
    work: () => Promise<T>,
    signal: AbortSignal,
    isEnough?: (error: LastcallError) => boolean,
  ) => Promise<T>;
}

/**
 * What the steps of one run leave to those after them. The run of a new leader begins without it.
 */
export interface RunMemory {
  /** The node whose pods are to leave, as it was when its identity was tested last. */
  target?: NodeFacts;
  /** What the drain goes on without, which had to come before it. */
  missed?: Pick<PhaseResult, "reason" | "detail">;
  /** When the node was cordoned, which tests its identity, too; by the monotonic clock. */
  cordonedAtMs?: number;
  /** The uids of the pods that were on the node when its first drain began. */
  beganWith?: ReadonlySet<string>;
  /** What the drain has counted, so that one that was interrupted counts on. */
  counts?: DrainCounts;
  drained?: DrainEnd;
  /** When the drain of pods that came late began, which has a clock of its own. */
  lateSinceAt?: Instant;
  /** Counts the pods of a drain that was broken off once more, by a fresh list. */
  countAgain?: () => Promise<void>;
}

export interface DrainEnd {
  readonly verdict: Exclude<DrainVerdict, "Running">;
  /** When there was nothing left to do. */
  readonly endedAt: Instant;
  /** The rule that it went by. */
  readonly rule: DrainRule;
  /** The first that held it up. */
  readonly detail?: string | undefined;
  /** What came of it beside what its first plan said. */
  readonly account?: string | undefined;
  /** Whether any pod that was on the node had a volume of its own. */
  readonly volumes: "Some" | "None";
  /** The pods that are still there: those that a drain leaves alone. */
  readonly staying: readonly PodFacts[];
}

/** One step of a phase; what it gives ends the phase, and undefined leads to the next step. */
export type Step = (context: StepContext, signal: AbortSignal) => Promise<PhaseResult | undefined>;

export async function runSteps(
  steps: readonly Step[],
  context: StepContext,
  signal: AbortSignal,
): Promise<PhaseResult | undefined> {
  for (const step of steps) {
    const result = await step(context, signal);
    if (result !== undefined) return result;
    signal.throwIfAborted();
  }
  return undefined;
}

/** The node that an earlier step has identified. */
export function targetOf({ memory }: StepContext): NodeFacts {
  assert(memory.target !== undefined, "a node is identified before its pods are asked to leave");
  return memory.target;
}

/**
 * The machine is not ours to release: the policy leaves it to others, or the cloud takes it, where
 * the policy does not want it released before, or that could not be done.
 */
export function isCloudsToTake({ departure, policy }: StepContext): boolean {
  if (policy.instance.release === "None") return true;
  if (!isNoticed(departure())) return false;
  const { phase, reason } = departure().status;
  const hasFailed = phase === "Releasing" && reason === "ReleaseFailed";
  return hasFailed || reactionTo(departure(), policy) !== "Release";
}
