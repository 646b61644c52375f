const collator = new Intl.Collator("en", { numeric: true });

/**
 * Orders names as people count, n2 before n10, for lists that somebody reads. The plan breaks its
 * ties by the plain text, which is the same on every machine.
 */
export function compareNames(a: string, b: string): number {
  return collator.compare(a, b) || (a < b ? -1 : a > b ? 1 : 0);
}
