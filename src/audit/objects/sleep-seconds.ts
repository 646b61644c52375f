/** How long a hook or a command sleeps, as far as its text shows. */
import {
  fieldsOf,
  isFields,
  textListOf,
  valueAt,
  wholeNumberOf,
} from "../../core/json/json-field.ts";

/** Seconds in each unit that `sleep` takes. */
const unitSeconds: Readonly<Record<string, number>> = { "": 1, s: 1, m: 60, h: 3600, d: 86_400 };

/** `sleep 20`, perhaps behind a `timeout 5`, and Python's, anywhere in a text. */
const sleepCall =
  /(?:^|[\s;&|(/'"])(?:timeout\s+(?:-\S+\s+)*(\d+(?:\.\d+)?)([smhd]?)\s+(?:\S*\/)?)?sleep\s+(inf(?:inity)?|\d+(?:\.\d+)?)([smhd]?)(?![\w.])|time\.sleep\((\d+(?:\.\d+)?)\)/g;

/**
 * The least number of seconds that a container's preStop hook takes, as far as it shows: the
 * built-in `sleep` action, or the sleeps of an exec command. 0 if it shows nothing.
 */
export function preStopSeconds(container: unknown): number {
  const hook = fieldsOf(valueAt(container, ["lifecycle", "preStop"]));
  const builtIn = wholeNumberOf(valueAt(hook, ["sleep", "seconds"]));
  if (builtIn !== undefined) return builtIn;
  return sleepSecondsOf(textListOf(valueAt(hook, ["exec", "command"])));
}

/** Whether the hook does anything except sleep: such a hook may well stop the process itself. */
export function preStopActs(container: unknown): boolean {
  const hook = fieldsOf(valueAt(container, ["lifecycle", "preStop"]));
  if (isFields(hook.httpGet)) return true;
  const command = textListOf(valueAt(hook, ["exec", "command"]))
    .filter((word) => !/^(?:.*\/)?(?:ba|da|a)?sh$|^-[a-z]+$/.test(word))
    .map((word) => word.replace(opaque, (found) => (found.startsWith("#") ? "" : found)))
    .join(" ");
  return /[a-z]/i.test(command.replace(sleepCall, " "));
}

/** What may stand before the program that a command runs in the foreground. */
const wrapper = /^(?:(?:.*\/)?(?:env|nohup)|\w+=.*)$/;
const scriptOption = /^-[a-z]*c$/;

/**
 * The least number of seconds that a command sleeps if what it runs succeeds: the sleeps added up
 * that run unconditionally, and in the foreground. `sh -c "sleep 5; nginx -s quit; sleep 1m"` is
 * 65, `sh -c "drained || sleep 5"` is 0. Infinite for `sleep infinity`.
 */
export function sleepSecondsOf(command: readonly string[]): number {
  const [program = "", ...rest] = command.slice(command.findIndex((one) => !wrapper.test(one)));
  const at = rest.findIndex((word) => scriptOption.test(word));
  const script = at < 0 ? undefined : rest.slice(at + 1).find((word) => !word.startsWith("-"));
  if (script === undefined) return secondsOfCommand(command.join(" "));
  if (/^(?:.*\/)?python[\d.]*$/.test(program)) return secondsOfPython(script);
  const isShell = /^(?:.*\/)?(?:ba|da|a|k|z)?sh$/.test(program);
  return isShell ? secondsOfScript(script, rest.slice(0, at + 1)) : 0;
}

/** A command that sleeps, and nothing else. */
const sleepCommand =
  /^\s*(?:(?:exec|env|nohup|\w+=\S*)\s+)*(?:(?:\S*\/)?timeout\s+(?:-[ks]\s+[^-\s]\S*\s+|-\S+\s+)*(\d+(?:\.\d+)?)([smhd]?)\s+)?(?:\S*\/)?sleep\s+(inf(?:inity)?|\d+(?:\.\d+)?)([smhd]?)(?=\s|$)[^|<>]*$/;

function secondsOfCommand(command: string): number {
  const call = sleepCommand.exec(command);
  if (call === null) return 0;
  const [, limit, limitUnit, count = "", unit] = call;
  const asked = inSeconds(count, unit);
  return limit === undefined ? asked : Math.min(asked, inSeconds(limit, limitUnit));
}

/** A statement with a block of its own, which may skip what follows, or that ends the program. */
const branchingPython = /^(?:async|class|def|exit|for|if|match|quit|raise|sys\.|try|while|with)\b/;

function secondsOfPython(script: string): number {
  let seconds = 0;
  for (const line of script.split("\n")) {
    if (branchingPython.test(line)) break;
    for (const statement of line.split(";")) {
      seconds += Number(/^\s*time\.sleep\((\d+(?:\.\d+)?)\)\s*$/.exec(statement)?.[1] ?? 0);
    }
  }
  return seconds;
}

/** What a shell does not read as commands: escaped characters, quoted text and comments. */
const opaque = /\\[\s\S]|'[^']*'|"(?:\\[\s\S]|[^"\\])*"|`[^`]*`|(?<=^|[\s;&|()])#[^\n]*/g;

/** Commands whose following ones may be skipped, or never return: from here on, nothing counts. */
const ending = /(?<=^|\s)(?:exit|return|eval|source|exec\s+[^\s<>\d]\S*)(?=\s|$)|^\s*\.\s|<</;

const opening = /(?<=^|\s)(?:if|while|until|for|case|select|\{)(?=\s|$)|\(/g;
const closing = /^\s*(?:fi|done|esac|\})(?=\s|$)/;

/**
 * Not a parser: whatever it might not understand counts as no time. Within a group, a branch or a
 * loop, nothing counts.
 */
function secondsOfScript(script: string, options: readonly string[]): number {
  let seconds = 0;
  let depth = 0;
  let stopsAtErrors = options.some((word) => stopAtErrors.test(`set ${word}`));
  for (const [, list = "", mark] of plainScript(script).matchAll(/((?:&&|[^;&\n])+)(&?)/g)) {
    const opened = list.match(opening)?.length ?? 0;
    const closed = closing.test(list) ? 1 : 0;
    const runs = depth === 0 && opened + closed === 0 && mark === "";
    if (runs) seconds += secondsOfList(list);
    depth += opened - closed;
    stopsAtErrors ||= stopAtErrors.test(list);
    if (ending.test(list) || (stopsAtErrors && list.split(/&&|\|\|/).some(mayFail))) break;
  }
  return seconds;
}

const stopAtErrors = /^\s*set\s(?:.*\s)?(?:-[a-z]*[eu]|errexit|nounset)/;

/** Commands joined by `&&` and `||`: the first one runs, others as long as each succeeds. */
function secondsOfList(list: string): number {
  const [chain = ""] = list.split("||");
  let seconds = 0;
  for (const command of chain.split("&&")) {
    seconds += secondsOfCommand(command);
    if (mayFail(command)) break;
  }
  return seconds;
}

/** A test, a `timeout` that ends what it runs, and an `exec`, from which no shell comes back. */
const failing =
  /^\s*(?:!|\[\[?|(?:\S*\/)?(?:test|[efp]?grep|pidof|timeout|which|false|cmp|diff)|command|type|exec|kill\s+-0)(?=\s|$)/;

/** Whether the command is there to fail at times; others are expected to succeed. */
function mayFail(command: string): boolean {
  return failing.test(command.split("|").at(-1) ?? "");
}

const spoken = /(?<=^|[\s;&|])(?:echo|printf)(?=\s)[^;&|\n<>]*/g;

const group = /\$?\((?:(?!\bcase\b)[^()])*\)/g;

/** The commands of a script alone, each list of them on one line. */
function plainScript(script: string): string {
  let plain = script
    .replace(opaque, asWord)
    .replace(/&>/g, ">")
    .replace(/\d?[<>]&\d?-?|\d?>>?\s*\/(?:dev\/(?:null|std\w+)|proc\/1\/fd\/\d)(?=\s|$)/g, " ")
    .replace(/(&&|\|\|?)\s+/g, "$1 ");
  // Deeper nesting, and patterns of a `case`, are not understood: brackets that are left open a
  // group.
  for (let round = 0; round < 8; round++) plain = plain.replace(group, " _ ");
  return plain.replace(spoken, " : ");
}

function asWord(found: string): string {
  if (found.startsWith("#") || found === "\\\n") return "";
  const inner = found.slice(1, -1);
  return /^['"]/.test(found) && /^[\w./:-]+$/.test(inner) ? inner : "_";
}

function inSeconds(count: string, unit = ""): number {
  return count.startsWith("inf")
    ? Number.POSITIVE_INFINITY
    : Number(count) * (unitSeconds[unit] ?? 1);
}
