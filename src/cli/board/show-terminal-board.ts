import type { BoardFeed } from "../../board/board-feed.ts";
import type { NodeDepartures } from "../../board/node-page.ts";
import { type BoardPicture, withChange } from "../../board/stream.ts";
import { seconds } from "../../core/time/time.ts";
import type { CommandIo, Screen } from "../command-line/command.ts";
import { ansiFrame, type OpenKeyboard, openTerminalKeyboard } from "../command-line/terminal.ts";
import { terminalBoard } from "./terminal-board.ts";
import { firstPlace, isInterrupt, isQuit, placeAfter } from "./terminal-keys.ts";

interface TerminalBoardOptions {
  readonly feed: Pick<BoardFeed, "subscribe">;
  readonly screen: Screen;
  readonly io: Pick<CommandIo, "clock" | "colour">;
  /** The departures of a node with their steps. */
  readonly departuresOf?: ((node: string) => NodeDepartures | undefined) | undefined;
  /** Default: the terminal's own keyboard. */
  readonly openKeyboard?: OpenKeyboard | undefined;
}

/** The refresh interval: times count down by the second. */
const tickMs = seconds(1);

/** The board on a terminal that it takes over, until the user quits or the signal aborts. */
export async function showTerminalBoard(
  options: TerminalBoardOptions,
  signal: AbortSignal,
): Promise<void> {
  const { feed, screen, io, departuresOf, openKeyboard = openTerminalKeyboard } = options;
  const quit = new AbortController();
  const over = AbortSignal.any([signal, quit.signal]);
  let picture: BoardPicture | undefined;
  let place = firstPlace;
  const draw = (): void => {
    if (picture === undefined || over.aborted) return;
    const look = { ...place, ...screen.size(), departuresOf };
    const { lines, ...corrected } = terminalBoard(picture, io.clock.now(), look);
    place = { ...place, ...corrected };
    screen.draw(ansiFrame(lines, io));
  };
  const unsubscribe = feed.subscribe((message) => {
    if (message.kind === "Picture") ({ picture } = message);
    if (message.kind === "Change" && picture !== undefined)
      picture = withChange(picture, message.change);
    draw();
  });
  const stop = screen.onResize(draw);
  const keyboard = openKeyboard((text) => {
    if (isInterrupt(text)) process.kill(process.pid, "SIGINT");
    else if (isQuit(text, place)) quit.abort();
    else place = placeAfter(place, text);
    draw();
  });
  try {
    while (!over.aborted) {
      draw();
      await io.clock.sleep(tickMs, over).catch(() => undefined);
    }
  } finally {
    keyboard.close();
    stop();
    unsubscribe();
    screen.close();
  }
}
