import { describe, expect, it } from "vitest";
import { describeValue, nameOf, wordsOf } from "../../../src/core/json/json-field.ts";
import { escapedJson, printable, printableLines } from "../../../src/core/json/printable-text.ts";

/** What a terminal obeys, or shows in another order or not at all. */
const hostile = [
  ["an escape sequence", "\u001b[2J"],
  ["a line break", "\n"],
  ["a carriage return", "\r"],
  ["an escape sequence of one character", "\u009b"],
  ["a delete", "\u007f"],
  ["a right-to-left override", "\u202e"],
  ["an isolate", "\u2066"],
  ["a mark of the direction", "\u200f"],
  ["a space without width", "\u200b"],
  ["a byte order mark", "\ufeff"],
  ["a line separator", "\u2028"],
  ["a tag, which is two units", "\u{e0041}"],
] as const;
const isHostile = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

describe("text from a cluster or a service", () => {
  it.each(hostile)("has %s replaced in a sentence", (_, text) => {
    expect(printable(`a${text}b`)).toMatch(/^a\ufffd+(\[2J)?b$/);
    for (const shown of [nameOf(`a${text}b`), wordsOf(`a${text}b`), describeValue(`a${text}b`)]) {
      expect(shown).not.toMatch(isHostile);
    }
  });

  it.each(hostile)("has %s escaped in JSON, and is the same when it is read", (_, text) => {
    const value = { [`key${text}`]: [`a${text}b`, 1, null] };
    const json = escapedJson(value);
    expect(json).not.toMatch(isHostile);
    expect(JSON.parse(json)).toEqual(value);
  });

  it.each(hostile)("has %s replaced among lines, which keep layout and colours", (name, text) => {
    const isLayout = ["a line break", "a carriage return"].includes(name);
    expect(printableLines(`\u001b[31ma\u001b[0m\t${text}b\n`)).toBe(
      `\u001b[31ma\u001b[0m\t${isLayout ? text : printable(text)}b\n`,
    );
  });

  it("keeps letters of every script, accents and emoji", () => {
    const text = "予算 e\u0301 עברית 🚆";
    expect(printable(text)).toBe(text);
    expect(escapedJson(text)).toBe(`"${text}"`);
  });
});
