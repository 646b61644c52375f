import type { PodFacts } from "../../src/core/cluster/pod.ts";
import type { EvictionAnswer } from "../../src/core/drain/drain-answer.ts";
import {
  type DrainMemory,
  type DrainView,
  drainAnswered,
  drainSent,
  drainStep,
  freshDrain,
} from "../../src/core/drain/drain-memory.ts";
import type { DrainAct } from "../../src/core/drain/drain-progress.ts";
import type { DrainStep } from "../../src/core/drain/drain-step.ts";
import { type Instant, millis, plus, seconds } from "../../src/core/time/time.ts";
import { budget, node, pod, rule, startAt } from "../core/drain/drain-scene.ts";
import type { StateSpace, Successor } from "./state-space.ts";

/** A drain of a few pods, and everything that can happen to it, in every order. */
interface DrainWorld {
  readonly ms: number;
  /** The pods as they are. */
  readonly pods: readonly WorldPod[];
  /** The pods as the controller's watch shows them. */
  readonly seen: readonly WorldPod[];
  /** How many pods the budget lets go now. */
  readonly allowed: number;
  /** A kill takes it. */
  readonly memory: DrainMemory;
  readonly flights: readonly Flight[];
  readonly kills: number;
  readonly losses: number;
  readonly verdict: DrainStep["verdict"];
  readonly wakeMs: number | undefined;
}

interface WorldPod {
  readonly uid: string;
  readonly state: "Running" | "Ending" | "Gone";
  readonly endsMs: number;
}

interface Flight {
  readonly act: DrainAct;
  /** Undefined while it is on its way to the server. */
  readonly answer: EvictionAnswer | undefined;
  /** Of a controller that was killed since: nobody waits for its answer. */
  readonly isOrphan: boolean;
}

export interface DrainLimits {
  readonly pods: number;
  readonly kills: number;
  readonly losses: number;
  /** How many of them the budget lets go at first. */
  readonly allowed: number;
  /** Other code in the place of the drain's own, to show that the rules see it. */
  readonly step?: typeof drainStep;
  readonly answered?: typeof drainAnswered;
}

const graceMs = 5000;
const drainRule = rule({ timeoutMs: seconds(20) });
const noAnswer: EvictionAnswer = { kind: "NoAnswer", message: "the connection was lost" };

export function drainSpace(limits: DrainLimits): StateSpace<DrainWorld> {
  const pods = Array.from({ length: limits.pods }, (_, index): WorldPod => {
    return { uid: `uid-p${index}`, state: "Running", endsMs: 0 };
  });
  const world: DrainWorld = {
    ...{ ms: 0, pods, seen: pods, allowed: limits.allowed, memory: freshDrain, flights: [] },
    ...{ kills: 0, losses: 0, verdict: "Running", wakeMs: undefined },
  };
  return {
    first: stepped(world, limits),
    next: (state) => successorsOf(state, limits),
    broken,
    essence,
  };
}

function factsOf({ uid, state, endsMs }: WorldPod): PodFacts[] {
  if (state === "Gone") return [];
  const deletionAt = state === "Ending" ? at(endsMs) : undefined;
  return [pod(uid.slice(4), { graceSeconds: graceMs / 1000, ...(deletionAt && { deletionAt }) })];
}

function at(ms: number): Instant {
  return plus(startAt, millis(ms));
}

function viewOf({ seen, ms }: DrainWorld): DrainView {
  const livePods = seen.flatMap(factsOf);
  return {
    ...{ node: node(), livePods, ownPods: livePods, budgets: [budget("web")], rule: drainRule },
    ...{ isNoticed: false, deadlineAt: undefined, startedAt: startAt, knownAt: startAt },
    ...{ known: new Map(), now: at(ms) },
  };
}

