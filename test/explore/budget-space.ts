import type { BudgetFacts } from "../../src/core/cluster/pod.ts";
import { mayHoldBudgets } from "../../src/core/departure/departure.ts";
import type { RunningDrain } from "../../src/core/departure/drain-reason.ts";
import type { EvictionAnswer } from "../../src/core/drain/drain-answer.ts";
import { next } from "../../src/core/next/next.ts";
import { seconds } from "../../src/core/time/time.ts";
import { budget } from "../core/drain/drain-scene.ts";
import { evaluated, told } from "./departure-controller.ts";
import { brokenRule } from "./departure-rules.ts";
import {
  aboutFlight,
  aboutWrite,
  beginning,
  nextMs,
  passed,
  succeeded,
} from "./departure-space.ts";
import {
  at,
  type DepartureLimits,
  type DepartureWorld,
  essence,
  evicted,
  type Flight,
  gone,
} from "./departure-world.ts";
import type { StateSpace, Successor } from "./state-space.ts";

/**
 * Two departures that meet only at a budget: each node has one of the two pods that it protects,
 * and one of them has to run. Their replacements come at any moment, or never. What touches only
 * one of the two departures arrives at once: the world of one departure has every order of that.
 */
export interface BudgetWorld {
  readonly sides: readonly [DepartureWorld, DepartureWorld];
  /** The replacements that are ready. */
  readonly ready: number;
  /** `disruptionsAllowed`, as the API server has it. */
  readonly allowed: number;
  /** Since when it has allowed an eviction. */
  readonly allowedSinceMs: number;
  readonly kills: number;
  readonly broken: string | undefined;
}

export interface BudgetLimits {
  readonly kills: number;
  /** Other code in the place of the departure's own, to show that the rules see it. */
  readonly next?: typeof next;
}

type Index = 0 | 1;
const both: readonly Index[] = [0, 1];
/** As many have to run. */
const desired = 1;
/** What an API server refuses is asked again after this at the latest. */
const longestPauseMs = seconds(10);

export function budgetSpace(limits: BudgetLimits): StateSpace<BudgetWorld> {
  const side = (index: Index) => {
    const { pods, ...world } = beginning({ pods: 1, kills: 0, losses: 0 });
    return { ...world, pods: pods.map((one) => ({ ...one, uid: `uid-p${index}` })) };
  };
  const world: BudgetWorld = {
    ...{ sides: [side(0), side(1)], ready: 0, allowed: 1, allowedSinceMs: 0 },
    ...{ kills: 0, broken: undefined },
  };
  return {
    first: settled(looked(world, limits), limits),
    next: (state) => successorsOf(state, limits),
    broken: (state) => brokenBudget(state, limits),
    essence: ({ sides, ...rest }) => [rest, ...sides.map(essence)],
  };
}

function budgetOf({ sides, ready, allowed }: BudgetWorld): BudgetFacts {
  const running = sides.flatMap(({ pods }) => pods.filter(({ state }) => state === "Running"));
  return budget("web", {
    ...{ minAvailable: desired, desiredHealthy: desired, disruptionsAllowed: allowed },
    ...{ currentHealthy: running.length + ready, expectedPods: 2 },
  });
}

/** What one of the two knows of the other, and of the budget. */
function limitsOf(world: BudgetWorld, index: Index, limits: BudgetLimits): DepartureLimits {
  const { next: evaluate = next } = limits;
  const drains = drainsOf(world.sides[index === 0 ? 1 : 0]);
  const budgets = [budgetOf(world)];
  return {
    ...{ pods: 1, kills: limits.kills, losses: 0 },
    next: ({ facts, ...scene }, memory, now) => {
      const known = { kind: "Known" as const, value: budgets, number: now.number };
      const around = { ...facts, budgets: known };
      return evaluate({ ...scene, drains: () => drains, facts: around }, memory, now);
    },
  };
}

function drainsOf({ memory, status }: DepartureWorld): readonly RunningDrain[] {
  const { phase, demands = [] } = memory.intended ?? status;
  return mayHoldBudgets(phase) ? [{ name: "beside", demands }] : [];
}

function withSide(world: BudgetWorld, index: Index, side: DepartureWorld): BudgetWorld {
  const [first, second] = world.sides;
  return { ...world, sides: index === 0 ? [side, second] : [first, side] };
}

function looked(world: BudgetWorld, limits: BudgetLimits): BudgetWorld {
  return both.reduce((before, index) => {
    const side = evaluated(before.sides[index], limitsOf(before, index, limits));
    return withSide(before, index, side);
  }, world);
}

/** Everything arrives that touches only one of the two. */
function settled(world: BudgetWorld, limits: BudgetLimits): BudgetWorld {
  let state = world;
  for (let isMoving = true; isMoving; ) {
    isMoving = false;
    for (const index of both) {
      const [first] = ownEvents(state, index, limits);
      if (first === undefined) continue;
      state = withSide(state, index, first.state);
      isMoving = true;
    }
  }
  return state;
}

function ownEvents(
  world: BudgetWorld,
  index: Index,
  limits: BudgetLimits,
): readonly Successor<DepartureWorld>[] {
  const side = world.sides[index];
  const its = limitsOf(world, index, limits);
  const flight = side.flights.find(({ request }) => request.kind !== "Pod");
  return flight === undefined ? aboutWrite(side, its) : aboutFlight(side, flight, its);
}

