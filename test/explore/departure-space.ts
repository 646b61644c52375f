import type { EvictionAnswer } from "../../src/core/drain/drain-answer.ts";
import { drainAnswered, drainSent } from "../../src/core/drain/drain-memory.ts";
import { freshMemory, type Memory } from "../../src/core/next/memory.ts";
import { type Next, next } from "../../src/core/next/next.ts";
import type { DepartureRequest, RequestAnswer } from "../../src/core/next/request.ts";
import type { DepartureScene, RequestFault, SceneFacts } from "../../src/core/next/scene.ts";
import { budget, startAt } from "../core/drain/drain-scene.ts";
import { aDeparture } from "../core/fleet-builder.ts";
import {
  at,
  type DepartureWorld,
  departureOf,
  essence,
  evicted,
  type Flight,
  factsOf,
  first,
  gone,
  machineId,
  machineStateOf,
  nodeOf,
  noticeMs,
  policy,
  taken,
  theNode,
  timeOf,
  type WorldPod,
} from "./departure-world.ts";
import type { StateSpace, Successor } from "./state-space.ts";

export interface DepartureLimits {
  readonly pods: number;
  readonly kills: number;
  readonly losses: number;
  readonly refusals?: number;
  readonly notices?: 0 | 1;
  /** Other code in the place of the departure's own, to show that the rules see it. */
  readonly next?: typeof next;
}

export function departureSpace(limits: DepartureLimits): StateSpace<DepartureWorld> {
  const pods = Array.from({ length: limits.pods }, (_, index): WorldPod => {
    return { uid: `uid-p${index}`, state: "Running", endsMs: 0 };
  });
  const { status } = aDeparture(theNode, { cause: "Planned", status: { phase: "Scheduled" } });
  const world: DepartureWorld = {
    ...{ ms: 0, pods, node: { isCordoned: false, isThere: true }, machine: "Runs" },
    ...{ status, known: status },
    ...{ memory: { ...freshMemory(timeOf(0, 0)), first }, flights: [], write: undefined },
    ...{ wakeMs: undefined, isOver: false, unrest: undefined, number: 0, kills: 0, losses: 0 },
    ...{ refusals: 0, noticedMs: undefined, isSurprised: false },
  };
  return {
    first: evaluated(world, limits),
    next: (state) => successorsOf(state, limits),
    broken,
    essence,
  };
}

function sceneOf(world: DepartureWorld, isLastLook: boolean): DepartureScene {
  const pods = world.pods.flatMap(factsOf);
  const found = nodeOf(world);
  const known = <T>(value: T) => ({ kind: "Known" as const, value, number: world.number + 1 });
  const facts: SceneFacts = {
    nodeNow: known({ node: found }),
    isLive: known(true),
    pods: known(pods),
    podsNow: known(pods),
    budgets: known([budget("web", { disruptionsAllowed: 9 })]),
    unplaced: known([]),
    volumes: known([]),
    releasable: known({ kind: "Possible" }),
    machine: known(machineStateOf(world)),
    machineBehind: known(machineStateOf(world)),
  };
  return {
    ...{ departure: departureOf(world), isDeleted: false, node: found, policy, facts },
    ...{ newestPolicy: () => policy, drains: () => [], fleetHold: () => undefined, actions: [] },
    ...{ terminations: new Map(), heardMs: world.ms, self: undefined },
    lastLook: isLastLook ? { node: found, isLive: true, pods } : undefined,
  };
}

/** The controller looks, and sends what is due. */
function evaluated(
  world: DepartureWorld,
  { next: evaluate = next }: DepartureLimits,
  isLastLook = false,
): DepartureWorld {
  if (world.isOver) return world;
  const number = world.number + 1;
  const scene = sceneOf(world, isLastLook);
  const now = timeOf(world.ms, number);
  const out = evaluate(scene, world.memory, now);
  const again = evaluate(scene, out.memory, now);
  const wanted = new Set(out.requests.map(({ key }) => key));
  const kept = world.flights.filter(
    ({ request, isOrphan }) => isOrphan || isLastLook || !request.stops || wanted.has(request.key),
  );
  const inFlight = new Set(kept.filter((one) => !one.isOrphan).map(({ request }) => request.key));
  const sent = out.requests.filter(({ key }) => !inFlight.has(key));
  const { intended } = out.memory;
  const isFree = world.write === undefined || world.write.isOrphan;
  const write = isFree && intended ? { status: intended, isOrphan: false } : world.write;
  return {
    ...world,
    number,
    memory: sent.reduce((memory, request) => asked(memory, request, world.ms), out.memory),
    flights: [...kept, ...sent.map((request) => ({ request, isOrphan: false }))],
    write,
    wakeMs: out.lookAgainAt === undefined ? undefined : out.lookAgainAt - startAt,
    isOver: out.isOver && write?.isOrphan !== false,
    unrest: unrestOf(out, again),
  };
}

