import {
  jsonTemplateProblem,
  templateProblem,
  templateWanted,
} from "../../core/action/template.ts";
import { type ObjectField, ruleOn, type SchemaRule, type StringField } from "./field-schema.ts";

export const isTemplate: SchemaRule = ruleOn<string>({
  localOnly: "CEL cannot parse Mustache templates",
  wanted: templateWanted,
  holds: (text) => templateProblem(text) === undefined,
  found: (text) => templateProblem(text) ?? "",
});

export function isJson(text: string): boolean {
  return jsonTemplateProblem(text) === undefined;
}

export function templateField<
  Options extends {
    readonly description: string;
    readonly default?: string;
    readonly maxLength?: number;
  },
>(options: Options): StringField & Options {
  const { maxLength = 4096 } = options;
  const wanted = `text of at most ${maxLength} characters`;
  return { type: "string", ...options, maxLength, wanted, rules: [isTemplate] };
}

export const messageField = templateField({
  description: "The message; a template.",
  default: "{{summary}}",
});

export function urlField(description: string): StringField {
  return {
    type: "string",
    description,
    pattern: "^https?://[^\\s/@{}]+(/[^\\s{}]*)?$",
    maxLength: 1024,
    wanted: "an address such as https://example.com/path, without a password or template",
  };
}

export function apiField(description: string, fallback: string) {
  return { ...urlField(description), default: fallback } as const satisfies StringField;
}

export function urlTemplate(description: string): StringField {
  return {
    ...urlField(description),
    pattern: "^https?://[^\\s/@{}]+(/\\S*)?$",
    wanted: "an address such as https://example.com/{{node}}, without a template in the host",
    rules: [isTemplate],
  };
}

export function secretField(description: string) {
  return {
    type: "object",
    description: `${description} A Secret in the namespace of Lastcall.`,
    required: ["name", "key"],
    properties: {
      name: {
        type: "string",
        description: "The Secret's name.",
        pattern: "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        maxLength: 253,
        wanted: "the name of a Secret",
      },
      key: {
        type: "string",
        description: "The key in its data.",
        pattern: "^[-._a-zA-Z0-9]+$",
        maxLength: 253,
        wanted: "a key of a Secret",
      },
    },
  } as const satisfies ObjectField;
}

export function textOf(options: {
  readonly description: string;
  readonly pattern: string;
  readonly maxLength: number;
  readonly wanted: string;
}): StringField {
  return { type: "string", ...options };
}
