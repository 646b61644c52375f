import type { NodeFacts } from "../cluster/node.ts";
import type { PodFacts } from "../cluster/pod.ts";
import type { DepartureStatus, DrainCounts, Phase } from "../departure/departure.ts";
import type { PhaseEvent, PhaseResult } from "../departure/ledger.ts";
import type { DrainClock } from "../drain/drain-clock.ts";
import type { DrainMemory } from "../drain/drain-memory.ts";
import type { DrainVerdict } from "../drain/drain-step.ts";
import type { DrainPlan } from "../drain-plan/drain-plan.ts";
import type { DrainRule } from "../policy/policy.ts";
import type { Instant } from "../time/time.ts";
import type { AskedRequest } from "./request.ts";
import type { EvaluationTime } from "./scene.ts";

/** A pod as it was last seen; while it terminates, when its grace ends on the monotonic clock. */
export interface PodDeadline {
  readonly deletionAt?: Instant | undefined;
  readonly endsMs?: number | undefined;
  /** Its kubelet was unreachable then. */
  readonly isSilent?: true | undefined;
}

/** How a drain has ended. */
export interface DrainEnd {
  readonly verdict: Exclude<DrainVerdict, "Running">;
  /** When nothing was left to do. */
  readonly endedAt: Instant;
  /** The drain rule that was applied. */
  readonly rule: DrainRule;
  /** The first thing that blocked it. */
  readonly detail?: string | undefined;
  /** The result compared with the first plan. */
  readonly account?: string | undefined;
  /** Whether any pod of the node had a persistent volume. */
  readonly volumes: "Some" | "None";
  /** The remaining pods, which a drain does not evict. */
  readonly staying: readonly PodFacts[];
}

/** One drain of a departure: the first, or one of pods that were bound late. */
export interface DrainCourse {
  readonly memory: DrainMemory;
  /** The rule of this policy for this departure, as of the start of the drain. */
  readonly rule: DrainRule;
  readonly policy: string;
  /** When it started, possibly under an earlier leader. */
  readonly beganAt: Instant;
  /** When it started or was resumed here (monotonic). */
  readonly startedMs: number;
  /** The counters of the interrupted drain that this one resumes. */
  readonly countedBefore: DrainCounts | undefined;
  readonly clock: DrainClock;
  readonly volumes: DrainEnd["volumes"];
  /** Since when nothing is left to do. */
  readonly doneAt?: Instant | undefined;
  readonly heldBy?: string | undefined;
}

/**
 * What one process remembers of a departure under way: what the world forgets, such as how a pod
 * ended and what was answered. It is plain data, and may be lost at any moment; what may not be
 * lost is in the Departure.
 */
