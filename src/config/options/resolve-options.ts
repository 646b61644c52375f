import { orList } from "../../core/reason/word-list.ts";
import {
  clockMeant,
  durationMeant,
  instantMeant,
  isDurationText,
  parseNamedTime,
} from "../../core/time/named-time.ts";
import { parseDuration } from "../../core/time/time.ts";
import { type ErrorCode, LastcallError } from "../../errors.ts";
import { addressMeant, didYouMean } from "../problem.ts";
import {
  type Command,
  type DurationOption,
  fieldNameOf,
  type Option,
  variableOf,
} from "./option.ts";
import { type OptionsOf, options, optionsFor } from "./options.ts";
import { unreadVariables } from "./unread-variable.ts";

/**
 * The sources of option values; a flag takes precedence over the environment, which takes
 * precedence over the file.
 */
interface OptionSources {
  /**
   * The flags that were set, by field name (`leaderElect`), as text or as commander parsed them.
   */
  readonly flags: Readonly<Record<string, FlagValue>>;
  /** The environment; an empty variable counts as not set. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly file?: OptionsFile | undefined;
}

export type FlagValue = string | boolean | readonly string[] | undefined;

/** The parsed file of `--config`. */
export interface OptionsFile {
  /** The texts of an option for a command; undefined if the file does not have it. */
  readonly textsOf: (command: Command, name: string) => PlacedTexts | undefined;
}

/** The texts of an option, and their source: `--runs`, `LASTCALL_RUNS`, `lastcall.yaml:3: runs`. */
interface PlacedTexts {
  readonly place: string;
  readonly texts: readonly string[];
}

/**
 * Resolves the options of a command from all sources. Throws `USAGE` (a flag or a variable) or
 * `CONFIG_INVALID` (the file) with one sentence that names the source, what was found and what is
 * expected.
 */
export function resolveOptions<Of extends Command>(
  command: Of,
  sources: OptionSources,
): OptionsOf<Of> {
  const resolved = Object.fromEntries(
    optionsFor(command).map((option) => [
      fieldNameOf(option.name),
      resolveOption({ command, option, sources }),
    ]),
  );
  for (const option of optionsFor(command)) checkCompany(option, { command, sources, resolved });
  checkStandardInput(resolved);
  return Object.freeze(resolved) as OptionsOf<Of>;
}

/** Only tests set it: the directory of the agent's service account. */
const testVariable = "LASTCALL_ACCOUNT_FOLDER";

/**
 * One sentence for each variable that looks like an option and is none. Those of other commands
 * count as known: they may be set for all.
 */
export function unknownVariables(command: Command, env: OptionSources["env"]): readonly string[] {
  const variables = [...optionsFor(command), ...options].map(({ name }) => variableOf(name));
  return unreadVariables(env, { named: [...variables, testVariable] });
}

/**
 * Rejects a flag that has no effect beside another option, or without one. A variable or a file may
 * serve many commands, so it is not checked.
 */
function checkCompany(
  { name, needs = "", excludes = [] }: Option,
  given: {
    readonly command: Command;
    readonly sources: OptionSources;
    readonly resolved: Readonly<Record<string, unknown>>;
  },
): void {
  if (!isGiven(given.sources.flags[fieldNameOf(name)])) return;
  const [needed = "", value = "true"] = needs.split("=");
  if (needs !== "" && String(given.resolved[fieldNameOf(needed)] ?? "") !== value) {
    const sentence = `it has no effect without --${needs}, add that or remove --${name}`;
    throw new LastcallError("USAGE", `Cannot use --${name}: ${sentence}`);
  }
  const other = excludes.find((one) => isGiven(given.resolved[fieldNameOf(one)]));
  if (other === undefined) return;
  const sentence = `it has no effect together with ${placeOf(other, given)}, remove one of the two`;
  throw new LastcallError("USAGE", `Cannot use --${name}: ${sentence}`);
}

/** Where its value is from: nobody finds `--policy` on a command line that does not have it. */
function placeOf(
  name: string,
  { command, sources }: { readonly command: Command; readonly sources: OptionSources },
): string {
  if (isGiven(sources.flags[fieldNameOf(name)])) return `--${name}`;
  if (sources.env[variableOf(name)]) return variableOf(name);
  return sources.file?.textsOf(command, name)?.place ?? `--${name}`;
}

function isGiven(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false;
}

/** Standard input can be read only once: the second reader would find it empty. */
function checkStandardInput(resolved: Readonly<Record<string, unknown>>): void {
  const readers = ["filename", "from"].flatMap((name) => {
    const { [name]: paths = [] } = resolved as Readonly<Record<string, readonly string[]>>;
    return paths.filter((path) => path === "-").map(() => `--${name} -`);
  });
  if (readers.length < 2) return;
  const sentence = `${readers.join(" and ")} both read it, expected one`;
  throw new LastcallError("USAGE", `Cannot read standard input twice: ${sentence}`);
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
    const meant = read.meant === undefined ? "" : ` (${read.meant}?)`;
    throw new LastcallError(
      code,
      `Cannot read ${place}: found ${found}${meant}, expected ${read.wanted}`,
    );
  });
  if (option.list) return Object.freeze(values);
  if (values.length === 1) return values[0];
  const found = values.length === 0 ? "nothing" : `${values.length} values`;
  throw new LastcallError(code, `Cannot read ${place}: found ${found}, expected one`);
}

