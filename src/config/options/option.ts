import type { NamedTime } from "../../core/time/named-time.ts";
import type { Millis } from "../../core/time/time.ts";

/** The commands that take options. */
export const commands = [
  "run",
  "agent",
  "plan",
  "drain-plan",
  "depart",
  "hold",
  "freeze",
  "audit",
  "simulate",
  "doctor",
  "board",
  "demo",
  "setup",
  "migrate",
  "version",
] as const;

export type Command = (typeof commands)[number];

/**
 * The definition of an option, from which its flag, its variable, its type and its docs are
 * derived.
 */
export type Option = TextOption | DurationOption | SwitchOption | NumberOption | ChoiceOption;

interface OptionBase {
  /** The flag without its dashes, which is also the key in the file of `--config`. */
  readonly name: string;
  readonly short?: string;
  readonly commands: "all" | readonly Command[];
  /** The parts of `setup` that read it. Default: all. */
  readonly parts?: readonly string[];
  /** Another option without which it has no effect, or with `=` a value of that option. */
  readonly needs?: string;
  /** Options with which it has no effect. */
  readonly excludes?: readonly string[];
  /** One sentence without its period. */
  readonly help: string;
  /** As a user would write it. */
  readonly default?: string;
  /** May be given several times; in a variable, the values are separated by commas. */
  readonly list?: true;
  readonly required?: true;
}

export interface TextOption extends OptionBase {
  /** A time is an instant, or a time relative to now: see `parseNamedTime`. */
  readonly type: "text" | "url" | "address" | "time";
  /** What help shows for the value, such as `FILE`. */
  readonly value: string;
}

export interface DurationOption extends OptionBase {
  readonly type: "duration";
  readonly value: string;
  /** As a user would write them. */
  readonly shortest?: string;
  readonly longest?: string;
}

export interface SwitchOption extends OptionBase {
  readonly type: "switch";
  readonly default: "true" | "false";
}

export interface NumberOption extends OptionBase {
  readonly type: "integer" | "number";
  readonly value: string;
  readonly minimum: number;
  readonly maximum: number;
}

export interface ChoiceOption extends OptionBase {
  readonly type: "choice";
  readonly choices: readonly string[];
  /**
   * What help shows instead of the choices if there are too many; the sentence then ends with them.
   */
  readonly value?: string;
}

/** The type of an option's value once its text has been parsed. */
type OneValueOf<Kind extends Option> = Kind extends { readonly type: "switch" }
  ? boolean
  : Kind extends { readonly type: "integer" | "number" }
    ? number
    : Kind extends { readonly type: "duration" }
      ? Millis
      : Kind extends { readonly type: "time" }
        ? NamedTime
        : Kind extends { readonly choices: readonly (infer Choice)[] }
          ? Choice
          : string;

/** The type including unset options: a list is empty, an option without a default is undefined. */
export type ValueOf<Kind extends Option> = Kind extends { readonly list: true }
  ? readonly OneValueOf<Kind>[]
  : Kind extends { readonly default: string } | { readonly required: true }
    ? OneValueOf<Kind>
    : OneValueOf<Kind> | undefined;

/** `leader-elect` as a field of an options object: `leaderElect`. */
export type CamelCase<Name extends string> = Name extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;

/** The field of an options object under which a flag is found: `leaderElect`. */
export function fieldNameOf(name: string): string {
  return name.replaceAll(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** The environment variable of an option: `LASTCALL_LEADER_ELECT`. */
export function variableOf(name: string): string {
  return `LASTCALL_${name.toUpperCase().replaceAll("-", "_")}`;
}
