import { durationMeant, instantMeant } from "../../core/time/named-time.ts";
import { hours, type Millis, minutes, parseDuration, seconds } from "../../core/time/time.ts";

/**
 * The notation in which the fields of a resource are defined. The CRD, the chart's schema of its
 * policies, the reference tables and the local validation are derived from it, so that they cannot
 * differ. It is the part of OpenAPI v3 that a structural CRD schema may hold, plus rules over
 * several fields: once in CEL for the API server, once as a function for us.
 */
export type FieldSchema =
  | ObjectField
  | MapField
  | ListField
  | StringField
  | NumberField
  | BooleanField
  | AmountField;

interface FieldBase {
  /** One or two sentences for the CRD, the editor and the reference table. */
  readonly description: string;
  /** What is expected, for the message of a refusal, such as `a duration such as 12h30m`. */
  readonly wanted?: string | undefined;
  readonly rules?: readonly SchemaRule[] | undefined;
}

export interface ObjectField extends FieldBase {
  readonly type: "object";
  readonly properties: Readonly<Record<string, FieldSchema>>;
  readonly required?: readonly string[] | undefined;
  /**
   * The value if the object is not set, completed by the defaults of the fields inside: `{}` are
   * those alone.
   */
  readonly default?: Readonly<Record<string, unknown>> | undefined;
  /** Fields that are not listed are kept and not validated. */
  readonly open?: true | undefined;
  /** What is expected instead of a field that is like none of these; `all`: the whole object. */
  readonly instead?: ((name: string, value: unknown, all: object) => string) | undefined;
}

/** Names chosen by the writer, with strings as values: `matchLabels`. */
export interface MapField extends FieldBase {
  readonly type: "map";
  readonly keyPattern: string;
  readonly keyMaxLength: number;
  readonly values: StringField;
  readonly maxProperties: number;
}

export interface ListField extends FieldBase {
  readonly type: "list";
  readonly items: FieldSchema;
  readonly minItems?: number | undefined;
  readonly maxItems?: number | undefined;
  readonly default?: readonly never[] | undefined;
  /** Refuses duplicate items; for lists of strings. */
  readonly unique?: true | undefined;
  /** The field by which items are merged when there are several writers. */
  readonly mapKey?: string | undefined;
}

export interface StringField extends FieldBase {
  readonly type: "string";
  readonly default?: string | undefined;
  readonly enum?: readonly string[] | undefined;
  readonly pattern?: string | undefined;
  /**
   * The API server checks the pattern in CEL, which answers with a sentence: for a pattern it
   * answers with the pattern itself.
   */
  readonly patternInRules?: true | undefined;
  readonly format?: "date-time" | undefined;
  /** What a refused text may have been meant to be; undefined if it is like nothing. */
  readonly meant?: ((text: string) => string | undefined) | undefined;
  readonly minLength?: number | undefined;
  readonly maxLength?: number | undefined;
}

export interface NumberField extends FieldBase {
  readonly type: "integer" | "number";
  readonly default?: number | undefined;
  readonly minimum?: number | undefined;
  readonly maximum?: number | undefined;
  readonly nullable?: true | undefined;
}

interface BooleanField extends FieldBase {
  readonly type: "boolean";
  readonly default?: boolean | undefined;
}

/** A count such as `2` or a percentage such as `10%`. */
export interface AmountField extends FieldBase {
  readonly type: "amount";
  readonly pattern: string;
  readonly meant?: ((text: string) => string | undefined) | undefined;
  readonly minimum: number;
}

/** The fields of an object. */
export type SchemaFields = Readonly<Record<string, FieldSchema>>;

/**
 * The type of a field's value once the schema has accepted it and set its defaults. A schema tells
 * it only if it keeps its literals: by `as const satisfies`, and by the functions below.
 */
export type SchemaValue<Field> = Field extends {
  readonly type: "object";
  readonly properties: infer F;
}
  ? SchemaValues<F, Field extends { readonly required: readonly (infer Name)[] } ? Name : never>
  : Field extends { readonly type: "map" }
    ? Readonly<Record<string, string>>
    : Field extends { readonly type: "list"; readonly items: infer Item }
      ? readonly SchemaValue<Item>[]
      : LeafOf<Field>;

type LeafOf<Field> = Field extends { readonly enum: readonly (infer Choice)[] }
  ? Choice
  : Field extends { readonly type: infer Type extends keyof Leaves }
    ? Leaves[Type]
    : never;

