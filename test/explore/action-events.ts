import { brokenOffRecord, isClaimable } from "../../src/core/action/action-record.ts";
import type { ActionRecord, DepartureStatus } from "../../src/core/departure/departure.ts";
import type { DepartureRequest } from "../../src/core/next/request.ts";
import {
  begunIn,
  disowned,
  reconsidered,
  recordOf,
  stored,
  withRecord,
  written,
} from "./action-book.ts";
import { forgotten, told } from "./departure-controller.ts";
import type { ActionCourse, DepartureLimits, DepartureWorld, Flight } from "./departure-world.ts";
import type { Successor } from "./state-space.ts";

/** One request about actions at one of its steps. */
interface Running {
  readonly world: DepartureWorld;
  readonly flight: Flight;
  readonly course: ActionCourse;
  readonly request: DepartureRequest;
  readonly name: string;
  readonly limits: DepartureLimits;
}

type Event = Successor<DepartureWorld>;

/** What can become of a request about actions next, as `ActionRuns` carries it out. */
export function aboutAction(
  world: DepartureWorld,
  flight: Flight,
  limits: DepartureLimits,
): readonly Event[] {
  const { course, request } = flight;
  if (course === undefined) return [];
  const name = "name" in request ? request.name : (limits.action?.name ?? "");
  const running: Running = { world, flight, course, request, name, limits };
  switch (course.step) {
    case "Begin":
      return [begins(running)];
    case "Claim":
      return claims(running);
    case "Prepare":
      return prepares(running);
    case "Keep":
      return writes(running, "the undo record", { done: kept, lost: stays, refused: failedOf });
    case "Apply":
      return applies(running);
    case "Pause":
      return [pauses(running)];
    case "Note":
      return writes(running, "the undo's start", { done: noted, lost: stopsOr, refused: noted });
    case "Undo":
      return undoes(running);
    case "Settle":
      return settles(running);
  }
}

/** Whether what the action changes can be undone. */
export function isUndoable({ action }: DepartureLimits): boolean {
  return action?.how.kind === "replaceSecurityGroups";
}

type Carry = (running: Running) => DepartureWorld;

/** Another world of the same request. */
function inWorld(running: Running, world: DepartureWorld): Running {
  return { ...running, world };
}

function moved({ world, flight, course }: Running, step: ActionCourse["step"]): DepartureWorld {
  const after: Flight = { ...flight, course: { ...course, step } };
  return { ...world, flights: world.flights.map((one) => (one === flight ? after : one)) };
}

/** The request ends, and the controller hears of it. */
function ended({ world, flight, course, request, limits }: Running): DepartureWorld {
  const after = { ...world, flights: world.flights.filter((one) => one !== flight) };
  if (world.isOver) return after;
  if (course.isStopped) return forgotten(after, request, limits);
  return told(after, request, { kind: "Done" }, limits);
}

const stays: Carry = ({ world }) => world;

/** A write is tried again, unless the request was aborted meanwhile. */
const stopsOr: Carry = (running) => (running.course.isStopped ? ended(running) : running.world);

function withNew({ world, name, limits }: Running, more: Partial<ActionRecord>): DepartureWorld {
  const record = recordOf(world, name);
  return record === undefined ? world : withRecord(world, { ...record, ...more }, limits);
}

/** A run that changes nothing more, and is not recorded as failed. */
const brokenOff: Carry = (running) => {
  const { world, name, limits } = running;
  const record = recordOf(world, name);
  if (record?.state !== "Running") return ended(running);
  const after = withRecord(world, brokenOffRecord(record), limits);
  return ended(inWorld(running, { ...after, book: { ...after.book, isToWrite: true } }));
};

const failedOf: Carry = (running) => settled(running, { state: "Failed", result: "REFUSED" });

function settled(running: Running, more: Partial<ActionRecord>): DepartureWorld {
  return moved(inWorld(running, withNew(running, more)), "Settle");
}

/** Losing or refusing something costs one of the few that there are. */
function lost(world: DepartureWorld): DepartureWorld {
  return { ...world, losses: world.losses + 1 };
}

function refused(world: DepartureWorld): DepartureWorld {
  return { ...world, refusals: world.refusals + 1 };
}

function mayLose({ world, limits }: Running): boolean {
  return world.losses < limits.losses;
}

function mayRefuse({ world, limits }: Running): boolean {
  return world.refusals < (limits.refusals ?? 0);
}

