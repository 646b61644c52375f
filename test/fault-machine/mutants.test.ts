import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { mutants } from "./mutants.ts";

const root = join(import.meta.dirname, "../..");

describe("each deliberate bug can be made: its text occurs once in its file", () => {
  it.each(mutants)("$name", ({ edits }) => {
    for (const { file, from } of edits) {
      const parts = readFileSync(join(root, file), "utf8").split(from);
      expect(parts.length - 1, `${file}: ${from}`).toBe(1);
    }
  });
});
