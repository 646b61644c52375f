import { describe, expect, it } from "vitest";
import { createLog } from "../../src/runtime/process-io.ts";
import { ManualClock } from "../support/manual-clock.ts";

function lineOf(format: "json" | "text", message: string): string {
  let line = "";
  const write = (text: string) => {
    line = text;
  };
  createLog({ level: "info", format, write, clock: new ManualClock() }).warn("refused", {
    message,
    node: "n1",
  });
  return line;
}

const hostile = "a\u001b[2J\u202eb\u009bc\nd";

describe("a line of the log", () => {
  it.each(["json", "text"] as const)("as %s is one line that a terminal only shows", (format) => {
    const line = lineOf(format, hostile);
    expect(line).toMatch(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+\n$/u);
    expect(line).toContain("\\u202e");
  });

  it("as JSON keeps the text of others for whoever parses it", () => {
    expect(JSON.parse(lineOf("json", hostile))).toMatchObject({ message: hostile, node: "n1" });
  });

  it("as text quotes only what needs quotes", () => {
    expect(lineOf("text", "plain")).toMatch(/ warn {2}refused message=plain node=n1\n$/);
    expect(lineOf("text", "\u202e")).toContain(' message="\\u202e" node=n1\n');
  });
});
