import type { BoardRow, PolicyCard } from "../../board/stream.ts";
import { type PolicyAct, PolicyActs } from "../act/act-buttons.tsx";
import { useState, type VNode } from "../preact.ts";
import { filteredRows, laneRows } from "../row-order.ts";
import { nodeLink, type PageView } from "../view-state.ts";
import { clockText, momentText, spanText } from "../words/format.ts";
import { Sentence } from "../words/sentence.tsx";
import { TimelineDrawing } from "./timeline-drawing.tsx";

const spans = [12, 24, 48] as const;
/** More lanes than that are no picture any more; the filter narrows them down. */
const mostLanes = 400;

interface TimelineProps {
  readonly view: PageView;
  readonly onAct: (act: PolicyAct, card: PolicyCard) => void;
}

export function TimelinePage({ view, onAct }: TimelineProps): VNode {
  const { words, picture } = view;
  const [hours, setHours] = useState<number>(24);
  const [isTable, setTable] = useState(false);
  const [filter, setFilter] = useState("");
  const rows = laneRows(filteredRows(picture.rows, filter)).slice(0, mostLanes);
  return (
    <div class="timeline">
      <section aria-label={words.policy} class="cards">
        {picture.policies.map((card) => (
          <Card key={card.id} view={view} card={card} onAct={onAct} />
        ))}
      </section>
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
        <button type="button" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
          {isTable ? words.asDrawing : words.asTable}
        </button>
        <input
          class="filter"
          type="search"
          aria-label={words.filter}
          placeholder={words.filterHint}
          value={filter}
          onInput={({ currentTarget }) => setFilter(currentTarget.value)}
        />
      </div>
      {isTable ? (
        <LaneTable view={view} rows={rows} />
      ) : (
        <TimelineDrawing view={view} rows={rows} hours={hours} />
      )}
    </div>
  );
}

function Card({ view, card, onAct }: TimelineProps & { readonly card: PolicyCard }): VNode {
  const { words, language, now } = view;
  const { freezeUntil } = card;
  const isFrozen = freezeUntil !== null && freezeUntil > now;
  return (
    <article class="card">
      <h2>
        {card.name} <span class="count">{words.matched(card.matched)}</span>
      </h2>
      <p class={card.isFeasible ? "good" : "held"}>
        {card.problem !== null
          ? words.unreadable
          : card.isFeasible
            ? words.feasible
            : words.infeasible}
        {card.isPaused ? ` · ${words.paused}` : ""}
        {card.isDryRun ? ` · ${words.dryRun}` : ""}
        {isFrozen ? ` · ${words.frozenUntil(momentText(freezeUntil, now, language))}` : ""}
      </p>
      <p>
        <Sentence view={view} text={card.problem ?? card.forecast} />
      </p>
      <Spacing view={view} card={card} />
      <PolicyActs view={view} card={card} onAct={onAct} />
    </article>
  );
}

/** Three bars on one scale: what was asked for, what there is, and what there could be at best. */
function Spacing({
  view,
  card,
}: {
  readonly view: PageView;
  readonly card: PolicyCard;
}): VNode | null {
  const { words, language } = view;
  const all = [
    [words.wanted, card.wantedMs],
    [words.reached, card.reachedMs],
    [words.best, card.bestMs],
  ] as const;
  const known = all.filter(([, ms]) => ms !== null);
  const most = Math.max(1, ...known.map(([, ms]) => ms ?? 0));
  if (known.length === 0) return null;
  return (
    <dl class="spacing" aria-label={words.spacing}>
      {known.map(([name, ms]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <i aria-hidden="true" style={{ width: `${(60 * (ms ?? 0)) / most}%` }} />
            {spanText(ms ?? 0, language)}
          </dd>
        </div>
      ))}
    </dl>
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
              </td>
              <td>{row.zone}</td>
              <td>{moment(row.bornAt)}</td>
              <td>{moment(row.earliestAt)}</td>
              <td>{row.departAt === null ? "–" : clockText(row.departAt)}</td>
              <td>{moment(row.deadlineAt)}</td>
              <td class="why">
                <Sentence view={view} text={row.explain} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
