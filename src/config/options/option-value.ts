import { parseDuration, parseInstant } from "../../core/time/time.ts";
import { orList } from "../or-list.ts";
import type { Option } from "./option.ts";

/** What the text of an option means, or what would have been wanted in its place. */
export type OptionValue = { readonly value: unknown } | { readonly wanted: string };

/** Reads one value of an option as a flag, a variable or the config file spells it. */
export function readOptionValue(option: Option, text: string): OptionValue {
  switch (option.type) {
    case "text":
      return text === "" ? { wanted: `a value for ${option.value}` } : { value: text };
    case "switch":
      return valueOr(parseSwitch(text), "true or false");
    case "choice":
      return option.choices.includes(text) ? { value: text } : { wanted: orList(option.choices) };
    case "integer":
    case "number":
      return readNumber(option, text);
    case "duration":
      return valueOr(parseDuration(text), "a duration such as 90s or 12h30m");
    case "instant":
      return valueOr(parseInstant(text), "an RFC 3339 instant such as 2026-12-01T00:00:00Z");
    case "url":
      return isWebAddress(text) ? { value: text } : { wanted: "an address such as http://host:80" };
    case "address":
      return isListenAddress(text) ? { value: text } : { wanted: "an address such as :8080" };
  }
}

/** The spellings that Go's flag package takes, without the single letters. */
function parseSwitch(text: string): boolean | undefined {
  switch (text.toLowerCase()) {
    case "true":
    case "1":
      return true;
    case "false":
    case "0":
      return false;
    default:
      return undefined;
  }
}

function readNumber(option: Extract<Option, { minimum: number }>, text: string): OptionValue {
  const { type, minimum, maximum } = option;
  const value = /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  const isRight = value >= minimum && value <= maximum;
  if (isRight && (type === "number" || Number.isInteger(value))) return { value };
  const kind = type === "integer" ? "a whole number" : "a number";
  return { wanted: `${kind} from ${minimum} to ${maximum}` };
}

function isWebAddress(text: string): boolean {
  return /^https?:\/\/\S+$/.test(text) && URL.canParse(text);
}

/** `:8080`, `127.0.0.1:8080`, `[::1]:8080`, `localhost:0`. */
function isListenAddress(text: string): boolean {
  const port = /^(?:[A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\]):(\d{1,5})$/.exec(text)?.[1];
  return port !== undefined && Number(port) <= 65_535;
}

function valueOr(value: unknown, wanted: string): OptionValue {
  return value === undefined ? { wanted } : { value };
}
