import { createLog } from "../../runtime/log.ts";
import { eventLoopTurn } from "../../runtime/real-clock.ts";
import { serveModel } from "../../sim/http/serve-model.ts";
import { VirtualClock } from "../../sim/time/virtual-clock.ts";
import { type DemoBoard, serveDemoBoard } from "../board/demo-board.ts";
import type { CommandInput } from "../command-line/command-spec.ts";
import { timeText } from "./board.ts";
import type { BoardNews, BoardState } from "./board-state.ts";
import { totalLines } from "./board-totals.ts";
import { writeDemoFile } from "./demo-folder.ts";
import { demoStartAt } from "./demo-run.ts";
import type { OpenKeyboard } from "./keyboard.ts";
import { startLiveDemo } from "./live-demo.ts";
import { playUntilOver } from "./play.ts";
import { type Show, showBoard } from "./show-board.ts";
import { plainText } from "./styled-line.ts";

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
    const face = await serveModel({ api: demo.api });
    const file = writeDemoFile("config", face.kubeconfig);
    let board: DemoBoard | undefined;
    try {
      board = await serveDemoBoard({ demo, clock, options, io });
      const show = { demo, clock, input, kubeconfig: file.path, board, ...tools };
      const last = await (io.openScreen === undefined ? showLines(show) : showBoard(show));
      io.out(lastWords(last));
    } finally {
      await Promise.all([face.close(), file.remove(), board?.close()]);
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
  const { demo, clock, input, kubeconfig, board } = show;
  const { io, options, seed } = input;
  io.out(`KUBECONFIG=${kubeconfig}\n`);
  if (board !== undefined) io.out(`Board: ${board.url}\n`);
  io.out(
    `Lastcall demo: ${options.nodes} nodes, ${options.speed} times real time, seed ${seed}.\n`,
  );
  io.out("In a second terminal, with that KUBECONFIG: kubectl get departures,nodes\n");
  const running = demo.run((news) => io.out(newsLine(news)));
  const speed = (): number => options.speed;
  const playing = { clock, real: io.clock, speed, onFrame: () => {} };
  await playUntilOver(playing, { running, span: options.for, io });
  return { ...demo.picture(), kubeconfig, speed: options.speed };
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
