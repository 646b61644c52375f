import { isFormer } from "../../src/core/action/action-plan.ts";
import type { NodeFacts } from "../../src/core/cluster/node.ts";
import type { PodFacts } from "../../src/core/cluster/pod.ts";
import type {
  ActionRecord,
  Departure,
  DepartureStatus,
} from "../../src/core/departure/departure.ts";
import { begunLastAt, type PhaseResult } from "../../src/core/departure/ledger.ts";
import type { EvictionAnswer } from "../../src/core/drain/drain-answer.ts";
import type { Memory } from "../../src/core/next/memory.ts";
import type { next } from "../../src/core/next/next.ts";
import type { AskedRequest, DepartureRequest } from "../../src/core/next/request.ts";
import type { EvaluationTime } from "../../src/core/next/scene.ts";
import { departureAnnotation } from "../../src/core/notice/interruption.ts";
import type { Action } from "../../src/core/policy/action.ts";
import type { Policy } from "../../src/core/policy/policy.ts";
import { type Instant, millis, plus, seconds } from "../../src/core/time/time.ts";
import { node, pod, rule, startAt } from "../core/drain/drain-scene.ts";
import { aDeparture, aPolicy } from "../core/fleet-builder.ts";

/**
 * A planned departure of one node, from its start to its outcome, and everything that can happen to
 * it, in every order: requests and writes arrive, are lost or refused, and their answers too, pods
 * exit, time goes on, a notice comes, and the controller is killed. What is read is known at once
 * and true.
 */
export interface DepartureWorld {
  readonly ms: number;
  readonly pods: readonly WorldPod[];
  readonly node: { readonly isCordoned: boolean; readonly isThere: boolean };
  /** `Taken`: by the cloud, when the time of its notice was over. */
  readonly machine: "Runs" | "Gone" | "Taken";
  /** When the cloud's notice came. */
  readonly noticedMs: number | undefined;
  /** A pod that nobody had asked to leave ended with the machine that the cloud took. */
  readonly isSurprised: boolean;
  /** In the cluster. */
  readonly status: DepartureStatus;
  /** As the controller knows it: it does not hear of a write whose answer is lost. */
  readonly known: DepartureStatus;
  /** The controller: a kill takes it. */
  readonly memory: Memory;
  readonly flights: readonly Flight[];
  readonly write: StatusWrite | undefined;
  readonly wakeMs: number | undefined;
  readonly isOver: boolean;
  /** What a second evaluation of the same would have asked for. */
  readonly unrest: string | undefined;
  readonly number: number;
  readonly kills: number;
  readonly losses: number;
  readonly refusals: number;
  /** A person has set `spec.hold`. */
  readonly isHeld: boolean;
  /** The cloud has withdrawn its notice. */
  readonly isWithdrawn: boolean;
  readonly book: ActionBook;
  readonly receiver: Receiver;
}

/** What the controller knows of the departure's actions. */
export interface ActionBook {
  readonly records: readonly ActionRecord[];
  /** Those that this process has started. */
  readonly own: readonly ActionRecord[];
  /** Another process may have started actions, so each is claimed first. */
  readonly isResumed: boolean;
  /** A write of the records that nothing waits for. */
  readonly isToWrite: boolean;
}

/** What the receiver of the action knows. */
export interface Receiver {
  readonly isInEffect: boolean;
  /** It has refused to undo the change. */
  readonly hasRefusedUndo: boolean;
  /** A rule that was broken at an event, and that no state shows afterwards. */
  readonly broken: string | undefined;
}

/** How far a request about actions has come. */
export interface ActionCourse {
  readonly step:
    | "Begin"
    | "Claim"
    | "Prepare"
    | "Keep"
    | "Apply"
    | "Pause"
    | "Note"
    | "Undo"
    | "Settle";
  /** The newest evaluation asks for it. */
  readonly isWanted: boolean;
  /** It was aborted, and ends with what is on its way. */
  readonly isStopped: boolean;
  readonly sinceMs: number;
}

export interface DepartureLimits {
  readonly pods: number;
  readonly kills: number;
  readonly losses: number;
  readonly refusals?: number;
  readonly notices?: 0 | 1;
  readonly holds?: 0 | 1;
  readonly withdrawals?: 0 | 1;
  readonly action?: Action | undefined;
  /** Other code in the place of the departure's own, to show that the rules see it. */
  readonly next?: typeof next;
  /** The same: an action is applied before its undo record is written. */
  readonly isUndoUnwritten?: boolean;
}

export interface StatusWrite {
  readonly status: DepartureStatus;
  readonly isOrphan: boolean;
  /** What the Departure's spec said when it was sent. */
  readonly spec: string;
}

export interface WorldPod {
  readonly uid: string;
  readonly state: "Running" | "Ending" | "Gone";
  readonly endsMs: number;
}

export interface Flight {
  readonly request: DepartureRequest;
  /** Of a controller that was killed since: nobody waits for its answer. */
  readonly isOrphan: boolean;
  /** Of a request about actions. */
  readonly course?: ActionCourse | undefined;
}

export const graceMs = 5000;
export const withoutActions = aPolicy({
  replacement: { when: "None", timeoutMs: seconds(1), onTimeout: "Proceed" },
  drain: rule({ timeoutMs: seconds(20) }),
  // Its time is recorded once a minute: more of them would only be more of the same.
  instance: { ...aPolicy().instance, awaitMachineMs: seconds(120) },
});

export function policyOf({ action }: Pick<DepartureLimits, "action">): Policy {
  return action === undefined ? withoutActions : { ...withoutActions, actions: [action] };
}

