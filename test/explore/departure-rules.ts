import { isUndoable } from "./action-events.ts";
import { type DepartureLimits, type DepartureWorld, machineId } from "./departure-world.ts";

/** The rule that a state breaks. They know nothing of the code, but what people read and see. */
export function brokenRule(world: DepartureWorld, limits: DepartureLimits): string | undefined {
  return brokenAction(world, limits) ?? brokenDeparture(world);
}

function brokenDeparture(world: DepartureWorld): string | undefined {
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

function brokenAction(world: DepartureWorld, limits: DepartureLimits): string | undefined {
  const { receiver, flights, status, isOver, machine } = world;
  const { action } = limits;
  if (action === undefined) return undefined;
  if (receiver.broken !== undefined) return receiver.broken;
  const kinds = new Set(flights.map(({ request }) => request.kind));
  if (kinds.has("RunAction") && kinds.has("UndoAction")) {
    return "an action is running and being undone at once";
  }
  if (!isOver) return undefined;
  const mayStand = !isUndoable(limits) || receiver.hasRefusedUndo;
  if (machine === "Runs" && receiver.isInEffect && !mayStand) {
    return "a node is given back, and the action is still in effect";
  }
  if (status.phase !== "Ended") return undefined;
  const state = status.actions?.find(({ name }) => name === action.name)?.state;
  if (state === "Pending" || state === "Running") return "an ended departure has an open action";
  if (state === "Done" && !receiver.isInEffect) return "an action is done without its effect";
  const isTold = state === "Failed" || state === "Skipped" || state === "Undone";
  const hasLeft = machine !== "Runs";
  if (hasLeft && !receiver.isInEffect && !isTold) {
    return "a departure left without its action, and does not say why";
  }
  return undefined;
}
