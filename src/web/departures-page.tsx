import { reasonWords } from "../board/reason-words.ts";
import { type BoardRow, hasNoPolicy, type PodCounts, unreadLists } from "../board/stream.ts";
import { Headline } from "./headline.tsx";
import { useState, type VNode } from "./preact.ts";
import {
  filteredPast,
  filteredRows,
  heldRows,
  leavingRows,
  nextRows,
  nothingDeparted,
  PastList,
  stayingRows,
} from "./row-list.tsx";
import { nodeLink, type PageView, useFirst } from "./view-state.ts";
import { readable, Sentence } from "./words/sentence.tsx";
import { clockText, countdown, isolated, momentText, relativeText } from "./words/words.ts";

/** The number of rows shown at first; the rest are shown on request. */
const firstRows = 60;
const [heldShown, pastShown, stayingShown] = [8, 8, 200];

export function DeparturesPage({ view }: { readonly view: PageView }): VNode {
  const { picture, words } = view;
  const [filter, setFilter] = useState("");
  const rows = filteredRows(picture.rows, filter);
  const past = filteredPast(picture.past, filter);
  const unread = unreadLists(picture.fleet.missing);
  const isUnread = unread.includes("departures");
  const nobodyNext = hasNoPolicy(picture)
    ? words.noPolicy
    : unread.length > 0
      ? words.notRead
      : words.nobodyNext;
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
          <input
            class="filter"
            type="search"
            aria-label={words.filter}
            placeholder={words.filterHint}
            value={filter}
            onInput={({ currentTarget }) => setFilter(currentTarget.value)}
          />
        </div>
        <NextTable view={view} rows={nextRows(rows)} empty={empty(nobodyNext)} />
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

interface RowProps {
  readonly view: PageView;
  readonly row: BoardRow;
}

function LeavingRow({ view, row }: RowProps): VNode {
  const { words, language, now } = view;
  const { noticedAt, deadlineAt, startedAt } = row;
  const isNoticed = noticedAt !== null;
  const isCounted = isNoticed && deadlineAt !== null;
  return (
    <li class={isNoticed ? "urgent" : ""}>
      <div class="when">
        <span class="clock">
          {isCounted ? countdown(deadlineAt - now) : clockText(startedAt ?? row.departAt ?? now)}
        </span>
        <span class="dim">{isCounted ? words.untilDeadline : words.beganAt}</span>
      </div>
      <div class="who">
        <a class="name" href={nodeLink(row.node)}>
          {row.node}
        </a>
        <span class="where">{whereText(row)}</span>
      </div>
      <div class="what">
        <span class="state">
          {row.phase === null ? "" : words.phases[row.phase]}
          {row.cause === null ? "" : ` · ${words.causes[row.cause]}`}
        </span>
        {row.pods === null ? null : <PodMeter view={view} pods={row.pods} />}
        <Sentence view={view} text={row.explain} />
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

/** If there are more than shown: a button that shows all. */
export function MoreButton({
  view,
  count,
  onMore,
}: {
  readonly view: PageView;
  readonly count: number;
  readonly onMore: (() => void) | undefined;
}): VNode | null {
  if (onMore === undefined) return null;
  return (
    <button type="button" class="more" onClick={onMore}>
      {view.words.showAll(count)}
    </button>
  );
}

function NextTable({ view, rows, empty }: Rows & { readonly empty: string }): VNode {
  const { words } = view;
  const [shown, onMore] = useFirst(rows, firstRows);
  if (rows.length === 0) return <p class="empty">{empty}</p>;
  return (
    <>
      <table class="next">
        <thead>
          <tr>
            <th scope="col">{words.time}</th>
            <th scope="col">{words.node}</th>
            <th scope="col" class="wide">
              {words.zone}
            </th>
            <th scope="col" class="wide">
              {words.pool}
            </th>
            <th scope="col" class="middle">
              {words.why}
            </th>
            <th scope="col">{words.status}</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <NextRow key={row.id} view={view} row={row} />
          ))}
        </tbody>
      </table>
      <MoreButton view={view} count={rows.length} onMore={onMore} />
    </>
  );
}

function NextRow({ view, row }: RowProps): VNode {
  const { now, language } = view;
  const { departAt } = row;
  const why = row.plannedBy ?? (row.cause === "Manual" ? "Requested" : row.reason);
  return (
    <tr title={readable(row.explain, view)}>
      <td class="time">
        <span class={isDryRun(row, view) ? "clock dim" : "clock"}>
          {departAt === null ? "–:–" : clockText(departAt)}
        </span>
        <span class="dim">{departAt === null ? "" : relativeText(departAt, now, view)}</span>
      </td>
      <td class="who">
        <a class="name" href={nodeLink(row.node)}>
          {row.node}
        </a>
        <span class="where narrow">{whereText(row)}</span>
      </td>
      <td class="wide">{row.zone}</td>
      <td class="wide">{row.pool}</td>
      <td class="middle">
        {reasonWords[why]?.[language] ?? why}
        {row.window === null ? "" : ` · ${row.window}`}
      </td>
      <td class="state">
        <StatusText view={view} row={row} />
      </td>
    </tr>
  );
}

