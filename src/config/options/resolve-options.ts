import { type ErrorCode, LastcallError } from "../../errors.ts";
import { type Command, fieldNameOf, type Option, variableOf } from "./option.ts";
import { readOptionValue } from "./option-value.ts";
import { type OptionsOf, optionsFor } from "./options.ts";

/**
 * Where the values of options may come from; a flag beats the environment, which beats the file.
 */
export interface OptionSources {
  /**
   * The flags that were given, by field name (`leaderElect`), as text or as commander parsed them.
   */
  readonly flags: Readonly<Record<string, FlagValue>>;
  /** The environment; a variable that is empty counts as not set. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly file?: OptionsFile | undefined;
}

export type FlagValue = string | boolean | readonly string[] | undefined;

/** The file of `--config`, read. */
export interface OptionsFile {
  /** The texts of an option for a command; undefined where the file does not have it. */
  readonly textsOf: (command: Command, name: string) => PlacedTexts | undefined;
}

/**
 * The texts of an option, and where they stand: `--runs`, `LASTCALL_RUNS`, `lastcall.yaml:3: runs`.
 */
export interface PlacedTexts {
  readonly place: string;
  readonly texts: readonly string[];
}

/**
 * The options of a command with everything counted in. Throws `USAGE` (a flag or a variable) or
 * `CONFIG_INVALID` (the file) with one sentence that names the place, what was found and what is
 * wanted.
 */
export function resolveOptions<Of extends Command>(
  command: Of,
  sources: OptionSources,
): OptionsOf<Of> {
  const resolved = optionsFor(command).map((option) => [
    fieldNameOf(option.name),
    resolveOption({ command, option, sources }),
  ]);
  return Object.freeze(Object.fromEntries(resolved)) as OptionsOf<Of>;
}

function resolveOption(question: {
  readonly command: Command;
  readonly option: Option;
  readonly sources: OptionSources;
}): unknown {
  const { command, option, sources } = question;
  const { name } = option;
  const given: PlacedTexts | undefined =
    textsOfFlag(option, sources.flags[fieldNameOf(name)]) ??
    textsOfVariable(option, sources.env[variableOf(name)]);
  if (given !== undefined) return readTexts(option, given, "USAGE");
  const written = sources.file?.textsOf(command, name);
  if (written !== undefined) return readTexts(option, written, "CONFIG_INVALID");
  if (option.required) {
    const sentence = `--${name} is required, set it or ${variableOf(name)}`;
    throw new LastcallError("USAGE", `Cannot run lastcall ${command}: ${sentence}`);
  }
  if (option.default !== undefined) {
    return readTexts(option, { place: `--${name}`, texts: [option.default] }, "USAGE");
  }
  return option.list ? Object.freeze([]) : undefined;
}

function textsOfFlag(option: Option, value: FlagValue): PlacedTexts | undefined {
  if (value === undefined) return undefined;
  const texts = typeof value === "object" ? value : [String(value)];
  return { place: `--${option.name}`, texts };
}

function textsOfVariable(option: Option, value: string | undefined): PlacedTexts | undefined {
  if (value === undefined || value === "") return undefined;
  const texts = option.list ? value.split(",").map((text) => text.trim()) : [value];
  return { place: variableOf(option.name), texts };
}

function readTexts(option: Option, { place, texts }: PlacedTexts, code: ErrorCode): unknown {
  const values = texts.map((text) => {
    const read = readOptionValue(option, text);
    if ("value" in read) return read.value;
    const found = text === "" ? "nothing" : JSON.stringify(text);
    throw new LastcallError(code, `Cannot read ${place}: found ${found}, expected ${read.wanted}`);
  });
  if (option.list) return Object.freeze(values);
  if (values.length === 1) return values[0];
  const found = values.length === 0 ? "nothing" : `${values.length} values`;
  throw new LastcallError(code, `Cannot read ${place}: found ${found}, expected one`);
}
