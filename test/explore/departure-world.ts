import type { NodeFacts } from "../../src/core/cluster/node.ts";
import type { PodFacts } from "../../src/core/cluster/pod.ts";
import type { Departure, DepartureStatus } from "../../src/core/departure/departure.ts";
import type { PhaseResult } from "../../src/core/departure/ledger.ts";
import type { EvictionAnswer } from "../../src/core/drain/drain-answer.ts";
import type { Memory } from "../../src/core/next/memory.ts";
import type { DepartureRequest } from "../../src/core/next/request.ts";
import type { EvaluationTime } from "../../src/core/next/scene.ts";
import { departureAnnotation } from "../../src/core/notice/interruption.ts";
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
  readonly write: { readonly status: DepartureStatus; readonly isOrphan: boolean } | undefined;
  readonly wakeMs: number | undefined;
  readonly isOver: boolean;
  /** What a second evaluation of the same would have asked for. */
  readonly unrest: string | undefined;
  readonly number: number;
  readonly kills: number;
  readonly losses: number;
  readonly refusals: number;
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
}

export const graceMs = 5000;
export const policy = aPolicy({
  replacement: { when: "None", timeoutMs: seconds(1), onTimeout: "Proceed" },
  drain: rule({ timeoutMs: seconds(20) }),
  // Its time is recorded once a minute: more of them would only be more of the same.
  instance: { ...aPolicy().instance, awaitMachineMs: seconds(120) },
});
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

/** How long the cloud waits after its notice. */
export const noticeMs = 15_000;

export function departureOf({ known, noticedMs }: DepartureWorld): Departure {
  const planned = { ...aDeparture(theNode, { cause: "Planned" }), status: known };
  if (noticedMs === undefined) return planned;
  const deadlineAt = at(noticedMs + noticeMs);
  return { ...planned, cause: "SpotInterruption", noticedAt: at(noticedMs), deadlineAt };
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
  const { ms, node: marks, machine, status, known, memory, flights, write } = world;
  return [
    ...[ms, marks, machine, world.wakeMs, world.isOver, world.pods],
    ...[world.kills, world.losses, world.refusals, world.noticedMs, world.isSurprised],
    ...[essenceOf(status), essenceOf(known), write && [essenceOf(write.status), write.isOrphan]],
    flights.map(({ request, isOrphan }) => [request.key, isOrphan]).toSorted(),
    withoutNumbers(memory),
  ];
}

function essenceOf({ phase, reason, machine, timeline, drain }: DepartureStatus): unknown {
  return [phase, reason, machine?.id, drain?.left, timeline.map((one) => [one.step, one.at])];
}

function withoutNumbers(memory: Memory): unknown {
  const { intended, target: _, ...rest } = memory;
  const { drain, drained, ...plain } = rest;
  const text = JSON.stringify([
    plain,
    intended && essenceOf(intended),
    drain && [drain.memory.progress, drain.doneAt, drain.clock, drain.beganAt],
    drained?.verdict,
  ]);
  return text.replace(/"(number|answeredNumber|described|turnNumber|visible)":\d+/g, "");
}