function unrestOf(one: Next, other: Next): string | undefined {
  const keysOf = ({ requests }: Next) => requests.map(({ key }) => key).join(", ");
  if (keysOf(one) !== keysOf(other)) return `${keysOf(one)}; then ${keysOf(other)}`;
  if (JSON.stringify(one.status) !== JSON.stringify(other.status)) return "another status";
  return one.lookAgainAt === other.lookAgainAt ? undefined : "another time to look";
}

function asked(memory: Memory, request: DepartureRequest, ms: number): Memory {
  if (request.kind === "Pod") {
    const { drain } = memory;
    const sent = drain && drainSent(drain.memory, request.act, at(ms));
    if (drain === undefined || sent === undefined || sent === "Over") throw new Error("unwanted");
    return { ...memory, drain: { ...drain, memory: sent.memory } };
  }
  const { key } = request;
  const { attempts = 0, fault, sinceMs = ms } = memory.asked[key] ?? {};
  const one = { kind: request.kind, attempts: attempts + 1, sinceMs, fault, isInFlight: true };
  return { ...memory, asked: { ...memory.asked, [key]: one } };
}

function successorsOf(
  world: DepartureWorld,
  limits: DepartureLimits,
): readonly Successor<DepartureWorld>[] {
  if (world.isOver && world.flights.length === 0) return [];
  return [
    ...world.flights.flatMap((flight) => aboutFlight(world, flight, limits)),
    ...aboutWrite(world, limits),
    ...aboutPods(world, limits),
    ...aboutTime(world, limits),
    ...aboutKill(world, limits),
    ...aboutNotice(world, limits),
  ];
}

/** The watch shows a notice at any moment of a departure that has not ended. */
function aboutNotice(
  world: DepartureWorld,
  limits: DepartureLimits,
): readonly Successor<DepartureWorld>[] {
  const { isOver, noticedMs, machine, status } = world;
  const isLate = isOver || machine !== "Runs" || status.phase === "Ended";
  if (limits.notices !== 1 || noticedMs !== undefined || isLate) return [];
  const state = evaluated({ ...world, noticedMs: world.ms }, limits);
  return [{ event: "a notice comes", state }];
}

function aboutFlight(
  world: DepartureWorld,
  flight: Flight,
  limits: DepartureLimits,
): readonly Successor<DepartureWorld>[] {
  const { request, isOrphan } = flight;
  const name = request.kind === "Pod" ? request.key : request.kind;
  const flights = world.flights.filter((one) => one !== flight);
  const [carried, answer] = carriedOut({ ...world, flights }, flight, limits);
  if (isOrphan) return [{ event: `${name} of the killed one arrives`, state: carried }];
  const arrives = {
    event: `${name} arrives`,
    state: told(carried, request, answer, limits),
  };
  const refused = told(
    { ...world, flights, refusals: world.refusals + 1 },
    request,
    "Refused",
    limits,
  );
  const possible =
    world.refusals < (limits.refusals ?? 0)
      ? [arrives, { event: `${name} is refused`, state: refused }]
      : [arrives];
  if (world.losses >= limits.losses) return possible;
  const lost = (state: DepartureWorld) =>
    told({ ...state, losses: world.losses + 1 }, request, "Lost", limits);
  return [
    ...possible,
    { event: `${name} is lost on its way`, state: lost({ ...world, flights }) },
    { event: `the answer to ${name} is lost`, state: lost(carried) },
  ];
}

type Response = RequestAnswer | EvictionAnswer;

