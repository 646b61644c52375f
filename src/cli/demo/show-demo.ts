import { hours, type Millis } from "../../core/time.ts";
import { eventLoopTurn } from "../../runtime/event-loop-turn.ts";
import { createLog } from "../../runtime/log.ts";
import { serveModel } from "../../sim/http-face.ts";
import { VirtualClock } from "../../sim/virtual-clock.ts";
import type { CommandInput } from "../command-spec.ts";
import { ansiFrame } from "./ansi-frame.ts";
import { board, timeText } from "./board.ts";
import type { BoardNews, BoardState } from "./board-state.ts";
import { writeDemoFile } from "./demo-folder.ts";
import { demoStartAt } from "./demo-run.ts";
import { type LiveDemo, startLiveDemo } from "./live-demo.ts";
import { type Playing, play } from "./play.ts";
import { plainText } from "./styled-line.ts";

type Input = CommandInput<"demo"> & { readonly seed: number };

/** Without `--for` it runs until it is interrupted, or for a century. */
const forever = hours(876_000);

/** The demo for people: a board on a terminal, plain lines elsewhere. Gives the exit code. */
export async function showDemo(input: Input): Promise<number> {
  const { options, io, seed } = input;
  const { nodes } = options;
  const screen = io.openScreen;
  const clock = new VirtualClock({ startAt: demoStartAt, settle: eventLoopTurn });
  const log = createLog({ level: quietest(input), format: "text", write: io.err, clock });
  const demo = startLiveDemo({ clock, seed, nodes, log });
  process.on("SIGHUP", endAsAsked);
  try {
    const face = await serveModel({ api: demo.api });
    const file = writeDemoFile("config", face.kubeconfig);
    try {
      const show = { demo, clock, input, kubeconfig: file.path };
      await (screen === undefined ? showLines(show) : showBoard(show));
    } finally {
      await Promise.all([face.close(), file.remove()]);
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

interface Show {
  readonly demo: LiveDemo;
  readonly clock: VirtualClock;
  readonly input: Input;
  readonly kubeconfig: string;
}

async function showLines({ demo, clock, input, kubeconfig }: Show): Promise<void> {
  const { io, options, seed } = input;
  io.out(`KUBECONFIG=${kubeconfig}\n`);
  io.out(`Lastcall demo: ${options.nodes} nodes, ${options.speed} times as fast, seed ${seed}.\n`);
  io.out("In a second terminal, with that KUBECONFIG: kubectl get departures,nodes\n");
  const running = demo.run((news) => io.out(newsLine(news)));
  const speed = (): number => options.speed;
  await playUntilOver({ clock, real: io.clock, speed, onFrame: () => {} }, { running, input });
  io.out(lastWords({ ...demo.picture(), kubeconfig, speed: options.speed }));
}

async function showBoard({ demo, clock, input, kubeconfig }: Show): Promise<void> {
  const { io, options } = input;
  const screen = io.openScreen?.();
  if (screen === undefined) return;
  const state = (): BoardState => ({ ...demo.picture(), kubeconfig, speed: options.speed });
  const draw = (): void => screen.draw(ansiFrame(board(state(), screen.size()), io));
  const stop = screen.onResize(draw);
  const running = demo.run(() => {});
  const speed = (): number => options.speed;
  try {
    await playUntilOver({ clock, real: io.clock, speed, onFrame: draw }, { running, input });
  } finally {
    stop();
    screen.close();
  }
  io.out(lastWords(state()));
}

/** Plays to the end of `--for` or until an interrupt; rejects if what runs fails before. */
async function playUntilOver(
  playing: Playing,
  { running, input }: { readonly running: Promise<void>; readonly input: Input },
): Promise<void> {
  const over = new AbortController();
  const played = play(playing, over.signal);
  const failed = running.then(() => new Promise<never>(() => {}));
  try {
    await Promise.race([ends(input.options.for ?? forever, input.io), failed, played]);
  } finally {
    over.abort();
    await played;
  }
}

/** Resolves after `span`, or as soon as somebody interrupts. */
async function ends(span: Millis, io: Pick<Input["io"], "clock" | "signal">): Promise<void> {
  try {
    await io.clock.sleep(span, io.signal);
  } catch (error) {
    if (!io.signal.aborted) throw error;
  }
}

/** What stays on the terminal: the totals, without the board. */
function lastWords(state: BoardState): string {
  const lines = board({ ...state, nodes: [], news: [] }, { columns: 200, rows: 100 }).slice(-3);
  return `${lines.map((line) => plainText(line).trimStart()).join("\n")}\n`;
}

function newsLine({ at, what, message }: BoardNews): string {
  return `${timeText(at)}  ${what.padEnd(10)}  ${message}\n`;
}

/** The board and the lines tell what goes on; the log is for who asks for it. */
function quietest({ options }: Input): "debug" | "error" {
  return options.logLevel === "debug" ? "debug" : "error";
}
