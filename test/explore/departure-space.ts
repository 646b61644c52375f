import { isToFinish } from "../../src/core/action/action-plan.ts";
import { isPressing } from "../../src/core/departure/departure.ts";
import { runsAhead } from "../../src/core/next/evaluation.ts";
import { freshMemory, type Memory } from "../../src/core/next/memory.ts";
import { next } from "../../src/core/next/next.ts";
import type { DepartureRequest, RequestAnswer } from "../../src/core/next/request.ts";
import { aDeparture } from "../core/fleet-builder.ts";
import { accompanied, opened } from "./action-book.ts";
import { aboutAction, aboutBook, atKill, isUndoable } from "./action-events.ts";
import { evaluated, type Response, sceneOf, told } from "./departure-controller.ts";
import { brokenRule } from "./departure-rules.ts";
import {
  actionMs,
  at,
  type DepartureLimits,
  type DepartureWorld,
  departureOf,
  essence,
  evicted,
  type Flight,
  first,
  gone,
  noticeMs,
  specOf,
  taken,
  theNode,
  timeOf,
  type WorldPod,
} from "./departure-world.ts";
import type { StateSpace, Successor } from "./state-space.ts";

export function departureSpace(limits: DepartureLimits): StateSpace<DepartureWorld> {
  return {
    first: evaluated(beginning(limits), limits),
    next: (state) => successorsOf(state, limits),
    broken: (state) => brokenRule(state, limits),
    essence,
  };
}

/** A departure whose time has come, before its controller has looked at it. */
export function beginning(limits: DepartureLimits): DepartureWorld {
  const pods = Array.from({ length: limits.pods }, (_, index): WorldPod => {
    return { uid: `uid-p${index}`, state: "Running", endsMs: 0 };
  });
  const { status } = aDeparture(theNode, { cause: "Planned", status: { phase: "Scheduled" } });
  return {
    ...{ ms: 0, pods, node: { isCordoned: false, isThere: true }, machine: "Runs" },
    ...{ status, known: status },
    ...{ memory: { ...freshMemory(timeOf(0, 0)), first }, flights: [], write: undefined },
    ...{ wakeMs: undefined, isOver: false, unrest: undefined, number: 0, kills: 0, losses: 0 },
    ...{ refusals: 0, noticedMs: undefined, isSurprised: false },
    ...{ isHeld: false, isWithdrawn: false },
    book: { records: [], own: [], isResumed: false, isToWrite: false },
    receiver: { isInEffect: false, hasRefusedUndo: false, broken: undefined },
  };
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
    ...aboutBook(world, limits),
    ...aboutSpec(world, limits),
  ];
}

/** The watch shows a notice, its withdrawal, or a hold, at any moment of a live departure. */
function aboutSpec(
  world: DepartureWorld,
  limits: DepartureLimits,
): readonly Successor<DepartureWorld>[] {
  const { isOver, noticedMs, machine, status, isHeld, isWithdrawn } = world;
  if (isOver || machine !== "Runs" || status.phase === "Ended") return [];
  const mayNotice = limits.notices === 1 && noticedMs === undefined;
  const mayWithdraw = limits.withdrawals === 1 && noticedMs !== undefined && !isWithdrawn;
  const mayHold = limits.holds === 1 && !isHeld && noticedMs === undefined;
  const changes: readonly [boolean, string, Partial<DepartureWorld>][] = [
    [mayNotice, "a notice comes", { noticedMs: world.ms }],
    [mayWithdraw, "the notice is withdrawn", { isWithdrawn: true }],
    [mayHold, "a person holds it", { isHeld: true }],
  ];
  return changes.flatMap(([isPossible, event, change]) =>
    isPossible ? [{ event, state: evaluated({ ...world, ...change }, limits) }] : [],
  );
}

