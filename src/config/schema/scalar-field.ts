import { type Millis, parseDuration } from "../../core/time/time.ts";
import {
  type AmountField,
  type BooleanField,
  type ListField,
  ruleOn,
  type SchemaRule,
  type StringField,
} from "./field-schema.ts";

const durationPattern = "^(0|(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|ms|s|m|h))+)$";

/** Go, and CEL with it, counts a duration in 63 bits of nanoseconds: 292 years. */
const longestMs = 9_223_372_036_854;

/**
 * The span of a text that has passed the schema; a text that has not gives NaN, which no rule
 * passes.
 */
export function spanOf(text: string): Millis {
  return parseDuration(text) ?? (Number.NaN as Millis);
}

/** A Go-style duration of any length, zero included. */
export function durationField(options: {
  readonly description: string;
  readonly default?: string;
}): StringField {
  return duration(options, {
    cel: "duration(self) >= duration('0s')",
    wanted: "a duration under 292 years",
    holds: (text) => spanOf(text) <= longestMs,
  });
}

/**
 * A Go-style duration of a second or more: what waits or stays open for no time at all is a slip.
 */
export function positiveDurationField(options: {
  readonly description: string;
  readonly default?: string;
}): StringField {
  return duration(options, {
    cel: "duration(self) >= duration('1s')",
    wanted: "a duration of at least 1s and under 292 years",
    holds: (text) => spanOf(text) >= 1000 && spanOf(text) <= longestMs,
  });
}

function duration(
  options: { readonly description: string; readonly default?: string },
  bound: {
    readonly cel: string;
    readonly wanted: string;
    readonly holds: (text: string) => boolean;
  },
): StringField {
  const rules: readonly SchemaRule[] = [ruleOn<string>(bound)];
  return {
    type: "string",
    ...options,
    pattern: durationPattern,
    maxLength: 32,
    wanted: "a duration such as 90s or 12h30m",
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
  };
}

export function amountField(description: string): AmountField {
  return {
    type: "amount",
    description,
    minimum: 1,
    pattern: "^([1-9][0-9]?|100)%$",
    wanted: "a count from 1 on or a share from 1% to 100%",
  };
}

export function choiceField(options: {
  readonly description: string;
  readonly choices: readonly string[];
  readonly default?: string;
}): StringField {
  const { choices, ...rest } = options;
  return { type: "string", ...rest, enum: choices };
}

/** The words of a closed list of core: all of them and no others, or it does not compile. */
export function wordsOf<Word extends string>(words: Readonly<Record<Word, true>>): readonly Word[] {
  return Object.keys(words) as Word[];
}

export function switchField(description: string): BooleanField {
  return { type: "boolean", description, default: false };
}

/** Free text; `maxLength` bounds what a CEL rule over it can cost. */
export function textField(options: {
  readonly description: string;
  readonly maxLength?: number;
}): StringField {
  return { type: "string", ...options };
}

/** The conditions of a status, in the form that `kubectl wait` reads. */
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
          description: "Whether it holds.",
          choices: ["True", "False", "Unknown"],
        }),
        reason: textField({ description: "One word why." }),
        message: textField({ description: "One sentence why." }),
        lastTransitionTime: instantField("When the status last changed."),
        observedGeneration: {
          type: "integer",
          description: "The generation of the object that it speaks of.",
        },
      },
    },
  };
}