/** The controller looks, and sends what is due. */
function stepped(world: DrainWorld, { step: stepBy = drainStep }: DrainLimits): DrainWorld {
  if (world.verdict !== "Running") return world;
  const { step, memory } = stepBy(world.memory, viewOf(world));
  const flights = step.acts.map((act): Flight => ({ act, answer: undefined, isOrphan: false }));
  const { askAgainAt, verdict } = step;
  const wakeMs = askAgainAt === undefined ? undefined : askAgainAt - startAt;
  return {
    ...{ ...world, verdict, wakeMs, flights: [...world.flights, ...flights] },
    memory: step.acts.reduce((before, act) => sent(before, { act, ms: world.ms }), memory),
  };
}

function sent(
  memory: DrainMemory,
  { act, ms }: { readonly act: DrainAct; readonly ms: number },
): DrainMemory {
  const after = drainSent(memory, act, at(ms));
  if (after === "Over") throw new Error("a drain under way refuses its own act");
  return after.memory;
}

/** Which of two pods is which makes no difference, and neither does what only a report needs. */
function essence(world: DrainWorld): unknown {
  const { ms, pods, seen, memory, flights, kills, losses, verdict, wakeMs, allowed } = world;
  const { progress, plan } = memory;
  const of = pods.map(({ uid, state, endsMs }, index) => {
    const known = progress[uid];
    const kept = known === undefined ? "New" : { ...known, ...forgotten };
    return JSON.stringify([
      ...[state, endsMs, seen[index]?.state, known?.kind === "Gone" ? known.how : kept],
      plan?.pods.some((one) => one.uid === uid),
      flights
        .filter(({ act }) => act.pod.uid === uid)
        .map(({ answer, isOrphan }) => [answer, isOrphan]),
    ]);
  });
  if (verdict !== "Running") return [verdict, pods.map(({ state }) => state).toSorted()];
  return [ms, allowed, kills, losses, wakeMs, plan?.at, of.toSorted()];
}

/** Fields of a pod's progress from which only the record of its termination is made. */
const forgotten = { ...{ pod: 0, act: 0, decidedAt: 0, sentAt: 0, sinceAt: 0 }, measured: 0 };

function successorsOf(world: DrainWorld, limits: DrainLimits): readonly Successor<DrainWorld>[] {
  if (world.verdict !== "Running") return [];
  return [
    ...world.flights.flatMap((flight) => aboutFlight(world, flight, limits)),
    ...aboutPods(world, limits),
    ...aboutTime(world, limits),
    ...aboutKill(world, limits),
  ];
}

function aboutFlight(
  world: DrainWorld,
  flight: Flight,
  limits: DrainLimits,
): readonly Successor<DrainWorld>[] {
  const name = `${flight.act.kind} ${flight.act.pod.name}`;
  const others = world.flights.filter((one) => one !== flight);
  const withoutIt = { ...world, flights: others };
  const isLossAllowed = world.losses < limits.losses && !flight.isOrphan;
  const lost = (): Successor<DrainWorld> => ({
    event: `the answer to ${name} is lost`,
    state: told({ ...withoutIt, losses: world.losses + 1 }, flight.act, noAnswer, limits),
  });
  if (flight.answer === undefined) {
    const [carried, answer] = carriedOut(withoutIt, flight.act);
    const flights = flight.isOrphan ? others : [...others, { ...flight, answer }];
    const arrives = { event: `${name} arrives: ${answer.kind}`, state: { ...carried, flights } };
    return isLossAllowed
      ? [arrives, { ...lost(), event: `${name} is lost on its way` }]
      : [arrives];
  }
  const { answer } = flight;
  const hears = {
    event: `${name} is answered`,
    state: told(withoutIt, flight.act, answer, limits),
  };
  return isLossAllowed ? [hears, lost()] : [hears];
}

/** What the API server does with a request. */
function carriedOut(world: DrainWorld, act: DrainAct): [DrainWorld, EvictionAnswer] {
  const found = world.pods.find(({ uid }) => uid === act.pod.uid);
  if (found === undefined || found.state === "Gone") return [world, { kind: "Gone" }];
  if (found.state === "Ending") return [world, { kind: "Accepted" }];
  if (act.kind === "Evict" && world.allowed === 0) {
    return [world, { kind: "Blocked", message: "the budget needs 2 pods", stale: false }];
  }
  const ending: WorldPod = { ...found, state: "Ending", endsMs: world.ms + graceMs };
  const pods = world.pods.map((one) => (one === found ? ending : one));
  return [{ ...world, pods, allowed: Math.max(0, world.allowed - 1) }, { kind: "Accepted" }];
}

