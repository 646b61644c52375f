import {
  type CountedDay,
  type CountedOutcomes,
  type NoticeFigure,
  noticeFigures,
} from "../board/outcome/counted-outcomes.ts";
import { filteredPast } from "../board/row-filter.ts";
import { type OutcomeDay, outcomes } from "../board/stream.ts";
import { getJson } from "./browser.ts";
import type { ListView } from "./list-choice.ts";
import { FilterField } from "./list-tools.tsx";
import { MoreButton } from "./more-button.tsx";
import { problemIn } from "./node/node-view.tsx";
import { useEffect, useState, type VNode } from "./preact.ts";
import { nothingDeparted, PastList } from "./row-list.tsx";
import { type PageView, useFirst } from "./view-state.ts";
import { fineSpanText } from "./words/time-text.ts";

interface OutcomesPageProps {
  readonly view: PageView;
  readonly list: ListView;
}

export function OutcomesPage({ view, list }: OutcomesPageProps): VNode {
  const { words, picture } = view;
  const { days, isCounted } = picture.fleet;
  const asked = useCounted(isCounted);
  const most = days.reduce((found, day) => Math.max(found, countOf(day)), 1);
  const all = days.reduce((sum, day) => sum + countOf(day), 0);
  const { filter } = list.choice;
  const found = filteredPast(picture.past, filter);
  const [past, onMore] = useFirst(found, endedShown);
  return (
    <div class="outcomes">
      <section aria-labelledby="days">
        <h2 id="days">{words.days}</h2>
        <p class="dim">{words.outcomeNote}</p>
        {days.length === 0 ? (
          <p class="empty">{nothingDeparted(view)}</p>
        ) : (
          <div class="scroll" tabIndex={0} role="region" aria-label={words.outcomes}>
            <table class="days stacks">
              <thead>
                <tr>
                  <th scope="col">{words.day}</th>
                  <th scope="col">{words.policy}</th>
                  <th scope="col">{words.outcomes}</th>
                  {[words.podsCut, words.podsForced, words.podsLost].map((name) => (
                    <th key={name} scope="col" class="number">
                      {name}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {days.map((day) => (
                  <DayRow key={`${day.day} ${day.policy}`} view={view} day={day} most={most} />
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
      {isCounted ? <Counted view={view} asked={asked} /> : null}
      <AtNotice view={view} asked={asked} />
      <section aria-labelledby="ended">
        <div class="section-head">
          <h2 id="ended">{words.departed}</h2>
          <FilterField view={view} list={list} />
        </div>
        {all > picture.past.length ? (
          <p class="dim">{words.newestOf(picture.past.length, all)}</p>
        ) : null}
        <PastList
          view={view}
          past={past}
          empty={filter === "" ? nothingDeparted(view) : words.noMatch(filter)}
        />
        <MoreButton view={view} count={found.length} onMore={onMore} />
      </section>
      <Meanings view={view} />
    </div>
  );
}

/** The one place where the board says what each outcome means; every row leads here. */
function Meanings({ view: { words } }: { readonly view: PageView }): VNode {
  return (
    <section aria-labelledby="meanings">
      <h2 id="meanings">{words.outcomesMean}</h2>
      <dl class="meanings">
        {outcomes.map((outcome) => (
          <div key={outcome}>
            <dt class={`outcome ${outcome}`}>{words.outcomesWords[outcome]}</dt>
            <dd>{words.outcomeMeanings[outcome]}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

type OutcomeCounts = OutcomeDay["outcomes"];

/** The number of ended departures shown at first; more are shown on request. */
const endedShown = 100;

function countOf({ outcomes: counts }: { readonly outcomes: OutcomeCounts }): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

type AskedCounts =
  | { readonly kind: "Asking" }
  | { readonly kind: "Counted"; readonly counted: CountedOutcomes }
  | { readonly kind: "Problem"; readonly problem: string };

/** What Prometheus has counted, requested when the page is opened. */
function useCounted(isCounted: boolean): AskedCounts {
  const [asked, setAsked] = useState<AskedCounts>({ kind: "Asking" });
  useEffect(() => {
    if (!isCounted) return;
    getJson("api/outcomes")
      .then(({ status, json }) => {
        if (status === 200) setAsked({ kind: "Counted", counted: json as CountedOutcomes });
        else setAsked({ kind: "Problem", problem: problemIn(json) });
      })
      .catch(() => setAsked({ kind: "Problem", problem: "" }));
  }, [isCounted]);
  return asked;
}

interface AskedProps {
  readonly view: PageView;
  readonly asked: AskedCounts;
}

function Counted({ view, asked }: AskedProps): VNode {
  const { words } = view;
  return (
    <section aria-labelledby="counted">
      <h2 id="counted">{words.counted}</h2>
      <p class="dim">{words.countedNote}</p>
      {asked.kind === "Asking" ? <p class="dim">{words.previewing}</p> : null}
      {asked.kind === "Problem" ? (
        <p class="held" role="alert" dir="auto">
          {asked.problem === "" ? words.unheard : `${asked.problem}.`}
        </p>
      ) : null}
      {asked.kind === "Counted" ? <CountedTable view={view} days={asked.counted.days} /> : null}
    </section>
  );
}

/** How much of the notice periods was used, by the stored departures and by Prometheus. */
function AtNotice({ view, asked }: AskedProps): VNode | null {
  const { words, picture, language } = view;
  const own = noticeFigures(picture.past);
  const counted = asked.kind === "Counted" ? asked.counted.notices : undefined;
  const within = (ms: number): string => words.withinSpan(fineSpanText(ms, language));
  const atLeast = (ms: number): string => words.atLeastSpan(fineSpanText(ms, language));
  const rowsOf = (name: "toCordon" | "timeLeft") =>
    [
      { source: words.departuresBelow, figure: own[name] },
      { source: words.prometheusDays, figure: counted?.[name] ?? null },
    ].filter((row): row is { source: string; figure: NoticeFigure } => row.figure !== null);
  const figures = [
    { name: words.noticeToCordon, say: within, rows: rowsOf("toCordon") },
    { name: words.timeLeft, say: atLeast, rows: rowsOf("timeLeft") },
  ];
  if (figures.every(({ rows }) => rows.length === 0)) return null;
  return (
    <section aria-labelledby="at-notice">
      <h2 id="at-notice">{words.atNotice}</h2>
      <p class="dim">{words.atNoticeNote}</p>
      <div class="scroll" tabIndex={0} role="region" aria-label={words.atNoticeNote}>
        <table class="notice-figures stacks">
          <thead>
            <tr>
              <th scope="col">{words.figure}</th>
              <th scope="col">{words.source}</th>
              <th scope="col" class="number">
                {words.notices}
              </th>
              <th scope="col">{words.half}</th>
              <th scope="col">{words.nearlyAll}</th>
            </tr>
          </thead>
          <tbody>
            {figures.flatMap(({ name, say, rows }) =>
              rows.map(({ source, figure }, place) => (
                <tr key={`${name} ${source}`}>
                  {place === 0 ? <td rowSpan={rows.length}>{name}</td> : null}
                  <td>{source}</td>
                  <td class="number" data-label={words.notices}>
                    {figure.notices}
                  </td>
                  <td data-label={words.half}>{say(figure.medianMs)}</td>
                  <td data-label={words.nearlyAll}>{say(figure.worstMs)}</td>
                </tr>
              )),
            )}
          </tbody>
        </table>
      </div>
    </section>
  );
}

interface CountedProps {
  readonly view: PageView;
  readonly days: readonly CountedDay[];
}

function CountedTable({ view, days }: CountedProps): VNode {
  const { words } = view;
  if (days.length === 0) return <p class="empty">{words.nothingCounted}</p>;
  const most = Math.max(1, ...days.flatMap(({ policies }) => policies.map(countOf)));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={words.countedNote}>
      <table class="days stacks">
        <thead>
          <tr>
            <th scope="col">{words.day}</th>
            <th scope="col">{words.policy}</th>
            <th scope="col">{words.outcomes}</th>
            <th scope="col" class="number">
              {words.podsForced}
            </th>
          </tr>
        </thead>
        <tbody>
          {days.flatMap(({ day, policies, podsForced }) =>
            // Pods are counted per day, across policies.
            (policies.length === 0 ? [{ policy: "", outcomes: {} }] : policies).map(
              ({ policy, outcomes: counts }, place) => (
                <tr key={`${day} ${policy}`}>
                  <td class="when">{place === 0 ? day : ""}</td>
                  <td>{policy === "" ? "–" : policy}</td>
                  <Shares view={view} counts={counts} most={most} />
                  <td class="number" data-label={place === 0 ? words.podsForced : undefined}>
                    {place === 0 ? podsForced : ""}
                  </td>
                </tr>
              ),
            ),
          )}
        </tbody>
      </table>
    </div>
  );
}

interface Day {
  readonly view: PageView;
  readonly day: OutcomeDay;
  /** Per day: the bar takes the available width. */
  readonly most: number;
}

function DayRow({ view, day, most }: Day): VNode {
  const { words } = view;
  const pods = [
    { name: words.podsCut, count: day.podsCut },
    { name: words.podsForced, count: day.podsForced },
    { name: words.podsLost, count: day.podsLost },
  ];
  return (
    <tr>
      <td class="when">{day.day}</td>
      <td>{day.policy ?? "–"}</td>
      <Shares view={view} counts={day.outcomes} most={most} />
      {pods.map(({ name, count }) => (
        <td key={name} class="number" data-label={name}>
          {count}
        </td>
      ))}
    </tr>
  );
}

interface SharesProps {
  readonly view: PageView;
  readonly counts: OutcomeCounts;
  readonly most: number;
}

function Shares({ view: { words }, counts, most }: SharesProps): VNode {
  const found = outcomes.flatMap((outcome) => {
    const count = counts[outcome] ?? 0;
    return count === 0 ? [] : [{ outcome, count }];
  });
  return (
    <td class="shares">
      <span class="bars" aria-hidden="true">
        {found.map(({ outcome, count }) => (
          <i key={outcome} class={outcome} style={{ width: `${(100 * count) / most}%` }} />
        ))}
      </span>
      {found.map(({ outcome, count }) => (
        <span key={outcome} class={`outcome ${outcome}`}>
          {words.outcomesWords[outcome]} {count}
        </span>
      ))}
    </td>
  );
}
