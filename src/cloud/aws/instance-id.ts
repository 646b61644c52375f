import { wordOf } from "../metadata/payload-field.ts";

/** An id as EC2 gives it to an instance; undefined for anything else. */
export function instanceIdOf(value: unknown): string | undefined {
  const id = wordOf(value) ?? "";
  return /^i-[0-9a-f]{8,32}$/.test(id) ? id : undefined;
}
