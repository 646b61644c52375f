import { type BoardRow, isHeldForGood, type PastDeparture } from "../board/stream.ts";

/** When a row is due: the earlier of its own instant and its deadline. */
function dueAt(row: BoardRow): number {
  return row.departAt ?? row.deadlineAt ?? Number.POSITIVE_INFINITY;
}

/** The most urgent first: by its deadline where a notice runs, else by when it began. */
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

/** Somebody keeps them where they are, for good: who is on call is to see that. */
export function heldRows(rows: readonly BoardRow[]): readonly BoardRow[] {
  return rows.filter(isHeldForGood).toSorted(byName);
}

export function stayingRows(rows: readonly BoardRow[]): readonly BoardRow[] {
  return rows.filter((row) => row.state === "Stays" && !isHeldForGood(row)).toSorted(byName);
}

/** By zone, those that leave first on top; of more than `most` those that leave first of all. */
export function laneRows(rows: readonly BoardRow[], most: number): readonly BoardRow[] {
  const first =
    rows.length <= most
      ? rows
      : rows.toSorted((a, b) => compare(dueAt(a), dueAt(b)) || byName(a, b)).slice(0, most);
  return first.toSorted(
    (a, b) => compare(a.zone, b.zone) || compare(dueAt(a), dueAt(b)) || byName(a, b),
  );
}

/** Each word has to be found somewhere in what tells the row from others. */
export function filteredRows(rows: readonly BoardRow[], filter: string): readonly BoardRow[] {
  return filtered(rows, filter, ({ node, zone, pool, policy }) => [node, zone, pool, policy]);
}

/** Nobody remembers where the node was. */
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
