import { describe, expect, it } from "vitest";
import { parseManifests } from "../../src/audit/input/parse-manifests.ts";
import { readYaml } from "../../src/config/yaml-text.ts";

/**
 * By hand from go.yaml.in/yaml v2.4 `resolve.go`, by which kubectl and Helm read manifests: a table
 * of words, then ParseInt with base 0 after underscores are removed, then a float.
 */
const cases: readonly (readonly [text: string, value: unknown])[] = [
  ["yes", true],
  ["On", true],
  ["y", true],
  ["no", false],
  ["OFF", false],
  ["true", true],
  ["yEs", "yEs"],
  ['"yes"', "yes"],
  ["1_0", 10],
  ["1_000_000", 1_000_000],
  ["-1_0", -10],
  ["0o17", 15],
  ["017", 15],
  ["-017", -15],
  ["08", 8],
  ["0x1_F", 31],
  ["0b101", 5],
  ["0b102", "0b102"],
  ["1_0.5", 10.5],
  ["0", 0],
  ["30", 30],
  ["_10", "_10"],
  ["22:00", "22:00"],
  ["2026-11-29", "2026-11-29"],
  ["1e3", 1000],
  ["30s", "30s"],
  ["~", null],
];

describe("a plain scalar is read as kubectl reads it", () => {
  it.each(cases)("%s", (text, value) => {
    const yaml = `field: ${text}\n`;
    expect(readYaml(yaml).documents[0]?.value).toEqual({ field: value });
    expect(parseManifests({ file: "f", text: yaml }).documents[0]?.value).toEqual({ field: value });
  });

  it("also as a key", () => {
    expect(readYaml("on: 1\n").documents[0]?.value).toEqual({ true: 1 });
  });
});
