import type { BoardNews } from "../../board/demo-picture.ts";
import { createLog } from "../../runtime/log.ts";
import { eventLoopTurn } from "../../runtime/real-clock.ts";
import { serveModel } from "../../sim/http/serve-model.ts";
import { VirtualClock } from "../../sim/time/virtual-clock.ts";
import { serveDemoBoard } from "../board/demo-board.ts";
import type { ServedBoard } from "../board/start-board.ts";
import type { Screen, TemporaryFile } from "../command-line/command-io.ts";
import type { CommandInput } from "../command-line/command-spec.ts";
import { type OpenKeyboard, openTerminalKeyboard } from "../terminal/keyboard.ts";
import { ansiFrame, plainText } from "../terminal/styled-line.ts";
import { type BoardState, board as boardLines, timeText } from "./board.ts";
import { totalLines } from "./board-totals.ts";
import { keysIn } from "./controls.ts";
import { writeDemoFile } from "./demo-folder.ts";
import { demoStartAt } from "./demo-run.ts";
import { Director } from "./director.ts";
import { type LiveDemo, startLiveDemo } from "./live-demo.ts";
import { playUntilOver } from "./play.ts";

type Input = CommandInput<"demo"> & { readonly seed: number };

interface Tools {
  /** The terminal's own where absent. */
  readonly openKeyboard?: OpenKeyboard | undefined;
}

/** The demo for people: a board on a terminal, plain lines elsewhere. Gives the exit code. */
export async function showDemo(input: Input, tools: Tools = {}): Promise<number> {
  const { options, io, seed } = input;
  const { nodes } = options;
  const clock = new VirtualClock({ startAt: demoStartAt, settle: eventLoopTurn });
  const log = createLog({ level: quietest(input), format: "text", write: io.err, clock });
  const demo = startLiveDemo({ clock, seed, nodes, log });
  process.on("SIGHUP", endAsAsked);
  try {
    const isPaced = io.openScreen !== undefined;
    const director = new Director({ demo, speed: options.speed, isPaced });
    const face = await serveModel({ api: demo.api, rate: () => director.speed() });
    let file: TemporaryFile | undefined;
    let board: ServedBoard | undefined;
    try {
      file = writeDemoFile("config", face.kubeconfig);
      board = await serveDemoBoard({ demo, director, clock, options, io, kubeconfig: file.path });
      const show = { demo, director, clock, input, kubeconfig: file.path, board, ...tools };
      const screen = io.openScreen?.();
      const last = await (screen === undefined ? showLines(show) : showBoard(show, screen));
      io.out(lastWords(last));
    } finally {
      await Promise.all([face.close(), file?.remove(), board?.close()]);
    }
  } finally {
    process.off("SIGHUP", endAsAsked);
    await demo.close();
  }
  return io.signal.aborted ? 130 : 0;
}

/** The terminal went away, which is no reason to leave anything behind: as when asked to end. */
function endAsAsked(): void {
  process.kill(process.pid, "SIGTERM");
}

async function showLines(show: Show): Promise<BoardState> {
  const { demo, director, clock, input, kubeconfig, board } = show;
  const { io, options, seed } = input;
  io.out(`KUBECONFIG=${kubeconfig}\n`);
  if (board !== undefined) io.out(`Board: ${board.url()}\n`);
  io.out(
    `Lastcall demo: ${options.nodes} nodes, ${options.speed} times real time, seed ${seed}.\n`,
  );
  io.out("In a second terminal, with that KUBECONFIG: kubectl get departures,nodes\n");
  const running = demo.run((news) => io.out(newsLine(news)));
  const playing = { clock, real: io.clock, speed: () => director.speed(), onFrame: () => {} };
  await playUntilOver(playing, { running, span: options.for, io });
  return stateOf(show);
}

/** What stays on the terminal: the totals, without the board. */
function lastWords(state: BoardState): string {
  const lines = totalLines({ ...state, nodes: [] }, { columns: 80 });
  // The heads stand over their figures, and have no name before them.
  return `${lines.map((line) => plainText(line).slice(1).trimEnd()).join("\n")}\n`;
}

function newsLine({ at, what, message }: BoardNews): string {
  return `${timeText(at)}  ${what.padEnd(10)}  ${message}\n`;
}

/** The board and the lines tell what goes on; the log is for who asks for it. */
function quietest({ options }: Input): "debug" | "error" {
  return options.logLevel === "debug" ? "debug" : "error";
}

interface Show {
  readonly demo: LiveDemo;
  readonly director: Director;
  readonly clock: VirtualClock;
  readonly input: Input;
  readonly kubeconfig: string;
  /** The same in a browser, where it could be served. */
  readonly board: ServedBoard | undefined;
  readonly openKeyboard?: OpenKeyboard | undefined;
}

/** The board on a terminal that is taken over until the demo ends; gives what it showed last. */
async function showBoard(show: Show, screen: Screen): Promise<BoardState> {
  const { demo, director, clock, input, openKeyboard = openTerminalKeyboard } = show;
  const { io, options } = input;
  const state = (): BoardState => ({ ...stateOf(show), sort: director.sort, hasKeys: true });
  const draw = (): void => screen.draw(ansiFrame(boardLines(state(), screen.size()), io));
  const stop = screen.onResize(draw);
  const keyboard = openKeyboard((text) => {
    for (const key of keysIn(text)) {
      director.press(key);
      // As Ctrl-C does where a terminal acts upon it: a second one does not wait.
      if (key === "Quit") process.kill(process.pid, "SIGINT");
    }
    draw();
  });
  const running = demo.run(() => {});
  const playing = { clock, real: io.clock, speed: () => director.speed(), onFrame: draw };
  try {
    await playUntilOver(playing, { running, span: options.for, io });
  } finally {
    keyboard.close();
    stop();
    screen.close();
  }
  return state();
}

function stateOf({ director, kubeconfig, board }: Show): BoardState {
  return { ...director.picture(), kubeconfig, address: board?.url() };
}
