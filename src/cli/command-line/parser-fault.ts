import type { Option } from "../../config/options/option.ts";
import { optionsFor } from "../../config/options/options.ts";
import { didYouMean } from "../../config/problem.ts";
import { LastcallError } from "../../errors.ts";
import { commandList } from "./command-list.ts";

/** What could have been meant where the parser of the command line has refused something. */
interface ParsedCommand {
  /** `lastcall`, or `lastcall plan`. */
  readonly command: string;
  /** What the command takes: `--from`, and as people write it with a value, `--from FILE`. */
  readonly flags: readonly { readonly long: string; readonly usage: string }[];
  /** The commands below it; none below `lastcall plan`. */
  readonly commands: readonly string[];
}

/** One sentence, as all our errors are, for what commander says in words of its own. */
export function parserFault(
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
    const near = didYouMean(found, known);
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

/** What people type who know kubectl, and what there is here in its place. */
const commandHabits: Readonly<Record<string, string>> = {
  get: "use lastcall plan, or kubectl get departures,departurepolicies",
  describe: "use lastcall drain-plan NODE, or kubectl describe departure NAME",
  cordon: "use lastcall depart NODE, or kubectl cordon NODE to keep new pods away and no more",
  drain: "use lastcall depart NODE, which lastcall drain-plan NODE shows beforehand",
  uncordon: "use kubectl delete departure NAME, which cancels it and uncordons its node",
  apply: "use kubectl apply -f FILE for policies, or lastcall setup crds --apply",
  delete: "use kubectl delete departure NAME, which cancels it",
  explain: "use kubectl explain departurepolicy.spec",
  logs: "use kubectl logs with the deployment of the controller",
  status: "use lastcall plan for the fleet, or lastcall doctor for the installation",
  watch: "use lastcall board --tui",
};

const follow = "use lastcall board --tui to follow the cluster";
const wholeCluster = "leave it out: all namespaces are read";

const optionHabits: Readonly<Record<string, string>> = {
  "-A": wholeCluster,
  "--all-namespaces": wholeCluster,
  "-w": follow,
  "--watch": follow,
  "-l": "name the nodes, as in: lastcall depart $(kubectl get nodes -l LABEL=VALUE -o name)",
  "--selector":
    "name the nodes, as in: lastcall depart $(kubectl get nodes -l LABEL=VALUE -o name)",
};

function insteadOf(found: string): string | undefined {
  const name = found.replace(/=.*/s, "");
  return name.startsWith("-") ? optionHabits[name] : commandHabits[name];
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

/** What the parser knew where it has refused something; of its own options only `--version`. */
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

/** An option as kubectl takes it. Throws USAGE: commander would call it unknown. */
export function refuseEarlyOption(args: readonly string[]): void {
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

/** As help shows it: ` <FILE>`; nothing for a switch. */
export function shownValue(option: Option): string {
  if (option.type === "switch") return "";
  return ` <${option.value ?? (option.type === "choice" ? option.choices.join("|") : "")}>`;
}
