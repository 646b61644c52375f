import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openBrowser } from "../../src/runtime/child-process.ts";
import { waitUntil } from "../support/wait-until.ts";

const url = "http://127.0.0.1:8087/?token=abc_-1";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-open-"));
  vi.stubEnv("PATH", `${folder}:/usr/bin:/bin`);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

/** Replaces the program that opens URLs on Linux. */
function opener(script: string): void {
  writeFileSync(join(folder, "xdg-open"), `#!/bin/sh\n${script}\n`);
  chmodSync(join(folder, "xdg-open"), 0o755);
}

describe.runIf(process.platform === "linux")("opening a browser", () => {
  it("passes it the URL and nothing else", async () => {
    opener(`printf '%s\\n' "$@" > ${folder}/opened`);
    expect(await openBrowser(url)).toBeUndefined();
    const opened = await waitUntil(async () => readFileSync(join(folder, "opened"), "utf8"), {
      ...{ what: "it is opened", timeoutMs: 10_000 },
    });
    expect(opened).toBe(`${url}\n`);
  });

  it("does not wait for it to exit", async () => {
    opener("exec sleep 60");
    const before = performance.now();
    expect(await openBrowser(url)).toBeUndefined();
    expect(performance.now() - before).toBeLessThan(10_000);
  });

  it.each([
    ["does not exist", undefined, "xdg-open was not found"],
    ["finds no browser", "exit 3", "xdg-open ended with exit code 3"],
  ])("with an opener that %s returns the problem", async (_, script, problem) => {
    vi.stubEnv("PATH", script === undefined ? folder : `${folder}:/usr/bin:/bin`);
    if (script !== undefined) opener(script);
    expect(await openBrowser(url)).toBe(problem);
  });
});
