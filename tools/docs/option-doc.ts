import {
  type Command,
  commands,
  type Option,
  variableOf,
} from "../../src/config/options/option.ts";
import { optionsFor } from "../../src/config/options/options.ts";

const notice = "<!-- Generated from src/config by `npm run generate`; edit the list there. -->\n";

/** The reference of all options, by path. */
export function generateOptionDocs(): Map<string, string> {
  const shared = optionsFor("version").filter(({ commands: of }) => of === "all");
  const parts = [
    `${notice}# Options`,
    "A flag takes precedence over its environment variable, which takes precedence over the file of `--config` and the default. A switch takes `--x`, `--x=false` and `--no-x`. In a variable, commas separate the values of a repeatable option; an empty variable counts as not set, and one that begins with `LASTCALL_` and is no option is reported at the start. The file of `--config` is YAML with the names of options, at the top for all commands and under the name of a command for that one:",
    '```yaml\nlog-level: debug\nrun:\n  metrics-address: ":9200"\n```',
    section("Every command", shared),
    ...commands.map((command) => section(`lastcall ${command}`, ownOptions(command))),
  ];
  return new Map([["docs/reference/options.md", `${parts.join("\n\n")}\n`]]);
}

function ownOptions(command: Command): readonly Option[] {
  return optionsFor(command).filter(({ commands: of }) => of !== "all");
}

function section(title: string, list: readonly Option[]): string {
  const head = "| flag | variable | default | meaning |\n|---|---|---|---|";
  return `## ${title}\n\n${head}\n${list.map(row).join("\n")}`;
}

function row(option: Option): string {
  const { name, help, required } = option;
  const fallback =
    option.default === undefined ? (required ? "required" : "") : code(option.default);
  const choices = option.type === "choice" ? `: ${option.choices.map(code).join(", ")}` : "";
  const cells = [flagOf(option), code(variableOf(name)), fallback, `${cell(help)}${choices}`];
  return `| ${cells.join(" | ")} |`;
}

function flagOf(option: Option): string {
  const short = option.short === undefined ? "" : `${code(`-${option.short}`)}, `;
  const value = option.type === "switch" ? "" : ` ${valueName(option)}`;
  return `${short}${code(`--${option.name}${value}`)}`;
}

function valueName(option: Exclude<Option, { type: "switch" }>): string {
  return option.type === "choice"
    ? (option.name.split("-").at(-1)?.toUpperCase() ?? "")
    : option.value;
}

function code(text: string): string {
  return `\`${cell(text)}\``;
}

/** A pipe would end the table cell. */
function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}
