import type { BudgetFacts, PodFacts } from "../../../src/core/cluster/pod.ts";
import type { EvictionAnswer } from "../../../src/core/drain/drain-answer.ts";
import type { DrainView } from "../../../src/core/drain/drain-memory.ts";
import type { DrainAct } from "../../../src/core/drain/drain-progress.ts";
import type { DrainStep } from "../../../src/core/drain/drain-step.ts";
import { TerminationMemory } from "../../../src/core/drain/drain-time.ts";
import type { DrainRule } from "../../../src/core/policy/policy.ts";
import { type Instant, later, type Millis, plus, seconds } from "../../../src/core/time/time.ts";
import { node, startAt } from "./drain-scene.ts";

/** A random drain: what is on the node, what the policy says, and what happens in which order. */
export interface DrainCourse {
  readonly pods: readonly PodFacts[];
  readonly budgets: readonly BudgetFacts[];
  readonly rule: DrainRule;
  /** Whether the owner knows which pods were there at the start, as the controller does. */
  readonly isStartKnown: boolean;
  readonly events: readonly CourseEvent[];
}

/** A course names its pods in the order in which they come. */
export type UnnamedPod = Omit<PodFacts, "name" | "uid">;

export type CourseEvent =
  /** The owner steps. */
  | { readonly kind: "Look" }
  | { readonly kind: "Pass"; readonly ms: Millis }
  /** Time goes on to the instant that the last step named. */
  | { readonly kind: "PassToLook" }
  /** A queued request reaches its turn; it may be sent again with new credentials. */
  | { readonly kind: "Send"; readonly at: number; readonly times: number }
  | { readonly kind: "Answer"; readonly at: number; readonly answer: EvictionAnswer }
  /** Again and again, all requests are answered alike, and time goes on to the next step. */
  | { readonly kind: "Rounds"; readonly times: number; readonly answer: EvictionAnswer }
  | { readonly kind: "Exit"; readonly at: number }
  | { readonly kind: "Arrive"; readonly pod: UnnamedPod; readonly isOwn: boolean }
  /** The watch catches up. */
  | { readonly kind: "Show" }
  | { readonly kind: "Notice"; readonly leftMs: Millis | undefined }
  | { readonly kind: "Mark"; readonly at: number; readonly value: string }
  | { readonly kind: "Silence" }
  /** The process is killed, and the next one begins with what it sees. */
  | { readonly kind: "Kill" };

/** What carries the drain out: the transitions of core, or a class around them. */
export interface CourseDrain {
  step(view: DrainView): DrainStep;
  /** The step's act is queued. */
  queue(act: DrainAct): void;
  sent(act: DrainAct, now: Instant): number | undefined;
  answered(act: DrainAct, about: { readonly answer: EvictionAnswer; readonly now: Instant }): void;
  killed(): void;
}

interface Flight {
  readonly act: DrainAct;
  /** The pod as the step saw it. */
  readonly pod: PodFacts;
  graceSeconds: number | undefined;
  isSent: boolean;
}

/** The drain's surroundings in the middle of a course. */
export interface CourseWorld {
  now: Instant;
  readonly pods: Map<string, PodFacts>;
  seen: readonly PodFacts[];
  readonly strangers: Set<string>;
  arrivals: number;
  readonly flights: Flight[];
  readonly first: ReadonlySet<string>;
  deadlineAt: Instant | undefined;
  knownAt: Instant;
  isSilent: boolean;
  terminations: TerminationMemory;
  lookAt: Instant | undefined;
  verdict: DrainStep["verdict"];
}

export interface SentRequest {
  /** Undefined: the pod's own. */
  readonly graceSeconds: number | undefined;
  readonly pod: PodFacts;
  readonly now: Instant;
}

/** What a course shows of the drain: steps, and requests as they are sent. */
export interface CourseWitness {
  stepped?(step: DrainStep, view: DrainView, world: CourseWorld): void;
  sent?(act: DrainAct, about: SentRequest): void;
}

export function courseWorld({ pods }: DrainCourse): CourseWorld {
  return {
    now: startAt,
    pods: new Map(pods.map((one) => [one.uid, one])),
    seen: pods,
    strangers: new Set(),
    arrivals: 0,
    flights: [],
    first: new Set(pods.map(({ uid }) => uid)),
    deadlineAt: undefined,
    knownAt: startAt,
    isSilent: false,
    terminations: new TerminationMemory(),
    lookAt: undefined,
    verdict: "Running",
  };
}

export function viewOf(world: CourseWorld, course: DrainCourse): DrainView {
  const { seen, strangers, first, deadlineAt, knownAt, isSilent, terminations, now } = world;
  return {
    node: node(isSilent ? { isUnreachable: true } : {}),
    isNoticed: deadlineAt !== undefined,
    livePods: seen,
    ownPods: seen.filter(({ uid }) => !strangers.has(uid)),
    ...{ budgets: course.budgets, rule: course.rule, startedAt: startAt },
    ...(course.isStartKnown && { beganWith: first }),
    ...{ deadlineAt, knownAt, known: terminations.records, now },
  };
}

/** Plays the course to its end, or to the end of the drain. */
export function playCourse(
  course: DrainCourse,
  about: { readonly drain: CourseDrain; readonly witness?: CourseWitness },
): void {
  const world = courseWorld(course);
  for (const event of course.events) playEvent(event, { ...about, course, world });
}