/** The value that the text of an option means, or what would be expected instead. */
type OptionValue =
  | { readonly value: unknown }
  | { readonly wanted: string; readonly meant?: string | undefined };

/** Parses one value of an option as a flag, a variable or the config file spells it. */
export function readOptionValue(option: Option, text: string): OptionValue {
  switch (option.type) {
    case "text":
      return text === "" ? { wanted: `a value for ${option.value}` } : { value: text };
    case "switch":
      return valueOr(parseSwitch(text), "true or false");
    case "choice":
      return option.choices.includes(text)
        ? { value: text }
        : { wanted: orList(option.choices), meant: didYouMean(text, option.choices) };
    case "integer":
    case "number":
      return readNumber(option, text);
    case "duration":
      return readDuration(option, text);
    case "time":
      return readTime(text);
    case "url":
      return isWebAddress(text)
        ? { value: text }
        : { wanted: "an address such as http://host:80", meant: addressMeant(text) };
    case "address":
      if (isListenAddress(text)) return { value: text };
      // An address that the option accepts: the board is served on loopback only.
      return { wanted: `an address such as ${option.default ?? ":8080"}` };
  }
}

/** The spellings that Go's flag package accepts, without the single letters. */
function parseSwitch(text: string): boolean | undefined {
  switch (text.toLowerCase()) {
    case "true":
    case "1":
      return true;
    case "false":
    case "0":
      return false;
    default:
      return undefined;
  }
}

function readNumber(option: Extract<Option, { minimum: number }>, text: string): OptionValue {
  const { type, minimum, maximum } = option;
  const value = /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  const isRight = value >= minimum && value <= maximum;
  if (isRight && (type === "number" || Number.isInteger(value))) return { value };
  const kind = type === "integer" ? "a whole number" : "a number";
  return { wanted: `${kind} from ${minimum} to ${maximum}` };
}

function readDuration({ shortest, longest }: DurationOption, text: string): OptionValue {
  const value = parseDuration(text);
  const isShort = value !== undefined && value < (parseDuration(shortest ?? "") ?? 0);
  const isLong = value !== undefined && value > (parseDuration(longest ?? "") ?? Infinity);
  if (value !== undefined && !isShort && !isLong) return { value };
  if (value === undefined && isDurationText(text)) return { wanted: "a duration under 292 years" };
  if (value === undefined || shortest === undefined) {
    return { wanted: "a duration such as 90s or 12h30m", meant: durationMeant(text) };
  }
  const range =
    longest === undefined ? `of at least ${shortest}` : `from ${shortest} to ${longest}`;
  return { wanted: `a duration ${range}` };
}