export interface Memory {
  /** The event that opened the departure here, until the status contains it. */
  readonly first?: PhaseResult | undefined;
  /** The status as it should stand, as long as it is not written. */
  readonly intended?: DepartureStatus | undefined;
  /** When the phase began here: what it rests on is asked for after that. */
  readonly phase: Pick<EvaluationTime, "ms" | "number">;
  readonly asked: Readonly<Record<string, AskedRequest>>;
  /** The node of the last identity check, and the phase it was made in. */
  readonly target?: NodeFacts | undefined;
  readonly identifiedIn?: Phase | undefined;
  /** The nodes that were out when the start was first looked at here. */
  readonly outAtStart?: readonly string[] | undefined;
  /** When the node was cordoned (monotonic); the cordon checks its identity as well. */
  readonly cordonedMs?: number | undefined;
  /** A read has shown the cordon that an earlier process has made. */
  readonly isSeenCordoned?: true | undefined;
  /** The roll-back is carried out although it is not recorded. */
  readonly isUndoneWithoutRecord?: true | undefined;
  /** A loss that the watch shows, and that a read has to confirm; asked last at `ms`. */
  readonly lost?:
    | {
        readonly event: PhaseEvent;
        readonly ms: number;
        readonly number: number;
        /** A read has shown otherwise. */
        readonly isDenied?: boolean | undefined;
      }
    | undefined;
  /** When a read was last asked for that shows whether the machine has outlived its notice. */
  readonly outlived?: Pick<EvaluationTime, "ms" | "number"> | undefined;
  /** Since when the cloud is asked whether the machine still runs. */
  readonly evidence?: Pick<EvaluationTime, "ms" | "number"> | undefined;
  /** The notice that the marks on the node name. */
  readonly markedFor?: string | undefined;
  /** The drain as it would be if it started now; since when that is asked; whether it was told. */
  readonly outlook?: DrainPlan | undefined;
  readonly outlookNumber?: number | undefined;
  readonly lookedAhead?: Pick<EvaluationTime, "ms" | "number"> | undefined;
  readonly toldAhead?: true | undefined;
  /** Whether the drain may run beside the others. */
  readonly hasTurn?: true | undefined;
  readonly turnNumber?: number | undefined;
  /** A precondition of the drain that was not met in time; the drain proceeds without it. */
  readonly missed?: Pick<PhaseResult, "reason" | "detail"> | undefined;
  readonly reserved?: true | undefined;
  /** Since when capacity is reserved here (monotonic). */
  readonly reservingMs?: number | undefined;
  /** The actions before the drain have begun, although the phase has not. */
  readonly isDrainNear?: true | undefined;
  /** Since when the list of placeholders to remove is waited for (monotonic). */
  readonly freesSinceMs?: number | undefined;
  /** The uids of the pods that were on the node when its first drain started. */
  readonly beganWith?: readonly string[] | undefined;
  readonly drain?: DrainCourse | undefined;
  /** The last counts, which a resumed drain continues. */
  readonly counts?: DrainCounts | undefined;
  /** The pods of the capacity reservation were listed just after the identity check. */
  readonly isTrusted?: true | undefined;
  /** Pods known to be on this machine; and others, by the evaluation that first saw them. */
  readonly own: readonly string[];
  readonly strangers: Readonly<Record<string, number>>;
  /** By the uids of the pods on the node. */
  readonly podDeadlines: Readonly<Record<string, PodDeadline>>;
  readonly drained?: DrainEnd | undefined;
  readonly emptyAt?: Instant | undefined;
  /** The same on the monotonic clock. */
  readonly emptyMs?: number | undefined;
  /** In Releasing: the pods that are drained late, when that began, and those drained so. */
  readonly late?: readonly string[] | undefined;
  readonly lateSinceAt?: Instant | undefined;
  readonly drainedLate: readonly string[];
  /** Why the last look kept the machine. */
  readonly kept?: PhaseResult | undefined;
  /** The pods on the node when its release was asked for. */
  readonly there?: readonly string[] | undefined;
  /** The evaluation at which the machine was known to be gone. */
  readonly releasedNumber?: number | undefined;
  /** Since when the cloud finds no machine although its kubelet reports. */
  readonly absent?:
    | { readonly sinceMs: number; readonly askedMs: number; readonly number: number }
    | undefined;
  /** The evaluation since which the machine's id was looked up here. */
  readonly described?: number | undefined;
  /** The first evaluation at which the cloud must show what became of the last request. */
  readonly visible?: number | undefined;
  /** The cloud could not be asked what became of it, so that its release was not asked for. */
  readonly wasUnseen?: true | undefined;
  /**
   * When a release last got no answer (monotonic): it may have succeeded, which the cloud may not
   * show yet.
   */
  readonly unansweredMs?: number | undefined;
  /** The time for which the release has been tried. */
  readonly tried?: DrainClock | undefined;
}

/** What is on its way still arrives, whatever has been decided since. */
export function inFlightOf({ asked }: Pick<Memory, "asked">): Memory["asked"] {
  return Object.fromEntries(Object.entries(asked).filter(([, { isInFlight }]) => isInFlight));
}

export function freshMemory(now: EvaluationTime): Memory {
  const phase = { ms: now.ms, number: now.number };
  return { phase, asked: {}, own: [], strangers: {}, podDeadlines: {}, drainedLate: [] };
}
