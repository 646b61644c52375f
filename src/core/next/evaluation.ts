import type { UnplacedPod } from "../capacity/capacity-fit.ts";
import {
  type Departure,
  type DepartureStatus,
  isNoticed,
  isPressing,
} from "../departure/departure.ts";
import { type PhaseResult, statusAfter, statusWithReason } from "../departure/ledger.ts";
import type { DrainStep } from "../drain/drain-step.ts";
import type { DrainPlan, PlannedPod } from "../drain-plan/drain-plan.ts";
import { isSameJson } from "../json/json-field.ts";
import { policyToRecord } from "../notice/interruption.ts";
import type { Reason } from "../reason/reason.ts";
import { earlier, earliest, type Instant, millis, plus } from "../time/time.ts";
import { type DrainEnd, freshMemory, inFlightOf, type Memory } from "./memory.ts";
import { type DepartureRequest, type RequestAnswer, writesNode } from "./request.ts";
import { isHurried, longestPause } from "./retry-pause.ts";
import type {
  DepartureScene,
  EvaluationTime,
  FactName,
  FactTypes,
  Need,
  RequestFault,
} from "./scene.ts";

/** What people are told, as data: log lines, Events and metrics. */
export type Said =
  | { readonly kind: "PhaseChanged"; readonly before: Departure; readonly after: Departure }
  | { readonly kind: "Cordoned" }
  | { readonly kind: "Reported" }
  | { readonly kind: "Impossible"; readonly pods: readonly PlannedPod[] }
  | { readonly kind: "Unplaced"; readonly pods: readonly UnplacedPod[] }
  | { readonly kind: "DrainStepped"; readonly step: DrainStep; readonly plan: DrainPlan }
  | { readonly kind: "DrainEnded"; readonly end: DrainEnd }
  | { readonly kind: "ReservationTimedOut"; readonly detail: string }
  | { readonly kind: "VolumesLeft"; readonly detail: string }
  | { readonly kind: "LeftBehind" }
  | { readonly kind: "Faulted"; readonly event: string; readonly fault: RequestFault };

/** What a step finds: the phase is over, something is missing, or it is met (undefined). */
export type StepFinding = PhaseResult | "Wait" | undefined;

/** A question, asked again at each evaluation. What it has to keep, it keeps in the memory. */
export type Step = (evaluation: Evaluation) => StepFinding;

