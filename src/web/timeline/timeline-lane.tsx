/** One lane of the timeline. */
import { cutName } from "../../board/name-parts.ts";
import {
  type BoardRow,
  type ClosedSpan,
  type PolicyCard,
  unreadLists,
  type WaveSpan,
} from "../../board/stream.ts";
import { openNode } from "../browser.ts";
import type { VNode } from "../preact.ts";
import { nodeLink, type PageView } from "../view-state.ts";
import { BriefSentence } from "../words/sentence.tsx";
import { momentText, spanText } from "../words/time-text.ts";
import type { Words } from "../words/words-english.ts";

export const hourMs = 3_600_000;
export const laneHeight = 24;

export interface Scale {
  readonly fromAt: number;
  readonly toAt: number;
  readonly left: number;
  readonly width: number;
}

export interface Lane {
  readonly row: BoardRow;
  readonly top: number;
  /** On the first lane of its zone. */
  readonly zone: string | undefined;
}

export function xOf(at: number, { fromAt, toAt, left, width }: Scale): number {
  const share = (at - fromAt) / (toAt - fromAt);
  return left + Math.min(1, Math.max(0, share)) * (width - left - 8);
}

/** When it leaves or began to. */
function markedAt({ state, startedAt, departAt }: BoardRow): number | null {
  return state === "Leaving" ? (startedAt ?? departAt) : departAt;
}

/** The departures that a drawing does not reach. */
export function beyondCounts(
  rows: readonly BoardRow[],
  { fromAt, toAt }: Pick<Scale, "fromAt" | "toAt">,
): { readonly earlier: number; readonly later: number } {
  const times = rows.map(markedAt).filter((at) => at !== null);
  return {
    earlier: times.filter((at) => at < fromAt).length,
    later: times.filter((at) => at > toAt).length,
  };
}

/** How many hours ahead a drawing may show. */
export const spans = [12, 24, 48] as const;

/** The fewest with all departures, but a day if some leave within it; two, if none does. */
export function firstSpan(rows: readonly BoardRow[], now: number): (typeof spans)[number] {
  const ahead = rows.map(markedAt).filter((at) => at !== null && at >= now) as number[];
  if (ahead.length === 0) return 24;
  const within = (hours: number) => ahead.filter((at) => at <= now + hours * hourMs).length;
  if (within(12) === ahead.length) return 12;
  return within(24) > 0 ? 24 : 48;
}

function isShown(at: number | null, { fromAt, toAt }: Scale): at is number {
  return at !== null && at >= fromAt && at <= toAt;
}

interface ShadesProps {
  readonly spans: readonly ClosedSpan[];
  readonly scale: Scale;
  readonly top: number;
}

/** When the node's policy allows no start. */
function Shades({ spans, scale, top }: ShadesProps): VNode {
  return (
    <g aria-hidden="true">
      {spans.map(({ startAt, endAt, why }) => {
        const x = xOf(startAt, scale);
        const wide = xOf(endAt, scale) - x;
        if (wide <= 0) return null;
        return (
          <rect
            key={`${why} ${startAt}`}
            class={why === "Freeze" ? "freeze" : "shut"}
            {...{ x, y: top, width: wide, height: laneHeight }}
          />
        );
      })}
    </g>
  );
}

interface WaveProps {
  readonly waves: readonly WaveSpan[];
  /** The node's own. */
  readonly wave: number | null;
  readonly scale: Scale;
  readonly top: number;
}

/** The waves of the node's policy; its own wave shows its number. */
function WaveShades({ waves, wave, scale, top }: WaveProps): VNode {
  return (
    <g aria-hidden="true">
      {waves.map((span) => {
        const x = xOf(span.startAt, scale);
        const wide = xOf(span.endAt, scale) - x;
        if (wide <= 0) return null;
        const isOwn = span.wave === wave;
        return (
          <g key={span.wave} class={isOwn ? "wave own" : "wave"}>
            <rect {...{ x, y: top, width: wide, height: laneHeight }} />
            {isOwn ? (
              <text x={x - 8} y={top + laneHeight / 2 - 2}>
                {span.wave}
              </text>
            ) : null}
          </g>
        );
      })}
    </g>
  );
}

interface LaneProps {
  readonly lane: Lane;
  readonly spans: readonly ClosedSpan[];
  readonly waves: readonly WaveSpan[];
  readonly scale: Scale;
  /** Whether its departure is only tried, and never carried out. */
  readonly isDryRun: boolean;
  /** When it actually leaves, if the drawing shows something supposed. */
  readonly ghostAt: number | null;
  readonly isPicked: boolean;
  readonly onPick: () => void;
}

