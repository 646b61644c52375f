import { describe, expect, it } from "vitest";
import { type DemoKey, demoKeyOf } from "../../src/board/demo-picture.ts";
import { type Controls, demoKeyHelp, firstControls, pressed } from "../../src/cli/demo/controls.ts";

describe("The keys of the demo", () => {
  it.each<readonly [string, DemoKey | undefined]>([
    [" ", "Pause"],
    ["+", "Faster"],
    ["=", "Faster"],
    ["-", "Slower"],
    ["N", "NextEvent"],
    ["i", "Interrupt"],
    ["x", undefined],
    // The keys of the board.
    ...["s", "q", "/", "\r", "j", "k", "g", "G"].map((key) => [key, undefined] as const),
    // The up arrow, and a sequence that contains a key's letter.
    ["\u001b[A", undefined],
    ["\u001bn", undefined],
  ])("%j means %j", (key, expected) => {
    expect(demoKeyOf(key)).toBe(expected);
  });

  it("are exactly the keys that the help shows", () => {
    const keys = demoKeyHelp.flatMap(([key]) => (key === "space" ? [" "] : key.split(" ")));
    expect(keys.map(demoKeyOf)).toEqual(["Pause", "Faster", "Slower", "NextEvent", "Interrupt"]);
  });

  it.each<[DemoKey, Partial<Controls>, Partial<Controls>]>([
    ["Pause", {}, { paused: true }],
    ["Pause", { paused: true }, { paused: false }],
    ["Pause", { skipPast: 3 }, { paused: true, skipPast: undefined }],
    ["Faster", {}, { times: 2 }],
    ["Faster", { times: 64 }, { times: 64 }],
    ["Slower", {}, { times: 0.5 }],
    ["NextEvent", { paused: true }, { paused: false, skipPast: 5 }],
    ["Interrupt", { paused: true }, { paused: false }],
    ["Read", {}, { paused: true, isReading: true }],
    ["Read", { skipPast: 3 }, { paused: true, skipPast: undefined }],
    ["ReadOn", { paused: true, isReading: true }, { paused: false, isReading: false }],
    // A person's own pause stays when a page is opened and left.
    ["Read", { paused: true }, { paused: true, isReading: false }],
    ["ReadOn", { paused: true }, { paused: true }],
    ["ReadOn", {}, { paused: false }],
    // Who resumes on the page of a node sees what becomes of it.
    ["Pause", { paused: true, isReading: true }, { paused: false, isReading: false }],
    ["NextEvent", { paused: true, isReading: true }, { paused: false, isReading: false }],
  ])("%s turns %j into %j", (key, before, after) => {
    expect(pressed({ ...firstControls, ...before }, key, 5)).toMatchObject(after);
  });
});
