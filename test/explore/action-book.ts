import { begunRecord, mayBreakOff, newestRecords } from "../../src/core/action/action-record.ts";
import {
  type ActionRecord,
  type Departure,
  isPressing,
} from "../../src/core/departure/departure.ts";
import { runKey } from "../../src/core/next/action-steps.ts";
import { runsAhead } from "../../src/core/next/evaluation.ts";
import type { DepartureRequest } from "../../src/core/next/request.ts";
import {
  type ActionBook,
  type ActionCourse,
  at,
  type DepartureLimits,
  type DepartureWorld,
  departureOf,
  type Flight,
  policyOf,
} from "./departure-world.ts";

/**
 * The records of actions as a controller keeps and writes them (`ActionRuns`, `ActionLedger`). A
 * write has what is known when it arrives: writes are sent one after another, and each has all
 * changes.
 */

/** As it is acted upon: under a notice, the first phases do not wait for their record. */
function effective(world: DepartureWorld): Departure {
  const departure = departureOf(world);
  const { intended } = world.memory;
  const isAhead = intended && runsAhead(intended) && isPressing(departure, at(world.ms));
  return isAhead ? { ...departure, status: intended } : departure;
}

function newest(
  world: DepartureWorld,
  written: readonly ActionRecord[],
  limits: DepartureLimits,
): readonly ActionRecord[] {
  return newestRecords(written, {
    ...{ own: world.book.own, departure: effective(world), policy: policyOf(limits) },
    underWay: (name) => world.memory.asked[runKey(name)]?.isInFlight === true,
  });
}

function withBook(world: DepartureWorld, more: Partial<ActionBook>): DepartureWorld {
  return { ...world, book: { ...world.book, ...more } };
}

export function reconsidered(world: DepartureWorld, limits: DepartureLimits): DepartureWorld {
  return withBook(world, { records: newest(world, world.book.records, limits) });
}

export function recordOf({ book }: DepartureWorld, name: string): ActionRecord | undefined {
  return book.records.find((one) => one.name === name);
}

export function withRecord(
  world: DepartureWorld,
  record: ActionRecord,
  limits: DepartureLimits,
): DepartureWorld {
  const others = world.book.own.filter(({ name }) => name !== record.name);
  return reconsidered(withBook(world, { own: [...others, record] }), limits);
}

/** The record of the run that begins now. */
export function begunIn(world: DepartureWorld, name: string): ActionRecord | undefined {
  const before = recordOf(world, name);
  return before && begunRecord(before, { status: effective(world).status, now: at(world.ms) });
}

/** Another process has ended the action: its records count. */
export function disowned(world: DepartureWorld, limits: DepartureLimits): DepartureWorld {
  const without = withBook(world, { own: [] });
  const records = newest(without, world.status.actions ?? [], limits);
  return { ...withBook(without, { records }), known: world.status };
}

/** The records arrive in the cluster, and no answer does. */
export function stored(world: DepartureWorld, limits: DepartureLimits): DepartureWorld {
  const records = newest(world, world.status.actions ?? [], limits);
  const status = { ...world.status, actions: records };
  return { ...withBook(world, { records, isToWrite: false }), status };
}

/** The records are written; the answer shows the status that they were written into. */
export function written(world: DepartureWorld, limits: DepartureLimits): DepartureWorld {
  const after = stored(world, limits);
  return { ...after, known: after.status };
}

/** A write of the phase takes the records along, unless another process may have newer ones. */
export function accompanied(world: DepartureWorld, limits: DepartureLimits): DepartureWorld {
  const { book, status } = world;
  if (limits.action === undefined || book.isResumed) return { ...world, known: status };
  return written(world, limits);
}

/** The records of a controller that begins with what is in the cluster. */
export function opened({ status }: DepartureWorld): ActionBook {
  const isResumed = status.phase !== "Scheduled";
  return { records: status.actions ?? [], own: [], isResumed, isToWrite: false };
}

/** Where a request about actions begins; undefined for any other. */
export function courseOf({ kind }: DepartureRequest, sinceMs: number): ActionCourse | undefined {
  const course = { isWanted: true, isStopped: false, sinceMs } as const;
  switch (kind) {
    case "RunAction":
      return { step: "Begin", ...course };
    case "UndoAction":
      return { step: "Note", ...course };
    case "InterruptActions":
    case "RecordActions":
      return { step: "Settle", ...course };
    default:
      return undefined;
  }
}

/** What is noted as soon as a request is sent. */
export function withSent(
  world: DepartureWorld,
  request: DepartureRequest,
  limits: DepartureLimits,
): DepartureWorld {
  if (request.kind === "UndoAction") {
    const record = recordOf(world, request.name);
    return record ? withRecord(world, { ...record, state: "Running" }, limits) : world;
  }
  if (request.kind !== "InterruptActions") return world;
  return request.names.reduce((before, name) => {
    const record = recordOf(before, name);
    const result = "ACTION_INTERRUPTED";
    return record ? withRecord(before, { ...record, state: "Failed", result }, limits) : before;
  }, world);
}

/** A request that is no longer wanted is aborted, if it may be. */
export function steered(
  flight: Flight,
  { wanted, book }: { readonly wanted: ReadonlySet<string>; readonly book: ActionBook },
): Flight {
  const { course, request } = flight;
  if (course === undefined) return flight;
  const isWanted = wanted.has(request.key);
  const isStopped = course.isStopped || (!isWanted && mayStop(flight, book));
  return { ...flight, course: { ...course, isWanted, isStopped } };
}

function mayStop({ request, course }: Flight, { records }: ActionBook): boolean {
  if (request.kind !== "RunAction") return request.stops === true;
  const record = records.find(({ name }) => name === request.name);
  return mayBreakOff(record, course?.step === "Apply");
}

/** The departure is closed: whatever is on its way is aborted. */
export function closed(world: DepartureWorld): DepartureWorld {
  const flights = world.flights.map(
    (one): Flight =>
      one.course === undefined ? one : { ...one, course: { ...one.course, isStopped: true } },
  );
  return { ...world, flights };
}