interface Leaves {
  readonly string: string;
  readonly integer: number;
  readonly number: number;
  readonly boolean: boolean;
  readonly amount: number | string;
}

/**
 * The same for the fields of an object: a field that is required or has a default is always there.
 */
export type SchemaValues<F, Required = never> = {
  readonly [Name in Always<F, Required>]: SchemaValue<F[Name]>;
} & {
  readonly [Name in Exclude<keyof F, Always<F, Required>>]?: SchemaValue<F[Name]>;
};

type Always<F, Required> = {
  [Name in keyof F]: Name extends Required
    ? Name
    : F[Name] extends { readonly default: string | number | boolean | object }
      ? Name
      : never;
}[keyof F];

/** What must hold inside one value, or between its fields. */
export interface SchemaRule {
  /**
   * The rule as the API server checks it; unset if CEL cannot express it, for the reason in
   * `localOnly`.
   */
  readonly cel?: string | undefined;
  readonly localOnly?: string | undefined;
  /** The field of the value that the mistake is in. Default: the value itself. */
  readonly at?: string | undefined;
  readonly wanted: string;
  /** The same rule for us; unset for rules that compare with the old object (`oldSelf`). */
  readonly holds?: ((value: unknown, world: RuleWorld) => boolean) | undefined;
  /** What was found, if it is not simply the value with the mistake. */
  readonly found?: ((value: unknown, world: RuleWorld) => string) | undefined;
}

/** What a rule cannot find out itself. */
export interface RuleWorld {
  /** What is wrong with a cron expression; undefined if nothing is. */
  readonly cronProblem: (expression: string) => string | undefined;
}

/** A rule over a value of a known shape; the shape is validated before any rule. */
export function ruleOn<Value>(rule: {
  readonly cel?: string;
  readonly localOnly?: string;
  readonly at?: string;
  readonly wanted: string;
  readonly holds: (value: Value, world: RuleWorld) => boolean;
  readonly found?: (value: Value, world: RuleWorld) => string;
}): SchemaRule {
  return rule as SchemaRule;
}

const durationPattern = "^(0|(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|ms|s|m|h))+)$";

/** Whether the API server can read the text as a duration, which fails the whole rule if not. */
export function celIsDuration(text: string): string {
  return `${text}.matches(r'${durationPattern}')`;
}

/**
 * The span of a text that the schema has accepted, infinite if it is longer than any; any other
 * text gives NaN, which passes no rule.
 */
export function spanOf(text: string): Millis {
  const tooLong = new RegExp(durationPattern).test(text) ? Number.POSITIVE_INFINITY : Number.NaN;
  return parseDuration(text) ?? (tooLong as Millis);
}

interface DurationOptions {
  readonly description: string;
  readonly default?: string;
}

/** A Go duration of any length, including zero. */
export function durationField<Options extends DurationOptions>(
  options: Options,
): StringField & Options {
  return duration(options, {
    cel: "duration(self) >= duration('0s')",
    wanted: "a duration under 292 years, such as 90s, or 168h for 7 days",
    holds: (text) => Number.isFinite(spanOf(text)),
  });
}

/** A Go duration of at least a second: a wait or a window of zero length is a mistake. */
export function positiveDurationField<Options extends DurationOptions>(
  options: Options,
): StringField & Options {
  return duration(options, {
    cel: "duration(self) >= duration('1s')",
    wanted: "a duration of at least 1s and under 292 years, such as 90s, or 168h for 7 days",
    holds: (text) => spanOf(text) >= 1000 && Number.isFinite(spanOf(text)),
  });
}

/** What stands for the limit that the cloud names for a machine. */
export const platformLimit = "Platform";

/** A Go duration of at least a second, or the platform's own limit. */
export function limitField<Options extends DurationOptions>(
  options: Options,
): StringField & Options {
  const field = positiveDurationField(options);
  const [inner = ""] = /(?<=^\^).*(?=\$$)/.exec(durationPattern) ?? [];
  return {
    ...field,
    pattern: `^(${platformLimit}|${inner})$`,
    wanted: `a duration such as 90s or 12h30m, or ${platformLimit}`,
    rules: field.rules?.map((rule) => ({
      ...rule,
      cel: `self == '${platformLimit}' || (${rule.cel})`,
      holds: (text, world) => text === platformLimit || rule.holds?.(text, world) !== false,
    })),
  };
}

