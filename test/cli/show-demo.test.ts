import { existsSync, readFileSync, statSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { CommandIo, Screen } from "../../src/cli/command-line/command.ts";
import { runCommandLine } from "../../src/cli/command-line/command-line.ts";
import { showDemo } from "../../src/cli/demo/show-demo.ts";
import { resolveOptions } from "../../src/config/options/resolve-options.ts";
import type { Clock } from "../../src/contracts/clock.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { between, type Instant, instant, type Millis } from "../../src/core/time/time.ts";
import { processIo } from "../../src/runtime/process-io.ts";
import { eventLoopTurn } from "../../src/runtime/real-clock.ts";

interface Heard {
  readonly lines: string[];
  readonly errors: string[];
  readonly io: CommandIo;
  readonly interrupt: () => void;
}

interface Sleeper {
  readonly wakeAtMs: number;
  readonly wake: () => void;
}

/**
 * Time that passes only while the demo sleeps between two frames, and by exactly the requested
 * span: progress per second does not depend on the machine's load.
 */
class FrameClock implements Clock {
  #elapsedMs = 0;
  readonly #sleepers = new Set<Sleeper>();

  now() {
    return instant(Date.UTC(2026, 10, 20) + this.#elapsedMs);
  }

  monotonic(): number {
    return this.#elapsedMs;
  }

  async sleep(span: Millis, signal?: AbortSignal): Promise<void> {
    const isFrame = span <= 50;
    if (!isFrame) return this.#sleepUntil(this.#elapsedMs + span, signal);
    await eventLoopTurn();
    this.#elapsedMs += span;
    for (const sleeper of this.#sleepers) {
      if (sleeper.wakeAtMs <= this.#elapsedMs) sleeper.wake();
    }
  }

  sleepUntil(at: Instant, signal?: AbortSignal): Promise<void> {
    return this.sleep(between(this.now(), at), signal);
  }

  #sleepUntil(wakeAtMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const sleeper = { wakeAtMs, wake: () => end(resolve) };
      const end = (how: () => void): void => {
        this.#sleepers.delete(sleeper);
        how();
      };
      const abort = () => end(() => reject(signal?.reason));
      if (signal?.aborted) return abort();
      this.#sleepers.add(sleeper);
      signal?.addEventListener("abort", abort, { once: true });
    });
  }
}

/**
 * The I/O of a command without a terminal; `onOut` receives each piece of output as it is written.
 */
function listen(onOut: (text: string, heard: Heard) => void = () => {}): Heard {
  const abort = new AbortController();
  const [lines, errors]: [string[], string[]] = [[], []];
  const { files } = processIo();
  const io: CommandIo = {
    out: (text) => {
      lines.push(...text.split("\n").filter((line) => line !== ""));
      onOut(text, heard);
    },
    err: (text) => void errors.push(text),
    ...{ files, isTerminal: false, colour: false, columns: 100, env: {} },
    ...{ clock: new FrameClock(), rng: seededRng(1), fetch, signal: abort.signal },
  };
  const heard: Heard = { lines, errors, io, interrupt: () => abort.abort(new Error("SIGINT")) };
  return heard;
}

function pathIn(lines: readonly string[]): string {
  return lines.find((line) => line.startsWith("KUBECONFIG="))?.slice("KUBECONFIG=".length) ?? "";
}

