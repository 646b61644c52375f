import { fieldsOf, isFields, textListOf, valueAt, wholeNumberOf } from "../core/json/json-field.ts";

/** Seconds in each unit that `sleep` takes. */
const unitSeconds: Readonly<Record<string, number>> = { "": 1, s: 1, m: 60, h: 3600, d: 86_400 };

/** `sleep 20`, perhaps behind a `timeout 5`, and Python's. */
const sleepCall =
  /(?:^|[\s;&|(/'"])(?:timeout\s+(?:-\S+\s+)*(\d+(?:\.\d+)?)([smhd]?)\s+(?:\S*\/)?)?sleep\s+(inf(?:inity)?|\d+(?:\.\d+)?)([smhd]?)(?![\w.])|time\.sleep\((\d+(?:\.\d+)?)\)/g;

/**
 * How many seconds a container's preStop hook takes at least, as far as it shows: the built-in
 * `sleep` action, or the sleeps of an exec command added up. 0 where it shows nothing.
 */
export function preStopSeconds(container: unknown): number {
  const hook = fieldsOf(valueAt(container, ["lifecycle", "preStop"]));
  const builtIn = wholeNumberOf(valueAt(hook, ["sleep", "seconds"]));
  if (builtIn !== undefined) return builtIn;
  return sleepSecondsOf(textListOf(valueAt(hook, ["exec", "command"])));
}

/** What only speaks of a sleep. */
const spoken = /(?:^|[\s;&|(/'"])(?:echo|printf)\s[^;&|\n]*/g;

/** Whether the hook does anything but sleep: such a hook may well stop the process itself. */
export function preStopActs(container: unknown): boolean {
  const hook = fieldsOf(valueAt(container, ["lifecycle", "preStop"]));
  if (isFields(hook.httpGet)) return true;
  const command = textListOf(valueAt(hook, ["exec", "command"]))
    .filter((word) => !/^(?:.*\/)?(?:ba|da|a)?sh$|^-[a-z]+$/.test(word))
    .join(" ");
  return /[a-z]/i.test(command.replace(sleepCall, " "));
}

/**
 * The sleeps of a command line added up: `sh -c "sleep 5; nginx -s quit; sleep 1m"` is 65. Infinite
 * for `sleep infinity`.
 */
export function sleepSecondsOf(command: readonly string[]): number {
  const run = command.join(" ").replace(spoken, " ");
  const calls = [...run.matchAll(sleepCall)];
  return calls.reduce((total, call) => total + secondsOf(call), 0);
}

function secondsOf([, limit, limitUnit, count, unit, pythons]: RegExpMatchArray): number {
  const asked = inSeconds(count ?? pythons ?? "", unit);
  return limit === undefined ? asked : Math.min(asked, inSeconds(limit, limitUnit));
}

function inSeconds(count: string, unit = ""): number {
  return count.startsWith("inf")
    ? Number.POSITIVE_INFINITY
    : Number(count) * (unitSeconds[unit] ?? 1);
}

/** The longest hook of a pod: the hooks of its containers run at the same time. */
export function longestPreStop(pod: {
  readonly containers: readonly { readonly preStopSeconds: number }[];
}): number {
  return Math.max(0, ...pod.containers.map((container) => container.preStopSeconds));
}
