import type { WindowState } from "../../core/limits/window-state.ts";
import { between, formatInstant, type Instant } from "../../core/time/time.ts";
import type { FleetCounts } from "../../sim/simulation-report.ts";
import { nodeRow, rowHeads, rowWidths, spanText } from "./board-row.ts";
import type { BoardNews, BoardNode, BoardState } from "./board-state.ts";
import { cell, clipped, type StyledLine, type Tone } from "./styled-line.ts";

export interface BoardSize {
  readonly columns: number;
  readonly rows: number;
}

const mostNews = 8;

/**
 * The board in exactly as many lines as fit: head and totals always, then the nodes, then the
 * policies, air and the news. Where not all nodes fit, those under way and the next to leave are shown.
 */
export function board(state: BoardState, size: BoardSize): readonly StyledLine[] {
  const totals = totalLines(state);
  const head = [...headLines(state), ...policyLines(state, size.rows - totals.length)];
  const nodes = nodeLines(state, {
    ...size,
    rows: Math.max(1, size.rows - head.length - totals.length),
  });
  const room = Math.max(0, size.rows - head.length - nodes.length - totals.length);
  const news = newsLines(state.news, Math.max(0, room - 3));
  const lines = [
    ...head,
    ...air(room > 0),
    ...nodes,
    ...(news.length > 0 ? [[], ...news] : []),
    ...air(room > 1),
    ...totals,
  ];
  return lines.slice(0, size.rows).map((line) => clipped(line, size.columns));
}

function air(wanted: boolean): readonly StyledLine[] {
  return wanted ? [[]] : [];
}

function headLines(state: BoardState): readonly StyledLine[] {
  const zones = new Set(state.nodes.map((node) => node.zone)).size;
  const fleet = `${state.nodes.length} nodes in ${zones} ${zones === 1 ? "zone" : "zones"}`;
  const facts = [fleet, `${state.speed}x`, `${timeText(state.now)} UTC`, `seed ${state.seed}`];
  return [
    [cell(" Lastcall demo", "strong"), cell(`   ${facts.join("   ")}`)],
    [
      cell(` KUBECONFIG=${state.kubeconfig}`, "accent"),
      cell("   elsewhere: kubectl get dep,nodes", "dim"),
    ],
  ];
}

/** The windows, the forecast and the audit of each policy, where they cost no node its line. */
function policyLines(state: BoardState, rows: number): readonly StyledLine[] {
  const lines = state.policies.flatMap(({ name, windows, forecast, audit }) => {
    const indent = cell(` ${" ".repeat(name.length)}  `);
    return [
      [cell(` ${name}  `, "strong"), cell(windowText(windows, state.now), windowTone(windows))],
      [indent, cell(forecast, "dim")],
      ...(audit === undefined ? [] : [[indent, cell(audit, "dim")]]),
    ];
  });
  const headRows = 2;
  return rows >= headRows + lines.length + 1 + state.nodes.length ? lines : [];
}

function windowText({ state, until, window }: WindowState, now: Instant): string {
  const name = window === undefined ? "" : ` (window ${window})`;
  if (until === undefined) {
    return state === "Open" ? "open for departures at any time" : `shut for departures${name}`;
  }
  const clock = `${timeText(until).slice(11, 16)}, ${spanText(between(now, until))} from now`;
  return `${state === "Open" ? "open" : "shut"} for departures until ${clock}${name}`;
}

function windowTone({ state }: WindowState): Tone {
  return state === "Open" ? "good" : "warn";
}

function nodeLines(state: BoardState, size: BoardSize): readonly StyledLine[] {
  const { now } = state;
  const widths = rowWidths(state.nodes, size.columns);
  const room = size.rows - 1;
  const fits = state.nodes.length <= room;
  const shown = fits ? state.nodes : mostTelling(state.nodes, Math.max(0, room - 1));
  const rows = shown.map((node, index) => {
    const zone = shown[index - 1]?.zone === node.zone ? "" : node.zone;
    return nodeRow(node, { now, widths, zone });
  });
  const more = cell(` and ${state.nodes.length - shown.length} more`, "dim");
  return [rowHeads(widths), ...rows, ...(fits ? [] : [[more]])];
}

/** Those under way first, then by when they leave; shown in the board's order all the same. */
function mostTelling(nodes: readonly BoardNode[], count: number): readonly BoardNode[] {
  const rank = ({ doing }: BoardNode): number => {
    if (doing.kind === "Scheduled") return doing.departAt;
    return doing.kind === "Working" ? Number.POSITIVE_INFINITY : 0;
  };
  const chosen = new Set(nodes.toSorted((a, b) => rank(a) - rank(b)).slice(0, count));
  return nodes.filter((node) => chosen.has(node));
}

function newsLines(news: readonly BoardNews[], room: number): readonly StyledLine[] {
  const shown = news.slice(0, Math.min(mostNews, room));
  return shown.map(({ at, node, what, message }) => [
    cell(` ${timeText(at).slice(11)}  `, "dim"),
    cell(`${what.padEnd(10)}  `, newsTone(what)),
    cell(message.startsWith(node) ? message : `${node}: ${message}`),
  ]);
}

function newsTone(what: string): Tone {
  if (what === "Planned") return "good";
  return what === "Preempted" || what === "Expired" || what === "Taken" ? "bad" : "warn";
}

interface Total {
  readonly head: string;
  readonly of: (counts: FleetCounts) => number;
}

const totals: readonly Total[] = [
  { head: "PLANNED", of: (counts) => counts.plannedDepartures },
  { head: "TAKEN", of: (counts) => counts.preempted },
  { head: "PODS CUT", of: (counts) => counts.podsCut },
  { head: "PODS KILLED", of: (counts) => counts.podsLost },
  { head: "MOST IN 60 S", of: (counts) => counts.largestLossIn60s },
];

function totalLines(state: BoardState): readonly StyledLine[] {
  const span = `SO FAR, ${spanText(between(state.startedAt, state.now))}`.padEnd(18);
  const heads = totals.map(({ head }) => head).join("   ");
  const row = (name: string, counts: FleetCounts, tone: Tone): StyledLine => [
    cell(` ${name.padEnd(18)}`, tone),
    cell(totals.map(({ head, of }) => String(of(counts)).padStart(head.length)).join("   "), tone),
  ];
  return [
    [cell(` ${span}${heads}`, "dim")],
    row("with Lastcall", state.withLastcall, "good"),
    row("without it", state.without, "plain"),
  ];
}

/** `2026-11-20 00:04:31`. */
export function timeText(at: Instant): string {
  return formatInstant(at).slice(0, 19).replace("T", " ");
}
