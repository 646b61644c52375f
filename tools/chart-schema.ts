/** What src/config knows of `values.schema.json`: the options of both parts, and policies. */

import type { Command, Option } from "../src/config/options/option.ts";
import { optionsFor } from "../src/config/options/options.ts";
import { type JsonSchema, jsonSchemaOf } from "../src/config/schema/crd.ts";
import { resourceDefinitions } from "../src/config/schema/resource-definition.ts";

/** Options that the chart itself sets for the part and nobody may change. */
const setByTheChart = ["node-name"];

/** The schema of an option's value: a list also accepts a single value. */
function optionSchema(option: Option): JsonSchema {
  const { help: description, list } = option;
  const one = oneOptionSchema(option);
  if (!list) return { description, ...one, ...defaultOf(option) };
  return { description, anyOf: [one, { type: "array", items: one }] };
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
      return { type: "string", pattern: "^https?://\\S+$" };
    case "address":
      return { type: "string", pattern: portPattern };
    case "duration":
      return { type: "string", pattern: "^(0|([0-9]+(\\.[0-9]+)?(ms|s|m|h))+)$" };
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

/**
 * Policies as in the CRD, but without its rules across fields: the chart's `_policy.tpl` has most
 * of them, and the API server all.
 */
export function policiesSchema(): JsonSchema {
  const policy = resourceDefinitions.find(({ kind }) => kind === "DeparturePolicy");
  if (policy === undefined) throw new Error("Cannot make the chart: there is no DeparturePolicy");
  const properties = {
    name: { type: "string", pattern: "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$", maxLength: 253 },
    spec: jsonSchemaOf(policy.spec),
  };
  const required = ["name", "spec"];
  return {
    type: "array",
    items: { type: "object", additionalProperties: false, required, properties },
  };
}
