import { between, type Instant } from "../../core/time/time.ts";
import type { BoardNode, Doing } from "./board-state.ts";
import { type Cell, cell, type StyledLine, type Tone } from "./styled-line.ts";

/** The cloud takes a preemptible machine at this age at the latest. */
const lifetimeMs = 24 * 3_600_000;

export interface RowWidths {
  readonly zone: number;
  readonly name: number;
  readonly bar: number;
}

/** The widths of the columns: as wide as their contents, the bar as wide as there is room for. */
export function rowWidths(nodes: readonly BoardNode[], columns: number): RowWidths {
  const longest = (texts: readonly string[]): number =>
    Math.max(4, ...texts.map((text) => text.length));
  const zone = longest(nodes.map((node) => node.zone));
  const name = longest(nodes.map((node) => node.name));
  const bar = Math.max(8, Math.min(24, columns - zone - name - 52));
  return { zone, name, bar };
}

/** The heads over the columns of `nodeRow`. */
export function rowHeads(widths: RowWidths): StyledLine {
  const heads = [
    "ZONE".padEnd(widths.zone + 2),
    "NODE".padEnd(widths.name + 2),
    "AGE, OF 24 H".padEnd(widths.bar + 9),
    "LEAVES".padEnd(11),
    "WHY, OR WHAT NOW",
  ];
  return [cell(` ${heads.join("")}`, "dim")];
}

/** One node: where, how old, when it leaves and why. `zone` is left out under its like. */
export function nodeRow(
  node: BoardNode,
  at: { readonly now: Instant; readonly widths: RowWidths; readonly zone: string },
): StyledLine {
  const { now, widths, zone } = at;
  const { leaves, what } = saying(node.doing, now);
  const present = node.doing.kind !== "Gone" && node.doing.kind !== "Booting";
  const ageMs = present ? Math.max(0, between(node.bornAt, now)) : 0;
  const tone = toneOf(node.doing);
  const isQuiet = tone === "plain" || tone === "dim";
  return [
    cell(` ${zone.padEnd(widths.zone)}  `, "dim"),
    cell(`${node.name.padEnd(widths.name)}  `, isQuiet ? "plain" : tone),
    ...ageBar(ageMs / lifetimeMs, { width: widths.bar, tone: isQuiet ? "good" : tone }),
    cell(` ${(present ? spanText(ageMs) : "").padStart(6)}  `, isQuiet ? "plain" : tone),
    cell(leaves.padEnd(11), tone),
    cell(what, tone),
  ];
}

/** Eighths of a column, from none to seven. */
const eighths = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/** A bar filled to `share` of its width, to the eighth of a column. */
export function ageBar(
  share: number,
  look: { readonly width: number; readonly tone: Tone },
): readonly Cell[] {
  const { width, tone } = look;
  const filled = Math.round(Math.min(1, Math.max(0, share)) * width * 8);
  const text = "█".repeat(Math.floor(filled / 8)) + (eighths[filled % 8] ?? "");
  return [cell(text, tone), cell("·".repeat(width - text.length), "dim")];
}

function saying(doing: Doing, now: Instant): { readonly leaves: string; readonly what: string } {
  switch (doing.kind) {
    case "Working":
      return { leaves: "", what: "not planned yet" };
    case "Scheduled":
      return { leaves: untilText(between(now, doing.departAt)), what: whyText(doing) };
    case "Held":
      return { leaves: "held", what: doing.why };
    case "Draining":
      return { leaves: "now", what: drainText(doing) };
    case "Releasing":
      return { leaves: "now", what: "drained, releasing" };
    case "RollingBack":
      return { leaves: "stays", what: "is put back to work" };
    case "Taken": {
      const leftMs = 30_000 - between(doing.noticedAt, now);
      return { leaves: "TAKEN", what: `the cloud: gone in ${spanText(Math.max(0, leftMs))}` };
    }
    case "Gone":
      return { leaves: "gone", what: "another is being made" };
    case "Booting":
      return { leaves: "", what: "a new machine boots" };
  }
}

function whyText({ why, departAt, deadlineAt }: Extract<Doing, { kind: "Scheduled" }>): string {
  if (deadlineAt === undefined) return why;
  const earlyMs = between(departAt, deadlineAt);
  return earlyMs < 60_000 ? `${why}, at its latest` : `${why}, ${spanText(earlyMs)} early`;
}

function drainText(doing: Extract<Doing, { kind: "Draining" }>): string {
  const { podsLeft, podsTotal, blocked } = doing;
  const held = blocked === 0 ? "" : `, ${blocked} held by a budget`;
  return `${podsLeft} of ${podsTotal} pods left${held}`;
}

function toneOf(doing: Doing): Tone {
  switch (doing.kind) {
    case "Draining":
    case "Releasing":
      return "accent";
    case "Held":
    case "RollingBack":
      return "warn";
    case "Taken":
      return "bad";
    case "Gone":
    case "Booting":
      return "dim";
    case "Working":
    case "Scheduled":
      return "plain";
  }
}

function untilText(spanMs: number): string {
  return spanMs <= 0 ? "due" : `in ${spanText(spanMs)}`;
}

/** Two units at most: `45s`, `12m`, `3h04m`. */
export function spanText(spanMs: number): string {
  const wholeSeconds = Math.floor(spanMs / 1000);
  if (wholeSeconds < 60) return `${wholeSeconds}s`;
  const wholeMinutes = Math.floor(wholeSeconds / 60);
  if (wholeMinutes < 60) return `${wholeMinutes}m`;
  return `${Math.floor(wholeMinutes / 60)}h${String(wholeMinutes % 60).padStart(2, "0")}m`;
}
