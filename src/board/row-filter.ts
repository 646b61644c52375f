/** The filter that a person types, on the page and in the terminal. */
import type { BoardRow, PastDeparture } from "./stream.ts";

/** Every word of the filter must occur in the row's identifying text. */
export function filteredRows(rows: readonly BoardRow[], filter: string): readonly BoardRow[] {
  return filtered(rows, filter, ({ node, zone, pool, policy }) => [node, zone, pool, policy]);
}

/** The node's zone is no longer known. */
export function filteredPast(
  past: readonly PastDeparture[],
  filter: string,
): readonly PastDeparture[] {
  return filtered(past, filter, ({ node, policy }) => [node, policy]);
}

function filtered<T>(
  items: readonly T[],
  filter: string,
  partsOf: (item: T) => readonly (string | null)[],
): readonly T[] {
  const wanted = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return items;
  return items.filter((item) => {
    const text = partsOf(item).join(" ").toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}