export interface CourseStage {
  readonly course: DrainCourse;
  readonly world: CourseWorld;
  readonly drain: CourseDrain;
  readonly witness?: CourseWitness;
}

export function playEvent(event: CourseEvent, stage: CourseStage): void {
  const { world } = stage;
  switch (event.kind) {
    case "Look":
      look(stage);
      break;
    case "Pass":
      pass(world, plus(world.now, event.ms));
      break;
    case "PassToLook":
      pass(world, later(world.now, world.lookAt ?? world.now));
      break;
    case "Send":
      for (let time = 0; time < event.times; time += 1) {
        send(picked(world.flights, event.at), stage);
      }
      break;
    case "Answer":
      answer(picked(world.flights, event.at), { ...stage, answer: event.answer });
      break;
    case "Rounds":
      for (const one of roundsOf(event, world)) playEvent(one, stage);
      break;
    case "Kill":
      kill(stage);
      break;
    default:
      change(world, event);
  }
}

/** The events that make up the rounds, one after another. */
export function* roundsOf(
  { times, answer }: Extract<CourseEvent, { kind: "Rounds" }>,
  world: CourseWorld,
): Generator<CourseEvent> {
  const { flights } = world;
  for (let round = 0; round < times && world.verdict === "Running"; round += 1) {
    while (flights.length > 0) yield { kind: "Answer", at: 0, answer };
    yield { kind: "PassToLook" };
    yield { kind: "Look" };
  }
}

function change(
  world: CourseWorld,
  event: Extract<CourseEvent, { kind: "Exit" | "Arrive" | "Show" | "Notice" | "Mark" | "Silence" }>,
): void {
  switch (event.kind) {
    case "Exit":
      world.pods.delete(picked([...world.pods.keys()], event.at) ?? "");
      break;
    case "Arrive": {
      world.arrivals += 1;
      const arrived = { ...named("late", world.arrivals, event.pod), startedAt: world.now };
      world.pods.set(arrived.uid, arrived);
      if (!event.isOwn) world.strangers.add(arrived.uid);
      break;
    }
    case "Show":
      world.seen = [...world.pods.values()];
      break;
    case "Notice":
      if (world.deadlineAt === undefined) world.knownAt = world.now;
      world.deadlineAt = event.leftMs && plus(world.now, event.leftMs);
      break;
    case "Mark": {
      const marked = picked([...world.pods.values()], event.at);
      const annotations = { "lastcall.dev/do-not-disturb": event.value };
      if (marked !== undefined) world.pods.set(marked.uid, { ...marked, annotations });
      break;
    }
    case "Silence":
      world.isSilent = !world.isSilent;
  }
}

/** Also after the end, as owners do until no more pods can be bound. */
function look({ world, course, drain, witness }: CourseStage): void {
  const view = viewOf(world, course);
  const step = drain.step(view);
  for (const one of step.ended) world.terminations.remember(one);
  witness?.stepped?.(step, view, world);
  world.verdict = step.verdict;
  world.lookAt = step.askAgainAt;
  for (const act of step.acts) {
    const pod = view.livePods.find(({ uid }) => uid === act.pod.uid) as PodFacts;
    world.flights.push({ act, pod, graceSeconds: undefined, isSent: false });
    drain.queue(act);
  }
}

/** Pods whose grace period ends by then are killed. */
function pass(world: CourseWorld, toAt: Instant): void {
  world.now = toAt;
  for (const [uid, { deletionAt }] of world.pods) {
    if (deletionAt !== undefined && deletionAt <= toAt) world.pods.delete(uid);
  }
}

function send(flight: Flight | undefined, { world, drain, witness }: CourseStage): void {
  if (flight === undefined) return;
  flight.isSent = true;
  flight.graceSeconds = drain.sent(flight.act, world.now);
  const { act, pod, graceSeconds } = flight;
  witness?.sent?.(act, { graceSeconds, pod, now: world.now });
}

function answer(
  flight: Flight | undefined,
  stage: CourseStage & { readonly answer: EvictionAnswer },
): void {
  const { world, drain, answer: its } = stage;
  if (flight === undefined) return;
  // Only a request that failed on our side was never sent.
  if (its.kind !== "NoAnswer" && !flight.isSent) send(flight, stage);
  world.flights.splice(world.flights.indexOf(flight), 1);
  const { act, graceSeconds } = flight;
  const found = world.pods.get(act.pod.uid);
  if (its.kind === "Gone" || its.kind === "Replaced") world.pods.delete(act.pod.uid);
  if (its.kind === "Accepted" && found !== undefined && act.kind !== "RestartOwner") {
    const deletionAt = plus(world.now, seconds(graceSeconds ?? Math.max(1, found.graceSeconds)));
    world.pods.set(found.uid, { ...found, deletionAt: found.deletionAt ?? deletionAt });
  }
  drain.answered(act, { answer: its, now: world.now });
}

function kill({ world, drain }: CourseStage): void {
  if (world.verdict !== "Running") return;
  world.flights.splice(0);
  world.terminations = new TerminationMemory();
  world.seen = [...world.pods.values()];
  world.lookAt = undefined;
  drain.killed();
}

function picked<T>(from: readonly T[], at: number): T | undefined {
  return from[at % Math.max(1, from.length)];
}

export function named(prefix: string, index: number, facts: UnnamedPod): PodFacts {
  return { ...facts, name: `${prefix}${index}`, uid: `uid-${prefix}${index}` };
}
