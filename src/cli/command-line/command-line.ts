import { Command, CommanderError, Option as Flag } from "commander";
import { fieldNameOf, type Option, variableOf } from "../../config/options/option.ts";
import { optionsFor } from "../../config/options/options.ts";
import {
  type FlagValue,
  resolveOptions,
  spellSwitches,
  unknownVariables,
} from "../../config/options/resolve-options.ts";
import { didYouMean } from "../../config/problem.ts";
import { orList } from "../../core/reason/word-list.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import { version } from "../commands/version.ts";
import type { CommandIo, CommandSpec } from "./command.ts";
import { commandList, completedCommands, completionScript } from "./command-list.ts";
import { insteadOf, longHabits, optionHabits, wordHabits } from "./habit.ts";
import { folded } from "./terminal.ts";

/** Options that every command has. Help shows them after the command's own. */
const commonOptions = commandList
  .map((spec) => new Set(optionsFor(spec.name).map(({ name }) => name)))
  .reduce((some, others) => some.intersection(others));

/** Parses the command line, runs the command and returns the exit code; never throws. */
export async function runCommandLine(
  args: readonly string[],
  io: CommandIo,
  specs: readonly CommandSpec[] = commandList,
): Promise<number> {
  const wantsStack = () =>
    (args.includes("--log-level=debug") || args[args.indexOf("--log-level") + 1] === "debug") &&
    args.some((arg) => arg.startsWith("--log-level"));
  try {
    return await parseAndRun(args, io, specs);
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0;
      io.err(`lastcall: ${parserFault(error, args)}\n`);
      return 2;
    }
    io.err(`lastcall: ${messageOf(error)}\n`);
    for (const one of otherMistakes(error)) io.err(`  ${one}\n`);
    if (wantsStack() && error instanceof Error) io.err(`${error.stack}\n`);
    if (io.signal.aborted) return 130;
    return isLastcallError(error) ? error.exitCode : 1;
  }
}

/** How many mistakes of one input are listed. */
const mistakeLimit = 20;

/** The message contains the first; whoever has to correct a file wants to see them all. */
function otherMistakes(error: unknown): readonly string[] {
  if (!isLastcallError(error)) return [];
  const shown = error.details.slice(1, mistakeLimit);
  const more = error.details.length - 1 - shown.length;
  return more > 0 ? [...shown, `… and ${more} more`] : shown;
}

async function parseAndRun(
  args: readonly string[],
  io: CommandIo,
  specs: readonly CommandSpec[],
): Promise<number> {
  let exitCode = 0;
  const program = new Command("lastcall")
    .description("Spot and preemptible Kubernetes nodes leave on a plan instead of by surprise.")
    .version(version, "-V, --version", "Print the version")
    .helpCommand("help [command]", "Show help for a command")
    .helpOption("-h, --help", "Show this help")
    .exitOverride()
    // `parserFault` reports what commander refuses, in one sentence like all errors.
    .configureOutput({ writeOut: io.out, writeErr: io.err, outputError: () => {} })
    .configureHelp({
      // The longest option leaves 28 of a terminal's 80 columns.
      minWidthToWrap: 24,
      subcommandTerm: (sub) => `${sub.name()} ${sub.usage().replace(/ ?\[options\] ?/, "")}`,
    })
    .showSuggestionAfterError(false);
  for (const spec of specs) {
    const built = build(spec, async (flags, words) => {
      const run = await spec.load();
      const options = await readOptions(spec.name, flags, io);
      exitCode = await run({ options, words, io } as Parameters<typeof run>[0]);
    });
    program.addCommand(built.copyInheritedSettings(program));
  }
  program.addCommand(completionCommand(io).copyInheritedSettings(program));
  const named = specs.find((spec) => args[0] === spec.name);
  const spelled = named === undefined ? args : spellSwitches(named.name, args);
  if (args.length === 0 || (args[0] === "help" && args[1] === "help")) program.help();
  const stranger = unknownCommand(program, args);
  if (stranger === undefined) refuseEarlyOption(args);
  await program.parseAsync(stranger === undefined ? [...spelled] : [stranger], { from: "user" });
  return exitCode;
}

