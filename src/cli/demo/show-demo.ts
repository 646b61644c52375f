import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import type { BoardFeed } from "../../board/board-feed.ts";
import { type DemoPicture, demoKeyOf } from "../../board/demo-picture.ts";
import type { Clock } from "../../contracts/clock.ts";
import { counted } from "../../core/reason/counted.ts";
import { hours, type Millis, millis, plus } from "../../core/time/time.ts";
import { LastcallError, messageOf } from "../../errors.ts";
import { createLog } from "../../runtime/process-io.ts";
import { eventLoopTurn } from "../../runtime/real-clock.ts";
import { serveModel } from "../../sim/http/serve-model.ts";
import { VirtualClock } from "../../sim/time/virtual-clock.ts";
import { departureSteps, openTerminalBoard } from "../board/show-terminal-board.ts";
import type { ServedBoard } from "../board/start-board.ts";
import type { CommandInput, CommandIo, Screen, TemporaryFile } from "../command-line/command.ts";
import { type OpenKeyboard, plainText } from "../command-line/terminal.ts";
import { demoBand, timeText } from "./demo-band.ts";
import { demoStartAt } from "./demo-run.ts";
import { Director, demoFeed, serveDemoBoard } from "./demo-stage.ts";
import type { BoardNews, NewsListener } from "./fleet-picture.ts";
import { totalLines } from "./fleet-totals.ts";
import { type LiveDemo, startLiveDemo } from "./live-demo.ts";

type DemoInput = CommandInput<"demo"> & { readonly seed: number };

interface ShowDemoOptions {
  /** Default: the terminal's own keyboard. */
  readonly openKeyboard?: OpenKeyboard | undefined;
}

/** The demo for people: a board on a terminal, plain lines elsewhere. Returns the exit code. */
export async function showDemo(input: DemoInput, terminal: ShowDemoOptions = {}): Promise<number> {
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
    const feed = demoFeed({ demo, director, clock, real: io.clock });
    const over = new AbortController();
    let file: TemporaryFile | undefined;
    let board: ServedBoard | undefined;
    try {
      file = writeDemoFile("config", face.kubeconfig);
      board = await serveDemoBoard({
        ...{ demo, director, feed, clock, options, io, kubeconfig: file.path },
      });
      const show = {
        ...{ demo, director, feed, clock, input, kubeconfig: file.path, board, ...terminal },
        over: over.signal,
      };
      const screen = io.openScreen?.();
      await (screen === undefined ? showLines(show) : showBoard(show, screen));
      io.out(lastWords(director.picture()));
    } finally {
      over.abort();
      await Promise.all([face.close(), file?.remove(), board?.close()]);
    }
  } finally {
    process.off("SIGHUP", endAsAsked);
    await demo.close();
  }
  return io.signal.aborted ? 130 : 0;
}

/** The terminal is gone. Clean up as on any request to end. */
function endAsAsked(): void {
  process.kill(process.pid, "SIGTERM");
}

async function showLines(show: Show): Promise<void> {
  const { director, clock, input, kubeconfig, board } = show;
  const { io, options, seed } = input;
  io.out(`KUBECONFIG=${kubeconfig}\n`);
  if (board !== undefined) io.out(`Board: ${board.url()}\n`);
  io.out(
    `Lastcall demo: ${counted(options.nodes, "node")}, ${options.speed} times real time, seed ${seed}.\n`,
  );
  io.out("In a second terminal, with that KUBECONFIG: kubectl get departures,nodes\n");
  const running = runningOf(show, (news) => io.out(newsLine(news)));
  const playing = { clock, real: io.clock, speed: () => director.speed(), onFrame: () => {} };
  await playUntilOver(playing, { running, span: options.for, io });
}

/** The totals, which stay on the terminal when the board is gone. */
function lastWords(picture: DemoPicture): string {
  const lines = totalLines({ ...picture, nodes: [] }, { columns: 80 });
  // The headings are above their figures, with no name before them.
  return `${lines.map((line) => plainText(line).slice(1).trimEnd()).join("\n")}\n`;
}

function newsLine({ at, what, message }: BoardNews): string {
  return `${timeText(at)}  ${what.padEnd(10)}  ${message}\n`;
}

/** The board and the lines already report what happens; the log is optional. */
function quietest({ options }: DemoInput): "debug" | "error" {
  return options.logLevel === "debug" ? "debug" : "error";
}

interface Show {
  readonly demo: LiveDemo;
  readonly director: Director;
  readonly feed: BoardFeed;
  /** Aborts when the demo ends. */
  readonly over: AbortSignal;
  readonly clock: VirtualClock;
  readonly input: DemoInput;
  readonly kubeconfig: string;
  /** The same in a browser, if it could be served. */
  readonly board: ServedBoard | undefined;
  readonly openKeyboard?: OpenKeyboard | undefined;
}

/** The board of `board --tui`, with the two fleets above it and the demo's keys beside its own. */
async function showBoard(show: Show, screen: Screen): Promise<void> {
  const { demo, director, feed, clock, input, kubeconfig, board, openKeyboard } = show;
  const { io, options } = input;
  const now = () => clock.now();
  const shown = openTerminalBoard({
    ...{ feed, screen, now, io, openKeyboard, departuresOf: departureSteps(demo.fleet, now) },
    stage: {
      band: (size) => {
        return demoBand({ ...director.picture(), kubeconfig, address: board?.url() }, size);
      },
      press: (key) => {
        const command = demoKeyOf(key);
        if (command !== undefined) director.press(command);
        return command !== undefined;
      },
      read: (isReading) => director.press(isReading ? "Read" : "ReadOn"),
    },
    // Like Ctrl-C when the terminal handles it: the second one does not wait.
    onQuit: () => process.kill(process.pid, "SIGINT"),
  });
  const playing = { clock, real: io.clock, speed: () => director.speed(), onFrame: shown.draw };
  try {
    const running = runningOf(show, () => {});
    await playUntilOver(playing, { running, span: options.for, io });
  } finally {
    shown.close();
  }
}