export function aboutFlight(
  world: DepartureWorld,
  flight: Flight,
  limits: DepartureLimits,
): readonly Successor<DepartureWorld>[] {
  const { request, isOrphan, course } = flight;
  if (course !== undefined) return aboutAction(world, flight, limits);
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
      return [uncordoned(world, isOrphan, limits), done];
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

/** What a killed leader uncordons late is cordoned again by its successor. */
function uncordoned(
  world: DepartureWorld,
  isOrphan: boolean,
  limits: DepartureLimits,
): DepartureWorld {
  const { receiver } = world;
  const isEarly = receiver.isInEffect && !receiver.hasRefusedUndo && isUndoable(limits);
  const broken = "a node is uncordoned while the action is in effect";
  return {
    ...{ ...world, node: { ...world.node, isCordoned: false } },
    receiver: isEarly && !isOrphan ? { ...receiver, broken } : receiver,
  };
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
  const out = evaluate(sceneOf(world, limits, true), world.memory, now);
  const looked = { ...world, number: now.number, memory: out.memory };
  if (!out.requests.some((one) => one.key === key)) return [looked, { kind: "Kept" }];
  return [{ ...looked, machine: "Gone" }, { kind: "Done" }];
}

export function aboutWrite(
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
  const { actions } = world.status;
  const written = {
    ...world,
    status: { ...status, ...(actions && { actions }) },
    write: undefined,
  };
  const arrives = {
    event: `${status.phase} is written`,
    state: isOutdated(world)
      ? evaluated(
          { ...world, write: undefined, memory: { ...memory, intended: undefined } },
          limits,
        )
      : evaluated(accompanied({ ...written, memory: after }, limits), limits),
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

/** The spec has changed since, so that what was decided is decided again. */
function isOutdated(world: DepartureWorld): boolean {
  const { write, ms } = world;
  if (write === undefined || write.spec === specOf(world)) return false;
  return !(runsAhead(write.status) && isPressing(departureOf(world), at(ms)));
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
  const { noticedMs = Number.POSITIVE_INFINITY } = world;
  const isTaken = world.machine === "Runs" && !world.isWithdrawn;
  const takenMs = isTaken ? noticedMs + noticeMs : Number.POSITIVE_INFINITY;
  const ms = Math.min(takenMs, nextMs(world));
  if (ms === Number.POSITIVE_INFINITY) return [];
  if (world.flights.some(({ course }) => course && course.sinceMs + actionMs < ms)) return [];
  // No other request takes as long as a notice.
  const isAsking = world.flights.some(({ course }) => course === undefined);
  if (ms === takenMs) {
    if (isAsking || world.write !== undefined) return [];
    const after = evaluated(taken({ ...world, ms }), limits);
    return [{ event: `the cloud takes the machine at ${ms / 1000} s`, state: after }];
  }
  return [{ event: `it is ${ms / 1000} s`, state: evaluated(passed(world, ms), limits) }];
}

/** When something happens by time alone. */
export function nextMs({ isOver, pods, wakeMs }: DepartureWorld): number {
  if (isOver) return Number.POSITIVE_INFINITY;
  const graceEnds = pods.flatMap(({ state, endsMs }) => (state === "Ending" ? endsMs : []));
  return Math.min(wakeMs ?? Number.POSITIVE_INFINITY, ...graceEnds);
}

/** At this time, before anybody looks. */
export function passed(world: DepartureWorld, ms: number): DepartureWorld {
  const pods = world.pods.map((one) =>
    one.state === "Ending" && one.endsMs <= ms ? gone(one) : one,
  );
  return { ...world, ms: Math.max(ms, world.ms), pods };
}

/** Another leader begins with what is in the cluster; requests on their way still arrive. */
function aboutKill(
  world: DepartureWorld,
  limits: DepartureLimits,
): readonly Successor<DepartureWorld>[] {
  if (world.kills >= limits.kills || world.isOver) return [];
  return atKill(world, limits).map(([what, state]) => {
    return { event: `the controller is killed${what}`, state: succeeded(state, limits) };
  });
}

/** Another controller begins with what is in the cluster. */
export function succeeded(world: DepartureWorld, limits: DepartureLimits): DepartureWorld {
  const flights = world.flights
    .filter(({ request }) => request.kind !== "Release" || world.machine === "Runs")
    .map((one) => ({ ...one, isOrphan: true }));
  const write = world.write && { ...world.write, isOrphan: true };
  const { status } = world;
  const begun = status.phase === "Scheduled" ? { first } : {};
  const memory: Memory = { ...freshMemory(timeOf(world.ms, world.number + 1)), ...begun };
  const kills = world.kills + 1;
  const after = { ...world, known: status, memory, flights, write, kills, book: opened(world) };
  // Nobody opens an ended departure again that has nothing to finish.
  const isOver = status.phase === "Ended" && !isToFinish({ status });
  return isOver ? { ...after, isOver, wakeMs: undefined } : evaluated(after, limits);
}