export const first: PhaseResult = { event: "Due", reason: "Spaced" };
export const machineId = "machine-1";
export const theNode = node({ providerID: "gce://p/z/n1" });

export function at(ms: number): Instant {
  return plus(startAt, millis(ms));
}

export function timeOf(ms: number, number: number): EvaluationTime {
  return { at: at(ms), ms, number };
}

export function factsOf({ uid, state, endsMs }: WorldPod): PodFacts[] {
  if (state === "Gone") return [];
  const deletionAt = state === "Ending" ? at(endsMs) : undefined;
  return [pod(uid.slice(4), { graceSeconds: graceMs / 1000, ...(deletionAt && { deletionAt }) })];
}

export function nodeOf({ node: { isCordoned, isThere } }: DepartureWorld): NodeFacts | undefined {
  if (!isThere) return undefined;
  const annotations = isCordoned ? { [departureAnnotation]: "n1-1" } : {};
  return { ...theNode, annotations, unschedulable: isCordoned };
}

/** No request about an action takes longer, with all its attempts. */
export const actionMs = 10_000;

/** How long the cloud waits after its notice. */
export const noticeMs = 15_000;

export function departureOf(world: DepartureWorld): Departure {
  const { known, noticedMs, isHeld, isWithdrawn } = world;
  const planned = { ...aDeparture(theNode, { cause: "Planned", hold: isHeld }), status: known };
  if (noticedMs === undefined) return planned;
  const deadlineAt = at(noticedMs + noticeMs);
  const noticed = { cause: "SpotInterruption", noticedAt: at(noticedMs), deadlineAt } as const;
  return { ...planned, ...noticed, ...(isWithdrawn && { withdrawnAt: at(noticedMs) }) };
}

/** What a write compares before it acts on what was decided. */
export function specOf({ noticedMs, isHeld, isWithdrawn }: DepartureWorld): string {
  return JSON.stringify([noticedMs, isHeld, isWithdrawn]);
}

/** The cloud takes the machine, and its Node and pods go with it. */
export function taken(world: DepartureWorld): DepartureWorld {
  const isSurprised = world.pods.some(({ state }) => state === "Running");
  const node = { isCordoned: false, isThere: false };
  return { ...world, node, pods: world.pods.map(gone), machine: "Taken", isSurprised };
}

export function machineStateOf({ machine }: DepartureWorld) {
  if (machine !== "Runs") return { kind: "Absent" } as const;
  return { kind: "Present", id: machineId, bornAt: at(-9e6), running: true } as const;
}

export function evicted(world: DepartureWorld, uid: string): [DepartureWorld, EvictionAnswer] {
  const found = world.pods.find((one) => one.uid === uid);
  if (found === undefined || found.state === "Gone") return [world, { kind: "Gone" }];
  if (found.state === "Ending") return [world, { kind: "Accepted" }];
  const ending: WorldPod = { ...found, state: "Ending", endsMs: world.ms + graceMs };
  const pods = world.pods.map((one) => (one === found ? ending : one));
  return [{ ...world, pods }, { kind: "Accepted" }];
}

export function gone({ uid }: WorldPod): WorldPod {
  return { uid, state: "Gone", endsMs: 0 };
}

/** What decides about everything that can follow, without what only a report needs. */
export function essence(world: DepartureWorld): unknown {
  const { ms, node: marks, machine, status, known, flights, write, book } = world;
  return [
    ...[ms, marks, machine, world.wakeMs, world.isOver, world.pods, world.receiver],
    ...[world.kills, world.losses, world.refusals, world.noticedMs, world.isSurprised],
    ...[world.isHeld, world.isWithdrawn, book.isResumed, book.isToWrite],
    ...[recordsEssence(book.records, world), recordsEssence(book.own, world)],
    ...[essenceOf(status, world), essenceOf(known, world)],
    write && [essenceOf(write.status, world), write.isOrphan, write.spec],
    flights
      .map(({ request, isOrphan, course }) => JSON.stringify([request.key, isOrphan, course]))
      .toSorted(),
    withoutNumbers(world),
  ];
}

function essenceOf(status: DepartureStatus, world: DepartureWorld): unknown {
  const { phase, reason, machine, timeline, drain, actions = [] } = status;
  const steps = timeline.map((one) => [one.step, one.at]);
  return [phase, reason, machine?.id, drain?.left, steps, recordsEssence(actions, world)];
}

/** When an action started says only whether that was before the departure last started. */
function recordsEssence(records: readonly ActionRecord[], { ms, known }: DepartureWorld): unknown {
  return records.map((record) => {
    const { state, undo, result, startedAt } = record;
    const isNew = startedAt === at(ms);
    return [state, undo, result, startedAt && (isNew || isFormer(record, begunLastAt(known)))];
  });
}

function withoutNumbers(world: DepartureWorld): unknown {
  const { intended, target: _, asked, ...rest } = world.memory;
  const { drain, drained, ...plain } = rest;
  const text = JSON.stringify([
    ...[plain, Object.entries(asked).map(([key, one]) => [key, askedEssence(one)])],
    intended && essenceOf(intended, world),
    drain && [drain.memory.progress, drain.doneAt, drain.clock, drain.beganAt],
    drained?.verdict,
  ]);
  return text.replace(/"(number|answeredNumber|described|turnNumber|visible)":\d+/g, "");
}

/** Nothing depends on when a request about actions was sent and answered, unless it failed. */
function askedEssence(asked: AskedRequest): unknown {
  const { kind, fault, sinceMs, againMs, isInFlight, answer } = asked;
  if (!kind.endsWith("Action") && !kind.endsWith("Actions")) return asked;
  return [isInFlight, answer, fault && [sinceMs, againMs]];
}
