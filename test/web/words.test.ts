import { expect, it } from "vitest";
import { reasons } from "../../src/core/reason/reason.ts";
import { languages } from "../../src/web/view-state.ts";

it("each reason has a sentence of its own in each language, and no other has one", () => {
  for (const words of Object.values(languages)) {
    const known = ["HeldPastDeadline", ...reasons];
    expect(Object.keys(words.reasons).toSorted()).toEqual(known.toSorted());
    const sentences = reasons.map((reason) => words.reasons[reason]);
    expect(sentences.filter((text) => text.trim() === "")).toEqual([]);
    expect(new Set(sentences).size).toBe(reasons.length);
  }
});

/** All texts, including those that are built from values. */
function texts(words: object): readonly [string, string][] {
  return Object.entries(words).flatMap(([key, value]): [string, string][] => {
    if (typeof value === "string") return [[key, value]];
    if (typeof value === "function") return [[key, String(value(2, 3))]];
    return texts(value as object).map(([under, text]) => [`${key}.${under}`, text]);
  });
}

it("the languages have the same keys, and no text is left in the other language", () => {
  const [english, japanese] = [texts(languages.en), texts(languages.ja)];
  expect(japanese.map(([key]) => key)).toEqual(english.map(([key]) => key));
  expect(english.filter(([, text]) => text === "")).toEqual([]);
  const isJapanese = /[\u3002\u3040-\u30ff\u4e00-\u9fff]/;
  expect(english.filter(([key, text]) => key !== "language" && isJapanese.test(text))).toEqual([]);
  const same = japanese.filter(([key, text]) => key !== "language" && !isJapanese.test(text));
  expect(same.map(([key]) => key)).toEqual(["pod"]);
});
