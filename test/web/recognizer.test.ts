import { describe, expect, it } from "vitest";
import { english, unknownInEnglish } from "../../src/core/reason/english.ts";
import { factText } from "../../src/core/reason/fact.ts";
import { type Piece, piecesOf, worded } from "../../src/core/reason/wording.ts";
import { japanese } from "../../src/web/words/japanese.ts";
import { recognizer } from "../../src/web/words/recognizer.ts";

type Table = Readonly<Record<string, Readonly<Record<string, string>>>>;

const keys = Object.entries(english as Table).flatMap(([group, all]) =>
  Object.entries(all).map(([key, sentence]) => ({ says: `${group}.${key}`, group, key, sentence })),
);

function namesOf(pieces: readonly Piece[]): readonly string[] {
  return pieces.flatMap((piece) => {
    if (typeof piece === "string") return [];
    if ("fact" in piece) return [piece.fact];
    if ("forms" in piece) return [piece.count, ...piece.forms.flatMap(namesOf)];
    return [...namesOf(piece.option), ...namesOf(piece.otherwise)];
  });
}

/** A text such as the fact may be. */
function example(name: string, place: number): string {
  if (/^(?:at|until|.*At|.*Time)$/.test(name)) return `2026-11-20T09:30:0${place}.000Z`;
  if (name === "pod") return "shop/web-0";
  return String(place + 11);
}

describe("in a text, the facts of the sentence are found:", () => {
  it.each(keys)("$says", ({ sentence }) => {
    const names = [...new Set(namesOf(piecesOf(sentence)))];
    const facts = Object.fromEntries(names.map((name, place) => [name, example(name, place)]));
    const writing = { saying: String, fact: factText, unknown: unknownInEnglish };
    const whole = worded(sentence, facts, writing);
    const found = recognizer(sentence, unknownInEnglish)(whole);
    expect(worded(sentence, found?.facts ?? {}, writing)).toBe(whole);
    const without = worded(sentence, {}, writing);
    expect(recognizer(sentence, unknownInEnglish)(without)?.facts).toEqual({});
  });
});

it("a sentence in Japanese names no fact that the English one does not have", () => {
  const strange = keys.flatMap(({ says, group, key, sentence }) => {
    const known = namesOf(piecesOf(sentence));
    const named = namesOf(piecesOf((japanese as Table)[group]?.[key] ?? "{missing}"));
    return named.filter((name) => !known.includes(name)).map((name) => `${says}: ${name}`);
  });
  expect(strange).toEqual([]);
});
