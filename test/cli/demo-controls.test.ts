import { describe, expect, it } from "vitest";
import {
  type Controls,
  firstControls,
  type Key,
  keyHelp,
  keysIn,
  pressed,
} from "../../src/cli/demo/controls.ts";

describe("The keys of the demo", () => {
  it.each<[string, readonly Key[]]>([
    [" ", ["Pause"]],
    ["+", ["Faster"]],
    ["=", ["Faster"]],
    ["-", ["Slower"]],
    ["N", ["NextEvent"]],
    ["si", ["Sort", "Interrupt"]],
    ["\u0003", ["Quit"]],
    ["x", []],
    // The up arrow, and a sequence that contains a key's letter.
    ["\u001b[A", []],
    ["\u001bn", []],
  ])("%j means %j", (text, expected) => {
    expect(keysIn(text)).toEqual(expected);
  });

  it("are exactly the keys that the help shows", () => {
    const shown = keyHelp.flatMap(([key]) => keysIn(key === "space" ? " " : key.replace(" ", "")));
    const all: readonly Key[] = [
      ...(["Pause", "Faster", "Slower", "NextEvent", "Interrupt", "Sort", "Quit"] as const),
    ];
    expect(shown).toEqual(all);
  });

  it.each<[Key, Partial<Controls>, Partial<Controls>]>([
    ["Pause", {}, { paused: true }],
    ["Pause", { paused: true }, { paused: false }],
    ["Pause", { skipPast: 3 }, { paused: true, skipPast: undefined }],
    ["Faster", {}, { times: 2 }],
    ["Faster", { times: 64 }, { times: 64 }],
    ["Slower", {}, { times: 0.5 }],
    ["NextEvent", { paused: true }, { paused: false, skipPast: 5 }],
    ["Sort", {}, { sort: "Name" }],
    ["Sort", { sort: "Name" }, { sort: "Leaving" }],
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