/** What the cluster and the cloud do with a request. */
function carriedOut(
  world: DepartureWorld,
  { request, isOrphan }: Flight,
  limits: DepartureLimits,
): [DepartureWorld, Response] {
  const done = { kind: "Done" } as const;
  switch (request.kind) {
    case "Cordon":
      return world.node.isThere
        ? [{ ...world, node: { isCordoned: true, isThere: true } }, done]
        : [world, { kind: "Gone" }];
    case "Uncordon":
      return [{ ...world, node: { ...world.node, isCordoned: false } }, done];
    case "RemoveNode":
      return [{ ...world, node: { isCordoned: false, isThere: false } }, done];
    case "Release":
      return isOrphan ? [{ ...world, machine: "Gone" }, done] : released(world, request, limits);
    case "Pod":
      return evicted(world, request.act.pod.uid);
    default:
      return [world, done];
  }
}

/** The cloud looks the machine up, lets the controller look once more, and ends it. */
function released(
  world: DepartureWorld,
  { key }: DepartureRequest,
  limits: DepartureLimits,
): [DepartureWorld, RequestAnswer] {
  if (world.machine !== "Runs") return [world, { kind: "Done" }];
  const { next: evaluate = next } = limits;
  const now = timeOf(world.ms, world.number + 1);
  const out = evaluate(sceneOf(world, true), world.memory, now);
  const looked = { ...world, number: now.number, memory: out.memory };
  if (!out.requests.some((one) => one.key === key)) return [looked, { kind: "Kept" }];
  return [{ ...looked, machine: "Gone" }, { kind: "Done" }];
}

const faults: Readonly<Record<"Lost" | "Refused", RequestFault>> = {
  Lost: { code: "API_UNREACHABLE", message: "lost", retryable: true },
  Refused: { code: "API_REFUSED", message: "403", retryable: false },
};

function told(
  world: DepartureWorld,
  request: DepartureRequest,
  answer: Response | keyof typeof faults,
  limits: DepartureLimits,
): DepartureWorld {
  const { memory, ms } = world;
  if (request.kind === "Pod") {
    const { drain } = memory;
    if (drain === undefined) return evaluated(world, limits);
    const heard: EvictionAnswer =
      typeof answer === "string"
        ? { kind: "NoAnswer", message: answer }
        : (answer as EvictionAnswer);
    const about = { answer: heard, now: at(ms), rng: () => 0.5 };
    const after = drainAnswered(drain.memory, request.act, about);
    return evaluated(
      { ...world, memory: { ...memory, drain: { ...drain, memory: after } } },
      limits,
    );
  }
  const { attempts = 1, sinceMs = ms } = memory.asked[request.key] ?? {};
  const ended = { kind: request.kind, attempts, sinceMs, isInFlight: false, answeredMs: ms };
  const one =
    typeof answer === "string"
      ? { ...ended, answeredNumber: world.number + 1, fault: faults[answer], againMs: ms + 1000 }
      : { ...ended, answeredNumber: world.number + 1, answer: answer as RequestAnswer };
  const asked = { ...memory.asked, [request.key]: one };
  return evaluated({ ...world, memory: { ...memory, asked } }, limits);
}

function aboutWrite(
  world: DepartureWorld,
  limits: DepartureLimits,
): readonly Successor<DepartureWorld>[] {
  const { write, memory } = world;
  if (write === undefined) return [];
  const { status, isOrphan } = write;
  // What a leader wrote that was killed loses against its successor's resourceVersion.
  if (isOrphan) return [{ event: "its write is refused", state: { ...world, write: undefined } }];
  const intended = memory.intended === status ? undefined : memory.intended;
  const after: Memory = { ...memory, intended, first: undefined };
  const written = { ...world, status, write: undefined };
  const arrives = {
    event: `${status.phase} is written`,
    state: evaluated({ ...written, known: status, memory: after }, limits),
  };
  const refusals = world.refusals + 1;
  const refused = evaluated({ ...world, write: undefined, refusals }, limits);
  const possible =
    refusals <= (limits.refusals ?? 0)
      ? [arrives, { event: `${status.phase} is refused`, state: refused }]
      : [arrives];
  if (world.losses >= limits.losses) return possible;
  const lost = (state: DepartureWorld) =>
    evaluated({ ...state, write: undefined, losses: world.losses + 1 }, limits);
  return [
    ...possible,
    { event: "a write is lost", state: lost(world) },
    // The next write finds it there, and replaces it: it is known to be its own.
    { event: `${status.phase} is written, and the answer is lost`, state: lost(written) },
  ];
}

