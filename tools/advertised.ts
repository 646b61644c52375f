/** What help, docs and `/metrics` promise, and whether code keeps the promise. */

export interface Promised {
  /** Names of options, without dashes. */
  readonly options: readonly string[];
  /** The commands that options are listed for, and the commands that exist. */
  readonly optionCommands: readonly string[];
  readonly commands: readonly string[];
  readonly metrics: readonly string[];
}

export interface CodeFile {
  readonly path: string;
  readonly text: string;
}

/** Where options and metrics are listed; a name that occurs only there is unused. */
const lists = /^src\/(config\/|server\/metric-list\.ts|contracts\/telemetry\.ts)/;

/**
 * One sentence for each option that nothing reads, metric that nothing sets and command that does
 * not exist.
 */
export function unkept(promised: Promised, files: readonly CodeFile[]): readonly string[] {
  const code = files.filter(({ path }) => !lists.test(path)).map(({ text }) => text);
  const occurs = (pattern: RegExp) => code.some((text) => pattern.test(text));
  const commands = new Set(promised.commands);
  return [
    ...[...new Set(promised.options)]
      .filter((name) => !occurs(new RegExp(`\\b${fieldOf(name)}\\b`)))
      .map((name) => `--${name} is listed, but nothing reads it`),
    ...promised.metrics
      .filter((name) => !occurs(new RegExp(`"${name}"`)))
      .map((name) => `${name} is listed, but nothing sets it`),
    ...[...new Set(promised.optionCommands)]
      .filter((name) => !commands.has(name))
      .map((name) => `lastcall ${name} has options, but there is no such command`),
  ];
}

/** The field that holds an option: `health-address` becomes `healthAddress`. */
function fieldOf(name: string): string {
  return name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}
