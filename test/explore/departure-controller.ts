import type { EvictionAnswer } from "../../src/core/drain/drain-answer.ts";
import { drainAnswered, drainSent } from "../../src/core/drain/drain-memory.ts";
import type { Memory } from "../../src/core/next/memory.ts";
import { type Next, next } from "../../src/core/next/next.ts";
import type { DepartureRequest, RequestAnswer } from "../../src/core/next/request.ts";
import type { DepartureScene, RequestFault, SceneFacts } from "../../src/core/next/scene.ts";
import { budget, startAt } from "../core/drain/drain-scene.ts";
import { closed, courseOf, steered, withSent } from "./action-book.ts";
import {
  at,
  type DepartureLimits,
  type DepartureWorld,
  departureOf,
  type Flight,
  factsOf,
  machineStateOf,
  nodeOf,
  policyOf,
  specOf,
  timeOf,
} from "./departure-world.ts";

export function sceneOf(
  world: DepartureWorld,
  limits: DepartureLimits,
  isLastLook = false,
): DepartureScene {
  const pods = world.pods.flatMap(factsOf);
  const found = nodeOf(world);
  const policy = policyOf(limits);
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
    ...{
      newestPolicy: () => policy,
      drains: () => [],
      fleetHold: () => undefined,
      nodesOut: () => undefined,
    },
    ...{ terminations: new Map(), heardMs: world.ms, self: undefined },
    actions: world.book.records,
    lastLook: isLastLook ? { node: found, isLive: true, pods } : undefined,
  };
}

/** The controller looks, and sends what is due. */
export function evaluated(world: DepartureWorld, limits: DepartureLimits): DepartureWorld {
  if (world.isOver) return world;
  const { next: evaluate = next } = limits;
  const number = world.number + 1;
  const scene = sceneOf(world, limits);
  const now = timeOf(world.ms, number);
  const out = evaluate(scene, world.memory, now);
  const again = evaluate(scene, out.memory, now);
  const wanted = new Set(out.requests.map(({ key }) => key));
  const steeredFlights = world.flights.map((one) => steered(one, { wanted, book: world.book }));
  const kept = steeredFlights.filter(
    ({ request, isOrphan, course }) =>
      isOrphan || course !== undefined || !request.stops || wanted.has(request.key),
  );
  const inFlight = new Set(kept.filter((one) => !one.isOrphan).map(({ request }) => request.key));
  const sent = out.requests.filter(({ key }) => !inFlight.has(key));
  const { intended } = out.memory;
  const isFree = world.write === undefined || world.write.isOrphan;
  const write =
    isFree && intended ? { status: intended, isOrphan: false, spec: specOf(world) } : world.write;
  const isOver = out.isOver && write?.isOrphan !== false;
  const after: DepartureWorld = {
    ...{ ...world, number, write, isOver },
    memory: sent.reduce((memory, request) => asked(memory, request, world.ms), out.memory),
    flights: [...kept, ...sent.map((request) => begun(request, world.ms))],
    wakeMs: out.lookAgainAt === undefined ? undefined : out.lookAgainAt - startAt,
    unrest: unrestOf(out, again),
  };
  const known = sent.reduce((before, request) => withSent(before, request, limits), after);
  return isOver ? closed(known) : known;
}

function begun(request: DepartureRequest, ms: number): Flight {
  return { request, isOrphan: false, course: courseOf(request, ms) };
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

export type Response = RequestAnswer | EvictionAnswer;

const faults: Readonly<Record<"Lost" | "Refused", RequestFault>> = {
  Lost: { code: "API_UNREACHABLE", message: "lost", retryable: true },
  Refused: { code: "API_REFUSED", message: "403", retryable: false },
};

/** The controller hears what has become of a request, and looks. */
export function told(
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

/** A request that was aborted has ended: it is as if it had not been asked. */
export function forgotten(
  world: DepartureWorld,
  { key }: DepartureRequest,
  limits: DepartureLimits,
): DepartureWorld {
  const { [key]: _, ...asked } = world.memory.asked;
  return evaluated({ ...world, memory: { ...world.memory, asked } }, limits);
}
