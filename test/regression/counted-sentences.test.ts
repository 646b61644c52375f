import { describe, expect, it } from "vitest";
import { inEnglish } from "../../src/core/reason/english.ts";
import { translated } from "../../src/web/words/translated.ts";
import { sentenceTable } from "./sentence-table.ts";

/** What only doctor, the audit, previews and the page's own texts say. */
const saysOnlyEnglish =
  /^(the board|the demo|agents on|budgets|pods that cannot|workloads|a freeze)/;
/** Facts, and words of Kubernetes. */
const kept = /\bn\d+\b|\bno( token)?$|spot|Pod|lifetime\.max|Allow|Ready|nodeSelector/g;

describe("in Japanese no English is left of a sentence with a number:", () => {
  it.each(sentenceTable.filter(([what]) => !saysOnlyEnglish.test(what)))(
    "%s",
    (_, say, ...said) => {
      const all = [...said, ...[0, 1, 2, 1000].map(say)];
      const left = all.map((one) => translated(one, "ja").replaceAll(kept, ""));
      expect(left.filter((text) => /[A-Za-z]{2,}/.test(text))).toEqual([]);
    },
  );
});

describe("a sentence with a number reads well:", () => {
  it.each(sentenceTable)("%s", (_, say, ...said) => {
    expect([0, 1, 2, 1000].map((count) => inEnglish(say(count)))).toEqual(said);
  });
});
