import { describe, expect, it } from "vitest";
import { parseManifests } from "../../src/audit/input/parse-manifests.ts";
import { cutAtDocuments, parseMany } from "../../src/audit/input/parse-many.ts";

const onThreads = { threads: 2, threadedFromChars: 0 };

const note = "a long text, which is parsed quickly ".repeat(10);
/** Enough for a file to be split into parts. */
const many = Array.from({ length: 1_500 }, (_, at) => document(at)).join("---\n");

function document(at: number): string {
  const metadata = `{name: map-${at}, labels: {at: "${at}"}, annotations: {note: "${note}"}}`;
  return `apiVersion: v1\nkind: ConfigMap\nmetadata: ${metadata}\n`;
}

describe("a large input", () => {
  it("gives the same result on several threads as on one, line by line", async () => {
    const files = [
      { file: "many.yaml", text: many },
      { file: "one.yaml", text: document(1) },
      { file: "empty.yaml", text: "" },
    ];

    expect(await parseMany(files, onThreads)).toEqual(files.map((one) => parseManifests(one)));
  });

  it("keeps the line number of a warning far down", async () => {
    const text = `${many}---\nkind: A\nkind: B\n`;
    const [parsed] = await parseMany([{ file: "a.yaml", text }], onThreads);
    const line = many.split("\n").length + 2;

    expect(parsed?.warnings).toEqual([expect.stringContaining(`a.yaml:${line}: the key kind `)]);
  });
});

describe("a long file", () => {
  it("is split only at document markers, without loss", () => {
    const parts = cutAtDocuments("a.yaml", many);

    expect(parts.length).toBeGreaterThan(2);
    expect(parts.map((part) => part.text).join("")).toBe(many);
    for (const part of parts.slice(1)) expect(part.text).toMatch(/^---\n/);
  });

  it.each([
    { why: "with a directive", text: `%YAML 1.2\n---\n${many}` },
    { why: "of JSON", text: `[${'"---",\n'.repeat(100_000)}1]` },
    { why: "that is short", text: document(1) },
  ])("$why is not split", ({ text }) => {
    expect(cutAtDocuments("a.yaml", text)).toHaveLength(1);
  });
});