/** With `help` or `--help`, commander would show the help of the program without saying why. */
function unknownCommand(program: Command, args: readonly string[]): string | undefined {
  const word = args[0] === "help" ? args[1] : args[0];
  if (word === undefined || word.startsWith("-") || word === "help") return undefined;
  return program.commands.some((command) => command.name() === word) ? undefined : word;
}

function build(
  spec: CommandSpec,
  run: (flags: Readonly<Record<string, FlagValue>>, words: readonly string[]) => Promise<void>,
): Command {
  const built = new Command(spec.name)
    .summary(spec.summary)
    .description(`${spec.summary}.`)
    .argument("[words...]")
    .exitOverride()
    .usage(`${spec.words === "" ? "" : `${spec.words} `}[options]`)
    .addHelpText("after", columnsHelp(spec.columns))
    .addHelpText("after", `\nExamples:\n${spec.examples.map((line) => `  ${line}\n`).join("")}`);
  const { own = [], common = [] } = Object.groupBy(optionsFor(spec.name), ({ name }) =>
    commonOptions.has(name) ? "common" : "own",
  );
  const flagsIn = (options: readonly Option[]) =>
    options.flatMap((option) => flagsOf(option, spec.name));
  for (const flag of flagsIn(own)) built.addOption(flag);
  for (const flag of flagsIn(common)) built.addOption(flag.helpGroup("Common options:"));
  return built.action(async (given: string[]) => {
    const words = spec.words.startsWith("NODE") ? given.map(nodeNameIn) : given;
    checkWords(spec, words);
    const flags: Readonly<Record<string, FlagValue>> = built.opts();
    checkParts(spec, { part: words[0], flags });
    await run(flags, words);
  });
}

const helpWidth = 80;

/** The legend of a table, folded like the options above it. */
function columnsHelp(columns: CommandSpec["columns"] = []): string {
  if (columns.length === 0) return "";
  const indent = " ".repeat(Math.max(...columns.map(([head]) => head.length)) + 4);
  const lines = columns.map(([head, meaning]) => {
    const text = folded(meaning, helpWidth - indent.length).join(`\n${indent}`);
    return `  ${head}`.padEnd(indent.length) + text;
  });
  return `\nColumns:\n${lines.join("\n")}`;
}