/** Whether its departure is only planned, and never carried out. */
export function isDryRun({ policy, cause }: BoardRow, { picture }: PageView): boolean {
  const card = picture.policies.find(({ name }) => name === policy);
  return card?.isDryRun === true && (cause === null || cause === "Planned");
}

function StatusText({ view, row }: RowProps): VNode {
  const { words, language, now } = view;
  if (isDryRun(row, view)) return <span class="held">{words.dryRun}</span>;
  if (row.state === "Held") {
    return (
      <>
        <span class="held">
          {words.held}: {reasonWords[row.reason]?.[language] ?? row.reason}
        </span>
        {row.reason === "OnHold" ? <HoldNote view={view} row={row} /> : null}
      </>
    );
  }
  if (row.heldBackTo !== null) {
    return <span class="held">{words.heldBackTo(momentText(row.heldBackTo, now, language))}</span>;
  }
  if (row.hold !== null && row.hold.untilAt !== null && row.hold.untilAt > now) {
    return <span class="held">{words.holdUntil(momentText(row.hold.untilAt, now, language))}</span>;
  }
  if (row.plannedBy !== null && row.plannedBy !== "Spaced") {
    return <span class="held">{reasonWords[row.plannedBy][language]}</span>;
  }
  if (row.departAt !== null && isOverdue(row.departAt, view)) {
    return <span class="held">{words.overdue}</span>;
  }
  const card = view.picture.policies.find(({ name }) => name === row.policy);
  // A plan that cannot be kept as a whole is no schedule.
  return card?.isFeasible === false ? (
    <span class="dim">{words.inPlan}</span>
  ) : (
    <span class="good">{words.onSchedule}</span>
  );
}

/**
 * A working controller starts within seconds; on a fast clock, the page samples few of its hours.
 */
const lateMs = 60_000;

function isOverdue(departAt: number, { now, rate }: PageView): boolean {
  return now - departAt > lateMs * Math.max(1, rate);
}

/** Who holds a node, and from when until when. */
export function HoldNote({ view, row: { hold } }: RowProps): VNode | null {
  const { words, language, now } = view;
  if (hold === null || (hold.untilAt !== null && hold.untilAt <= now)) return null;
  const { by, sinceAt, untilAt } = hold;
  const time = (at: number | null) => (at === null ? null : momentText(at, now, language));
  // The author chose this name: isolate its text direction from the rest.
  const who = by === null ? null : isolated(by);
  return <span class="hold-note dim">{words.heldBy(who, time(sinceAt), time(untilAt))}</span>;
}

/** Always visible and not collapsed: these nodes leave only if somebody lets them. */
function OnHold({ view, rows }: Rows): VNode | null {
  const { words } = view;
  const [shown, onMore] = useFirst(rows, heldShown);
  if (rows.length === 0) return null;
  return (
    <section aria-labelledby="on-hold">
      <h2 id="on-hold">{words.onHold}</h2>
      <table class="staying">
        <thead>
          <tr>
            <th scope="col">{words.node}</th>
            <th scope="col" class="wide">
              {words.zone} · {words.pool}
            </th>
            <th scope="col">{words.status}</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <tr key={row.id}>
              <td class="who">
                <a class="name" href={nodeLink(row.node)}>
                  {row.node}
                </a>
                <span class="where narrow">{whereText(row)}</span>
              </td>
              <td class="wide">{whereText(row)}</td>
              <td class="state">
                <Sentence view={view} text={row.explain} class="held" />
                <HoldNote view={view} row={row} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <MoreButton view={view} count={rows.length} onMore={onMore} />
    </section>
  );
}

function Staying({ view, rows }: Rows): VNode | null {
  const { words, language } = view;
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
                <td class="who">
                  <a class="name" href={nodeLink(row.node)}>
                    {row.node}
                  </a>
                </td>
                <td class="wide">{whereText(row)}</td>
                <td>{reasonWords[row.reason]?.[language] ?? row.reason}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <MoreButton view={view} count={rows.length} onMore={onMore} />
      </details>
    </section>
  );
}

export function whereText({ zone, pool }: Pick<BoardRow, "zone" | "pool">): string {
  return [zone, pool].filter((part) => part !== "").join(" · ");
}
