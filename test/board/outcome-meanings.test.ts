import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { outcomes } from "../../src/board/stream.ts";
import { english } from "../../src/web/words/words-english.ts";
import { japanese } from "../../src/web/words/words-japanese.ts";

it("every outcome is defined in the glossary, and on the board in either language", () => {
  const [, section = ""] = readFileSync("docs/glossary.md", "utf8").split("\n## Outcomes\n");
  const [rows = ""] = section.split("\n## ");
  const defined = [...rows.matchAll(/^\| ([A-Z]\w+) \| (?:left|stays) \| \S/gm)].map(
    ([, name]) => name,
  );
  expect(defined.toSorted()).toEqual(outcomes.toSorted());
  for (const { outcomeMeanings } of [english, japanese]) {
    expect(new Set(Object.values(outcomeMeanings)).size).toBe(outcomes.length);
  }
});