/** A write of the records that the request waits for. */
function writes(
  running: Running,
  what: string,
  carry: { readonly done: Carry; readonly lost: Carry; readonly refused: Carry },
): readonly Event[] {
  const { world, limits } = running;
  const after = (state: DepartureWorld, carry: Carry) => carry(inWorld(running, state));
  const arrives = { event: `${what} is written`, state: after(written(world, limits), carry.done) };
  const losing: readonly Event[] = mayLose(running)
    ? [
        { event: `${what} is lost on its way`, state: after(lost(world), carry.lost) },
        {
          event: `${what} is written, and the answer is lost`,
          state: after(lost(stored(world, limits)), carry.lost),
        },
      ]
    : [];
  const refusing: readonly Event[] = mayRefuse(running)
    ? [{ event: `${what} is refused`, state: after(refused(world), carry.refused) }]
    : [];
  return [arrives, ...losing, ...refusing];
}

function begins(running: Running): Event {
  const { course, world, name, limits } = running;
  if (course.isStopped) return { event: `${name} is broken off`, state: brokenOff(running) };
  const looked = reconsidered(world, limits);
  const begun = begunIn(looked, name);
  if (begun === undefined) throw new Error("an action of no record");
  const after = withRecord(looked, begun, limits);
  const event = `${name} begins`;
  if (after.book.isResumed) return { event, state: moved(inWorld(running, after), "Claim") };
  const book = { ...after.book, isToWrite: true };
  return { event, state: claimed(inWorld(running, { ...after, book })) };
}

const claimed: Carry = (running) => {
  const { world, name, course } = running;
  if (course.isStopped) return brokenOff(running);
  if (recordOf(world, name)?.undo === undefined) return moved(running, "Prepare");
  return course.isWanted ? moved(running, "Apply") : brokenOff(running);
};

function claims(running: Running): readonly Event[] {
  const { world, name, limits, course } = running;
  const there = world.status.actions?.find((one) => one.name === name);
  if (!isClaimable(there)) {
    const state = ended(inWorld(running, disowned(world, limits)));
    return [{ event: `${name} is another's`, state }];
  }
  const orStops = course.isStopped ? brokenOff : stays;
  return writes(running, "the claim", { done: claimed, lost: orStops, refused: broken });
}

/** A write that is refused for good ends a run. */
const broken: Carry = (running) => {
  const after = withNew(running, { state: "Failed", result: "API_REFUSED" });
  return ended(inWorld(running, { ...after, book: { ...after.book, isToWrite: true } }));
};

function prepares(running: Running): readonly Event[] {
  const { course, name } = running;
  if (course.isStopped) return [{ event: `${name} is broken off`, state: brokenOff(running) }];
  const found = { event: `${name} is looked up`, state: lookedUp(running) };
  const unknown = mayLose(running)
    ? [{ event: `${name} is not looked up`, state: faulted(inWorld(running, lost(running.world))) }]
    : [];
  const refusing = mayRefuse(running)
    ? [
        {
          event: `${name} may not be looked up`,
          state: failedOf(inWorld(running, refused(running.world))),
        },
      ]
    : [];
  return [found, ...unknown, ...refusing];
}

const lookedUp: Carry = (running) => {
  const { course, limits } = running;
  if (!course.isWanted) return brokenOff(running);
  if (!isUndoable(limits)) return moved(running, "Apply");
  const after = inWorld(running, withNew(running, { undo: { before: "sg-1" } }));
  return moved(after, limits.isUndoUnwritten === true ? "Apply" : "Keep");
};

const kept: Carry = (running) => {
  const { isStopped, isWanted } = running.course;
  return isStopped || !isWanted ? brokenOff(running) : moved(running, "Apply");
};

/** An attempt may have changed something: it is tried again, or has failed. */
const faulted: Carry = (running) => {
  const { isWanted } = running.course;
  if (isWanted) return moved(running, "Pause");
  return settled(running, { state: "Failed", result: "ACTION_UNREACHABLE" });
};

function pauses(running: Running): Event {
  const { course, name } = running;
  if (!course.isWanted) return { event: `${name} is given up`, state: faulted(running) };
  if (course.isStopped) return { event: `${name} is broken off`, state: brokenOff(running) };
  return { event: `${name} is tried again`, state: claimed(running) };
}

/** The receiver makes the change. */
function changed(running: Running): Running {
  const { world, name, limits } = running;
  const isRecorded = undoIsWritten(world.status, name) || !isUndoable(limits);
  const receiver = {
    ...{ ...world.receiver, isInEffect: true },
    broken: isRecorded
      ? world.receiver.broken
      : "an action is applied without its undo record in the cluster",
  };
  return inWorld(running, { ...world, receiver });
}

