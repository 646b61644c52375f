import type { Option } from "../../config/options/option.ts";
import { optionsFor } from "../../config/options/options.ts";
import { LastcallError } from "../../errors.ts";
import { commandList } from "./command-list.ts";

export interface CompletedCommand {
  readonly name: string;
  readonly summary: string;
  /** The values of its argument, if there is a fixed list. */
  readonly words: readonly string[];
  readonly flags: readonly CompletedFlag[];
}

export interface CompletedFlag {
  /** The long name, without its dashes. */
  readonly name: string;
  /** The letter of the short form. */
  readonly short?: string | undefined;
  /** None: a switch. Any: a value that the shell completes as a file name. */
  readonly value: "None" | "Any" | readonly string[];
}

/** All commands, and the two that are not in the list. */
export function completedCommands(): readonly CompletedCommand[] {
  const own = commandList.map((spec) => ({
    name: spec.name,
    summary: spec.summary,
    words: spec.words.includes("|") ? spec.words.split("|") : [],
    flags: optionsFor(spec.name).map((option) => ({
      name: option.name,
      short: option.short,
      value: valuesOf(option),
    })),
  }));
  const names = own.map(({ name }) => name);
  return [
    ...own,
    { name: "help", summary: "Show help for a command", words: names, flags: [] },
    {
      name: "completion",
      summary: "Print the completion script of a shell",
      words: ["bash", "zsh", "fish"],
      flags: [],
    },
  ];
}

function valuesOf(option: Option): CompletedFlag["value"] {
  if (option.type === "switch") return "None";
  return option.type === "choice" ? option.choices : "Any";
}

/**
 * The completion script of bash, zsh or fish for these commands. Throws USAGE for another shell.
 */
export function completionScript(shell: string, commands: readonly CompletedCommand[]): string {
  switch (shell) {
    case "bash":
      return bashScript(commands);
    case "zsh":
      return `autoload -U +X bashcompinit && bashcompinit\n${bashScript(commands)}`;
    case "fish":
      return fishScript(commands);
    default:
      throw new LastcallError(
        "USAGE",
        `Cannot complete for ${JSON.stringify(shell)}: unknown shell, expected bash, zsh or fish`,
      );
  }
}

/**
 * bash splits at `=`, so `--output=js` is three words. In zsh, and if COMP_WORDBREAKS has no `=`,
 * it is one word, and so is each suggestion.
 */
function bashScript(commands: readonly CompletedCommand[]): string {
  return `_lastcall() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" words="" flag=""
  [ "$before" = "=" ] && before="\${COMP_WORDS[COMP_CWORD-2]}"
  [ "$cur" = "=" ] && cur=""
  case "$cur" in
    --*=*) before="\${cur%%=*}"; cur="\${cur#*=}"; flag="$before=" ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="${commands.map(({ name }) => name).join(" ")}"
  else
    case "\${COMP_WORDS[1]} $before" in
${commands.flatMap(bashCases).join("\n")}
    esac
  fi
  COMPREPLY=($(compgen -P "$flag" -W "$words" -- "$cur"))
}
complete -o default -F _lastcall lastcall
`;
}

/** Of equal patterns the first matches: the word before is the best hint. */
function bashCases({ name, words, flags }: CompletedCommand): readonly string[] {
  const values = flags.flatMap((flag) => {
    if (flag.value === "None") return [];
    const short = flag.short === undefined ? [] : [`-${flag.short}`];
    const pattern = [`--${flag.name}`, ...short].map((spelled) => `"${name} ${spelled}"`).join("|");
    return `      ${pattern}) words="${flag.value === "Any" ? "" : flag.value.join(" ")}" ;;`;
  });
  const all = [...words, ...flags.map((flag) => `--${flag.name}`)].join(" ");
  return [...values, `      "${name} "*) words="${all}" ;;`];
}

/** The command is the word after `lastcall`: a later word may be the name of a node. */
function fishScript(commands: readonly CompletedCommand[]): string {
  const lines = commands.flatMap(({ name, summary, words, flags }) => {
    const here = `complete -c lastcall -n '__lastcall_runs ${name}'`;
    return [
      `complete -c lastcall -n __lastcall_runs -f -a ${name} -d '${summary.replaceAll("'", "\\'")}'`,
      ...(words.length === 0 ? [] : [`${here} -f -a '${words.join(" ")}'`]),
      ...flags.map((flag) => `${here} -l ${flag.name}${fishValue(flag)}`),
    ];
  });
  return `function __lastcall_runs
  set -l typed (commandline -opc)
  test "$typed[2]" = "$argv[1]"
end
${lines.join("\n")}
`;
}

function fishValue({ short, value }: CompletedFlag): string {
  const letter = short === undefined ? "" : ` -s ${short}`;
  if (value === "None") return letter;
  return value === "Any" ? `${letter} -r` : `${letter} -x -a '${value.join(" ")}'`;
}
