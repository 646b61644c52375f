import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { asciiText, showsUnicode } from "../../src/runtime/process-io.ts";

it("the locale decides whether a terminal shows more than ASCII, in the usual precedence", () => {
  const shows = (env: Record<string, string>) => showsUnicode(env, "linux");
  expect(shows({ LANG: "en_GB.UTF-8" })).toBe(true);
  expect(shows({ LANG: "C.utf8" })).toBe(true);
  expect(shows({ LANG: "C" })).toBe(false);
  expect(shows({ LANG: "ja_JP.eucJP" })).toBe(false);
  expect(shows({})).toBe(false);
  expect(shows({ LANG: "C", LC_CTYPE: "UTF-8" })).toBe(true);
  expect(shows({ LANG: "en_GB.UTF-8", LC_ALL: "POSIX" })).toBe(false);
  expect(shows({ LANG: "C.UTF-8", LC_ALL: "" })).toBe(true);
  expect(showsUnicode({}, "win32")).toBe(true);
});

it("every character of the demo has an ASCII replacement of the same width", () => {
  const folder = join(import.meta.dirname, "../golden/demo");
  const frames = readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));
  expect(frames.length).toBeGreaterThan(4);
  for (const frame of frames) {
    const text = asciiText(frame);
    expect(text).toMatch(/^[\n -~]*$/);
    expect(text.split("?")).toHaveLength(frame.split("?").length);
    expect(text.split("\n").map(({ length }) => length)).toEqual(
      frame.split("\n").map(({ length }) => length),
    );
  }
});

it("escape sequences are kept, and an unknown character becomes one question mark", () => {
  expect(asciiText("\u001b[31;1m×\u001b[0m │ ↓ 日本 😀…\r\n")).toBe(
    "\u001b[31;1mx\u001b[0m | v ?? ?~\r\n",
  );
});
