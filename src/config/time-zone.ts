/** Whether the IANA database that this runtime carries knows the zone; links such as Asia/Calcutta count. */
export function isKnownTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** The names to choose from when one was mistyped. */
export function timeZoneNames(): readonly string[] {
  return ["UTC", ...Intl.supportedValuesOf("timeZone")];
}
