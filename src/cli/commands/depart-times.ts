import type { NodeFacts } from "../../core/cluster/node.ts";
import type { DepartRequest } from "../../core/departure/decision.ts";
import { isWaitingRequest } from "../../core/departure/departure.ts";
import {
  instantOfNamedTime,
  isRelative,
  type LocalNow,
  type NamedTime,
  sayLocally,
} from "../../core/time/named-time.ts";
import {
  between,
  formatInstant,
  type Instant,
  type Millis,
  minutes,
} from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import type { CommandInput } from "../command-line/command.ts";
import type { FleetSnapshot } from "../input/fleet-snapshot.ts";

/** What was typed after `lastcall depart`. */
export type DepartInput = CommandInput<"depart">;

/**
 * A script's `--at` that means now is slightly in the past when it is read. Anything older is a
 * mistake.
 */
const lateMs: Millis = minutes(1);

/** The times that `--at` and `--by` ask for. Throws USAGE. */
export function requestOf({ options, io }: DepartInput, now: Instant): DepartRequest {
  const timeZone = io.timeZone ?? "UTC";
  const departAt =
    options.at === undefined ? now : instantOfNamedTime(options.at, { now, timeZone });
  const by = options.by && deadlineOf(options.by, { now, timeZone, departAt });
  if (between(departAt, now) > lateMs) {
    throw new LastcallError(
      "USAGE",
      `Cannot use --at ${formatInstant(departAt)}: it is in the past, expected a future time, or no --at to start now`,
    );
  }
  if (by !== undefined && by <= departAt) {
    const starts = options.at === undefined ? "now" : `at ${formatInstant(departAt)}`;
    throw new LastcallError(
      "USAGE",
      `Cannot use --by ${formatInstant(by)}: the departure starts ${starts}, expected a later time`,
    );
  }
  return { departAt, deadlineAt: by };
}

/**
 * The times for one node: with `--by` alone, an earlier request keeps its own start. Throws USAGE
 * if that is not before the deadline.
 */
export function timesFor(
  node: NodeFacts,
  about: {
    readonly request: DepartRequest;
    readonly options: DepartInput["options"];
    readonly fleet: FleetSnapshot;
  },
): DepartRequest {
  const { request, options, fleet } = about;
  if (options.at !== undefined || request.deadlineAt === undefined) return request;
  const former = fleet.departures.find((one) => one.node.uid === node.uid && isWaitingRequest(one));
  const { departAt = request.departAt } = former ?? {};
  if (departAt < request.deadlineAt) return { ...request, departAt };
  throw new LastcallError(
    "USAGE",
    `Cannot use --by ${formatInstant(request.deadlineAt)}: ${node.name} has been requested to leave at ${formatInstant(departAt)}, set an earlier --at as well, or --at now`,
  );
}

/** `--at 22:00 --by 06:00`: the morning after. */
function deadlineOf(
  by: NamedTime,
  { departAt, ...context }: LocalNow & { readonly departAt: Instant },
): Instant {
  return instantOfNamedTime(by, by.kind === "Clock" ? { ...context, now: departAt } : context);
}

/** What a time relative to now, or to this computer's time zone, was taken for. */
export function timeNotes(
  { options, io }: DepartInput,
  { request, now }: { readonly request: DepartRequest; readonly now: Instant },
): readonly string[] {
  const context = { now, timeZone: io.timeZone ?? "UTC" };
  const times = [
    { option: "--at", time: options.at, at: request.departAt },
    { option: "--by", time: options.by, at: request.deadlineAt },
  ];
  return times.flatMap(({ option, time, at }) =>
    time === undefined || !isRelative(time) || at === undefined
      ? []
      : [`lastcall: ${option} is ${sayLocally(at, context)}\n`],
  );
}
