/** The tests that need no cluster; the others are in test/e2e/migrate.e2e.test.ts. */
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import type { CommandIo } from "../../src/cli/command-line/command.ts";
import { runCommandLine } from "../../src/cli/command-line/command-line.ts";
import { processIo } from "../../src/runtime/process-io.ts";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lastcall-migrate-"));
});
afterEach(() => rm(folder, { recursive: true }));

async function lastcall(...args: readonly string[]) {
  let [stdout, stderr] = ["", ""];
  const io: Partial<CommandIo> = {
    out: (text) => {
      stdout += text;
    },
    err: (text) => {
      stderr += text;
    },
    // No cluster can be found with it.
    env: { HOME: folder },
    ...{ files: processIo().files, signal: new AbortController().signal },
  };
  const exit = await runCommandLine(["migrate", ...args], io as CommandIo);
  return { exit, stdout, stderr };
}

async function fileOf(text: string): Promise<string> {
  const file = join(folder, "given.yaml");
  await writeFile(file, text);
  return file;
}

const values = 'extraEnv: {WHITELIST_HOURS: "22:00-06:00"}\ninterval: 300\n';

describe("lastcall migrate", () => {
  it("prints only policies, and on stderr each setting that has no equivalent", async () => {
    const { exit, stdout, stderr } = await lastcall("estafette", "--values", await fileOf(values));
    expect(exit).toBe(0);
    const documents = parseAllDocuments(stdout).map((one) => one.toJS());
    expect(documents).toMatchObject([{ kind: "DeparturePolicy" }]);
    // Without the quotes, a YAML 1.1 parser would read a number.
    expect(stdout).toContain('start: "22:00"');
    expect(stderr.trim().split("\n")).toEqual([
      expect.stringMatching(/^lastcall: .*given\.yaml: interval has no equivalent: /),
    ]);
  });

  it.each([
    ["a NUL byte", Buffer.from("key: \0secret")],
    ["bytes that are not UTF-8", Buffer.from([0x6b, 0x3a, 0x20, 0xff, 0xfe, 0x73])],
  ])("rejects a binary file without quoting it: %s", async (_, bytes) => {
    const file = join(folder, "given.bin");
    await writeFile(file, bytes);
    const { exit, stdout, stderr } = await lastcall("estafette", "--values", file);
    expect({ exit, stdout }).toEqual({ exit: 2, stdout: "" });
    expect(stderr).toContain(`lastcall: Cannot read ${file}: it is binary data, expected `);
  });

  it("prints JSON as a List", async () => {
    const { stdout } = await lastcall("estafette", "--values", await fileOf(values), "-o", "json");
    expect(JSON.parse(stdout)).toMatchObject({
      kind: "List",
      items: [{ kind: "DeparturePolicy" }],
    });
  });

  it("says why the chart's values cannot be written", async () => {
    const given = await fileOf(values);
    expect(await lastcall("estafette", "--values", given, "--values-out", folder)).toMatchObject({
      exit: 2,
      stderr: expect.stringContaining(`Cannot write ${folder}: it is a directory, expected`),
    });
  });

  it("writes the chart's values into a file that only its owner can read", async () => {
    const out = join(folder, "out.yaml");
    const given = await fileOf(values);
    const { stdout } = await lastcall("estafette", "--values", given, "--values-out", out);
    const policy = parse(stdout);
    expect(parse(await readFile(out, "utf8"))).toEqual({
      policies: [{ name: policy.metadata.name, spec: policy.spec }],
    });
    expect((await stat(out)).mode & 0o077).toBe(0);
  });

  it("reads a manifest with several objects", async () => {
    const manifest = join(import.meta.dirname, "../data/estafette/manifests.yaml");
    const { exit, stdout } = await lastcall("estafette", "--manifest", manifest);
    expect(exit).toBe(0);
    expect(parse(stdout).spec.windows).toMatchObject([{ type: "Deny", start: "00:00" }]);
  });

  it.each([
    ["an unknown tool", () => ["kured"], "expected estafette or nth"],
    [
      "both kinds of files",
      () => ["nth", "--values", "a", "--manifest", "b"],
      "expected one of them",
    ],
    ["a folder", () => ["nth", "--values", folder], "it is a directory, expected a readable file"],
    ["a missing file", () => ["nth", "--values", join(folder, "none")], "Cannot read"],
    [
      "values on standard output",
      () => ["nth", "--values", "a", "--values-out", "-"],
      "expected a file: standard output is for the policies",
    ],
  ])("rejects %s", async (_, args, said) => {
    const { exit, stdout, stderr } = await lastcall(...args());
    expect({ exit, stdout }).toEqual({ exit: 2, stdout: "" });
    expect(stderr).toContain(said);
  });

  it.each([
    [
      "hours that cannot be parsed",
      'extraEnv: {WHITELIST_HOURS: "9-17"}',
      'WHITELIST_HOURS: found "9-17"',
    ],
    ["invalid YAML", "a: [", "given.yaml:1: "],
    ["a list of values", "[1, 2]", 'found "[1,2]", expected a map of values'],
    [
      "a negative number of replicas",
      "replicaCount: -1",
      'replicaCount: found "-1", expected a number',
    ],
    [
      "replicas that are not a number",
      "replicaCount: two",
      'replicaCount: found "two", expected a',
    ],
    [
      "a manifest as a values file",
      `apiVersion: v1\nkind: ServiceAccount\n---\nkind: Deployment\n`,
      "found a manifest of a ServiceAccount, expected values, or --manifest for this file",
    ],
    ["more than one document", `${values}---\n${values}`, "found 2 documents, expected one"],
    [
      "arguments that are not a list",
      "extraArgs: {blacklist-hours: '09:00-17:00'}",
      'extraArgs: found "{\\"blacklist-hours\\":\\"09:00-17:00\\"}", expected a list of arguments',
    ],
  ])("prints nothing for %s", async (_, text, said) => {
    const { exit, stdout, stderr } = await lastcall("estafette", "--values", await fileOf(text));
    expect({ exit, stdout }).toEqual({ exit: 2, stdout: "" });
    expect(stderr).toContain(said);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });

  it("prints nothing if the values cannot be written", async () => {
    const given = await fileOf(values);
    const out = join(folder, "no-such-folder", "out.yaml");
    const { exit, stdout, stderr } = await lastcall(
      "estafette",
      "--values",
      given,
      "--values-out",
      out,
    );
    expect({ exit, stdout }).toEqual({ exit: 2, stdout: "" });
    expect(stderr).toContain("its folder does not exist");
  });

  it("replaces the control characters of a key that it names", async () => {
    const given = await fileOf('"a\\u001b[31mb": 1\n');
    const { stderr } = await lastcall("estafette", "--values", given);
    expect(stderr).toContain("a\ufffd[31mb is not a value");
  });
});
