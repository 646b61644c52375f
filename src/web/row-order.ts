import { type BoardRow, isHeldForGood, type PastDeparture } from "../board/stream.ts";

/** When a row is due: at its own instant or its deadline, whichever is earlier. */
function dueAt(row: BoardRow): number {
  return row.departAt ?? row.deadlineAt ?? Number.POSITIVE_INFINITY;
}

/** The most urgent first: by deadline if there is a notice, otherwise by when it started. */
export function leavingRows(rows: readonly BoardRow[]): readonly BoardRow[] {
  const urgency = (row: BoardRow): number =>
    row.noticedAt === null ? Number.POSITIVE_INFINITY : (row.deadlineAt ?? 0);
  return rows
    .filter(({ state }) => state === "Leaving")
    .toSorted((a, b) => {
      const [one, other] = [urgency(a), urgency(b)];
      if (one !== other) return one < other ? -1 : 1;
      return (a.startedAt ?? 0) - (b.startedAt ?? 0) || byName(a, b);
    });
}

export function nextRows(rows: readonly BoardRow[]): readonly BoardRow[] {
  return rows
    .filter(({ state }) => state === "Held" || state === "Scheduled")
    .filter((row) => !isHeldForGood(row))
    .toSorted((a, b) => dueAt(a) - dueAt(b) || byName(a, b));
}

/** Held indefinitely by a person: whoever is on call should see that. */
export function heldRows(rows: readonly BoardRow[]): readonly BoardRow[] {
  return rows.filter(isHeldForGood).toSorted(byName);
}

export function stayingRows(rows: readonly BoardRow[]): readonly BoardRow[] {
  return rows.filter((row) => row.state === "Stays" && !isHeldForGood(row)).toSorted(byName);
}

/**
 * By zone, with those that leave first on top; if there are more than `most`, only those that leave
 * first.
 */
export function laneRows(rows: readonly BoardRow[], most: number): readonly BoardRow[] {
  const first =
    rows.length <= most
      ? rows
      : rows.toSorted((a, b) => compare(dueAt(a), dueAt(b)) || byName(a, b)).slice(0, most);
  return first.toSorted(
    (a, b) => compare(a.zone, b.zone) || compare(dueAt(a), dueAt(b)) || byName(a, b),
  );
}

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

function byName(a: BoardRow, b: BoardRow): number {
  return compare(a.node, b.node);
}

function compare<T extends string | number>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
