import type { SupposedPicture } from "../../board/picture.ts";
import { filteredRows } from "../../board/row-filter.ts";
import {
  type BoardRow,
  hasNoPolicy,
  isDryRun,
  type PolicyCard,
  unreadLists,
} from "../../board/stream.ts";
import { type PolicyAct, PolicyActs } from "../act/act-buttons.tsx";
import type { ListView } from "../list-choice.ts";
import { FilterField } from "../list-tools.tsx";
import { useState, type VNode } from "../preact.ts";
import { laneRows } from "../row-list.tsx";
import { nodeLink, type PageView } from "../view-state.ts";
import { WhatIfSection } from "../what-if/what-if-section.tsx";
import { Sentence } from "../words/sentence.tsx";
import { momentText, spanText } from "../words/time-text.ts";
import { behindShare, TimelineDrawing, waveText } from "./timeline-drawing.tsx";
import { firstSpan, hourMs, PolicyStanding, spans } from "./timeline-lane.tsx";

/** More lanes than this cannot be read; the filter reduces them. */
const mostLanes = 400;

interface TimelineProps extends ActProps {
  readonly list: ListView;
}

interface ActProps {
  readonly view: PageView;
  readonly onAct: (act: PolicyAct, card: PolicyCard) => void;
}

export function TimelinePage({ view, list, onAct }: TimelineProps): VNode {
  const { words, picture, language } = view;
  const [hours, setHours] = useState<number>(() => firstSpan(picture.rows, view.now));
  const [isTable, setTable] = useState(false);
  const [asked, setAsked] = useState<string | undefined>(undefined);
  const [supposed, setSupposed] = useState<SupposedPicture | undefined>(undefined);
  const shown = supposed === undefined ? view : { ...view, picture: { ...picture, ...supposed } };
  const found = filteredRows(shown.picture.rows, list.choice.filter);
  const rows = laneRows(found, mostLanes);
  const card = picture.policies.find(({ name }) => name === asked);
  return (
    <div class="timeline">
      <Cards {...{ view, onAct, asked, onAsk: setAsked }} />
      <div class={card === undefined ? "" : "supposing"}>
        {card === undefined ? null : (
          <WhatIfSection
            key={card.name}
            {...{ view, card, onSuppose: setSupposed }}
            onClose={() => setAsked(undefined)}
          />
        )}
        <div class="shown">
          <div class="tools">
            <div class="choices" role="group" aria-label={words.timeline}>
              {spans.map((one) => (
                <button
                  key={one}
                  type="button"
                  aria-pressed={one === hours}
                  onClick={() => setHours(one)}
                >
                  {words.hoursShown(one)}
                </button>
              ))}
            </div>
            <span class="dim around">
              {words.hoursAround(
                spanText(hours * behindShare * hourMs, language),
                spanText(hours * hourMs, language),
              )}
            </span>
            <button type="button" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
              {isTable ? words.asDrawing : words.asTable}
            </button>
            <FilterField view={view} list={list} />
          </div>
          {rows.length === found.length ? null : (
            <p class="dim">{words.someLanes(rows.length, found.length)}</p>
          )}
          {isTable ? (
            <LaneTable view={shown} rows={rows} />
          ) : (
            <TimelineDrawing
              {...{ view: shown, rows, hours, all: found }}
              before={supposed === undefined ? undefined : picture.rows}
            />
          )}
        </div>
      </div>
    </div>
  );
}

interface CardsProps extends ActProps {
  /** The policy of the what-if. */
  readonly asked: string | undefined;
  readonly onAsk: (policy: string | undefined) => void;
}

function Cards({ view, onAct, asked, onAsk }: CardsProps): VNode | null {
  const { words, picture } = view;
  // The policies may be unknown: the page says elsewhere which permission is missing.
  if (picture.policies.length === 0 && !hasNoPolicy(picture)) return null;
  return (
    <section aria-label={words.policy} class="cards">
      {picture.policies.map((one) => (
        <Card
          key={one.id}
          {...{ view, onAct, card: one, isAsked: one.name === asked }}
          onAsk={() => onAsk(one.name === asked ? undefined : one.name)}
        />
      ))}
      {hasNoPolicy(picture) ? <p class="empty">{words.noPolicy}</p> : null}
    </section>
  );
}

interface CardProps extends ActProps {
  readonly card: PolicyCard;
  readonly isAsked: boolean;
  readonly onAsk: () => void;
}

function Card({ view, card, onAct, isAsked, onAsk }: CardProps): VNode {
  const { words, picture } = view;
  const isUnread = unreadLists(picture.fleet.missing).includes("nodes");
  return (
    <article class="card">
      <h2>
        {card.name} {isUnread ? null : <span class="count">{words.matched(card.matched)}</span>}
      </h2>
      <PolicyStanding view={view} card={card} />
      <PolicyActs view={view} card={card} onAct={onAct}>
        <button class="ask" type="button" aria-expanded={isAsked} onClick={onAsk}>
          {words.whatIf}
        </button>
      </PolicyActs>
    </article>
  );
}

function LaneTable({
  view,
  rows,
}: {
  readonly view: PageView;
  readonly rows: readonly BoardRow[];
}): VNode {
  const { words, language, now } = view;
  const moment = (at: number | null): string => (at === null ? "–" : momentText(at, now, language));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={words.timeline}>
      <table class="lanes">
        <thead>
          <tr>
            {[
              words.node,
              words.zone,
              words.launched,
              words.earliest,
              words.time,
              words.deadline,
              words.why,
            ].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id}>
              <td>
                <a class="name" href={nodeLink(row.node)}>
                  {row.node}
                </a>
                {isDryRun(row, view.picture) ? <span class="held"> · {words.dryRun}</span> : null}
              </td>
              <td>{row.zone}</td>
              <td>{moment(row.bornAt)}</td>
              <td>{moment(row.earliestAt)}</td>
              <td>{moment(row.departAt)}</td>
              <td>{moment(row.deadlineAt)}</td>
              <td class="why">
                <Sentence view={view} text={row.explain} /> {waveText(row, view)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
