import { describe, expect, it } from "vitest";
import {
  ansiFrame,
  cell,
  clipped,
  plainText,
  shareBar,
  widthOf,
} from "../../src/cli/command-line/terminal.ts";

describe("A frame", () => {
  const line = [
    { text: "ab", tone: "plain" },
    { text: "cd", tone: "bad" },
  ] as const;

  it("has colours only if they are enabled", () => {
    expect(ansiFrame([line], { colour: false })).toContain("abcd\u001b[K");
    expect(ansiFrame([line], { colour: true })).toContain("ab\u001b[31;1mcd\u001b[0m\u001b[K");
  });

  it.each([
    ["Japanese letters", "予算の空きを待機", 16, 7, "予算の…"],
    ["an emoji", "🚆🚆🚆", 6, 4, "🚆…"],
    ["a letter with a combining accent", "cafe\u0301s", 5, 4, "caf…"],
    ["half of a wide letter, which does not exist", "a予b", 4, 3, "a…"],
  ])("has the width at which a terminal shows %s", (_, text, width, columns, clippedText) => {
    expect(widthOf([cell(text)])).toBe(width);
    expect(clipped([cell(text)], width)).toEqual([cell(text)]);
    const short = clipped([cell(text)], columns);
    expect(plainText(short)).toBe(clippedText);
    expect(widthOf(short)).toBeLessThanOrEqual(columns);
  });

  it("replaces control characters and characters that change the text's order", () => {
    const hostile = "a\u001b[2Jb\u009bc\u202ed\u2066e\nf";
    expect(ansiFrame([[cell(hostile)]], { colour: false })).toContain(
      "a\ufffd[2Jb\ufffdc\ufffdd\ufffde\ufffdf\u001b[K",
    );
  });

  it("clears the rest of the screen only after it has written all lines", () => {
    const frame = ansiFrame([line, line], { colour: false });
    expect(frame).not.toContain("\u001b[2J");
    expect(frame.indexOf("\u001b[J")).toBeGreaterThan(frame.lastIndexOf("abcd"));
  });

  it.each([
    [4, "abcd"],
    [3, "ab…"],
    [1, "…"],
    [0, ""],
  ])("cut to %d columns is %s", (columns, expected) => {
    expect(plainText(clipped(line, columns))).toBe(expected);
  });

  it.each([
    [-1, "····"],
    [0, "····"],
    [0.25, "█···"],
    // Half of 4 columns and an eighth: 17 of 32 eighths.
    [17 / 32, "██▏·"],
    [31 / 32, "███▉"],
    [1, "████"],
    [2, "████"],
  ])("draws a share of %d as %s", (share, expected) => {
    expect(plainText(shareBar(share, { width: 4, tone: "good" }))).toBe(expected);
  });
});
