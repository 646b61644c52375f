import { describe, expect, it } from "vitest";
import { bytesOf, fitText } from "../../../src/core/action/template.ts";

describe("a message that is longer than its receiver accepts", () => {
  it.each([
    ["fits unchanged", "one\ntwo", 7, "one\ntwo"],
    [
      "says how many lines are missing",
      "head\naaaaaaaaaaaa\nbbbbbbbbbbbb\ncccccccccccc\nlast",
      41,
      "head\naaaaaaaaaaaa\n… and 2 more lines\nlast",
    ],
    [
      "keeps its first line",
      "head\naaaaaaaaaaaaaaaaaaaaa\nlast",
      28,
      "head\n… and 1 more line\nlast",
    ],
    ["is cut within its first lines if they do not fit", "headline\nb\nc\nlast line", 6, "headl…"],
    ["has one line and is cut", "abcdefgh", 5, "abcd…"],
    ["is cut between characters", "ab\u{1f6d1}\u{1f6d1}", 4, "ab…"],
    ["is not cut within an escape of Slack", "abc&amp;&amp;", 7, "abc…"],
    ["is not cut within an escape of Teams", "abc\\_def", 5, "abc…"],
    ["has no room at all", "abc", 0, ""],
  ])("%s", (_, text, most, expected) => {
    expect(fitText(text, (one) => one.length <= most)).toBe(expected);
  });

  it("can be measured in bytes", () => {
    const fitted = fitText("ü".repeat(100), (text) => bytesOf(text) <= 20);
    expect(fitted).toBe(`${"ü".repeat(8)}…`);
  });
});
