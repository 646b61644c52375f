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

/** The rows of a table of docs/testing.md, below a heading or a mark. */
function rowsAfter(start: string): readonly (readonly string[])[] {
  const page = readFileSync(join(root, "docs/testing.md"), "utf8");
  const [, rest = ""] = page.split(start);
  const [table = ""] = /^\|(.|\n)+?\n\n/m.exec(rest) ?? [];
  const lines = table.trimEnd().split("\n").slice(2);
  return lines.map((line) => line.split("|").map((cell) => cell.trim()));
}

describe("each fault of an hour is found from a drawn seed if its mend is taken away", () => {
  const foundIn = new Map(rowsAfter("<!-- mutants -->").map(([, bug, , , at]) => [bug, at]));

  it.each(rowsAfter("### The faults of an hour"))("%s%s", (_, __, bugs = "") => {
    for (const bug of bugs.split("; ")) expect(foundIn.get(bug), bug).toMatch(/^seed \d+$/);
  });

  it("and they are thirteen", () => {
    expect(rowsAfter("### The faults of an hour")).toHaveLength(13);
  });
});
