import type { DepartingMark } from "../contracts/node-marks.ts";
import { cloudDeadline, type Departure, isNoticed } from "../core/departure/departure.ts";
import { explain } from "../core/reason/explain.ts";

/** What stands on the node of a departure. A deadline that the cloud has not named is not called the cloud's. */
export function markOf(departure: Departure): DepartingMark {
  const { node, name, cause, deadlineAt } = departure;
  const facts = { node: node.name, deadlineAt: cloudDeadline(departure) };
  const message = explain(isNoticed(departure) ? "Noticed" : "Started", facts);
  return { departure: name, cause, dueAt: deadlineAt, message };
}
