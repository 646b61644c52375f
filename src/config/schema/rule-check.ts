import { describeValue, type Problem } from "../problem.ts";
import type { Pointer } from "../yaml-text.ts";
import type { FieldSchema, RuleWorld, SchemaRule } from "./field-schema.ts";

/**
 * Asks every rule of the schema about the part of the value that it stands at. Where the shape of
 * a part is wrong already (`broken`), rules about it would only say so in other words.
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
    return [
      ...own.map((found) => ({ ...found, pointer: [...pointer, ...found.pointer] })),
      ...inner,
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

interface Part {
  readonly step: string | number;
  readonly schema: FieldSchema;
  readonly value: unknown;
}

function partsOf(schema: FieldSchema, value: unknown): readonly Part[] {
  if (schema.type === "list" && Array.isArray(value)) {
    return value.map((item: unknown, step) => ({ step, schema: schema.items, value: item }));
  }
  if (schema.type !== "object") return [];
  return Object.entries(schema.properties).flatMap(([step, inner]) => {
    const part = fieldOf(value, step);
    return part === undefined ? [] : [{ step, schema: inner, value: part }];
  });
}

function fieldOf(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  return Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}

function startsWith(pointer: Pointer, beginning: Pointer): boolean {
  return beginning.every((step, index) => pointer[index] === step);
}