function aboutPods(
  world: DepartureWorld,
  limits: DepartureLimits,
): readonly Successor<DepartureWorld>[] {
  return world.pods.flatMap((one): Successor<DepartureWorld>[] => {
    if (one.state !== "Ending") return [];
    const pods = world.pods.map((other) => (other === one ? gone(one) : other));
    return [{ event: `${one.uid} exits`, state: evaluated({ ...world, pods }, limits) }];
  });
}

/** Time goes on to the next thing that it brings: a look, or the end of a grace period. */
function aboutTime(
  world: DepartureWorld,
  limits: DepartureLimits,
): readonly Successor<DepartureWorld>[] {
  if (world.isOver) return [];
  const graceEnds = world.pods.flatMap(({ state, endsMs }) => (state === "Ending" ? endsMs : []));
  const { noticedMs = Number.POSITIVE_INFINITY } = world;
  const takenMs = world.machine === "Runs" ? noticedMs + noticeMs : Number.POSITIVE_INFINITY;
  const ms = Math.min(world.wakeMs ?? Number.POSITIVE_INFINITY, takenMs, ...graceEnds);
  if (ms === Number.POSITIVE_INFINITY) return [];
  // No request takes as long as a notice.
  const isBusy = world.flights.length > 0 || world.write !== undefined;
  if (ms === takenMs) {
    if (isBusy) return [];
    const after = evaluated(taken({ ...world, ms }), limits);
    return [{ event: `the cloud takes the machine at ${ms / 1000} s`, state: after }];
  }
  const pods = world.pods.map((one) =>
    one.state === "Ending" && one.endsMs <= ms ? gone(one) : one,
  );
  const later = { ...world, ms: Math.max(ms, world.ms), pods };
  return [{ event: `it is ${ms / 1000} s`, state: evaluated(later, limits) }];
}

/** Another leader begins with what is in the cluster; requests on their way still arrive. */
function aboutKill(
  world: DepartureWorld,
  limits: DepartureLimits,
): readonly Successor<DepartureWorld>[] {
  if (world.kills >= limits.kills || world.isOver) return [];
  const flights = world.flights
    .filter(({ request }) => request.kind !== "Release" || world.machine === "Runs")
    .map((one) => ({ ...one, isOrphan: true }));
  const write = world.write && { ...world.write, isOrphan: true };
  const { status } = world;
  const begun = status.phase === "Scheduled" ? { first } : {};
  const memory: Memory = { ...freshMemory(timeOf(world.ms, world.number + 1)), ...begun };
  const successor = { ...world, known: status, memory, flights, write, kills: world.kills + 1 };
  return [{ event: "the controller is killed", state: evaluated(successor, limits) }];
}

function broken(world: DepartureWorld): string | undefined {
  const { pods, machine, status, node: marks, flights, isOver, unrest, wakeMs, write } = world;
  if (unrest !== undefined) return `a second look asks for more: ${unrest}`;
  const isPodLeft = pods.some(({ state }) => state !== "Gone");
  if (machine === "Gone" && isPodLeft) return "a machine is released with a pod on it";
  if (machine === "Gone" && status.machine?.id !== machineId) {
    return "a machine is released that the cluster does not know";
  }
  if (world.isSurprised) return "the cloud takes a machine with a pod that nobody asked to leave";
  if (isOver && world.noticedMs !== undefined && status.phase !== "Ended") {
    return "a departure under a notice is over without an outcome";
  }
  if (!marks.isThere && machine === "Runs") return "the Node of a running machine is deleted";
  // What a killed leader writes late is cleared as marks of no departure, by the planner.
  const isItsOwn = world.kills === 0;
  if (isOver && isItsOwn && marks.isCordoned) return "an ended departure has marks";
  const isMoving = pods.some(({ state }) => state === "Ending");
  const isIdle = flights.length === 0 && write === undefined && wakeMs === undefined && !isMoving;
  return isIdle && !isOver ? "nothing will ever happen again" : undefined;
}
