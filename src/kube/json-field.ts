/**
 * Reading of foreign JSON, each reader total: what is not of the wanted kind is not there. Objects
 * of a cluster are written by many hands, and one odd field must not cost the whole object.
 */
import { type Instant, parseInstant } from "../core/time/time.ts";

export type ObjectFields = Readonly<Record<string, unknown>>;

export function fieldsOf(value: unknown): ObjectFields {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as ObjectFields)
    : {};
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

export function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

export function instantOf(value: unknown): Instant | undefined {
  return typeof value === "string" ? parseInstant(value) : undefined;
}

/** A map of text to text, such as labels; entries of another kind are left out. */
export function textMapOf(value: unknown): Readonly<Record<string, string>> {
  const fields = fieldsOf(value);
  if (Object.values(fields).every((entry) => typeof entry === "string")) {
    return fields as Readonly<Record<string, string>>;
  }
  const texts = Object.entries(fields).filter(([, entry]) => typeof entry === "string");
  return Object.fromEntries(texts) as Record<string, string>;
}

/** The value where it is one of `choices`. */
export function oneOf<T extends string>(choices: readonly T[], value: unknown): T | undefined {
  return choices.find((choice) => choice === value);
}
