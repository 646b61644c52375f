import {
  type BoardRow,
  isHeldForGood,
  type PastDeparture,
  type PodLoss,
  unreadLists,
} from "../board/stream.ts";
import { compareNames } from "../core/cluster/name-order.ts";
import type { Grouping, ListChoice, SortColumn } from "./list-choice.ts";
import { NodeName } from "./node-name.tsx";
import type { VNode } from "./preact.ts";
import type { PageView } from "./view-state.ts";
import { BriefSentence } from "./words/sentence.tsx";
import { fineSpanText, isolated, momentText } from "./words/time-text.ts";

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

/** What a column is sorted by; undefined for the order in which the rows are. */
export type SortKeys = Readonly<Record<SortColumn, ((row: BoardRow) => string) | undefined>>;

/** Rows that are equal in the column stay in their order, in either direction. */
export function sortedRows(
  rows: readonly BoardRow[],
  { sort, isDescending }: Pick<ListChoice, "sort" | "isDescending">,
  keys: SortKeys,
): readonly BoardRow[] {
  const key = keys[sort];
  if (key === undefined) return isDescending ? rows.toReversed() : rows;
  const sign = isDescending ? -1 : 1;
  return rows
    .map((row) => ({ row, text: key(row) }))
    .toSorted((a, b) => sign * compareNames(a.text, b.text))
    .map(({ row }) => row);
}

export interface RowGroup {
  /** Undefined if the rows are not grouped. */
  readonly name: string | undefined;
  readonly rows: readonly BoardRow[];
}

/** By name; the rows of a group stay in their order. */
export function rowGroups(
  rows: readonly BoardRow[],
  group: Grouping | undefined,
): readonly RowGroup[] {
  if (group === undefined) return [{ name: undefined, rows }];
  const groups = Map.groupBy(rows, (row) => row[group]);
  return [...groups]
    .map(([name, members]) => ({ name, rows: members }))
    .toSorted((a, b) => compareNames(a.name, b.name));
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
    (a, b) => compareNames(a.zone, b.zone) || compare(dueAt(a), dueAt(b)) || byName(a, b),
  );
}

function byName(a: BoardRow, b: BoardRow): number {
  return compareNames(a.node, b.node);
}

function compare(a: number, b: number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** If departures cannot be read, it is not known that there are none. */
export function nothingDeparted({ picture, words }: PageView): string {
  const isUnread = unreadLists(picture.fleet.missing).includes("departures");
  return isUnread ? words.notRead : words.nobodyDeparted;
}

/** Ended departures, each with its outcome and what went wrong. */
export function PastList({
  view,
  past,
  empty = nothingDeparted(view),
  stepsOf,
}: {
  readonly view: PageView;
  readonly past: readonly PastDeparture[];
  /** The text shown if there are none. */
  readonly empty?: string;
  /** What is shown below a departure; only the page of its node has its steps. */
  readonly stepsOf?: (departure: string) => VNode | null;
}): VNode {
  if (past.length === 0) return <p class="empty">{empty}</p>;
  return (
    <ul class="past">
      {past.map((one) => (
        <PastRow key={one.id} view={view} past={one} steps={stepsOf?.(one.id) ?? null} />
      ))}
    </ul>
  );
}

interface PastRowProps {
  readonly view: PageView;
  readonly past: PastDeparture;
  readonly steps: VNode | null;
}

function PastRow({ view, past, steps }: PastRowProps): VNode {
  const { words, language, now } = view;
  return (
    <li>
      <span class="when">{momentText(past.endedAt, now, language)}</span>
      <NodeName name={past.node} departure={past.id} />
      <a
        class={`outcome ${past.outcome}`}
        href="#/outcomes"
        title={words.outcomeMeanings[past.outcome]}
      >
        {words.outcomesWords[past.outcome]}
      </a>
      <span class="why" dir="auto">
        <BriefSentence view={view} text={past.explain} />
        <NoticeFigures view={view} past={past} />
        {past.pods === null || past.pods.cut === 0 ? null : (
          <span class="figures held">{words.cutCount(past.pods.cut)}</span>
        )}
        {past.losses.map((loss) => (
          <Loss key={`${loss.pod} ${loss.what}`} view={view} loss={loss} of={loss.pod} />
        ))}
        {steps}
      </span>
    </li>
  );
}

interface LossProps {
  readonly view: PageView;
  readonly loss: PodLoss;
  /** The pod, if nothing next to it names it. */
  readonly of?: string;
}

export function Loss({ view: { words }, loss: { what, why }, of }: LossProps): VNode {
  return (
    <span class="loss" dir="auto">
      {of === undefined ? "" : `${of}: `}
      {words.lossWords[what]}
      {why === null ? "" : ` (${isolated(why)})`}
    </span>
  );
}

function NoticeFigures({ view, past }: { readonly view: PageView; readonly past: PastDeparture }) {
  const { words, language } = view;
  const { noticeToCordonMs, timeLeftMs } = past;
  if (noticeToCordonMs === null && timeLeftMs === null) return null;
  const figure = (name: string, ms: number | null): string =>
    ms === null ? "" : `${name} ${fineSpanText(ms, language)}`;
  return (
    <span class="figures">
      {[figure(words.noticeToCordon, noticeToCordonMs), figure(words.timeLeft, timeLeftMs)]
        .filter((text) => text !== "")
        .join(" · ")}
    </span>
  );
}
