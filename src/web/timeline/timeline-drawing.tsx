import { type BoardRow, isDryRun } from "../../board/stream.ts";
import { openNode } from "../browser.ts";
import { useEffect, useLayoutEffect, useMemo, useRef, useState, type VNode } from "../preact.ts";
import type { PageView } from "../view-state.ts";
import { Sentence } from "../words/sentence.tsx";
import { clockText, dayText } from "../words/time-text.ts";
import {
  beyondCounts,
  hourMs,
  type Lane,
  LaneLine,
  laneHeight,
  type Scale,
  xOf,
} from "./timeline-lane.tsx";

/** How much of the past is shown, as a share of the hours ahead. */
export const behindShare = 1 / 8;
const headHeight = 40;
const zoneHeight = 26;
/** Of a date above the hours. */
const dayWidth = 84;
/** Of two hours side by side, the last of which ends at the edge. */
const hourWidth = 64;

interface Drawing {
  readonly view: PageView;
  readonly rows: readonly BoardRow[];
  /** Those without a lane too: how many are outside of the drawing is counted over all of them. */
  readonly all: readonly BoardRow[];
  /** How far ahead it reaches. */
  readonly hours: number;
  /** The actual rows, if the drawing shows supposed ones. */
  readonly before?: readonly BoardRow[] | undefined;
}

/** One lane per node, by zone. */
export function TimelineDrawing({ view, rows, all, hours, before }: Drawing): VNode {
  const { words, now } = view;
  const [box, { width, zoom }] = useRoom();
  const seen = useSeen(box, zoom);
  const [picked, setPicked] = useState<string | undefined>(undefined);
  const left = width < 600 ? 120 : 190;
  const span = hours * hourMs;
  const scale: Scale = { fromAt: now - span * behindShare, toAt: now + span, left, width };
  const lanes = useMemo(() => placed(rows), [rows]);
  const height = (lanes.at(-1)?.top ?? headHeight) + laneHeight + 12;
  const row = rows.find(({ id }) => id === picked);
  const ghosts = useMemo(() => new Map(before?.map((one) => [one.id, one.departAt])), [before]);
  const cards = new Map(view.picture.policies.map((card) => [card.name, card]));
  const step = (event: KeyboardEvent): void => {
    if (event.key === "Enter" && row !== undefined) openNode(row.node);
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (by === 0 || rows.length === 0) return;
    event.preventDefault();
    const at = rows.findIndex(({ id }) => id === picked);
    const next = Math.min(rows.length - 1, Math.max(0, at + by));
    setPicked(rows[next]?.id);
    showLane(box.current, lanes[next], zoom);
  };
  return (
    <figure class="drawing">
      <Legend view={view} isSupposed={before !== undefined} />
      <Beyond view={view} rows={all} scale={scale} />
      <div ref={box} class="canvas">
        <svg
          width={width * zoom}
          height={height * zoom}
          viewBox={`0 0 ${width} ${height}`}
          role="application"
          // SVG attribute names are case-sensitive.
          tabindex={0}
          aria-label={`${words.drawing}. ${words.focusHint}`}
          aria-describedby="lane-why"
          onKeyDown={step}
          onMouseLeave={() => setPicked(undefined)}
        >
          <Hatch />
          <Hours view={view} scale={scale} hours={hours} height={height} />
          {lanes
            .filter((lane) => isSeen(lane, seen))
            .map((lane) => (
              <LaneLine
                key={lane.row.id}
                lane={lane}
                spans={cards.get(lane.row.policy ?? "")?.shut ?? []}
                waves={cards.get(lane.row.policy ?? "")?.waves ?? []}
                scale={scale}
                isDryRun={isDryRun(lane.row, view.picture)}
                ghostAt={ghosts.get(lane.row.id) ?? null}
                isPicked={lane.row.id === picked}
                onPick={() => setPicked(lane.row.id)}
              />
            ))}
          <line
            class="now"
            x1={xOf(now, scale)}
            x2={xOf(now, scale)}
            y1={headHeight - 8}
            y2={height}
          />
        </svg>
      </div>
      <Caption view={view} row={row} />
    </figure>
  );
}

interface BeyondProps {
  readonly view: PageView;
  readonly rows: readonly BoardRow[];
  readonly scale: Scale;
}

/** How many departures are outside of what is drawn, on either side. */
function Beyond({ view: { words }, rows, scale }: BeyondProps): VNode | null {
  const { earlier, later } = beyondCounts(rows, scale);
  if (earlier + later === 0) return null;
  return (
    <p class="beyond">
      <span>{earlier === 0 ? "" : words.overdueCount(earlier)}</span>
      <span>{later === 0 ? "" : words.beyond(later)}</span>
    </p>
  );
}

interface CaptionProps {
  readonly view: PageView;
  readonly row: BoardRow | undefined;
}

/** Why the node under the pointer leaves at that time. */
function Caption({ view, row }: CaptionProps): VNode {
  return (
    <figcaption id="lane-why" aria-live="polite">
      {row === undefined ? (
        view.words.focusHint
      ) : (
        <>
          {isDryRun(row, view.picture) ? <span class="held">{view.words.dryRun} · </span> : null}
          <Sentence view={view} text={row.explain} class="" /> {waveText(row, view)}
        </>
      )}
    </figcaption>
  );
}

/** `Wave 2 of 3.` */
export function waveText({ wave, policy }: BoardRow, { words, picture }: PageView): string {
  const span = picture.policies
    .find(({ name }) => name === policy)
    ?.waves.find((one) => one.wave === wave);
  return span === undefined ? "" : words.waveOf(span.wave, span.of);
}

