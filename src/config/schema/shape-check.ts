import { isFields } from "../../core/json/json-field.ts";
import { orList } from "../../core/reason/word-list.ts";
import { parseInstant } from "../../core/time/time.ts";
import { describeValue, didYouMean, type Problem } from "../problem.ts";
import type { Pointer } from "../yaml-text.ts";
import type {
  AmountField,
  FieldSchema,
  ListField,
  MapField,
  NumberField,
  ObjectField,
  RuleWorld,
  SchemaRule,
  StringField,
} from "./field-schema.ts";

/** A value as the schema returns it: defaults set, nulls and unknown fields removed. */
interface ShapeReading {
  readonly value: unknown;
  readonly problems: readonly Problem[];
}

/**
 * Validates a value against its schema: fields, types, choices, patterns and bounds; `checkRules`
 * checks the rules between fields. A JSON schema library could do this, but it costs 25 MiB of the
 * controller's 100 MiB and a tenth of a second; the tests compare this with one. The value is not
 * changed.
 */
export function checkShape(schema: FieldSchema, value: unknown): ShapeReading {
  return readField({ schema, value, at: [] });
}

interface Question<Schema extends FieldSchema = FieldSchema> {
  readonly schema: Schema;
  readonly value: unknown;
  readonly at: Pointer;
}

function readField({ schema, value, at }: Question): ShapeReading {
  switch (schema.type) {
    case "object":
      return readObject({ schema, value, at });
    case "map":
      return readMap({ schema, value, at });
    case "list":
      return readList({ schema, value, at });
    case "string":
      return readLeaf({ schema, value, at }, isText(schema, value));
    case "integer":
    case "number":
      return readLeaf({ schema, value, at }, isNumber(schema, value));
    case "boolean":
      return readLeaf({ schema, value, at }, typeof value === "boolean");
    case "amount": {
      const isShare = typeof value === "string" && new RegExp(schema.pattern).test(value);
      const isCount = Number.isInteger(value) && Number(value) >= schema.minimum;
      return readLeaf({ schema, value, at }, isShare || isCount);
    }
  }
}

function readObject({ schema, value, at }: Question<ObjectField>): ShapeReading {
  if (!isFields(value)) return mismatch({ schema, value, at });
  const known = Object.entries(schema.properties).flatMap(([name, inner]) => {
    const place = [...at, name];
    // Null counts as not set, as for the API server.
    const written = fieldOf(value, name) ?? ("default" in inner ? inner.default : undefined);
    if (written !== undefined) {
      return [{ name, ...readField({ schema: inner, value: written, at: place }) }];
    }
    return schema.required?.includes(name)
      ? [{ name, ...mismatch({ schema: inner, value: undefined, at: place }) }]
      : [];
  });
  const others = Object.keys(value).filter((name) => !Object.hasOwn(schema.properties, name));
  const kept = schema.open ? others.map((name) => [name, fieldOf(value, name)]) : [];
  const unknown = schema.open
    ? []
    : others.map((name) => unknownField({ schema, value, at }, name));
  return {
    value: Object.fromEntries([...known.map(({ name, value: part }) => [name, part]), ...kept]),
    problems: [...unknown, ...known.flatMap(({ problems }) => problems)],
  };
}

function readMap({ schema, value, at }: Question<MapField>): ShapeReading {
  if (!isFields(value)) return mismatch({ schema, value, at });
  const written = Object.entries(value).filter(([, part]) => part !== null);
  if (written.length > schema.maxProperties) {
    return refusal(value, at, {
      found: `${written.length}`,
      wanted: `at most ${schema.maxProperties}`,
    });
  }
  const pattern = new RegExp(schema.keyPattern);
  const badKey = written.find(
    ([key]) => !pattern.test(key) || key.length > schema.keyMaxLength,
  )?.[0];
  if (badKey !== undefined) {
    const found = `the key ${describeValue(badKey)}`;
    return refusal(value, at, { found, wanted: "a label name such as example.com/tier" });
  }
  const parts = written.map(([key, part]) => ({
    key,
    ...readField({ schema: schema.values, value: part, at: [...at, key] }),
  }));
  return {
    value: Object.fromEntries(parts.map(({ key, value: part }) => [key, part])),
    problems: parts.flatMap(({ problems }) => problems),
  };
}

function readList({ schema, value, at }: Question<ListField>): ShapeReading {
  const { minItems = 0, maxItems = Number.POSITIVE_INFINITY } = schema;
  const single = singleItem(schema, value);
  if (single !== undefined) {
    return refusal(value, at, { found: describeValue(value), wanted: `a list: [${single}]` });
  }
  if (!Array.isArray(value) || value.length < minItems) return mismatch({ schema, value, at });
  if (value.length > maxItems) {
    return refusal(value, at, { found: `${value.length} items`, wanted: `at most ${maxItems}` });
  }
  const repeated: unknown = value.find((item, index) => value.indexOf(item) !== index);
  if (schema.unique && repeated !== undefined) {
    return refusal(value, at, {
      found: `${describeValue(repeated)} twice`,
      wanted: "each item once",
    });
  }
  const items = value.map((item: unknown, index) =>
    readField({ schema: schema.items, value: item, at: [...at, index] }),
  );
  return {
    value: items.map(({ value: item }) => item),
    problems: items.flatMap(({ problems }) => problems),
  };
}

