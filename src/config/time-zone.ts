import { isTimeZone } from "../core/time/wall-time.ts";

/**
 * Whether the IANA database that this runtime carries knows the zone; links such as Asia/Calcutta
 * count. `asia/tokyo` and `JST` do not, which parts of this runtime would take: the API server does
 * not know them.
 */
export function isKnownTimeZone(name: string): boolean {
  if (!isTimeZone(name)) return false;
  try {
    const { timeZone } = new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions();
    return timeZone === name || timeZone.toLowerCase() !== name.toLowerCase();
  } catch {
    return false;
  }
}

/** The names to choose from when one was mistyped. */
export function timeZoneNames(): readonly string[] {
  return ["UTC", ...Intl.supportedValuesOf("timeZone")];
}