/** A Go duration of one attempt at something that others wait for. */
export function attemptDurationField<Options extends DurationOptions>(
  options: Options,
): StringField & Options {
  return duration(options, {
    cel: "duration(self) >= duration('1s') && duration(self) <= duration('15m')",
    wanted: "a duration from 1s to 15m, such as 30s",
    holds: (text) => spanOf(text) >= seconds(1) && spanOf(text) <= minutes(15),
  });
}

/** A Go duration of at most 72 hours, for which the records of departures are kept. */
export function recordedDurationField<Options extends DurationOptions>(
  options: Options,
): StringField & Options {
  return duration(options, {
    cel: "duration(self) >= duration('0s') && duration(self) <= duration('72h')",
    wanted: "a duration of at most 72h, such as 6h",
    holds: (text) => spanOf(text) <= hours(72),
  });
}

function duration<Options extends DurationOptions>(
  options: Options,
  bound: {
    readonly cel: string;
    readonly wanted: string;
    readonly holds: (text: string) => boolean;
  },
): StringField & Options {
  const cel = `${celIsDuration("self")} && ${bound.cel}`;
  const rules: readonly SchemaRule[] = [ruleOn<string>({ ...bound, cel })];
  return {
    type: "string",
    ...options,
    pattern: durationPattern,
    patternInRules: true,
    maxLength: 32,
    wanted: "a duration such as 90s or 12h30m",
    meant: durationMeant,
    rules,
  };
}

export function instantField(description: string): StringField {
  return {
    type: "string",
    description,
    format: "date-time",
    maxLength: 40,
    wanted: "an RFC 3339 instant such as 2026-12-01T00:00:00Z",
    meant: instantMeant,
  };
}

/** The percentage that is meant by `10 %`, `0.5` or `50`. */
export function percentMeant(text: string): string | undefined {
  const [, whole, share] = /^(\d{1,3})(?: ?%| ?percent)?$|^(0?\.\d+)$/.exec(text.trim()) ?? [];
  const percent = share === undefined ? Number(whole) : Math.round(100 * Number(share));
  return percent >= 1 && percent <= 100 ? `${percent}%` : undefined;
}

export function amountField(description: string): AmountField {
  return {
    type: "amount",
    description,
    minimum: 1,
    pattern: "^([1-9][0-9]?|100)%$",
    meant: (text) => (/^[1-9]\d*$/.test(text) ? text : percentMeant(text)),
    wanted: "a count of at least 1 or a percentage from 1% to 100%",
  };
}

export function choiceField<
  const Choice extends string,
  const Options extends { readonly description: string; readonly default?: Choice },
>(
  options: Options & { readonly choices: readonly Choice[] },
): StringField & { readonly enum: readonly Choice[] } & Omit<Options, "choices"> {
  const { choices, ...rest } = options;
  return { type: "string", ...rest, enum: choices };
}

/** The choices of a closed list of core: it compiles only with all of them and no others. */
export function wordsOf<Word extends string>(words: Readonly<Record<Word, true>>): readonly Word[] {
  return Object.keys(words) as Word[];
}

export function switchField(description: string): BooleanField & { readonly default: false } {
  return { type: "boolean", description, default: false };
}

/** Free text; `maxLength` limits the cost of a CEL rule over it. */
export function textField(options: {
  readonly description: string;
  readonly maxLength?: number;
}): StringField {
  return { type: "string", ...options };
}

/** The conditions of a status, as `kubectl wait` reads them. */
export function conditionsField(description: string): ListField {
  return {
    type: "list",
    description,
    mapKey: "type",
    items: {
      type: "object",
      description: "One condition.",
      required: ["type", "status"],
      properties: {
        type: { type: "string", description: "Its name." },
        status: choiceField({
          description: "The status of the condition.",
          choices: ["True", "False", "Unknown"],
        }),
        reason: textField({ description: "The reason in one word." }),
        message: textField({ description: "The reason in one sentence." }),
        lastTransitionTime: instantField("When the status last changed."),
        observedGeneration: {
          type: "integer",
          description: "The generation of the object that it describes.",
        },
      },
    },
  };
}

/** The first name that two items of a list share; an item may have none. */
export function repeatedName(items: readonly { readonly name?: string | undefined }[]) {
  const names = items.flatMap(({ name }) => (name === undefined ? [] : [name]));
  return names.find((name, index) => names.indexOf(name) !== index);
}
