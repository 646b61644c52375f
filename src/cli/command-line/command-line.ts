import { Command, CommanderError, Option as Flag } from "commander";
import { fieldNameOf, type Option, variableOf } from "../../config/options/option.ts";
import { optionsFor } from "../../config/options/options.ts";
import {
  type FlagValue,
  resolveOptions,
  spellSwitches,
} from "../../config/options/resolve-options.ts";
import { orList } from "../../config/problem.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import { version } from "../commands/version.ts";
import type { CommandIo } from "./command-io.ts";
import { commandList } from "./command-list.ts";
import type { CommandSpec } from "./command-spec.ts";
import { completedCommands, completionScript } from "./completion.ts";
import { parserFault, refuseEarlyOption, shownValue } from "./parser-fault.ts";
import { folded } from "./table.ts";

/** What every command has; the help of each shows it after its own. */
const commonOptions = commandList
  .map((spec) => new Set(optionsFor(spec.name).map(({ name }) => name)))
  .reduce((some, others) => some.intersection(others));

/** Parses the command line, runs the command and gives the exit code; never throws. */
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
    if (wantsStack() && error instanceof Error) io.err(`${error.stack}\n`);
    if (io.signal.aborted) return 130;
    return isLastcallError(error) ? error.exitCode : 1;
  }
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
    // What commander refuses is told by `parserFault`, in one sentence like all else.
    .configureOutput({ writeOut: io.out, writeErr: io.err, outputError: () => {} })
    .configureHelp({
      // Next to the longest option there are 28 columns of a terminal of 80.
      minWidthToWrap: 24,
      subcommandTerm: (sub) => `${sub.name()} ${sub.usage().replace(/ ?\[options\] ?/, "")}`,
    })
    .showSuggestionAfterError(false);
  for (const spec of specs) {
    const built = build(spec, async (flags, words) => {
      const run = await spec.load();
      const options = resolveOptions(spec.name, {
        flags,
        env: io.env,
        file: await optionsFile(flags.config, io),
      });
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

/** With `help` or `--help` commander would show the help of the program, and not say why. */
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
  for (const flag of own.flatMap(flagsOf)) built.addOption(flag);
  for (const flag of common.flatMap(flagsOf)) built.addOption(flag.helpGroup("Common options:"));
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

/** Of `node/n1` as well, which is what `kubectl get nodes -o name` prints. */
function nodeNameIn(word: string): string {
  return word.replace(/^nodes?\//, "");
}

function checkWords(spec: CommandSpec, words: readonly string[]): void {
  if (words.length >= spec.minWords && words.length <= spec.maxWords) return;
  const files = optionsFor(spec.name).some(({ name }) => name === "filename");
  const none = files ? "expected none, pass files with -f" : "expected none";
  const wanted = spec.words === "" ? none : `expected ${spec.words}`;
  const found = words.length === 0 ? "no argument was given" : `found ${words.join(" ")}`;
  throw new LastcallError("USAGE", `Cannot run lastcall ${spec.name}: ${found}, ${wanted}`);
}

/** A flag that this part of `setup` does not read was meant for another, or is a mistake. */
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
  const wanted = `expected it with ${orList(misplaced.parts ?? [])} only`;
  throw new LastcallError(
    "USAGE",
    `Cannot set up ${part}: --${misplaced.name} was given, ${wanted}`,
  );
}

/** Values stay text here: `resolveOptions` reads them, whether typed, set or written. */
function flagsOf(option: Option): Flag[] {
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
  if (option.list)
    flag.argParser((text: string, before: string[] | undefined) => [...(before ?? []), text]);
  if (option.type !== "switch") return [flag];
  return [flag, new Flag(`--no-${option.name}`).hideHelp()];
}

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
