import type { Command } from "../../config/options/option.ts";
import type { OptionsOf } from "../../config/options/options.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { Rng } from "../../core/chance/chance.ts";
import { escapedJson } from "../../core/json/printable-text.ts";

/** The environment of a command: passed in by `main.ts`, faked by tests. */
export interface CommandIo {
  /** Data goes to stdout, everything else to stderr. */
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly files: CommandFiles;
  /** Whether stdout is a terminal, and whether to use colour on it. */
  readonly isTerminal: boolean;
  readonly colour: boolean;
  readonly columns: number;
  /** The time zone of this computer, an IANA name. Default: UTC. */
  readonly timeZone?: string | undefined;
  /**
   * Takes over the whole terminal. Undefined if stdout is not a terminal, or one without such a
   * screen.
   */
  readonly openScreen?: (() => Screen) | undefined;
  /**
   * Calls back for each line that is typed on the terminal while this process is in the foreground.
   * Returns the function that stops it, or undefined if nothing can be typed. Undefined if stdout
   * is not a terminal.
   */
  readonly onLine?: ((listener: () => void) => (() => void) | undefined) | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly rng: Rng;
  readonly fetch: typeof fetch;
  /** Aborts on SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
}

export interface CommandFiles {
  /** Throws INPUT_UNREADABLE with the path. */
  readText(path: string): Promise<string>;
  stdin(): Promise<string>;
  /** The same as a stream, for input that may be too long for memory. */
  stdinBytes(): AsyncIterable<Uint8Array>;
  /**
   * Writes or overwrites a file that only this user may read. Throws OUTPUT_UNWRITABLE with the
   * path.
   */
  writeText(path: string, text: string): Promise<void>;
  /** Appends to a file, or creates it. Throws OUTPUT_UNWRITABLE with the path. */
  appendText(path: string, text: string): Promise<void>;
  /** Writes a file that only this user may read, in a new folder; `remove` deletes both. */
  writeTemporary(name: string, text: string): Promise<TemporaryFile>;
}

export interface TemporaryFile {
  readonly path: string;
  remove(): Promise<void>;
}

/** A terminal that is taken over until it is closed. */
export interface Screen {
  size(): { readonly columns: number; readonly rows: number };
  /** Shows one frame: text with escape sequences. */
  draw(frame: string): void;
  /** Calls back when the size changes; returns the function that stops it. */
  onResize(listener: () => void): () => void;
  close(): void;
}

/** Writes plain data as JSON or YAML, the same fields in the same order. */
export async function printData(
  data: unknown,
  format: "json" | "yaml",
  io: Pick<CommandIo, "out">,
): Promise<void> {
  if (format === "json") {
    io.out(`${escapedJson(data, 2)}\n`);
    return;
  }
  const { printYaml } = await import("../../config/yaml-text.ts");
  io.out(printYaml(data));
}

/** The input of a command: its options resolved, its arguments as typed. */
export interface CommandInput<Of extends Command> {
  readonly options: OptionsOf<Of>;
  readonly words: readonly string[];
  readonly io: CommandIo;
}

/** Returns the exit code; throws `LastcallError` for what the user can fix. */
export type CommandRun<Of extends Command> = (input: CommandInput<Of>) => Promise<number>;

export interface CommandSpec<Of extends Command = Command> {
  readonly name: Of;
  /** One line for the list of commands. */
  readonly summary: string;
  /** The arguments, as help shows them: `NODE…`, `[SCENARIO.yaml]`. */
  readonly words: string;
  readonly minWords: number;
  readonly maxWords: number;
  /**
   * The meaning of the columns of its table, as pairs. Default: none, if the headings are clear.
   */
  readonly columns?: readonly (readonly [head: string, meaning: string])[];
  /** Each is a line that can be typed. */
  readonly examples: readonly string[];
  /** Loads the command's own code, which no other command needs. */
  readonly load: () => Promise<CommandRun<Of>>;
}

/** Keeps the types of one command's options, although the list contains all commands. */
export function command<Of extends Command>(spec: CommandSpec<Of>): CommandSpec {
  return spec as unknown as CommandSpec;
}
