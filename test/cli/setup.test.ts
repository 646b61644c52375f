import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import type { CommandIo } from "../../src/cli/command-line/command.ts";
import { runCommandLine } from "../../src/cli/command-line/command-line.ts";
import { runSetup } from "../../src/cli/commands/setup.ts";

type Input = Parameters<typeof runSetup>[0];

async function printed(what: string, output: "table" | "json" | "yaml"): Promise<string> {
  let text = "";
  const io = {
    out: (part: string) => {
      text += part;
    },
    files: { stdinBytes: () => Promise.resolve(new Uint8Array()) },
  } as unknown as CommandIo;
  const options = { output, platform: "gke", action: "Warn", scope: "Named", apply: false };
  const input = { words: [what], options, io, signal: new AbortController().signal };
  expect(await runSetup(input as unknown as Input)).toBe(0);
  return text;
}

describe.each(["crds", "admission"])("lastcall setup %s", (what) => {
  it("prints the same objects as YAML documents and, with -o json, as one List", async () => {
    const documents = parseAllDocuments(await printed(what, "table")).map((one) => one.toJS());
    expect(documents.length).toBeGreaterThan(1);
    expect(parseAllDocuments(await printed(what, "yaml")).map((one) => one.toJS())).toEqual(
      documents,
    );
    expect(JSON.parse(await printed(what, "json"))).toEqual({
      ...{ apiVersion: "v1", kind: "List" },
      items: documents,
    });
  });

  it("rejects --undo --apply before it looks for a cluster", async () => {
    const [out, err]: [string[], string[]] = [[], []];
    const io = {
      ...{ out: (text: string) => void out.push(text), err: (text: string) => void err.push(text) },
      ...{ env: {}, files: { stdinBytes: () => Promise.resolve(new Uint8Array()) } },
      signal: new AbortController().signal,
    } as unknown as CommandIo;
    expect(await runCommandLine(["setup", what, "--undo", "--apply"], io)).toBe(2);
    expect(out.join("")).toBe("");
    expect(err.join("")).toBe(
      `lastcall: Cannot set up ${what}: --undo was given, expected it only with gcp, aws or azure\n`,
    );
  });
});