/** The model, and the pictures of it. */
async function runningOf({ demo, feed, over }: Show, onNews: NewsListener): Promise<void> {
  await Promise.all([demo.run(onNews), feed.run(over)]);
}

/**
 * Such as `lastcall-demo-4c1e-`. Machines and containers may share a folder for temporary files but
 * not their process ids. Short, because people copy the path from a terminal.
 */
export function folderPrefix(host: string): string {
  return `lastcall-demo-${createHash("sha256").update(host).digest("hex").slice(0, 4)}-`;
}

/**
 * Writes a file that only this user may read, in a new folder. `remove` deletes the folder, and so
 * does the process when it ends, except by SIGKILL or a power failure; the next demo removes what
 * those leave behind. Nothing here is asynchronous, so there is no moment at which the folder
 * exists and would be left behind. Throws OUTPUT_UNWRITABLE.
 */
function writeDemoFile(name: string, text: string): TemporaryFile {
  const folder = newFolder();
  const removeNow = (): void => rmSync(folder, { recursive: true, force: true });
  process.on("exit", removeNow);
  const path = join(folder, name);
  writeFileSync(path, text, { mode: 0o600 });
  return {
    path,
    remove: async () => {
      process.off("exit", removeNow);
      removeNow();
    },
  };
}

function newFolder(): string {
  try {
    sweepDeadFolders();
    return mkdtempSync(join(tmpdir(), `${folderPrefix(hostname())}${process.pid}-`));
  } catch (error) {
    throw new LastcallError(
      "OUTPUT_UNWRITABLE",
      `Cannot write the kubeconfig to ${tmpdir()}: ${messageOf(error)}, set TMPDIR to a folder that you may write to`,
    );
  }
}

function sweepDeadFolders(): void {
  const prefix = folderPrefix(hostname());
  for (const name of readdirSync(tmpdir())) {
    const pid = name.startsWith(prefix) ? pidOf(name.slice(prefix.length)) : undefined;
    if (pid === undefined || isAlive(pid)) continue;
    try {
      rmSync(join(tmpdir(), name), { recursive: true, force: true });
    } catch {
      // It belongs to another user, who can remove it: not an error.
    }
  }
}

/** The process id in `4711-Ab3dEf`; undefined for a name of another form. */
function pidOf(rest: string): number | undefined {
  const found = /^([1-9]\d*)-\w{6}$/.exec(rest);
  return found === null ? undefined : Number(found[1]);
}

/** Signal 0 only tests; for another user's process the error is "not permitted". */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** The interval at which elapsed time is checked. */
const frameMs = millis(50);
/** A process that was stopped for longer catches up on at most this. */
const longestFrameMs = 250;

export interface Playing {
  /** The clock of the model, which advances only here. */
  readonly clock: VirtualClock;
  readonly real: Clock;
  /** How many times faster than real time; read before each step, and 0 while paused. */
  readonly speed: () => number;
  readonly onFrame: () => void;
}

/**
 * Advances a model's time in step with real time until the signal aborts. It moves from one timer
 * of the model to the next, so that events and their times are the same at any speed, and a speed
 * that depends on events changes at exactly their time.
 */
export async function play(playing: Playing, signal: AbortSignal): Promise<void> {
  const { real, onFrame } = playing;
  let lastMs = real.monotonic();
  let leftMs = 0;
  while (!signal.aborted) {
    onFrame();
    await real.sleep(frameMs, signal).catch(() => undefined);
    const nowMs = real.monotonic();
    leftMs = await pass(playing, leftMs + Math.min(longestFrameMs, nowMs - lastMs), signal);
    lastMs = nowMs;
  }
}

/**
 * Advances the model by this much real time. Returns the rest, which is less than a millisecond
 * there.
 */
async function pass(
  { clock, speed }: Playing,
  realMs: number,
  signal: AbortSignal,
): Promise<number> {
  let leftMs = realMs;
  while (!signal.aborted) {
    const factor = speed();
    const span = Math.floor(leftMs * factor);
    if (span < 1) return factor === 0 ? 0 : leftMs;
    const nowAt = clock.now();
    const endAt = plus(nowAt, millis(span));
    const dueAt = clock.nextDueAt() ?? endAt;
    await clock.runUntil(dueAt < endAt ? dueAt : endAt);
    leftMs -= (clock.now() - nowAt) / factor;
  }
  return 0;
}

/** Without `--for` it runs until it is interrupted, or for a century. */
const forever = hours(876_000);

interface Bounds {
  /** The work that is played. If it fails, so does the play. */
  readonly running: Promise<void>;
  /** Default: until an interrupt. */
  readonly span: Millis | undefined;
  readonly io: Pick<CommandIo, "clock" | "signal">;
}

/** Plays for a span of real time or until an interrupt. Rejects if the work fails before. */
async function playUntilOver(playing: Playing, bounds: Bounds): Promise<void> {
  const over = new AbortController();
  const played = play(playing, over.signal);
  const failed = bounds.running.then(() => new Promise<never>(() => {}));
  try {
    await Promise.race([ends(bounds), failed, played]);
  } finally {
    over.abort();
    await played;
  }
}

/** Resolves after the span, or as soon as somebody interrupts. */
async function ends({ span = forever, io }: Bounds): Promise<void> {
  try {
    await io.clock.sleep(span, io.signal);
  } catch (error) {
    if (!io.signal.aborted) throw error;
  }
}