export function firstUnmet(steps: readonly Step[], evaluation: Evaluation): StepFinding {
  for (const step of steps) {
    const found = step(evaluation);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** After this time, a watch shows what was answered. */
const watchLagMs = 1000;
const longestLagMs = 60_000;

/** The oldest fault that something waits for. */
export interface OldestFault {
  readonly fault: RequestFault;
  /** Monotonic. */
  readonly sinceMs: number;
}

/** Whether a departure with this status is acted upon before that is written, under a notice. */
export function runsAhead({ phase }: Pick<DepartureStatus, "phase">): boolean {
  return phase === "Preparing" || phase === "Draining";
}

/** One evaluation: what is known, and what the steps want. It ends with the call of `next`. */
export class Evaluation {
  readonly scene: DepartureScene;
  readonly now: EvaluationTime;
  memory: Memory;
  requests: DepartureRequest[] = [];
  needs: Need[] = [];
  readonly says: Said[] = [];
  lookAgainAt: Instant | undefined;
  trouble: OldestFault | undefined;
  /** The end of the departure has steps of its own, and not all are met. */
  isFinishing = false;
  /** What its actions have changed is being undone, so they end. */
  isUndoing = false;
  /** The actions of the phase are in progress, so their records are to be written. */
  recordsActions = false;

  constructor(scene: DepartureScene, memory: Memory, now: EvaluationTime) {
    this.scene = scene;
    this.memory = memory;
    this.now = now;
  }

  get status(): DepartureStatus {
    return this.memory.intended ?? this.scene.departure.status;
  }

  get departure(): Departure {
    return { ...this.scene.departure, status: this.status };
  }

  /** Whether the phase is in the cluster, so that what it asks for may be asked. */
  get isRecorded(): boolean {
    return this.scene.departure.status.phase === this.status.phase;
  }

  get isPressing(): boolean {
    return isPressing(this.scene.departure, this.now.at);
  }

  get isNoticed(): boolean {
    return isNoticed(this.scene.departure);
  }

  remember(more: Partial<Memory>): void {
    this.memory = { ...this.memory, ...more };
  }

  intend(status: DepartureStatus | undefined): void {
    if (status === undefined || isSameJson(status, this.status)) return;
    this.remember({ intended: status });
  }

  /** Looks again at an instant. One that has passed is no reason: that would never come to rest. */
  look(at: Instant | undefined): void {
    if (at !== undefined && at > this.now.at) this.lookAgainAt = earliest(this.lookAgainAt, at);
  }

  lookAtMs(ms: number): void {
    this.look(plus(this.now.at, millis(Math.max(1, Math.ceil(ms - this.now.ms)))));
  }

  /**
   * When a wait ends: at an instant that is computed from a recorded one, which outlives the
   * process, and no later than at `untilMs`. A clock that was set back makes no wait longer.
   */
  endOfWait(untilAt: Instant, untilMs: number): Instant {
    return earlier(untilAt, plus(this.now.at, millis(Math.ceil(untilMs - this.now.ms))));
  }

  /** A fact that something waits for; undefined while it is not known, or older than `since`. */
  need<Name extends FactName>(name: Name, since = 0): FactTypes[Name] | undefined {
    const fault = this.faultOf(name);
    const fact = this.scene.facts[name];
    if (fault !== undefined && fact?.kind === "Failed") this.noteTrouble(fault, fact.sinceMs);
    return this.hope(name, since);
  }

  /** The same, for something that goes on without it. */
  hope<Name extends FactName>(name: Name, since = 0): FactTypes[Name] | undefined {
    this.needs.push({ name, since });
    const fact = this.scene.facts[name];
    if (fact?.kind !== "Known" || fact.number < since) return undefined;
    return fact.value as FactTypes[Name];
  }

  /** The evaluation that asked for a fact as it is known. */
  numberOf(name: FactName): number {
    const fact = this.scene.facts[name];
    return fact?.kind === "Known" ? fact.number : Number.NEGATIVE_INFINITY;
  }

  faultOf(name: FactName): RequestFault | undefined {
    const fact = this.scene.facts[name];
    return fact?.kind === "Failed" ? fact.fault : undefined;
  }

  /**
   * Asks for a request. Returns its answer once there is one; undefined while it is on its way, and
   * after a fault, when it is sent again after its pause.
   */
  ask(request: DepartureRequest): RequestAnswer | undefined {
    const answer = this.attempt(request);
    const asked = this.memory.asked[request.key];
    if (answer === undefined && asked?.fault !== undefined) {
      this.noteTrouble(asked.fault, asked.sinceMs);
    }
    return answer;
  }

  /** The same, for something that goes on without it. */
  attempt(request: DepartureRequest): RequestAnswer | undefined {
    const asked = this.memory.asked[request.key];
    if (asked?.answer !== undefined) return asked.answer;
    if (asked?.fault !== undefined && !asked.isInFlight) {
      const againMs = this.#againMs(asked);
      if (againMs > this.now.ms) {
        this.lookAtMs(againMs);
        return undefined;
      }
    }
    const isRequested = this.requests.some(({ key }) => key === request.key);
    if (!isRequested && !this.#isBehindNodeWrite(request)) this.requests.push(request);
    return undefined;
  }

  #isBehindNodeWrite(request: DepartureRequest): boolean {
    if (!writesNode(request)) return false;
    const others = Object.entries(this.memory.asked).filter(([key]) => key !== request.key);
    return others.some(([, asked]) => asked.isInFlight && writesNode(asked));
  }

  #againMs({ againMs = 0, answeredMs = 0 }: Memory["asked"][string]): number {
    const { departure } = this.scene;
    const { at } = this.now;
    if (!isHurried(departure, at)) return againMs;
    return Math.min(againMs, answeredMs + longestPause(departure, at));
  }

  /**
   * For a request whose effect is followed: an answer counts only until the watch must have shown
   * the effect. Answer and watch overtake each other in both directions. A watch that stalls is
   * given twice as long each time.
   */
  attemptUntilSeen(request: DepartureRequest): RequestAnswer | undefined {
    const asked = this.memory.asked[request.key];
    if (asked?.answer === undefined) return this.attempt(request);
    const lagMs = Math.min(watchLagMs * 2 ** (asked.attempts - 1), longestLagMs);
    const seenMs = (asked.answeredMs ?? 0) + lagMs;
    if (seenMs > this.now.ms) {
      this.lookAtMs(seenMs);
      return asked.answer;
    }
    this.requests.push(request);
    return undefined;
  }

  forget(key: string): void {
    const { [key]: _, ...asked } = this.memory.asked;
    this.remember({ asked });
  }

  noteTrouble(fault: RequestFault, sinceMs: number): void {
    if (this.trouble !== undefined && this.trouble.sinceMs <= sinceMs) return;
    this.trouble = { fault, sinceMs };
  }

  /** For what waits until the status is written. */
  noteUnwritten(): void {
    const { unwritten } = this.scene;
    if (unwritten !== undefined) this.noteTrouble(unwritten.fault, unwritten.sinceMs);
  }

  /** Records progress within the phase, in status and timeline. */
  report(reason: Reason, detail?: string): void {
    const after = statusWithReason(this.departure, { reason, detail, at: this.now.at });
    if (after === undefined) return;
    this.intend(after);
    this.says.push({ kind: "Reported" });
  }

  /** Enters the next phase. False if the event changes nothing in this one. */
  advance(result: PhaseResult): boolean {
    const { policy, node } = this.scene;
    const own = node?.uid === this.departure.node.uid ? node : undefined;
    const after = statusAfter(this.departure, {
      ...{ ...result, at: this.now.at, nodeCreatedAt: own?.createdAt },
      policy:
        policy.instance.lifecycleHook === "Abandon"
          ? policy.name
          : policyToRecord(this.departure, policy),
    });
    if (after === undefined) return false;
    const before = this.departure;
    this.says.push({ kind: "PhaseChanged", before, after: { ...before, status: after } });
    const { first, counts, beganWith, markedFor } = this.memory;
    const asked = inFlightOf(this.memory);
    const lasting = { intended: after, first, counts, beganWith, markedFor };
    const fresh = freshMemory(this.now);
    this.memory =
      after.phase === "Preparing"
        ? { ...fresh, ...lasting }
        : { ...this.memory, intended: after, phase: fresh.phase, evidence: undefined };
    this.remember({ isUndoneWithoutRecord: undefined });
    this.memory = { ...this.memory, asked };
    if (!isBegun(after)) this.remember({ first: undefined });
    this.requests = [];
    this.recordsActions = false;
    this.needs = [];
    this.lookAgainAt = undefined;
    this.trouble = undefined;
    return true;
  }
}

function isBegun({ phase }: DepartureStatus): boolean {
  return phase !== "Scheduled" && phase !== "Held";
}
