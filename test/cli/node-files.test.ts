import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { nodeFiles } from "../../src/cli/input/read-objects.ts";

const files = nodeFiles(Readable.from([]));

describe("a file of the real file system", () => {
  it("is read as text", async () => {
    const { kind } = await files.readFile(import.meta.filename, 1_000_000);

    expect(kind).toBe("Text");
  });

  it("without size and end is given up at the limit", async () => {
    const content = await files.readFile("/dev/zero", 1_000_000);

    expect(content.kind).toBe("TooLarge");
  });

  it("that does not exist is reported as unreadable", async () => {
    expect(await files.readFile("/nowhere", 10)).toEqual({
      kind: "Unreadable",
      why: "it does not exist",
    });
  });
});

describe("a folder of the real file system", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "lastcall-files-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it("lists files, links and folders, but no pipe, whose read would never end", async () => {
    writeFileSync(join(folder, "a.yaml"), "");
    symlinkSync("a.yaml", join(folder, "b.yaml"));
    mkdirSync(join(folder, "c"));
    execFileSync("mkfifo", [join(folder, "d.yaml")]);

    const listed = await files.readDir(folder);

    expect(listed?.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual([
      { name: "a.yaml", kind: "File" },
      { name: "b.yaml", kind: "File" },
      { name: "c", kind: "Directory" },
    ]);
  });

  it("that must not be read is reported in a sentence", async () => {
    chmodSync(folder, 0o000);
    // Permissions do not apply to root.
    const isRoot = process.geteuid?.() === 0;
    if (isRoot) process.seteuid?.(65_534);
    try {
      await expect(files.readDir(folder)).rejects.toMatchObject({
        code: "INPUT_UNREADABLE",
        message: `Cannot read ${folder}: permission denied, expected a readable folder`,
      });
    } finally {
      if (isRoot) process.seteuid?.(0);
    }
  });
});