/** Accepts `node/n1` as well, which `kubectl get nodes -o name` prints. */
function nodeNameIn(word: string): string {
  return word.replace(/^nodes?\//, "");
}

function checkWords(spec: CommandSpec, words: readonly string[]): void {
  const isCounted = words.length >= spec.minWords && words.length <= spec.maxWords;
  if (isCounted && !words.includes("")) return;
  const files = optionsFor(spec.name).some(({ name }) => name === "filename");
  const none = wordHabits[spec.name] ?? (files ? "pass files with -f" : "");
  const noArgument = ["expected no argument", none].filter(Boolean).join(", ");
  const wanted = spec.words === "" ? noArgument : `expected ${spec.words}`;
  const given = isCounted ? "an empty argument" : words.join(" ");
  const found = words.length === 0 ? "no argument was given" : `found ${given}`;
  throw new LastcallError("USAGE", `Cannot run lastcall ${spec.name}: ${found}, ${wanted}`);
}

/** A flag that this part of `setup` does not read is meant for another part, or is a mistake. */
function checkParts(
  spec: CommandSpec,
  given: {
    readonly part: string | undefined;
    readonly flags: Readonly<Record<string, FlagValue>>;
  },
): void {
  const { part = "", flags } = given;
  const misplaced = optionsFor(spec.name).find(
    ({ name, parts }) => flags[fieldNameOf(name)] !== undefined && parts?.includes(part) === false,
  );
  const isPart = spec.name === "setup" && spec.words.split("|").includes(part);
  if (!isPart || misplaced === undefined) return;
  const wanted = `expected it only with ${orList(misplaced.parts ?? [])}`;
  throw new LastcallError(
    "USAGE",
    `Cannot set up ${part}: --${misplaced.name} was given, ${wanted}`,
  );
}

/**
 * Values stay text here: `resolveOptions` parses them, whether they come from a flag, a variable or
 * a file.
 */
function flagsOf(option: Option, command: CommandSpec["name"]): Flag[] {
  const short = option.short === undefined ? "" : `-${option.short}, `;
  const shown = shownValue(option);
  const long = option.type === "choice" && option.value !== undefined;
  const help = long ? `${option.help}: ${orList(option.choices)}` : option.help;
  const notes = [
    ...(option.required ? ["required"] : []),
    ...(option.default === undefined ? [] : [`default ${option.default}`]),
    `env ${variableOf(option.name)}`,
  ];
  const flag = new Flag(`${short}--${option.name}${shown}`, `${help} (${notes.join(", ")})`);
  if (option.type === "switch") return [flag, new Flag(`--no-${option.name}`).hideHelp()];
  flag.argParser((text: string, before: FlagValue): FlagValue => {
    refuseFlagAsValue(option, { text, command });
    return option.list ? [...(Array.isArray(before) ? before : []), text] : text;
  });
  return [flag];
}

/** Throws USAGE: commander takes the next word as the value, whatever it is. */
function refuseFlagAsValue(
  option: Option,
  { text, command }: { readonly text: string; readonly command: CommandSpec["name"] },
): void {
  const isFlag = optionsFor(command).some(
    ({ name, short }) => text === `--${name}` || (short !== undefined && text === `-${short}`),
  );
  if (!isFlag) return;
  const wanted = `expected --${option.name}${shownValue(option)}`;
  throw new LastcallError(
    "USAGE",
    `Cannot read --${option.name}: found no value but ${text}, ${wanted}`,
  );
}

/** A variable that does nothing is told even if the options are wrong: it may be the reason. */
async function readOptions(
  command: CommandSpec["name"],
  flags: Readonly<Record<string, FlagValue>>,
  io: CommandIo,
) {
  let isTold = true;
  try {
    const file = await optionsFile(flags.config, io);
    const options = resolveOptions(command, { flags, env: io.env, file });
    isTold = !options.quiet && !logsVariables.includes(command);
    return options;
  } finally {
    const unknown = isTold ? unknownVariables(command, io.env) : [];
    for (const sentence of unknown) io.err(`lastcall: ${sentence}\n`);
  }
}

/** They log them once they run, in the format of all their lines. */
const logsVariables: readonly string[] = ["run", "agent"];

async function optionsFile(flag: FlagValue, io: CommandIo) {
  const path = flag ?? io.env.LASTCALL_CONFIG;
  if (typeof path !== "string" || path === "") return undefined;
  const { readOptionsFile } = await import("../../config/options/read-options-file.ts");
  return readOptionsFile({ file: path, text: await io.files.readText(path) });
}

/** A line for the profile of each shell. */
const sourcing = [
  "source <(lastcall completion bash)   # in ~/.bashrc",
  "source <(lastcall completion zsh)    # in ~/.zshrc, below compinit",
  "lastcall completion fish | source    # in ~/.config/fish/config.fish",
];

function completionCommand(io: CommandIo): Command {
  return new Command("completion")
    .summary("Print the completion script of a shell")
    .description("Print the completion script of a shell, to be sourced in its profile.")
    .addHelpText("after", `\nExamples:\n${sourcing.map((line) => `  ${line}\n`).join("")}`)
    .usage("bash|zsh|fish")
    .argument("[words...]")
    .exitOverride()
    .action((given: string[]) => {
      const [shell] = given;
      if (shell === undefined || given.length > 1) {
        const found = shell === undefined ? "no argument was given" : `found ${given.join(" ")}`;
        const sentence = `Cannot run lastcall completion: ${found}, expected bash, zsh or fish`;
        throw new LastcallError("USAGE", sentence);
      }
      io.out(completionScript(shell, completedCommands()));
    });
}

/** What the parser knew when it refused a command line. */
interface ParsedCommand {
  /** `lastcall`, or `lastcall plan`. */
  readonly command: string;
  /** The flags of the command: `--from`, and with a value as in the usage text, `--from FILE`. */
  readonly flags: readonly { readonly long: string; readonly usage: string }[];
  /** The subcommands; `lastcall plan` has none. */
  readonly commands: readonly string[];
}

/** Rewrites an error of commander as one sentence, like all errors of Lastcall. */
function parserFault(
  error: { readonly code: string; readonly message: string },
  args: readonly string[],
): string {
  const typed = typedCommand(args);
  const [, named = ""] = /'([^']*)'/.exec(error.message) ?? [];
  const { command, flags, commands } = typed;
  const help = command === "lastcall" ? "lastcall help" : `${command} --help`;
  const refused = (what: string, known: readonly string[], found = named): string => {
    const instead = insteadOf(found);
    if (instead !== undefined) return `found the unknown ${what} ${found}, ${instead}`;
    if (known.includes(found)) return `found ${found} with a value, expected it without a value`;
    const near = didYouMean(found, known);
    const habit = didYouMean(found, longHabits);
    if (near === undefined && habit !== undefined) {
      return `found the unknown ${what} ${found}, ${optionHabits[habit]}`;
    }
    const meant = near === undefined ? "" : ` (did you mean ${near}?)`;
    return `found the unknown ${what} ${found}${meant}, expected one that ${help} lists`;
  };
  switch (error.code) {
    case "commander.unknownCommand":
      return `Cannot run ${command}: ${refused("command", commands)}`;
    case "commander.unknownOption":
      return `Cannot run ${command}: ${refused("option", longFlags(typed), named.replace(/=.*/s, ""))}`;
    case "commander.optionMissingArgument": {
      const [long = named] = /--[a-z0-9-]+/.exec(named) ?? [];
      const usage = flags.find((flag) => flag.long === long)?.usage ?? long;
      return `Cannot read ${long}: found no value, expected ${usage}`;
    }
    case "commander.help":
      return `Cannot run ${command}: found no command, expected one that ${help} lists`;
    default:
      return `Cannot run ${command}: ${oneLine(error.message)}, expected what ${help} shows`;
  }
}