export function LaneLine({
  lane,
  spans,
  waves,
  scale,
  isDryRun,
  ghostAt,
  isPicked,
  onPick,
}: LaneProps): VNode {
  const { row, top, zone } = lane;
  const y = top + laneHeight / 2;
  const { bornAt, deadlineAt, earliestAt, departAt, noticedAt } = row;
  const isLeaving = row.state === "Leaving";
  const markAt = markedAt(row);
  const from = xOf(earliestAt ?? departAt ?? bornAt ?? scale.fromAt, scale);
  const to = xOf(deadlineAt ?? scale.toAt, scale);
  return (
    <g
      class={`lane ${row.frozenUntil === null ? row.state : "Held"}${isDryRun ? " dry-run" : ""}`}
      onMouseEnter={onPick}
      onClick={() => openNode(row.node)}
    >
      {zone === undefined ? null : (
        <text class="zone" x="0" y={top - 7}>
          {zone === "" ? "–" : zone}
        </text>
      )}
      <rect
        class={isPicked ? "row picked" : "row"}
        {...{ x: 0, y: top, width: scale.width, height: laneHeight }}
      />
      <Shades spans={spans} scale={scale} top={top} />
      <WaveShades waves={waves} wave={row.wave} scale={scale} top={top} />
      <a href={nodeLink(row.node)} tabindex={-1}>
        <text class="node" x="0" y={y + 4}>
          {laneName(row.node, scale.left)}
        </text>
      </a>
      <line class="life" x1={xOf(bornAt ?? scale.fromAt, scale)} x2={to} y1={y} y2={y} />
      <line class="allowed" x1={from} x2={Math.max(from, to)} y1={y} y2={y} />
      {isShown(earliestAt, scale) ? (
        <line class="earliest" x1={from} x2={from} y1={y - 5} y2={y + 5} />
      ) : null}
      {isShown(deadlineAt, scale) ? (
        <line class="deadline" x1={to} x2={to} y1={y - 8} y2={y + 8} />
      ) : null}
      {ghostAt !== departAt && isShown(ghostAt, scale) ? (
        <circle class="ghost" cx={xOf(ghostAt, scale)} cy={y} r={5} />
      ) : null}
      {isShown(markAt, scale) ? (
        <DepartMark x={xOf(markAt, scale)} {...{ y, isPicked, isLeaving }} />
      ) : null}
      {markAt !== null && markAt > scale.toAt ? (
        <path class="beyond" d={`M${scale.width - 12} ${y - 5}l8 5l-8 5`} />
      ) : null}
      {markAt !== null && markAt < scale.fromAt ? (
        <path class="beyond" d={`M${scale.left + 8} ${y - 5}l-8 5l8 5`} />
      ) : null}
      {isShown(noticedAt, scale) ? (
        <path class="notice" d={`M${xOf(noticedAt, scale)} ${y - 8}l7 13h-14z`} />
      ) : null}
    </g>
  );
}

interface MarkProps {
  readonly x: number;
  readonly y: number;
  readonly isPicked: boolean;
  readonly isLeaving: boolean;
}

/** An arrow marks what is leaving: not everybody can tell the colours apart. */
function DepartMark({ x, y, isPicked, isLeaving }: MarkProps): VNode {
  const size = isPicked ? 7 : 5.5;
  return isLeaving ? (
    <path
      class="depart"
      d={`M${x - size} ${y - size - 2}l${size * 2.4} ${size + 2}l${-size * 2.4} ${size + 2}z`}
    />
  ) : (
    <circle class="depart" cx={x} cy={y} r={size} />
  );
}

/** The part of a name that fits next to the lane. */
export function laneName(name: string, space: number): string {
  return cutName(name, Math.floor(space / 7.4));
}

function isOnSchedule({ standing, isDryRun, held }: PolicyCard): boolean {
  return standing === "InTime" && !isDryRun && held === 0;
}

/** A policy that is paused, matches nothing or only tries is on no schedule. */
export function standingWord(card: PolicyCard, words: Words): string {
  if (card.problem !== null) return words.unreadable;
  if (card.standing === "Paused") return words.paused;
  if (card.standing === "NoNodes") return words.noNodes;
  if (card.isDryRun) return words.dryRun;
  if (card.standing !== "InTime") return words.infeasible;
  return card.held === 0 ? words.feasible : words.heldBack(card.held);
}

interface StandingProps {
  readonly view: PageView;
  readonly card: PolicyCard;
}

/** Whether a policy's plan can be kept, why not, and how far apart its departures are. */
export function PolicyStanding({ view, card }: StandingProps): VNode {
  const { words, language, now, picture } = view;
  const { freezeUntil } = card;
  const isFrozen = freezeUntil !== null && freezeUntil > now;
  // Without the nodes, the plan is empty, and says nothing about the policy.
  if (unreadLists(picture.fleet.missing).includes("nodes")) {
    return <p class="held">{words.notRead}</p>;
  }
  return (
    <>
      <p class={isOnSchedule(card) ? "good" : "held"}>
        {standingWord(card, words)}
        {isFrozen ? ` · ${words.frozenUntil(momentText(freezeUntil, now, language))}` : ""}
      </p>
      <p>
        <BriefSentence view={view} text={card.problem ?? card.forecast} />
      </p>
      <Spacing view={view} card={card} />
    </>
  );
}

/** Three bars on one scale: the spacing requested, the actual one, and the best possible. */
function Spacing({ view, card }: StandingProps): VNode | null {
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