function told(
  world: DrainWorld,
  act: DrainAct,
  answer: EvictionAnswer,
  limits: DrainLimits,
): DrainWorld {
  const { answered = drainAnswered } = limits;
  const memory = answered(world.memory, act, { answer, now: at(world.ms), rng: () => 0.5 });
  return stepped({ ...world, memory }, limits);
}

function aboutPods(world: DrainWorld, limits: DrainLimits): readonly Successor<DrainWorld>[] {
  const ends = world.pods.flatMap((one): Successor<DrainWorld>[] => {
    if (one.state !== "Ending") return [];
    const pods = world.pods.map((other) => (other === one ? gone(one) : other));
    return [{ event: `${one.uid} exits`, state: { ...world, pods } }];
  });
  const isBehind = JSON.stringify(world.seen) !== JSON.stringify(world.pods);
  const watch = {
    event: "the watch shows it",
    state: stepped({ ...world, seen: world.pods }, limits),
  };
  const isShort = world.allowed === 0 && world.pods.some(({ state }) => state === "Gone");
  const ready = { event: "a replacement is ready", state: { ...world, allowed: 1 } };
  return [...ends, ...(isBehind ? [watch] : []), ...(isShort ? [ready] : [])];
}

function gone({ uid }: WorldPod): WorldPod {
  return { uid, state: "Gone", endsMs: 0 };
}

/** Time goes on to the next thing that it brings: a look, or the end of a grace period. */
function aboutTime(world: DrainWorld, limits: DrainLimits): readonly Successor<DrainWorld>[] {
  const graceEnds = world.pods.flatMap(({ state, endsMs }) => (state === "Ending" ? endsMs : []));
  const ms = Math.min(world.wakeMs ?? Number.POSITIVE_INFINITY, ...graceEnds);
  if (ms === Number.POSITIVE_INFINITY) return [];
  const pods = world.pods.map((one) =>
    one.state === "Ending" && one.endsMs <= ms ? gone(one) : one,
  );
  const later = { ...world, ms: Math.max(ms, world.ms), pods };
  return [{ event: `it is ${ms / 1000} s`, state: stepped(later, limits) }];
}

/** Another leader begins with what it sees; requests that are on their way still arrive. */
function aboutKill(world: DrainWorld, limits: DrainLimits): readonly Successor<DrainWorld>[] {
  if (world.kills >= limits.kills) return [];
  const flights = world.flights.flatMap((one): Flight[] =>
    one.answer === undefined ? [{ ...one, isOrphan: true }] : [],
  );
  const successor = { ...world, seen: world.pods, memory: freshDrain, flights };
  const state = stepped({ ...successor, kills: world.kills + 1 }, limits);
  return [{ event: "the controller is killed", state }];
}

function broken(world: DrainWorld): string | undefined {
  const { pods, flights, verdict, ms, wakeMs, memory } = world;
  const own = flights.filter(({ isOrphan }) => !isOrphan).map(({ act }) => act);
  if (own.some(({ kind }) => kind !== "Evict")) return "a pod is deleted past its budget";
  if (new Set(own.map((act) => act.pod.uid)).size < own.length) {
    return "a pod has two requests under way";
  }
  const there = pods.filter(({ state }) => state !== "Gone");
  if (verdict === "Done" && there.length > 0) return "the drain is done, and a pod is still there";
  if (verdict === "TimedOut" && ms < drainRule.timeoutMs) return "the drain ends before its time";
  if (verdict !== "Running") return undefined;
  if (drainStep(memory, viewOf(world)).step.acts.length > 0) return "a second look asks for more";
  const isStuck = own.length === 0 && wakeMs === undefined;
  const isMoving = pods.some(({ state }) => state === "Ending");
  return isStuck && !isMoving && there.length > 0 ? "nothing will ever happen again" : undefined;
}
