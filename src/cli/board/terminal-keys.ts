import type { TerminalSort } from "./terminal-table.ts";

/** What the terminal shows, as its keys have set it. */
export interface TerminalPlace {
  readonly sort: TerminalSort;
  /** Every word must occur in a row. */
  readonly filter: string;
  /** `Filter`: the list, while a filter is typed. */
  readonly mode: "List" | "Filter" | "Node";
  /** The place of the selected row, counted from the top of the list. */
  readonly cursor: number;
  /**
   * The id of the selected row, kept when the list changes; null: the one at `cursor`, as is the
   * first one until a person selects or finds another.
   */
  readonly selected: string | null;
  /** How many lines are scrolled out above: of the list, or of the node's description. */
  readonly scroll: number;
  readonly nodeScroll: number;
  /** How many rows of the list were last shown at once. */
  readonly page: number;
}

export const firstPlace: TerminalPlace = {
  ...{ sort: "Leaving", filter: "", mode: "List", cursor: 0, selected: null },
  ...{ scroll: 0, nodeScroll: 0, page: 1 },
};

const [escapeKey, enterKeys, eraseKeys] = ["\u001b", ["\r", "\n"], ["\u007f", "\b"]];

/** Ctrl-C and Ctrl-D, which a terminal in raw mode does not handle itself. */
export function isInterrupt(key: string): boolean {
  return key === "\u0003" || key === "\u0004";
}

/** Whether the key ends the board: `q`, unless it is typed into the filter. */
export function isQuit(key: string, { mode }: TerminalPlace): boolean {
  return mode !== "Filter" && key.toLowerCase() === "q";
}

/** The view after a key. A place past either end is corrected when it is drawn. */
export function placeAfter(place: TerminalPlace, key: string): TerminalPlace {
  if (place.mode === "Filter") return typed(place, key);
  if (key === escapeKey) return back(place);
  const step = stepOf(key, place.page);
  if (place.mode === "Node") {
    return step === undefined ? place : { ...place, nodeScroll: place.nodeScroll + step };
  }
  if (step !== undefined) return { ...place, cursor: place.cursor + step, selected: null };
  if (enterKeys.includes(key)) return { ...place, mode: "Node", nodeScroll: 0 };
  if (key === "/") return { ...top(place), mode: "Filter", filter: "" };
  if (key.toLowerCase() !== "s") return place;
  return { ...top(place), sort: place.sort === "Leaving" ? "Name" : "Leaving" };
}

function top(place: TerminalPlace): TerminalPlace {
  return { ...place, cursor: 0, selected: null, scroll: 0 };
}

/** From a node to the list, and from a filtered list to the whole one. */
function back(place: TerminalPlace): TerminalPlace {
  return place.mode === "Node" ? { ...place, mode: "List" } : { ...place, filter: "" };
}

function typed(place: TerminalPlace, key: string): TerminalPlace {
  if (key === escapeKey) return { ...top(place), mode: "List", filter: "" };
  if (enterKeys.includes(key)) return { ...place, mode: "List" };
  const { filter } = place;
  if (eraseKeys.includes(key)) return { ...top(place), filter: filter.slice(0, -1) };
  const isText = key.length === 1 && key >= " ";
  return isText ? { ...top(place), filter: filter + key } : place;
}

/** By how many rows a key moves. */
function stepOf(key: string, page: number): number | undefined {
  switch (key) {
    case "\u001b[A":
    case "\u001bOA":
    case "k":
      return -1;
    case "\u001b[B":
    case "\u001bOB":
    case "j":
      return 1;
    case "\u001b[5~":
      return -page;
    case "\u001b[6~":
    case " ":
      return page;
    case "\u001b[H":
    case "g":
      return Number.NEGATIVE_INFINITY;
    case "\u001b[F":
    case "G":
      return Number.POSITIVE_INFINITY;
    default:
      return undefined;
  }
}