function undoIsWritten({ actions = [] }: DepartureStatus, name: string): boolean {
  const record = actions.find((one) => one.name === name);
  return record?.undo !== undefined && record.state !== "Undone";
}

function changedBack(running: Running): Running {
  const { world } = running;
  return inWorld(running, { ...world, receiver: { ...world.receiver, isInEffect: false } });
}

function applies(running: Running): readonly Event[] {
  const { course, name, world } = running;
  const done = { state: "Done", result: "Done" } as const;
  if (course.isStopped) {
    return [
      { event: `${name} is applied and broken off`, state: brokenOff(changed(running)) },
      { event: `${name} is broken off`, state: brokenOff(running) },
    ];
  }
  const losing = inWorld(running, lost(world));
  return [
    { event: `${name} is applied`, state: settled(changed(running), done) },
    ...(mayLose(running)
      ? [
          { event: `${name} is lost on its way`, state: faulted(losing) },
          { event: `the answer to ${name} is lost`, state: faulted(changed(losing)) },
        ]
      : []),
    ...(mayRefuse(running)
      ? [{ event: `${name} is refused`, state: failedOf(inWorld(running, refused(world))) }]
      : []),
  ];
}

const noted: Carry = (running) =>
  running.course.isStopped ? ended(running) : moved(running, "Undo");

function undoes(running: Running): readonly Event[] {
  const { course, name, world } = running;
  if (course.isStopped) {
    return [
      { event: `${name} is undone and broken off`, state: ended(changedBack(running)) },
      { event: `the undo of ${name} is broken off`, state: ended(running) },
    ];
  }
  const undone = { state: "Undone", result: "Undone" } as const;
  const receiver = { ...world.receiver, hasRefusedUndo: true };
  const refusing = inWorld(running, { ...refused(world), receiver });
  const losing = inWorld(running, lost(world));
  return [
    { event: `${name} is undone`, state: settled(changedBack(running), undone) },
    ...(mayLose(running)
      ? [{ event: `the answer to the undo is lost`, state: changedBack(losing).world }]
      : []),
    ...(mayRefuse(running)
      ? [{ event: `the undo of ${name} is refused`, state: failedOf(refusing) }]
      : []),
  ];
}

function settles(running: Running): readonly Event[] {
  const { request, course } = running;
  switch (request.kind) {
    case "RunAction": {
      const ends = course.isWanted ? broken : ended;
      return writes(running, "the result", { done: ended, lost: stays, refused: ends });
    }
    case "RecordActions":
      return writes(running, "the records", { done: ended, lost: stays, refused: notRecorded });
    default:
      return writes(running, "the end of the undo", {
        ...{ done: ended, lost: stopsOr, refused: ended },
      });
  }
}

const notRecorded: Carry = ({ world, flight, request, limits }) => {
  const after = { ...world, flights: world.flights.filter((one) => one !== flight) };
  return told(after, request, "Refused", limits);
};

/** A write that nothing waits for. */
export function aboutBook(world: DepartureWorld, limits: DepartureLimits): readonly Event[] {
  if (!world.book.isToWrite || world.isOver) return [];
  return [{ event: "the records are written beside", state: written(world, limits) }];
}

/**
 * What the requests of a killed controller may have done. The next leader begins only once the
 * Lease has expired: until then they have arrived, or never will.
 */
export function atKill(
  world: DepartureWorld,
  limits: DepartureLimits,
): readonly (readonly [what: string, state: DepartureWorld])[] {
  const own = world.flights.filter(({ course, isOrphan }) => course && !isOrphan);
  const isWriting =
    world.book.isToWrite || own.some(({ course }) => course && writingSteps.has(course.step));
  const without = { ...world, flights: world.flights.filter(({ course }) => !course) };
  const states: readonly (readonly [string, DepartureWorld])[] = [
    ["", without],
    ...(isWriting ? [[", its records are written", stored(without, limits)] as const] : []),
  ];
  const acting = own.find(({ course }) => course?.step === "Apply" || course?.step === "Undo");
  if (acting?.course === undefined) return states;
  const { request, course } = acting;
  const name = "name" in request ? request.name : "";
  return states.flatMap(([what, state]) => {
    const running = { world: state, flight: acting, course, request, name, limits };
    const after = course.step === "Apply" ? changed(running) : changedBack(running);
    return [[what, state] as const, [`${what}, ${name} is carried out`, after.world] as const];
  });
}

const writingSteps: ReadonlySet<ActionCourse["step"]> = new Set([
  "Claim",
  "Keep",
  "Note",
  "Settle",
]);
