import { LastcallError } from "../../errors.ts";

export interface CompletedCommand {
  readonly name: string;
  readonly summary: string;
  readonly flags: readonly string[];
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

function bashScript(commands: readonly CompletedCommand[]): string {
  const cases = commands
    .map((one) => `    ${one.name}) words="${one.flags.join(" ")}" ;;`)
    .join("\n");
  return `_lastcall() {
  local words="${commands.map((one) => one.name).join(" ")} help completion"
  case "\${COMP_WORDS[1]}" in
${cases}
  esac
  [ "$COMP_CWORD" -eq 1 ] && words="${commands.map((one) => one.name).join(" ")} help completion"
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _lastcall lastcall
`;
}

function fishScript(commands: readonly CompletedCommand[]): string {
  const lines = commands.flatMap((one) => [
    `complete -c lastcall -n __fish_use_subcommand -a ${one.name} -d '${one.summary.replaceAll("'", "\\'")}'`,
    ...one.flags.map(
      (flag) =>
        `complete -c lastcall -n '__fish_seen_subcommand_from ${one.name}' -l ${flag.slice(2)}`,
    ),
  ]);
  return `${lines.join("\n")}\n`;
}
