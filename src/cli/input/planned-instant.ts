import {
  instantOfNamedTime,
  isRelative,
  type NamedTime,
  sayLocally,
} from "../../core/time/named-time.ts";
import type { Instant } from "../../core/time/time.ts";
import type { CommandIo } from "../command-line/command.ts";

/**
 * The instant of `--at`, by default now. Says on stderr what a time relative to now, or to this
 * computer's time zone, was taken for.
 */
export function plannedInstant(
  { at, quiet }: { readonly at: NamedTime | undefined; readonly quiet: boolean },
  { io, now }: { readonly io: CommandIo; readonly now: Instant },
): Instant {
  if (at === undefined) return now;
  const context = { now, timeZone: io.timeZone ?? "UTC" };
  const meant = instantOfNamedTime(at, context);
  if (isRelative(at) && !quiet) io.err(`lastcall: --at is ${sayLocally(meant, context)}\n`);
  return meant;
}
