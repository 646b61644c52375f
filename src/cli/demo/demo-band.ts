import { type DemoPicture, storyText } from "../../board/demo-picture.ts";
import { formatInstant, type Instant } from "../../core/time/time.ts";
import type { TerminalBand } from "../board/terminal-board.ts";
import { cell, type StyledLine, spanText, widthOf, wrapped } from "../command-line/terminal.ts";
import { demoKeyHelp, momentText } from "./controls.ts";
import { figureHelp, totalLines } from "./fleet-totals.ts";
import { noticeLines } from "./notice-lines.ts";

/** What the band above the board shows in a terminal. */
export interface BandFacts extends DemoPicture {
  /** The path of the kubeconfig for kubectl in a second terminal. */
  readonly kubeconfig: string;
  /** Address of the same board in a browser. */
  readonly address?: string | undefined;
}

export interface BandSize {
  readonly columns: number;
  readonly rows: number;
}

/** With at least this many rows, the meaning of the figures fits. */
const wholeRows = 20;
/** With at least this many, it fits beside the pods of a notice. */
const roomyRows = 30;
/** Lines around the nodes; if all nodes fit as well, so does what the audit says. */
const rowsAroundNodes = 22;

/** The demo above its board: its clock, the story, the addresses, and both fleets. */
export function demoBand(facts: BandFacts, size: BandSize): TerminalBand {
  const { notice, now, nodes, audits } = facts;
  const { columns, rows } = size;
  const hasHelp =
    rows >= (notice === undefined ? wholeRows : roomyRows) && widthOf(figureHelp) <= columns;
  const hasAudits = rows >= nodes.length + rowsAroundNodes;
  return {
    title: titleLine(facts),
    lines: [
      ...wrapped(storyText(facts.story, now, spanText), columns - 2).map((line) => [
        cell(` ${line}`, "strong"),
      ]),
      ...addressLines(facts, columns),
      ...totalLines(facts, size),
      ...(hasHelp ? [figureHelp] : []),
      ...(hasAudits ? audits.map((one) => [cell(` ${one}`, "dim")]) : []),
    ],
    happening: (most) => {
      // Its heading and a pod, below an empty line.
      if (notice === undefined || most < 3) return [];
      return [[], ...noticeLines(notice, { now, columns, rows: most - 1 })];
    },
    keys: demoKeyHelp,
  };
}

function titleLine(facts: DemoPicture): StyledLine {
  const time = `   ${timeText(facts.now)} UTC   seed ${facts.seed}   `;
  return [cell(" Lastcall demo", "strong"), cell(time), ...speedCells(facts)];
}

function speedCells({ speed, moment, paused, isReading }: DemoPicture): StyledLine {
  if (isReading) return [cell("PAUSED while a node is open", "warn")];
  if (paused) return [cell("PAUSED", "warn")];
  const rounded = speed < 10 ? Math.round(speed * 10) / 10 : Math.round(speed);
  const why = momentText(moment);
  const text = why === "" ? `${rounded}x` : `${rounded}x (${why})`;
  return [cell(text, why === "" ? "plain" : "accent")];
}

function addressLines({ address, kubeconfig }: BandFacts, columns: number): readonly StyledLine[] {
  return [
    ...(address === undefined ? [] : copiedLines(address, { note: "in a browser", columns })),
    ...copiedLines(`KUBECONFIG=${kubeconfig}`, { note: "kubectl get dep,nodes", columns }),
  ];
}

/**
 * Text to copy is shown in full, on as many lines as it takes; its purpose only if it fits beside
 * it.
 */
function copiedLines(
  text: string,
  { note, columns }: { readonly note: string; readonly columns: number },
): readonly StyledLine[] {
  if (text.length < columns) return [[cell(` ${text}`, "accent"), cell(` ${note}`, "dim")]];
  const pieces: StyledLine[] = [];
  const most = Math.max(1, columns);
  for (let at = 0; at < text.length; at += most) {
    pieces.push([cell(text.slice(at, at + most), "accent")]);
  }
  return pieces;
}

/** `2026-11-20 00:04:31`. */
export function timeText(at: Instant): string {
  return formatInstant(at).slice(0, 19).replace("T", " ");
}
