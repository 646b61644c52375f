import { filteredPast, filteredRows } from "../board/row-filter.ts";
import { type BoardRow, hasNoPolicy, type PodCounts, unreadLists } from "../board/stream.ts";
import { Headline } from "./headline.tsx";
import { groupings, type ListView } from "./list-choice.ts";
import { FilterField } from "./list-tools.tsx";
import { MoreButton } from "./more-button.tsx";
import { NextTable, NodeCells, whereText } from "./next-table.tsx";
import { CutText, NodeName } from "./node-name.tsx";
import type { VNode } from "./preact.ts";
import {
  heldRows,
  leavingRows,
  nextRows,
  nothingDeparted,
  PastList,
  stayingRows,
} from "./row-list.tsx";
import { HoldNote } from "./row-status.tsx";
import { rowTime } from "./row-time.ts";
import { type PageView, useFirst } from "./view-state.ts";
import { BriefSentence, readable } from "./words/sentence.tsx";
import { clockText, countdown, momentText } from "./words/time-text.ts";

/** The number of rows shown at first; the rest are shown on request. */
const [heldShown, pastShown, stayingShown] = [3, 8, 200];

interface DeparturesPageProps {
  readonly view: PageView;
  readonly list: ListView;
}

export function DeparturesPage({ view, list }: DeparturesPageProps): VNode {
  const { picture, words } = view;
  const { filter } = list.choice;
  const rows = filteredRows(picture.rows, filter);
  const past = filteredPast(picture.past, filter);
  const unread = unreadLists(picture.fleet.missing);
  const isUnread = unread.includes("departures");
  const nobodyNext = hasNoPolicy(picture)
    ? words.noPolicy
    : unread.length > 0
      ? words.notRead
      : words.nobodyNext;
  const next = nextRows(rows);
  // Rows that do not match the filter still count.
  const empty = (text: string) => (filter === "" ? text : words.noMatch(filter));
  return (
    <div class="departures">
      <Headline view={view} />
      <Leaving view={view} rows={leavingRows(picture.rows)} isUnread={isUnread} />
      <OnHold view={view} rows={heldRows(rows)} />
      <section aria-labelledby="next">
        <div class="section-head">
          <h2 id="next">{words.next}</h2>
          <div class="list-tools">
            <GroupChoice view={view} list={list} />
            <FilterField view={view} list={list} />
          </div>
        </div>
        {next.length === 0 ? (
          <p class="empty">{empty(nobodyNext)}</p>
        ) : (
          <NextTable view={view} list={list} rows={next} />
        )}
      </section>
      <Staying view={view} rows={stayingRows(rows)} />
      <section aria-labelledby="departed">
        <h2 id="departed">{words.departed}</h2>
        <PastList
          view={view}
          past={past.slice(0, pastShown)}
          empty={empty(nothingDeparted(view))}
        />
      </section>
    </div>
  );
}

/** A second click on a grouping removes it. */
function GroupChoice({ view: { words }, list: { choice, choose } }: DeparturesPageProps): VNode {
  return (
    <div class="choices" role="group" aria-label={words.groups}>
      {groupings.map((one) => (
        <button
          key={one}
          type="button"
          aria-pressed={choice.group === one}
          onClick={() => choose({ group: choice.group === one ? undefined : one })}
        >
          {words.grouped[one]}
        </button>
      ))}
    </div>
  );
}

interface Rows {
  readonly view: PageView;
  readonly rows: readonly BoardRow[];
}

function Leaving({ view, rows, isUnread }: Rows & { readonly isUnread: boolean }): VNode {
  const { words } = view;
  return (
    <section aria-labelledby="leaving" class="leaving">
      <h2 id="leaving">{words.leaving}</h2>
      {rows.length === 0 ? (
        <p class="empty">{isUnread ? words.notRead : words.nobodyLeaving}</p>
      ) : (
        <ul>
          {rows.map((row) => (
            <LeavingRow key={row.id} view={view} row={row} />
          ))}
        </ul>
      )}
    </section>
  );
}

interface DepartureRowProps {
  readonly view: PageView;
  readonly row: BoardRow;
}

