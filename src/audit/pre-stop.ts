import { fieldsOf, isFields, textListOf, valueAt, wholeNumberOf } from "./json-field.ts";

/** Seconds in each unit that `sleep` takes. */
const unitSeconds: Readonly<Record<string, number>> = { "": 1, s: 1, m: 60, h: 3600, d: 86_400 };

const sleepCall =
  /(?:^|[\s;&|(/'"])sleep\s+(inf(?:inity)?|\d+(?:\.\d+)?)([smhd]?)(?![\w.])|time\.sleep\((\d+(?:\.\d+)?)\)/g;

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
  let totalSeconds = 0;
  const run = command.join(" ").replace(spoken, " ");
  for (const [, count, unit, pythons] of run.matchAll(sleepCall)) {
    if (count?.startsWith("inf")) return Number.POSITIVE_INFINITY;
    totalSeconds += Number(count ?? pythons) * (unitSeconds[unit ?? ""] ?? 1);
  }
  return totalSeconds;
}

/** The longest hook of a pod: the hooks of its containers run at the same time. */
export function longestPreStop(pod: {
  readonly containers: readonly { readonly preStopSeconds: number }[];
}): number {
  return Math.max(0, ...pod.containers.map((container) => container.preStopSeconds));
}
