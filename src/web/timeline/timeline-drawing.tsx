import type { BoardRow, ShutSpan } from "../../board/stream.ts";
import type { WaveSpan } from "../../board/wave-spans.ts";
import { useEffect, useMemo, useRef, useState, type VNode } from "../preact.ts";
import { nodeLink, type PageView } from "../view-state.ts";
import { clockText, dayText } from "../words/format.ts";
import { Sentence } from "../words/sentence.tsx";

export const hourMs = 3_600_000;
/** So much of the time that is shown has passed already. */
export const behindShare = 1 / 8;
const laneHeight = 24;
const headHeight = 40;
const zoneHeight = 26;

interface Scale {
  readonly fromAt: number;
  readonly toAt: number;
  readonly left: number;
  readonly width: number;
}

interface Drawing {
  readonly view: PageView;
  readonly rows: readonly BoardRow[];
  readonly hours: number;
  /** The rows as they are, where others are supposed. */
  readonly before?: readonly BoardRow[] | undefined;
}

/** A lane a node, by zone. */
export function TimelineDrawing({ view, rows, hours, before }: Drawing): VNode {
  const { words, now } = view;
  const [box, width] = useWidth();
  const [picked, setPicked] = useState<string | undefined>(undefined);
  const left = width < 600 ? 96 : 190;
  const span = hours * hourMs;
  const fromAt = now - span * behindShare;
  const scale: Scale = { fromAt, toAt: fromAt + span, left, width };
  const lanes = useMemo(() => placed(rows), [rows]);
  const height = (lanes.at(-1)?.top ?? headHeight) + laneHeight + 12;
  const row = rows.find(({ id }) => id === picked);
  const ghosts = useMemo(() => new Map(before?.map((one) => [one.id, one.departAt])), [before]);
  const cards = new Map(view.picture.policies.map((card) => [card.name, card]));
  const step = (event: KeyboardEvent): void => {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (by === 0 || rows.length === 0) return;
    event.preventDefault();
    const at = rows.findIndex(({ id }) => id === picked);
    setPicked(rows[Math.min(rows.length - 1, Math.max(0, at + by))]?.id);
  };
  return (
    <figure class="drawing">
      <Legend view={view} isSupposed={before !== undefined} />
      <div ref={box} class="canvas">
        <svg
          width={width}
          height={height}
          viewBox={`0 0 ${width} ${height}`}
          role="application"
          // As SVG spells it: attributes of its elements keep their case.
          tabindex={0}
          aria-label={`${words.drawing}. ${words.focusHint}`}
          aria-describedby="lane-why"
          onKeyDown={step}
          onMouseLeave={() => setPicked(undefined)}
        >
          <Hatch />
          <Hours view={view} scale={scale} hours={hours} height={height} />
          {lanes.map((lane) => (
            <LaneLine
              key={lane.row.id}
              lane={lane}
              spans={cards.get(lane.row.policy ?? "")?.shut ?? []}
              waves={cards.get(lane.row.policy ?? "")?.waves ?? []}
              scale={scale}
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
      <figcaption id="lane-why" aria-live="polite">
        {row === undefined ? (
          words.focusHint
        ) : (
          <>
            <Sentence view={view} text={row.explain} class="" /> {waveText(row, view)}
          </>
        )}
      </figcaption>
    </figure>
  );
}

/** `Wave 2 of 3.` */
export function waveText({ wave, policy }: BoardRow, { words, picture }: PageView): string {
  const span = picture.policies
    .find(({ name }) => name === policy)
    ?.waves.find((one) => one.wave === wave);
  return span === undefined ? "" : words.waveOf(span.wave, span.of);
}

function useWidth() {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(960);
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const measure = (): void => setWidth(Math.max(280, Math.floor(element.clientWidth)));
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);
  return [box, width] as const;
}

interface Lane {
  readonly row: BoardRow;
  readonly top: number;
  /** Where it is the first of its zone. */
  readonly zone: string | undefined;
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

function xOf(at: number, { fromAt, toAt, left, width }: Scale): number {
  const share = (at - fromAt) / (toAt - fromAt);
  return left + Math.min(1, Math.max(0, share)) * (width - left - 8);
}

function isShown(at: number | null, { fromAt, toAt }: Scale): at is number {
  return at !== null && at >= fromAt && at <= toAt;
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

interface ShadesProps {
  readonly spans: readonly ShutSpan[];
  readonly scale: Scale;
  readonly top: number;
}

/** When the node's own policy lets nothing start. */
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

/** The waves of the node's policy; its own has its number. */
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
              <text x={x - 4} y={top + laneHeight / 2 + 4}>
                {span.wave}
              </text>
            ) : null}
          </g>
        );
      })}
    </g>
  );
}

function Hours({ view, scale, hours, height }: Ground & { readonly hours: number }): VNode {
  const perTick = (hours > 24 ? 6 : hours > 12 ? 3 : 1) * (scale.width < 700 ? 2 : 1) * hourMs;
  const first = Math.ceil(scale.fromAt / perTick) * perTick;
  const count = Math.max(0, Math.floor((scale.toAt - first) / perTick) + 1);
  const ticks = Array.from({ length: count }, (_, place) => first + place * perTick);
  let day = "";
  return (
    <g class="hours" aria-hidden="true">
      {ticks.map((at) => {
        const x = xOf(at, scale);
        const newDay = dayText(at, view.language);
        const isNew = newDay !== day;
        day = newDay;
        return (
          <g key={at}>
            <line x1={x} x2={x} y1={headHeight - 4} y2={height} />
            <text x={x} y={headHeight - 10}>
              {clockText(at)}
            </text>
            {isNew ? (
              <text class="day" x={x} y={headHeight - 26}>
                {newDay}
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
  readonly spans: readonly ShutSpan[];
  readonly waves: readonly WaveSpan[];
  readonly scale: Scale;
  /** When it leaves as things are, where something else is supposed. */
  readonly ghostAt: number | null;
  readonly isPicked: boolean;
  readonly onPick: () => void;
}

function LaneLine({ lane, spans, waves, scale, ghostAt, isPicked, onPick }: LaneProps): VNode {
  const { row, top, zone } = lane;
  const y = top + laneHeight / 2;
  const { bornAt, deadlineAt, earliestAt, departAt, noticedAt } = row;
  const from = xOf(earliestAt ?? departAt ?? bornAt ?? scale.fromAt, scale);
  const to = xOf(deadlineAt ?? scale.toAt, scale);
  return (
    <g class={`lane ${row.state}`} onMouseEnter={onPick}>
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
          {shortened(row.node, scale.left)}
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
      {isShown(departAt, scale) ? (
        <circle class="depart" cx={xOf(departAt, scale)} cy={y} r={isPicked ? 7 : 5.5} />
      ) : null}
      {isShown(noticedAt, scale) ? (
        <path class="notice" d={`M${xOf(noticedAt, scale)} ${y - 8}l7 13h-14z`} />
      ) : null}
    </g>
  );
}

/** The end of a name tells it from its neighbours. */
function shortened(name: string, space: number): string {
  const most = Math.floor(space / 7.4);
  return name.length <= most ? name : `…${name.slice(1 - most)}`;
}

interface LegendProps {
  readonly view: PageView;
  readonly isSupposed: boolean;
}

function Legend({ view: { words, picture }, isSupposed }: LegendProps): VNode {
  const hasWaves = picture.policies.some(({ waves }) => waves.length > 0);
  const marks = [
    ["depart", words.legendPlanned],
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