function longFlags({ flags }: ParsedCommand): readonly string[] {
  return ["--help", ...flags.map(({ long }) => long)];
}

function oneLine(message: string): string {
  return message
    .replace(/^error: /, "")
    .trim()
    .replaceAll(/\s*\n\s*/g, " ");
}

/**
 * What the parser knew when it refused a command line; of the program's own options only
 * `--version`.
 */
function typedCommand([first = ""]: readonly string[]): ParsedCommand {
  const commands = [...commandList.map(({ name }) => name), "completion", "help"];
  if (first === "completion") return { command: "lastcall completion", flags: [], commands: [] };
  const named = commandList.find(({ name }) => name === first);
  if (named === undefined) {
    const flags = [{ long: "--version", usage: "--version" }];
    return { command: "lastcall", flags, commands };
  }
  const flags = optionsFor(named.name).map((option) => {
    const long = `--${option.name}`;
    return { long, usage: `${long}${shownValue(option)}` };
  });
  return { command: `lastcall ${first}`, flags, commands };
}

/** Refuses a kubectl option before the command. Throws USAGE: commander would call it unknown. */
function refuseEarlyOption(args: readonly string[]): void {
  const [first = ""] = args;
  const name = first.replace(/=.*/s, "");
  const spec = commandList.find((one) => args.slice(1).includes(one.name));
  const known = (spec === undefined ? commandList : [spec])
    .flatMap((one) => optionsFor(one.name))
    .flatMap((option) => [`-${option.short}`, `--${option.name}`, `--no-${option.name}`]);
  if (!known.includes(name)) return;
  const found =
    spec === undefined
      ? `found ${first} and no command, expected one before it: lastcall COMMAND ${first} …`
      : `found ${first} before the command, expected it after: lastcall ${spec.name} ${first} …`;
  throw new LastcallError("USAGE", `Cannot read the command line: ${found}`);
}

/** As in the help: ` <FILE>`; empty for a switch. */
function shownValue(option: Option): string {
  if (option.type === "switch") return "";
  return ` <${option.value ?? (option.type === "choice" ? option.choices.join("|") : "")}>`;
}