function LeavingRow({ view, row }: DepartureRowProps): VNode {
  const { words, language, now } = view;
  const { deadlineAt } = row;
  const isNoticed = row.noticedAt !== null;
  const time = rowTime(row);
  const isCounted = time.kind === "UntilDeadline";
  return (
    <li class={isNoticed ? "urgent" : ""}>
      <div class="when">
        <span class="clock">
          {isCounted ? countdown(time.at - now) : clockText("at" in time ? time.at : now)}
        </span>
        <span class="dim">{isCounted ? words.untilDeadline : words.beganAt}</span>
      </div>
      <div class="who">
        <NodeName name={row.node} />
        <span class="where">{whereText(row)}</span>
      </div>
      <div class="what">
        <span class="state">
          {row.phase === null ? "" : words.phases[row.phase]}
          {row.cause === null ? "" : ` · ${words.causes[row.cause]}`}
        </span>
        {row.pods === null ? null : <PodMeter view={view} pods={row.pods} />}
        <BriefSentence view={view} text={row.explain} />
        {isCounted || deadlineAt === null ? null : (
          <span class="dim">
            {words.deadline} {momentText(deadlineAt, now, language)}
          </span>
        )}
      </div>
    </li>
  );
}

/** Up to this many pods have a mark each; with more, each mark stands for several. */
const mostMarks = 30;

export function PodMeter({
  view,
  pods,
}: {
  readonly view: PageView;
  readonly pods: PodCounts;
}): VNode {
  const { words } = view;
  const marks = Math.min(mostMarks, pods.total);
  const share = pods.total === 0 ? 0 : marks / pods.total;
  const left = Math.ceil(pods.left * share);
  const blocked = Math.min(left, Math.ceil(pods.blocked * share));
  const text = words.podsLeft(pods.left, pods.total);
  return (
    <span class="meter">
      <span class="marks" aria-hidden="true">
        {Array.from({ length: marks }, (_, place) => (
          <i key={place} class={place >= left ? "gone" : place < blocked ? "blocked" : "here"} />
        ))}
      </span>
      <span>
        {text}
        {pods.blocked > 0 ? `, ${words.blocked(pods.blocked)}` : ""}
      </span>
    </span>
  );
}

/** Always visible and not collapsed: these nodes leave only if somebody lets them. */
function OnHold({ view, rows }: Rows): VNode | null {
  const { words } = view;
  const [shown, onMore] = useFirst(rows, heldShown);
  if (rows.length === 0) return null;
  return (
    <section aria-labelledby="on-hold">
      <div class="section-head">
        <h2 id="on-hold">{words.onHold}</h2>
        <MoreButton view={view} count={rows.length} onMore={onMore} />
      </div>
      <table class="staying">
        <thead>
          <tr>
            <th scope="col">{words.node}</th>
            <th scope="col" class="wide">
              {words.zone}
            </th>
            <th scope="col" class="wide">
              {words.pool}
            </th>
            <th scope="col" class="said">
              {words.status}
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <tr key={row.id} title={readable(row.explain, view)}>
              <NodeCells row={row} />
              <td class="said">
                <HeldBy view={view} row={row} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** The annotation is named unless it is Lastcall's own, which the section is about. */
function HeldBy({ view, row }: DepartureRowProps): VNode {
  const { hold } = row;
  return (
    <span class="held">
      {hold === null || hold.isOurs ? null : <CutText text={hold.mark} />}
      <HoldNote view={view} row={row} />
    </span>
  );
}

function Staying({ view, rows }: Rows): VNode | null {
  const { words } = view;
  const [shown, onMore] = useFirst(rows, stayingShown);
  if (rows.length === 0) return null;
  return (
    <section aria-labelledby="staying">
      <details>
        <summary>
          <h2 id="staying">{words.staying}</h2>
          <span class="count">{words.matched(rows.length)}</span>
        </summary>
        <table class="staying">
          <tbody>
            {shown.map((row) => (
              <tr key={row.id} title={readable(row.explain, view)}>
                <NodeCells row={row} />
                <td class="said">{words.reasons[row.reason] ?? row.reason}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <MoreButton view={view} count={rows.length} onMore={onMore} />
      </details>
    </section>
  );
}