describe("The demo without a terminal on stdout", () => {
  it("prints its kubeconfig first, then events, then totals, and exits on its own", async () => {
    let seen: string | undefined;
    const heard = listen((text) => {
      if (!text.startsWith("KUBECONFIG=")) return;
      const path = pathIn([text.trim()]);
      seen = readFileSync(path, "utf8");
      // No other user of the machine may read it.
      expect(statSync(path).mode & 0o077).toBe(0);
    });
    // Twenty minutes of the model: the first node leaves after ten.
    const words = ["demo", "--seed", "1", "--speed", "300", "--for", "4s"];
    expect(await runCommandLine(words, heard.io)).toBe(0);
    expect(seen).toMatch(/"server": "http:\/\/127\.0\.0\.1:\d+"/);
    expect(heard.lines[0]).toMatch(/^KUBECONFIG=\//);
    expect(heard.lines.join("\n")).toMatch(/ Draining +spot-\S+ is draining\./);
    expect(heard.lines.at(-1)).toMatch(/^with Lastcall +\d/);
    const [head = "", ...rows] = heard.lines.slice(-3);
    for (const row of rows) expect(row).toHaveLength(head.length);
    expect(existsSync(pathIn(heard.lines))).toBe(false);
    expect(heard.errors).toEqual([]);
  });

  it("prints the same events at any speed, as far as it gets", async () => {
    const told = async (speed: string): Promise<readonly string[]> => {
      const heard = listen();
      const words = ["demo", "--nodes", "4", "--seed", "2", "--speed", speed, "--for", "1s"];
      expect(await runCommandLine(words, heard.io)).toBe(0);
      return heard.lines.filter((line) => /^2026-11-20 \d\d:/.test(line));
    };
    const [slow, fast] = [await told("900"), await told("7200")];
    expect(slow.length).toBeGreaterThan(3);
    expect(fast.length).toBeGreaterThan(slow.length);
    expect(fast.slice(0, slow.length)).toEqual(slow);
  });

  it("exits with 130 on an interrupt, and deletes its kubeconfig", async () => {
    const heard = listen((text, { interrupt }) => {
      if (text.startsWith("KUBECONFIG=")) interrupt();
    });
    expect(await runCommandLine(["demo", "--nodes", "3"], heard.io)).toBe(130);
    expect(existsSync(pathIn(heard.lines))).toBe(false);
  });
});

const keyboard = { isOpen: false, press: (_: string): void => {} };

/** A demo of six nodes on a terminal whose keys are pressed by `keyboard.press`. */
function demoOn(io: CommandIo): Promise<number> {
  const options = resolveOptions("demo", { flags: { nodes: "6" }, env: {} });
  const openKeyboard = (onText: (text: string) => void) => {
    Object.assign(keyboard, { isOpen: true, press: onText });
    return { close: () => Object.assign(keyboard, { isOpen: false }) };
  };
  return showDemo({ options, words: [], io, seed: 1 }, { openKeyboard });
}

describe("The demo on a terminal", () => {
  it("reacts to its keys", async () => {
    const heard = listen();
    const frames: string[] = [];
    // The clock is paused at once, so that nothing is drawn twice; then it runs to the first event.
    const script: readonly (readonly [shown: RegExp, key: string])[] = [
      [/60x[\s\S]*^>spot-\S+ /m, " "],
      [/PAUSED/, "s"],
      [/PAUSED[\s\S]*^>spot-b-/m, "\u001b[B"],
      [/PAUSED[\s\S]*^ spot-b-\S+ .*\n>spot-/m, "+"],
      [/PAUSED/, " "],
      // The page of a node pauses the demo, and leaving it ends that pause.
      [/120x/, "\r"],
      [/PAUSED while a node is open[\s\S]*^ Zone +europe/m, "\u001b"],
      // What is typed into the filter is no key of the demo.
      [/120x[\s\S]*describe/, "/"],
      [/ \/_ /, "n"],
      [/120x[\s\S]* \/n_ /, "\u001b"],
      [/120x/, "n"],
      [/^ NOTICE {2}/m, "i"],
      [/^ Leaving +2 nodes are leaving now, both on a notice/m, "p"],
    ];
    let step = 0;
    const draw = (frame: string): void => {
      frames.push(frame);
      const [shown, key] = script[step] ?? [/PAUSED/, undefined];
      if (!shown.test(frame.replaceAll("\u001b[K\r\n", "\n"))) return;
      step += 1;
      if (key === undefined) heard.interrupt();
      else queueMicrotask(() => keyboard.press(key));
    };
    const size = () => ({ columns: 100, rows: 30 });
    const screen = { size, draw, onResize: () => () => {}, close: () => {} };
    const io = { ...heard.io, isTerminal: true, openScreen: () => screen };
    expect(await demoOn(io)).toBe(130);
    expect(step).toBe(script.length + 1);
  });

  it("draws the board, redraws it on a resize, and restores the terminal", async () => {
    const drawn: string[] = [];
    const listeners = new Set<() => void>();
    let columns = 80;
    let isOpen = false;
    const heard = listen();
    const screen: Screen = {
      size: () => ({ columns, rows: 24 }),
      draw: (frame) => {
        expect(isOpen).toBe(true);
        drawn.push(frame);
        if (drawn.length === 1) {
          columns = 30;
          queueMicrotask(() => {
            for (const listener of listeners) listener();
          });
        }
        if (drawn.length === 3) heard.interrupt();
      },
      onResize: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      close: () => {
        isOpen = false;
      },
    };
    const openScreen = (): Screen => {
      isOpen = true;
      return screen;
    };
    const io = { ...heard.io, isTerminal: true, openScreen };
    expect(await demoOn(io)).toBe(130);
    expect(keyboard.isOpen).toBe(false);
    expect(isOpen).toBe(false);
    expect(listeners.size).toBe(0);
    expect(drawn[0]).toContain("kubectl get dep,nodes");
    expect(drawn[1]).toContain("…");
    // Only the totals stay on the terminal.
    expect(heard.lines).toHaveLength(3);
  });
});

describe("The headless demo", () => {
  const words = ["demo", "--headless", "--hours", "1", "--nodes", "6", "--seed", "3"];

  it("prints a machine-readable report with -o json", async () => {
    const heard = listen();
    expect(await runCommandLine([...words, "-o", "json"], heard.io)).toBe(0);
    const report = JSON.parse(heard.lines.join("\n"));
    expect(report).toMatchObject({ kind: "SimulationReport", seed: 3, runs: 1, nodeHours: 6 });
    expect(report.policies.map((one: { name: string }) => one.name)).toEqual(["none", "lastcall"]);
    expect(report.violations).toEqual([]);
  });

  it("prints a table by default", async () => {
    const heard = listen();
    expect(await runCommandLine(words, heard.io)).toBe(0);
    expect(heard.lines[0]).toMatch(/^POLICY +PLANNED +PREEMPTED/);
    expect(heard.lines.slice(1, 3).map((line) => line.split(" ")[0])).toEqual(["none", "lastcall"]);
  });

  it("rejects --open, since it has no board", async () => {
    const heard = listen();
    expect(await runCommandLine([...words, "--open"], heard.io)).toBe(2);
    expect(heard.errors.join("")).toContain("Cannot use --open with --headless");
    expect(heard.lines).toEqual([]);
  });

  it("exits with 130 and prints nothing if interrupted", async () => {
    const heard = listen();
    heard.interrupt();
    expect(await runCommandLine(words, heard.io)).toBe(130);
    expect(heard.lines).toEqual([]);
  });
});
