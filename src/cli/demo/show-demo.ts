import { hours, type Millis, millis } from "../../core/time/time.ts";
import { createLog } from "../../runtime/log.ts";
import { ScaledClock } from "../../runtime/scaled-clock.ts";
import { serveModel } from "../../sim/http-face.ts";
import type { CommandInput } from "../command-spec.ts";
import { ansiFrame } from "./ansi-frame.ts";
import { board, timeText } from "./board.ts";
import type { BoardNews, BoardState } from "./board-state.ts";
import { type LiveDemo, startLiveDemo } from "./live-demo.ts";
import { plainText } from "./styled-line.ts";

type Input = CommandInput<"demo"> & { readonly seed: number };

/** Between two frames of the board. */
const frameMs = millis(200);
/** Without `--for` it runs until it is interrupted, or for a century. */
const forever = hours(876_000);

/** The demo for people: a board on a terminal, plain lines elsewhere. Gives the exit code. */
export async function showDemo(input: Input): Promise<number> {
  const { options, io, seed } = input;
  const { speed, nodes } = options;
  const screen = io.openScreen;
  const clock = new ScaledClock({ startAt: io.clock.now(), speed });
  const log = createLog({ level: quietest(input), format: "text", write: io.err, clock });
  const demo = startLiveDemo({ clock, seed, nodes, log });
  try {
    const face = await serveModel({ api: demo.api });
    const file = await io.files.writeTemporary("kubeconfig", face.kubeconfig);
    try {
      const show = { demo, input, kubeconfig: file.path };
      await (screen === undefined ? showLines(show) : showBoard(show));
    } finally {
      await Promise.all([face.close(), file.remove()]);
    }
  } finally {
    await demo.close();
  }
  return io.signal.aborted ? 130 : 0;
}

interface Show {
  readonly demo: LiveDemo;
  readonly input: Input;
  readonly kubeconfig: string;
}

async function showLines({ demo, input, kubeconfig }: Show): Promise<void> {
  const { io, options, seed } = input;
  io.out(`KUBECONFIG=${kubeconfig}\n`);
  io.out(`Lastcall demo: ${options.nodes} nodes, ${options.speed} times as fast, seed ${seed}.\n`);
  io.out("In a second terminal, with that KUBECONFIG: kubectl get departures,nodes\n");
  await overOrFailed(
    demo.run((news) => io.out(newsLine(news))),
    input,
  );
  io.out(lastWords({ ...demo.picture(), kubeconfig, speed: options.speed }));
}

async function showBoard({ demo, input, kubeconfig }: Show): Promise<void> {
  const { io, options } = input;
  const screen = io.openScreen?.();
  if (screen === undefined) return;
  const state = (): BoardState => ({ ...demo.picture(), kubeconfig, speed: options.speed });
  const draw = (): void => screen.draw(ansiFrame(board(state(), screen.size()), io));
  const stop = screen.onResize(draw);
  const over = new AbortController();
  const running = demo.run(() => {});
  const drawing = redraw(draw, input, over.signal);
  try {
    await Promise.race([overOrFailed(running, input), drawing]);
  } finally {
    over.abort();
    await drawing.catch(() => undefined);
    stop();
    screen.close();
  }
  io.out(lastWords(state()));
}

async function redraw(draw: () => void, { io }: Input, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    draw();
    await io.clock.sleep(frameMs, signal).catch(() => undefined);
  }
}

/** Resolves at the end of `--for` or at an interrupt; rejects if the controller fails before. */
async function overOrFailed(running: Promise<void>, { options, io }: Input): Promise<void> {
  const failed = running.then(() => new Promise<never>(() => {}));
  await Promise.race([over(options.for ?? forever, io), failed]);
}

/** Resolves after `span`, or as soon as somebody interrupts. */
async function over(span: Millis, io: Pick<Input["io"], "clock" | "signal">): Promise<void> {
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
