import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
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
