import type { Command } from "../../config/options/option.ts";
import type { OptionsOf } from "../../config/options/options.ts";
import type { CommandIo } from "./command-io.ts";

/** What a command is called with: its options resolved, its arguments as typed. */
export interface CommandInput<Of extends Command> {
  readonly options: OptionsOf<Of>;
  readonly words: readonly string[];
  readonly io: CommandIo;
}

/** Gives the exit code; throws `LastcallError` for what the user can mend. */
export type CommandRun<Of extends Command> = (input: CommandInput<Of>) => Promise<number>;

export interface CommandSpec<Of extends Command = Command> {
  readonly name: Of;
  /** One line for the list of commands. */
  readonly summary: string;
  /** The arguments, as help shows them: `NODE…`, `[SCENARIO.yaml]`. */
  readonly words: string;
  readonly minWords: number;
  readonly maxWords: number;
  /** What the columns of its table mean, as pairs; absent: their heads say it. */
  readonly columns?: readonly (readonly [head: string, meaning: string])[];
  /** Each a line that can be typed. */
  readonly examples: readonly string[];
  /** Loads the command's own code, which no other command pays for. */
  readonly load: () => Promise<CommandRun<Of>>;
}

/** Keeps the options' types of one command while the list holds all of them. */
export function command<Of extends Command>(spec: CommandSpec<Of>): CommandSpec {
  return spec as unknown as CommandSpec;
}