interface Room {
  /** In the drawing's own units. */
  readonly width: number;
  /** Page pixels per unit: on a wall display the page's text grows. */
  readonly zoom: number;
}

const plainFontSize = 16;

function useRoom() {
  const box = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState<Room>({ width: 960, zoom: 1 });
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const measure = (): void => {
      const fontSize = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
      const zoom = Math.max(1, fontSize / plainFontSize);
      setRoom({ width: Math.max(280, Math.floor(element.clientWidth / zoom)), zoom });
    };
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);
  return [box, room] as const;
}

interface SeenSpan {
  readonly top: number;
  readonly bottom: number;
}

/** Lanes are drawn this far above and below the visible part, so that scrolling shows no gap. */
const spareHeight = 480;

/** The visible part of the drawing, in steps: lanes far outside are not drawn. */
function useSeen(box: { readonly current: HTMLElement | null }, zoom: number): SeenSpan {
  const [seen, setSeen] = useState<SeenSpan>({ top: 0, bottom: 2 * spareHeight });
  useLayoutEffect(() => {
    const measure = (): void => {
      const top = -(box.current?.getBoundingClientRect().top ?? 0) / zoom;
      const step = (at: number): number => Math.round(at / spareHeight) * spareHeight;
      const next = {
        top: step(top) - spareHeight,
        bottom: step(top + innerHeight / zoom) + spareHeight,
      };
      setSeen((before) =>
        before.top === next.top && before.bottom === next.bottom ? before : next,
      );
    };
    measure();
    // What is above it may grow.
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      observer.disconnect();
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, [zoom]);
  return seen;
}

function isSeen({ top }: Lane, seen: SeenSpan): boolean {
  return top + laneHeight >= seen.top && top - zoneHeight <= seen.bottom;
}

/** The arrow keys continue past the end of the screen. */
function showLane(box: HTMLElement | null, lane: Lane | undefined, zoom: number): void {
  if (box === null || lane === undefined) return;
  const top = box.getBoundingClientRect().top + lane.top * zoom;
  // The sentence below the drawing stays on screen, over what is behind it.
  const room = innerHeight - 5 * laneHeight * zoom;
  if (top < 0) scrollBy(0, top - zoneHeight * zoom);
  else if (top > room) scrollBy(0, top - room);
}

function placed(rows: readonly BoardRow[]): readonly Lane[] {
  let top = headHeight;
  return rows.map((row, place) => {
    const isFirst = rows[place - 1]?.zone !== row.zone;
    if (isFirst) top += zoneHeight;
    const lane = { row, top, zone: isFirst ? row.zone : undefined };
    top += laneHeight;
    return lane;
  });
}

interface Ground {
  readonly view: PageView;
  readonly scale: Scale;
  readonly height: number;
}

function Hatch(): VNode {
  return (
    <defs>
      <pattern
        id="shut"
        width="7"
        height="7"
        patternUnits="userSpaceOnUse"
        patternTransform="rotate(45)"
      >
        <line class="hatch" x1="0" y1="0" x2="0" y2="7" />
      </pattern>
    </defs>
  );
}

function Hours({ view, scale, hours, height }: Ground & { readonly hours: number }): VNode {
  const perTick = (hours > 24 ? 6 : hours > 12 ? 3 : 1) * (scale.width < 700 ? 2 : 1) * hourMs;
  const first = Math.ceil(scale.fromAt / perTick) * perTick;
  const count = Math.max(0, Math.floor((scale.toAt - first) / perTick) + 1);
  const ticks = Array.from({ length: count }, (_, place) => first + place * perTick);
  const days = ticks.map((at) => dayText(at, view.language));
  // Two dates side by side do not fit: the later one says more.
  const tickWidth = xOf(first + perTick, scale) - xOf(first, scale);
  const isNarrow = (place: number): boolean =>
    days[place + 1] !== days[place] && tickWidth < dayWidth;
  return (
    <g class="hours" aria-hidden="true">
      {ticks.map((at, place) => {
        const x = xOf(at, scale);
        const isLast = x > scale.width - 32;
        const isNew = days[place] !== days[place - 1] && !isNarrow(place);
        return (
          <g key={at} class={isLast ? "last" : ""}>
            <line x1={x} x2={x} y1={headHeight - 4} y2={height} />
            {isLast && tickWidth < hourWidth ? null : (
              <text x={x} y={headHeight - 10}>
                {clockText(at)}
              </text>
            )}
            {isNew ? (
              <text class="day" x={x} y={headHeight - 26}>
                {days[place]}
              </text>
            ) : null}
          </g>
        );
      })}
    </g>
  );
}

interface LegendProps {
  readonly view: PageView;
  readonly isSupposed: boolean;
}

function Legend({ view: { words, picture }, isSupposed }: LegendProps): VNode {
  const hasWaves = picture.policies.some(({ waves }) => waves.length > 0);
  const hasDryRun = picture.policies.some((card) => card.isDryRun);
  const marks = [
    ["depart", words.legendPlanned],
    ...(hasDryRun ? [["dry-run", words.dryRun] as const] : []),
    ["leaving", words.leaving],
    ["held", words.held],
    ...(isSupposed ? [["ghost", words.legendBefore] as const] : []),
    ["deadline", words.legendDeadline],
    ["earliest", words.legendEarliest],
    ["notice", words.legendNotice],
    ["shut", words.legendShut],
    ["freeze", words.legendFreeze],
    ...(hasWaves ? [["wave", words.legendWave] as const] : []),
  ] as const;
  return (
    <ul class="legend">
      {marks.map(([mark, name]) => (
        <li key={mark}>
          <i class={mark} aria-hidden="true" />
          {name}
        </li>
      ))}
    </ul>
  );
}
