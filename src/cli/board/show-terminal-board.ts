import type { BoardFeed } from "../../board/board-feed.ts";
import { type BoardPicture, withChange } from "../../board/stream.ts";
import { seconds } from "../../core/time/time.ts";
import type { CommandIo, Screen } from "../command-line/command-io.ts";
import { type OpenKeyboard, openTerminalKeyboard } from "../terminal/keyboard.ts";
import { ansiFrame } from "../terminal/styled-line.ts";
import { terminalBoard } from "./terminal-board.ts";

interface TerminalBoardOptions {
  readonly feed: Pick<BoardFeed, "subscribe">;
  readonly screen: Screen;
  readonly io: Pick<CommandIo, "clock" | "colour">;
  /** The terminal's own where absent. */
  readonly openKeyboard?: OpenKeyboard | undefined;
}

/** Between two looks at the clock: times count down by the second. */
const tickMs = seconds(1);

/** The board on a terminal that is taken over, until somebody quits or the signal aborts. */
export async function showTerminalBoard(
  options: TerminalBoardOptions,
  signal: AbortSignal,
): Promise<void> {
  const { feed, screen, io, openKeyboard = openTerminalKeyboard } = options;
  const quit = new AbortController();
  const over = AbortSignal.any([signal, quit.signal]);
  let picture: BoardPicture | undefined;
  let place: Place = { sort: "Leaving", scroll: 0, page: 1 };
  const draw = (): void => {
    if (picture === undefined || over.aborted) return;
    const shown = terminalBoard(picture, io.clock.now(), { ...place, ...screen.size() });
    place = { ...place, scroll: shown.scroll, page: shown.page };
    screen.draw(ansiFrame(shown.lines, io));
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
    else if (text.toLowerCase() === "q") quit.abort();
    else place = moved(place, text);
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

interface Place {
  readonly sort: "Leaving" | "Name";
  readonly scroll: number;
  /** How many nodes were shown at once. */
  readonly page: number;
}

/** Ctrl-C and Ctrl-D, which a terminal that gives every key no longer acts upon itself. */
function isInterrupt(text: string): boolean {
  return text === "\u0003" || text === "\u0004";
}

/** Where a key leads; too far is mended by whoever draws. */
function moved(place: Place, text: string): Place {
  const { scroll, page, sort } = place;
  switch (text) {
    case "\u001b[A":
    case "\u001bOA":
    case "k":
      return { ...place, scroll: scroll - 1 };
    case "\u001b[B":
    case "\u001bOB":
    case "j":
      return { ...place, scroll: scroll + 1 };
    case "\u001b[5~":
      return { ...place, scroll: scroll - page };
    case "\u001b[6~":
    case " ":
      return { ...place, scroll: scroll + page };
    case "\u001b[H":
      return { ...place, scroll: 0 };
    case "\u001b[F":
      return { ...place, scroll: Number.MAX_SAFE_INTEGER };
    case "s":
      return { ...place, scroll: 0, sort: sort === "Leaving" ? "Name" : "Leaving" };
    default:
      return place;
  }
}
