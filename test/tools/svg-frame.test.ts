import { describe, expect, it } from "vitest";
import { plainText } from "../../src/cli/command-line/terminal.ts";
import { minutes } from "../../src/core/time/time.ts";
import { boardAt } from "../../tools/demo-picture.ts";
import { svgFrame } from "../../tools/svg-frame.ts";

const look = { columns: 20, title: "a & b" };

describe("a frame as SVG", () => {
  it("keeps each run of words in its columns, and draws no spaces", () => {
    const svg = svgFrame([[{ text: " one two   three", tone: "plain" }]], look);
    // A column is 8 px wide, the margin is 14 px.
    expect(svg).toContain('<text x="22" y="27" textLength="56" fill="#c9d1d9">one two</text>');
    expect(svg).toContain('<text x="102" y="27" textLength="40" fill="#c9d1d9">three</text>');
  });

  it("draws a bar as one rectangle, to an eighth of a column", () => {
    const svg = svgFrame([[{ text: "██▌", tone: "good" }]], look);
    expect(svg).toContain('<rect x="14" y="17" width="20" height="11" fill="#3fb950"/>');
    expect(svg).not.toContain("█");
  });

  it("draws a bar between words in its own place, and keeps the words", () => {
    const svg = svgFrame([[{ text: "new █old", tone: "dim" }]], look);
    expect(svg).toContain('<rect x="46" y="17" width="8" height="11" fill="#7d8590"/>');
    expect(svg).toContain('textLength="24" fill="#7d8590">new</text>');
    expect(svg).toContain('<text x="54" y="27" textLength="24" fill="#7d8590">old</text>');
  });

  it("escapes XML's special characters", () => {
    const svg = svgFrame([[{ text: "<a&b>", tone: "plain" }]], look);
    expect(svg).toContain(">&lt;a&amp;b&gt;</text>");
    expect(svg).toContain("<title>a &amp; b</title>");
  });
});

it("the picture of an instant is the same each time it is drawn", async () => {
  const moment = { seed: 2, after: minutes(3), columns: 90, rows: 30 };
  const [first, again] = [await boardAt(moment), await boardAt(moment)];
  expect(again).toEqual(first);
  expect(first.map(plainText).join("\n")).toContain("2026-11-20 00:03:00 UTC   seed 2");
});
