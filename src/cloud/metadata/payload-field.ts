/** Reading of what a metadata service says: total, and bounded in what it repeats. */

export type PayloadFields = Readonly<Record<string, unknown>>;

/** The JSON of a text; undefined where it is none. */
export function parseJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

/** The fields of an object; undefined for a list, null and everything that is none. */
export function fieldsOf(value: unknown): PayloadFields | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as PayloadFields)
    : undefined;
}

/** A text that is not empty. */
export function wordOf(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

/** The beginning of something foreign, for a message: one line, 60 characters, no control codes. */
export function glimpse(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  const line = text.replaceAll(/[^\x20-\x7e]+/g, " ").trim();
  if (line === "") return "nothing";
  return JSON.stringify(line.length > 60 ? `${line.slice(0, 60)}…` : line);
}
