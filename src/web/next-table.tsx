/** The next departures: sorted by any column, and grouped by pool or zone. */
import { briefReason } from "../board/reason-words.ts";
import { type BoardRow, isDryRun } from "../board/stream.ts";
import { type ListView, type SortColumn, sortedBy } from "./list-choice.ts";
import { MoreButton } from "./more-button.tsx";
import { CutText, NodeName } from "./node-name.tsx";
import type { VNode } from "./preact.ts";
import { type RowGroup, rowGroups, type SortKeys, sortedRows } from "./row-list.tsx";
import { rowStatus, StatusText } from "./row-status.tsx";
import { type PageView, useFirst } from "./view-state.ts";
import { readable } from "./words/sentence.tsx";
import { clockText, relativeText } from "./words/time-text.ts";

/** The number of rows shown at first; the rest are shown on request. */
const firstRows = 100;
const firstOfGroup = 20;
/** In a longer list, the first ones are as dense as the rest. */
const mostLarge = 60;

interface TableProps {
  readonly view: PageView;
  readonly list: ListView;
  readonly rows: readonly BoardRow[];
}

const columns: readonly (readonly [SortColumn, style: string])[] = [
  ["time", "time"],
  ["node", "who"],
  ["zone", "wide"],
  ["pool", "wide"],
  ["why", "middle"],
  ["status", "state"],
];

export function NextTable({ view, list, rows }: TableProps): VNode {
  const { choice } = list;
  const groups = rowGroups(sortedRows(rows, choice, keysOf(view)), choice.group);
  const isByTime = choice.sort === "time" && !choice.isDescending && choice.group === undefined;
  const isLarge = isByTime && rows.length <= mostLarge;
  return (
    <table class={isLarge ? "next large" : "next"}>
      <Columns view={view} list={list} />
      {groups.map((group) => (
        <GroupBody key={group.name ?? ""} view={view} group={group} />
      ))}
    </table>
  );
}

function keysOf(view: PageView): SortKeys {
  // What is held comes first: somebody who sorts by status looks for that.
  const order = { Held: 0, Planned: 1, Well: 2 } as const;
  return {
    time: undefined,
    node: ({ node }) => node,
    zone: ({ zone }) => zone,
    pool: ({ pool }) => pool,
    why: (row) => whyText(row, view),
    status: (row) => {
      const { kind, text } = rowStatus(row, view);
      return `${order[kind]} ${text}`;
    },
  };
}

function Columns({ view: { words }, list }: Omit<TableProps, "rows">): VNode {
  const { choice, choose } = list;
  return (
    <thead>
      <tr>
        {columns.map(([column, style]) => {
          const order = choice.isDescending ? "descending" : "ascending";
          const isSorted = choice.sort === column;
          return (
            <th key={column} scope="col" class={style} aria-sort={isSorted ? order : undefined}>
              <button
                class="sort"
                type="button"
                title={words.sortBy(words[column])}
                onClick={() => choose(sortedBy(choice, column))}
              >
                {words[column]}
                <span aria-hidden="true">
                  {isSorted ? (choice.isDescending ? " ↓" : " ↑") : ""}
                </span>
              </button>
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

interface BodyProps {
  readonly view: PageView;
  readonly group: RowGroup;
}

function GroupBody({ view, group: { name, rows } }: BodyProps): VNode {
  const [shown, onMore] = useFirst(rows, name === undefined ? firstRows : firstOfGroup);
  return (
    <tbody>
      {name === undefined ? null : (
        <tr class="group">
          <th scope="rowgroup">
            {name === "" ? "–" : name} <GroupCounts view={view} rows={rows} />
          </th>
        </tr>
      )}
      {shown.map((row) => (
        <NextRow key={row.id} view={view} row={row} />
      ))}
      {onMore === undefined ? null : (
        <tr class="rest">
          <td>
            <MoreButton view={view} count={rows.length} onMore={onMore} />
          </td>
        </tr>
      )}
    </tbody>
  );
}

/** `333 nodes, 2 not on schedule`. */
function GroupCounts({ view, rows }: Omit<TableProps, "list">): VNode {
  const { words } = view;
  const odd = rows.filter((row) => rowStatus(row, view).kind === "Held").length;
  return (
    <>
      <span class="count">{words.matched(rows.length)}</span>
      {odd === 0 ? null : <span class="held">{words.oddCount(odd)}</span>}
    </>
  );
}

function whyText(row: BoardRow, { words }: PageView): string {
  const reason = briefReason(row);
  const text = words.reasons[reason] ?? reason;
  return row.window === null ? text : `${text} · ${row.window}`;
}

function NextRow({ view, row }: { readonly view: PageView; readonly row: BoardRow }): VNode {
  const { now } = view;
  const { departAt } = row;
  return (
    <tr title={readable(row.explain, view)}>
      <td class="time">
        <span class={isDryRun(row, view.picture) ? "clock dim" : "clock"}>
          {departAt === null ? "–:–" : clockText(departAt)}
        </span>
        <span class="dim">{departAt === null ? "" : relativeText(departAt, now, view)}</span>
      </td>
      <NodeCells row={row} />
      <td class="middle">{whyText(row, view)}</td>
      <td class="state">
        <StatusText view={view} row={row} />
      </td>
    </tr>
  );
}

/** The cells of a node: its name, zone and pool. */
export function NodeCells({ row }: { readonly row: BoardRow }): VNode {
  return (
    <>
      <td class="who">
        <NodeName name={row.node} />
        <Where row={row} />
      </td>
      <td class="wide">
        <CutText text={row.zone} />
      </td>
      <td class="wide">
        <CutText text={row.pool} />
      </td>
    </>
  );
}

/** Zone and pool below the name, if the screen has no columns for them. */
function Where({ row }: { readonly row: BoardRow }): VNode {
  return (
    <span class="where narrow">
      <CutText text={whereText(row)} />
    </span>
  );
}

export function whereText({ zone, pool }: Pick<BoardRow, "zone" | "pool">): string {
  return [zone, pool].filter((part) => part !== "").join(" · ");
}
