import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readKeyPair } from "../../src/runtime/key-pair-file.ts";

const fixtures = join(import.meta.dirname, "../kube/fixtures");
const [cert, key, otherKey] = ["server.cert", "server.key", "other-name.key"].map((name) =>
  join(fixtures, `${name}.pem`),
) as [string, string, string];

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-pair-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("a certificate and its key", () => {
  it("are read unchanged", async () => {
    const pair = await readKeyPair({ certFile: cert, keyFile: key });
    expect(pair.cert).toMatch(/^-----BEGIN CERTIFICATE-----/);
    expect(pair.key).toMatch(/^-----BEGIN (EC )?PRIVATE KEY-----/);
  });

  it.each([
    ["is missing", () => ({ certFile: join(folder, "none"), keyFile: key }), "none"],
    ["does not match the other", () => ({ certFile: cert, keyFile: otherKey }), "other-name.key"],
    ["is not PEM", () => ({ certFile: cert, keyFile: write("junk") }), "junk"],
  ])("are refused with the names of the files if one %s", async (_, files, named) => {
    const reading = readKeyPair(files());
    await expect(reading).rejects.toMatchObject({ code: "CONFIG_INVALID" });
    await expect(reading).rejects.toThrow(named);
  });

  it("never appear in error messages", async () => {
    const secret = "c2VjcmV0IGtleQ==";
    const text = `-----BEGIN PRIVATE KEY-----\n${secret}\n-----END PRIVATE KEY-----\n`;
    const keyFile = write("broken", text);
    const told = await readKeyPair({ certFile: cert, keyFile }).catch(
      (error: Error) => error.message,
    );
    expect(told).toContain("broken");
    expect(told).not.toContain(secret);
  });
});

function write(name: string, text = "no key"): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}
