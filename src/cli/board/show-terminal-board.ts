import type { BoardFeed } from "../../board/board-feed.ts";
import { type NodeDepartures, nodePage } from "../../board/node-page.ts";
import { type BoardPicture, withChange } from "../../board/stream.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { Fleet } from "../../contracts/cluster.ts";
import { type Instant, seconds } from "../../core/time/time.ts";
import type { CommandIo, Screen } from "../command-line/command.ts";
import { ansiFrame, type OpenKeyboard, openTerminalKeyboard } from "../command-line/terminal.ts";
import { type TerminalBand, terminalBoard } from "./terminal-board.ts";
import { firstPlace, isInterrupt, isQuit, placeAfter } from "./terminal-keys.ts";

interface TerminalBoardOptions {
  readonly feed: Pick<BoardFeed, "subscribe">;
  readonly screen: Screen;
  /** The cluster's time. */
  readonly now: () => Instant;
  readonly io: Pick<CommandIo, "colour">;
  /** The departures of a node with their steps. */
  readonly departuresOf?: ((node: string) => NodeDepartures | undefined) | undefined;
  /** Default: the terminal's own keyboard. */
  readonly openKeyboard?: OpenKeyboard | undefined;
  /** What is above the board. */
  readonly stage?: TerminalStage | undefined;
  readonly onQuit: () => void;
}

/** The demo above a board, with keys of its own. */
export interface TerminalStage {
  band(size: { readonly columns: number; readonly rows: number }): TerminalBand;
  /** Whether the key is one of its own; none is while a filter is typed. */
  press(key: string): boolean;
  /** A node's description was opened or left. */
  read(isReading: boolean): void;
}

export interface OpenTerminalBoard {
  draw(): void;
  close(): void;
}

/** The departures of a node with their steps. Its pods are not listed: it has no drain plans. */
export function departureSteps(fleet: Pick<Fleet, "view">, now: () => Instant) {
  const facts = { problem: "pods are not listed" };
  return (node: string) => nodePage(node, { ...facts, view: fleet.view(), now: now() });
}

/** Takes over the terminal for the board, which is drawn at each change and at each key. */
export function openTerminalBoard(options: TerminalBoardOptions): OpenTerminalBoard {
  const { feed, screen, now, io, departuresOf, stage, onQuit } = options;
  const { openKeyboard = openTerminalKeyboard } = options;
  let isOpen = true;
  let picture: BoardPicture | undefined;
  let place = firstPlace;
  let isReading = false;
  const tellReading = (): void => {
    const reads = place.mode === "Node";
    if (reads !== isReading) stage?.read(reads);
    isReading = reads;
  };
  const draw = (): void => {
    if (picture === undefined || !isOpen) return;
    const size = screen.size();
    const look = { ...place, ...size, departuresOf, band: stage?.band(size) };
    const { lines, ...corrected } = terminalBoard(picture, now(), look);
    place = { ...place, ...corrected };
    tellReading();
    screen.draw(ansiFrame(lines, io));
  };
  const unsubscribe = feed.subscribe((message) => {
    if (message.kind === "Picture") ({ picture } = message);
    if (message.kind === "Change" && picture !== undefined)
      picture = withChange(picture, message.change);
    draw();
  });
  const stop = screen.onResize(draw);
  const keyboard = openKeyboard((key) => {
    const isTyping = place.mode === "Filter";
    if (isInterrupt(key)) process.kill(process.pid, "SIGINT");
    else if (isQuit(key, place)) return onQuit();
    else if (isTyping || stage?.press(key) !== true) place = placeAfter(place, key);
    tellReading();
    draw();
  });
  return {
    draw,
    close: () => {
      isOpen = false;
      keyboard.close();
      stop();
      unsubscribe();
      screen.close();
    },
  };
}

interface ShownOptions extends Omit<TerminalBoardOptions, "now" | "stage" | "onQuit"> {
  readonly io: Pick<CommandIo, "colour"> & { readonly clock: Clock };
}

/** The refresh interval: times count down by the second. */
const tickMs = seconds(1);

/** The board on a terminal that it takes over, until the user quits or the signal aborts. */
export async function showTerminalBoard(options: ShownOptions, signal: AbortSignal): Promise<void> {
  const { clock } = options.io;
  const quit = new AbortController();
  const over = AbortSignal.any([signal, quit.signal]);
  const onQuit = (): void => quit.abort();
  const board = openTerminalBoard({ ...options, now: () => clock.now(), onQuit });
  try {
    while (!over.aborted) {
      board.draw();
      await clock.sleep(tickMs, over).catch(() => undefined);
    }
  } finally {
    board.close();
  }
}
