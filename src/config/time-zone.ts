/**
 * Whether the IANA database that this runtime carries knows the zone; links such as Asia/Calcutta
 * count. `asia/tokyo` does not, which this runtime would take: the API server does not know it.
 */
export function isKnownTimeZone(name: string): boolean {
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