function readTime(text: string): OptionValue {
  const value = parseNamedTime(text);
  if (value !== undefined) return { value };
  const wanted =
    "a time such as 22:00, a duration from now such as 2h, or an RFC 3339 instant such as 2026-12-01T00:00:00Z";
  const meant = durationMeant(text) ?? instantMeant(text) ?? clockMeant(text);
  // No time at all is in the right format already.
  return { wanted, meant: meant === text ? undefined : meant };
}

function isWebAddress(text: string): boolean {
  return /^https?:\/\/\S+$/.test(text) && URL.canParse(text);
}

/** `:8080`, `127.0.0.1:8080`, `[::1]:8080`, `localhost:0`. */
function isListenAddress(text: string): boolean {
  const port = /^(?:[A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\]):(\d{1,5})$/.exec(text)?.[1];
  return port !== undefined && Number(port) <= 65_535;
}

function valueOr(value: unknown, wanted: string): OptionValue {
  return value === undefined ? { wanted } : { value };
}

/**
 * Rewrites `--x=true` to `--x` and `--x=false` to `--no-x` for the switches of a command, and
 * `-o=json` to `-ojson`, which are the only spellings that commander understands. Nothing after
 * `--` is changed. Throws USAGE for any other value of a switch: commander would call the option
 * unknown.
 */
export function spellSwitches(command: Command, args: readonly string[]): readonly string[] {
  const options = optionsFor(command);
  const end = args.indexOf("--");
  return args.map((arg, index) => {
    const [, dashes, spelled, value = ""] = /^(--?)([a-z0-9-]+)=(.*)$/is.exec(arg) ?? [];
    const option = options.find(
      ({ name, short }) => spelled === (dashes === "-" ? short : name) && spelled !== undefined,
    );
    if (option === undefined || (end >= 0 && index > end)) return arg;
    const { name } = option;
    if (option.type !== "switch")
      return dashes === "-" && value !== "" ? `-${spelled}${value}` : arg;
    if (/^(true|1)$/i.test(value)) return `--${name}`;
    if (/^(false|0)$/i.test(value)) return `--no-${name}`;
    const found = `found ${JSON.stringify(value)}, expected true or false`;
    throw new LastcallError("USAGE", `Cannot read --${name}: ${found}`);
  });
}

/**
 * The flags of `lastcall agent`, by field name: `--name value`, `--name=value`, `--switch`,
 * `--no-switch`. The command's own name may come first. Kept small, because the parser of the other
 * commands, and Bun's own, take 4 MiB and more. Throws USAGE.
 */
export function agentFlags(words: readonly string[]): Readonly<Record<string, string | boolean>> {
  const args = [...spellSwitches("agent", words[0] === "agent" ? words.slice(1) : words)];
  const flags: Record<string, string | boolean> = {};
  const types = new Map(optionsFor("agent").map(({ name, type }) => [name, type as string]));
  for (let arg = args.shift(); arg !== undefined; arg = args.shift()) {
    const [, name = "", , value] = /^--([a-z0-9-]+)(=(.*))?$/s.exec(arg) ?? [];
    const positive = name.replace(/^no-/, "");
    if (types.get(positive) === "switch" && value === undefined) {
      flags[fieldNameOf(positive)] = name === positive;
    } else if (types.has(name) && types.get(name) !== "switch") {
      flags[fieldNameOf(name)] = value ?? valueAfter(name, args.shift());
    } else throw unusable(`found ${arg}`);
  }
  return flags;
}

function valueAfter(name: string, next: string | undefined): string {
  if (next === undefined || next.startsWith("--")) throw unusable(`--${name} has no value`);
  return next;
}

function unusable(found: string): LastcallError {
  return new LastcallError(
    "USAGE",
    `Cannot run lastcall agent: ${found}, expected flags that lastcall help agent lists`,
  );
}
