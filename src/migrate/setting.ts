import { type Fields, fieldsOf, isFields, nameOf } from "../core/json/json-field.ts";
import { LastcallError } from "../errors.ts";

/** One setting of another tool, as it was found. */
export interface Setting {
  /** The name of its environment variable, by which flags and values are known as well. */
  readonly name: string;
  readonly text: string;
  /** Where it stands, as messages name it: `values.yaml: drainTimeout`. */
  readonly place: string;
}

/** By the setting's name; of several the one that the tool itself would take. */
export type Settings = ReadonlyMap<string, Setting>;

/** What could be read of another tool's configuration. */
export interface ToolSetup {
  readonly settings: Settings;
  /** Values of Lastcall's chart that follow from the tool's pod and account. */
  readonly values: ChartValues;
  /** One sentence for each thing that has no equal. */
  readonly notes: readonly string[];
}

export type ChartValues = Readonly<Record<string, unknown>>;

/** A DeparturePolicy as it is printed. */
export interface PolicyManifest {
  readonly apiVersion: "lastcall.dev/v1alpha1";
  readonly kind: "DeparturePolicy";
  readonly metadata: { readonly name: string };
  readonly spec: Readonly<Record<string, unknown>>;
}

/** What another tool's configuration comes to. */
export interface Translation {
  readonly policies: readonly PolicyManifest[];
  readonly values: ChartValues;
  readonly notes: readonly string[];
}

export function policyDocument(name: string, spec: PolicyManifest["spec"]): PolicyManifest {
  return { apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy", metadata: { name }, spec };
}

/** A setting without which the policy would do more than was meant. */
export function unreadable({ place, text }: Setting, wanted: string): LastcallError {
  const found = text === "" ? "nothing" : JSON.stringify(text);
  return new LastcallError(
    "INPUT_INVALID",
    `Cannot translate ${nameOf(place)}: found ${found}, expected ${wanted}`,
  );
}

/** A value as a setting's text; what is none, such as a list, as JSON. */
export function settingText(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A setting's text, where it is there and not empty. */
export function settingOf(settings: Settings, name: string): Setting | undefined {
  const found = settings.get(name);
  return found === undefined || found.text.trim() === "" ? undefined : found;
}

/** An object's field that is an object itself, or an empty one. */
export function fieldsIn(value: unknown, name: string): Fields {
  return fieldsOf(fieldsOf(value)[name]);
}

/** Whether a value says anything: neither nothing nor an empty text, list or map. */
export function isGiven(value: unknown): boolean {
  if (value === undefined || value === null || value === "") return false;
  if (Array.isArray(value)) return value.length > 0;
  return !isFields(value) || Object.keys(value).length > 0;
}
