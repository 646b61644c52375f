/** What src/config knows of `values.schema.json`: the options of both parts, and policies. */

import type { Command, Option } from "../src/config/options/option.ts";
import { optionsFor } from "../src/config/options/options.ts";
import { type JsonSchema, jsonSchemaOf } from "../src/config/schema/crd.ts";
import type {
  AmountField,
  FieldSchema,
  ObjectField,
  StringField,
} from "../src/config/schema/field-schema.ts";
import { resourceDefinitions } from "../src/config/schema/resource-definition.ts";
import { durationMeant } from "../src/core/time/named-time.ts";

/** Options that the chart itself sets for the part and nobody may change. */
const setByTheChart = ["node-name"];

/** The schema of an option's value: a list also accepts a single value. */
function optionSchema(option: Option): JsonSchema {
  const { help: description, list } = option;
  const one = oneOptionSchema(option);
  if (!list) return { description, ...one, ...defaultOf(option) };
  return { description, anyOf: [one, { type: "array", items: one }] };
}

/**
 * What a text has to match, and how that is said. Helm answers a pattern of the schema with the
 * pattern itself, so these are not in the schema: the chart's templates check them.
 */
interface TextCheck {
  readonly pattern: string;
  readonly wanted: string;
  /** What a refused text is compared with, for what it may have been meant to be. */
  readonly meant?: "duration" | "percent" | undefined;
}

/** The check of a field; `*` in the path are the items of a list. */
interface FieldCheck extends TextCheck {
  readonly path: readonly string[];
}

/** All checks of texts, for the templates. */
export function textChecks(): object {
  return {
    policies: [
      { path: ["name"], ...policyName },
      ...fieldChecks(policySpec()).map(({ path, ...check }) => {
        return { path: ["spec", ...path], ...check };
      }),
    ],
    controller: optionChecks("run"),
    agent: optionChecks("agent"),
  };
}

function optionChecks(command: Command): Readonly<Record<string, TextCheck>> {
  const checks = optionsFor(command).flatMap((option) => {
    const check = option.list ? undefined : optionCheck(option);
    return check === undefined ? [] : [[option.name, check] as const];
  });
  return Object.fromEntries(checks);
}

/** With the words of `src/config/options/resolve-options.ts`. */
function optionCheck({ type, default: usual = ":8080" }: Option): TextCheck | undefined {
  switch (type) {
    case "url":
      return { pattern: "^https?://\\S+$", wanted: "an address such as http://host:80" };
    case "address":
      return { pattern: portPattern, wanted: `an address such as ${usual}` };
    case "duration":
      return {
        pattern: "^(0|([0-9]+(\\.[0-9]+)?(ms|s|m|h))+)$",
        wanted: "a duration such as 90s or 12h30m",
        meant: "duration",
      };
    default:
      return undefined;
  }
}

/** The checks of a field and of all inside. */
function fieldChecks(field: FieldSchema): readonly FieldCheck[] {
  switch (field.type) {
    case "object":
      return Object.entries(field.properties).flatMap(([name, inner]) => below(name, inner));
    case "list":
      return below("*", field.items);
    case "string":
    case "amount":
      return isChecked(field) ? [{ path: [], ...checkOf(field) }] : [];
    default:
      return [];
  }
}

function below(step: string, inner: FieldSchema): readonly FieldCheck[] {
  return fieldChecks(inner).map(({ path, ...check }) => ({ path: [step, ...path], ...check }));
}

type TextField = (StringField | AmountField) & TextCheck;

function isChecked(field: StringField | AmountField): field is TextField {
  return field.pattern !== undefined && field.wanted !== undefined;
}

function checkOf({ type, pattern, wanted, meant }: TextField): TextCheck {
  if (meant === durationMeant) return { pattern, wanted, meant: "duration" };
  return { pattern, wanted, ...(type === "amount" && { meant: "percent" }) };
}

/** The schema of a field, without the patterns that the templates check. */
function schemaOf(field: FieldSchema): JsonSchema {
  const schema = jsonSchemaOf(field);
  switch (field.type) {
    case "object": {
      const properties = Object.entries(field.properties).map(([name, inner]) => {
        return [name, schemaOf(inner)] as const;
      });
      return { ...schema, properties: Object.fromEntries(properties) };
    }
    case "list":
      return { ...schema, items: schemaOf(field.items) };
    case "string":
    case "amount": {
      const { pattern: _, ...rest } = schema;
      return isChecked(field) ? rest : schema;
    }
    default:
      return schema;
  }
}

/** A port from 1 to 65535 at the end. */
const portPattern =
  ":([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$";

function oneOptionSchema(option: Option): JsonSchema {
  switch (option.type) {
    case "switch":
      return { type: "boolean" };
    case "choice":
      return { enum: option.choices };
    case "integer":
    case "number":
      return { type: option.type, minimum: option.minimum, maximum: option.maximum };
    case "url":
    case "address":
    case "duration":
      return option.list
        ? { type: "string", pattern: optionCheck(option)?.pattern }
        : { type: "string" };
    default:
      return { type: "string", minLength: 1 };
  }
}

function defaultOf(option: Option): JsonSchema {
  if (option.default === undefined) return {};
  if (option.type === "switch") return { default: option.default === "true" };
  const isNumber = option.type === "integer" || option.type === "number";
  return { default: isNumber ? Number(option.default) : option.default };
}

/** The options of a command as a map keyed by option name. */
export function optionsSchema(command: Command): JsonSchema {
  const listed = optionsFor(command).filter((option) => !setByTheChart.includes(option.name));
  const properties = listed.map((option) => [option.name, optionSchema(option)]);
  return {
    type: "object",
    additionalProperties: false,
    properties: Object.fromEntries(properties),
  };
}

/** The shortest and longest duration of each option that has such limits, by its name. */
export function spanLimits(command: Command): object {
  const limited = optionsFor(command).flatMap((option) => {
    if (option.type !== "duration") return [];
    const { name, shortest, longest } = option;
    const limits = { ...(shortest && { least: shortest }), ...(longest && { most: longest }) };
    return Object.keys(limits).length === 0 ? [] : [[name, limits] as const];
  });
  return Object.fromEntries(limited);
}

/** The options of each part that name a file. */
export function fileOptions(): Readonly<Record<"controller" | "agent", readonly string[]>> {
  const named = (command: Command) =>
    optionsFor(command).flatMap((one) =>
      "value" in one && one.value.startsWith("FILE") ? [one.name] : [],
    );
  return { controller: named("run"), agent: named("agent") };
}

/**
 * Policies as in the CRD, but without its rules across fields: the chart's `_policy.tpl` has most
 * of them, and the API server all.
 */
export function policiesSchema(): JsonSchema {
  const properties = {
    name: { type: "string", maxLength: 253 },
    spec: schemaOf(policySpec()),
  };
  const required = ["name", "spec"];
  return {
    type: "array",
    items: { type: "object", additionalProperties: false, required, properties },
  };
}

const policyName: TextCheck = {
  pattern: "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$",
  wanted: "a name of lower case letters, digits, dashes and dots",
};

function policySpec(): ObjectField {
  const policy = resourceDefinitions.find(({ kind }) => kind === "DeparturePolicy");
  if (policy === undefined) throw new Error("Cannot make the chart: there is no DeparturePolicy");
  return policy.spec;
}