function successorsOf(world: BudgetWorld, limits: BudgetLimits): readonly Successor<BudgetWorld>[] {
  if (world.sides.every(({ isOver, flights }) => isOver && flights.length === 0)) return [];
  const events = [
    ...both.flatMap((index) => [
      ...world.sides[index].flights.map((flight) => arrives(world, index, { flight, limits })),
      ...exits(world, index, limits),
    ]),
    ...replaces(world),
    ...passes(world, limits),
    ...kills(world, limits),
  ];
  return events.map(({ event, state }) => ({ event, state: settled(state, limits) }));
}

/** A pod is asked to leave: the API server compares the budget. */
function arrives(
  world: BudgetWorld,
  index: Index,
  { flight, limits }: { readonly flight: Flight; readonly limits: BudgetLimits },
): Successor<BudgetWorld> {
  const { request, isOrphan } = flight;
  if (request.kind !== "Pod") throw new Error("everything else has arrived");
  const { [index]: side } = world.sides;
  const flights = side.flights.filter((one) => one !== flight);
  const [after, answer] = asked(withSide(world, index, { ...side, flights }), index, request.act);
  const event = `${request.act.kind} p${index} arrives: ${answer.kind}`;
  if (isOrphan) return { event, state: after };
  const heard = told(after.sides[index], request, answer, limitsOf(after, index, limits));
  return { event, state: withSide(after, index, heard) };
}

/**
 * The API server counts down what it has allowed, until the disruption controller counts anew: it
 * counts no pod that terminates (pkg/registry/core/pod/storage/eviction.go, pkg/controller/
 * disruption).
 */
function asked(
  world: BudgetWorld,
  index: Index,
  act: { readonly kind: string; readonly pod: { readonly uid: string } },
): [BudgetWorld, EvictionAnswer] {
  const { [index]: side } = world.sides;
  const isRunning = side.pods.some(({ state }) => state === "Running");
  if (isRunning && act.kind === "Evict" && world.allowed === 0) {
    return [world, { kind: "Blocked", message: "the budget needs 1 pod", stale: false }];
  }
  const [ending, answer] = evicted(side, act.pod.uid);
  const after = withSide(world, index, ending);
  if (!isRunning) return [after, answer];
  const isBroken = (budgetOf(after).currentHealthy ?? 0) < desired;
  const broken = isBroken ? "a pod leaves that its budget needs" : world.broken;
  return [{ ...after, broken, allowed: Math.max(0, world.allowed - 1) }, answer];
}

function exits(
  world: BudgetWorld,
  index: Index,
  limits: BudgetLimits,
): readonly Successor<BudgetWorld>[] {
  const { [index]: side } = world.sides;
  if (side.pods.every(({ state }) => state !== "Ending")) return [];
  const pods = side.pods.map(gone);
  const after = evaluated({ ...side, pods }, limitsOf(world, index, limits));
  return [{ event: `p${index} exits`, state: withSide(world, index, after) }];
}

/** A replacement of a pod that leaves is ready somewhere else, and is counted. */
function replaces(world: BudgetWorld): readonly Successor<BudgetWorld>[] {
  const pods = world.sides.flatMap((side) => side.pods);
  const leaving = pods.filter(({ state }) => state !== "Running").length;
  if (world.ready >= leaving) return [];
  const ready = world.ready + 1;
  const allowed = Math.max(0, pods.length - leaving + ready - desired);
  const isNew = world.allowed === 0 && allowed > 0;
  const allowedSinceMs = isNew ? world.sides[0].ms : world.allowedSinceMs;
  return [{ event: "a replacement is ready", state: { ...world, ready, allowed, allowedSinceMs } }];
}

function passes(world: BudgetWorld, limits: BudgetLimits): readonly Successor<BudgetWorld>[] {
  const ms = Math.min(...world.sides.map(nextMs));
  // Answers that take as long as a drain are those of the world of one departure.
  const isAsking = world.sides.some(({ flights }) => flights.length > 0);
  if (ms === Number.POSITIVE_INFINITY || isAsking) return [];
  const later = both.reduce(
    (before, index) => withSide(before, index, passed(before.sides[index], ms)),
    world,
  );
  return [{ event: `it is ${ms / 1000} s`, state: looked(later, limits) }];
}

/** Both departures are those of one controller. */
function kills(world: BudgetWorld, limits: BudgetLimits): readonly Successor<BudgetWorld>[] {
  if (world.kills >= limits.kills) return [];
  const killed = both.reduce((before, index) => {
    const side = before.sides[index];
    if (side.isOver) return before;
    return withSide(before, index, succeeded(side, limitsOf(before, index, limits)));
  }, world);
  const state = { ...killed, kills: world.kills + 1 };
  return [{ event: "the controller is killed", state }];
}

function brokenBudget(world: BudgetWorld, limits: BudgetLimits): string | undefined {
  const { broken, sides, allowed, allowedSinceMs } = world;
  if (broken !== undefined) return broken;
  for (const index of both) {
    const side = sides[index];
    const rule = brokenRule(side, limitsOf(world, index, limits));
    if (rule !== undefined) return rule;
    const givenUpAt = side.status.timeline.find(({ step }) => step === "RollingBack")?.at;
    const isThere = side.pods.some(({ state }) => state === "Running");
    const hadTime = givenUpAt !== undefined && givenUpAt > at(allowedSinceMs + longestPauseMs);
    if (isThere && allowed > 0 && hadTime) {
      return "a drain is given up although its budget lets the pod go";
    }
  }
  return undefined;
}