/** A value that was written without the list around it. */
function singleItem({ items: schema }: ListField, value: unknown): string | undefined {
  if (schema.type === "object" && isFields(value)) {
    const known = Object.keys(value).filter((name) => Object.hasOwn(schema.properties, name));
    return known.length === 0 ? undefined : `{${known.map((name) => `${name}: …`).join(", ")}}`;
  }
  const isItem = schema.type === "string" && typeof value === "string" && isText(schema, value);
  return isItem ? value : undefined;
}

function isText(schema: StringField, value: unknown): boolean {
  const { pattern, format, minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema;
  if (typeof value !== "string") return false;
  if (value.length < minLength || value.length > maxLength) return false;
  if (schema.enum !== undefined && !schema.enum.includes(value)) return false;
  if (format === "date-time" && parseInstant(value) === undefined) return false;
  return pattern === undefined || new RegExp(pattern).test(value);
}

function isNumber(schema: NumberField, value: unknown): boolean {
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = schema;
  if (typeof value !== "number" || value < minimum || value > maximum) return false;
  return schema.type === "integer" ? Number.isInteger(value) : Number.isFinite(value);
}

function readLeaf(question: Question, isRight: boolean): ShapeReading {
  return isRight ? { value: question.value, problems: [] } : mismatch(question);
}

function mismatch({ schema, value, at }: Question): ShapeReading {
  const hasHint = schema.type === "string" || schema.type === "amount";
  const found = describeValue(value) + (hasHint ? hintFor(schema, value) : "");
  return refusal(value, at, { found, wanted: wantedOf(schema) });
}

function hintFor({ meant: guess }: StringField | AmountField, value: unknown): string {
  if (value === true) return " (y, yes and on without quotes are true in YAML)";
  if (value === false) return " (n, no and off without quotes are false in YAML)";
  const isWritten = typeof value === "string" || typeof value === "number";
  const meant = isWritten ? guess?.(String(value)) : undefined;
  return meant === undefined ? "" : ` (${meant}?)`;
}

function refusal(
  value: unknown,
  pointer: Pointer,
  sentence: { readonly found: string; readonly wanted: string },
): ShapeReading {
  return { value, problems: [{ pointer, ...sentence, unknownField: false }] };
}

function unknownField({ schema, value, at }: Question<ObjectField>, name: string): Problem {
  const known = Object.keys(schema.properties);
  const near = didYouMean(name, known);
  const wanted =
    near ?? schema.instead?.(name, fieldOf(value, name), Object(value)) ?? orList(known);
  return { pointer: [...at, name], found: "an unknown field", wanted, unknownField: true };
}

/** What is expected of a field, for the message of a refusal. */
function wantedOf(schema: FieldSchema): string {
  if (schema.wanted !== undefined) return schema.wanted;
  switch (schema.type) {
    case "object":
      return `an object with ${Object.keys(schema.properties).slice(0, 3).join(", ") || "fields"}`;
    case "map":
      return "an object with string values";
    case "list":
      return "a list";
    case "boolean":
      return "true or false";
    case "string":
      return schema.enum === undefined ? textOf(schema) : orList(schema.enum);
    default:
      return schema.type === "integer" ? "a whole number" : "a number";
  }
}

function textOf({ maxLength }: StringField): string {
  return maxLength === undefined ? "text" : `text of at most ${maxLength} characters`;
}

/**
 * Checks every rule of the schema against the part of the value that it belongs to. If the shape of
 * a part is wrong already (`broken`), its rules would only repeat that in other words.
 */
export function checkRules(options: {
  readonly schema: FieldSchema;
  readonly value: unknown;
  readonly broken: readonly Pointer[];
  readonly world: RuleWorld;
}): readonly Problem[] {
  const { broken, world } = options;
  const visit = (schema: FieldSchema, value: unknown, pointer: Pointer): readonly Problem[] => {
    const inner = partsOf(schema, value).flatMap((part) =>
      visit(part.schema, part.value, [...pointer, part.step]),
    );
    if (broken.some((place) => startsWith(place, pointer))) return inner;
    const own = (schema.rules ?? []).flatMap((rule) => judge(rule, value, world));
    // A value that is wrong by itself is told first: it may be why others do not go with it.
    return [
      ...inner,
      ...own.map((found) => ({ ...found, pointer: [...pointer, ...found.pointer] })),
    ];
  };
  return visit(options.schema, options.value, []);
}

function judge(rule: SchemaRule, value: unknown, world: RuleWorld): readonly Problem[] {
  if (rule.holds === undefined || rule.holds(value, world)) return [];
  const blamed = rule.at === undefined ? value : fieldOf(value, rule.at);
  return [
    {
      pointer: rule.at === undefined ? [] : [rule.at],
      found: rule.found?.(value, world) ?? describeValue(blamed),
      wanted: rule.wanted,
      unknownField: false,
    },
  ];
}

interface CheckedPart {
  readonly step: string | number;
  readonly schema: FieldSchema;
  readonly value: unknown;
}

function partsOf(schema: FieldSchema, value: unknown): readonly CheckedPart[] {
  if (schema.type === "list" && Array.isArray(value)) {
    return value.map((item: unknown, step) => ({ step, schema: schema.items, value: item }));
  }
  if (schema.type !== "object") return [];
  return Object.entries(schema.properties).flatMap(([step, inner]) => {
    const part = fieldOf(value, step);
    return part === undefined ? [] : [{ step, schema: inner, value: part }];
  });
}

/** An own field: fields inherited from the prototype were not set by anybody. */
function fieldOf(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  return Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}

function startsWith(pointer: Pointer, beginning: Pointer): boolean {
  return beginning.every((step, index) => pointer[index] === step);
}
