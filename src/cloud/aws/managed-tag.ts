import { LastcallError } from "../../errors.ts";
import type { Tag } from "./ec2.ts";

/** AWS' own limits of a tag's key and value. */
const longestKey = 128;
const longestValue = 256;

/**
 * Reads `KEY` or `KEY=VALUE`; a key that holds an `=` itself cannot be named. Throws
 * CONFIG_INVALID, which names the option.
 */
export function parseManagedTag(text: string): Tag {
  const at = text.indexOf("=");
  const key = at < 0 ? text : text.slice(0, at);
  const value = at < 0 ? undefined : text.slice(at + 1);
  const isKey = key.trim() !== "" && key.length <= longestKey;
  if (isKey && (value ?? "").length <= longestValue) return { key, value };
  throw new LastcallError(
    "CONFIG_INVALID",
    `Cannot use --aws-managed-tag: found ${JSON.stringify(text.slice(0, 60))}, expected KEY or KEY=VALUE with a key of 1 to ${longestKey} and a value of up to ${longestValue} characters`,
  );
}
