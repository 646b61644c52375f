import { Cron } from "croner";
import { describe, expect, it } from "vitest";
import { cronPattern } from "../../src/config/cron-pattern.ts";
import { seededRng } from "../../src/core/rng.ts";

const grammar = new RegExp(cronPattern, "i");

describe("the cron grammar", () => {
  it.each([
    "* * * * *",
    "0 18 * * 5",
    "*/15 0-6/2 1,15 * MON-FRI",
    "59 23 31 12 7",
    "0 0 1 jan *",
    "05 07 09 01 0",
    "0 0 L * *",
    "0 0 * * 5#1",
    "0 0 * * FRI#L",
    "0   0  * * *",
  ])("takes %s", (expression) => {
    expect(grammar.test(expression)).toBe(true);
  });

  it.each([
    "",
    "* * * *",
    "* * * * * *",
    "60 * * * *",
    "* 24 * * *",
    "* * 0 * *",
    "* * 32 * *",
    "* * * 13 *",
    "* * * * 8",
    "*/0 * * * *",
    "* */24 * * *",
    "* * * */13 *",
    "5/15 * * * *",
    "1- * * * *",
    ",1 * * * *",
    "* * * foo *",
    "@daily",
    " 0 0 * * *",
    "0 0 * * 5#6",
    "-1 * * * *",
  ])("refuses %j", (expression) => {
    expect(grammar.test(expression)).toBe(false);
  });

  it("takes nothing that the cron library refuses, but for a range that runs backwards", () => {
    const rng = seededRng(7);
    const pieces = [
      "*",
      "1",
      "07",
      "23",
      "59",
      "60",
      "0",
      "-",
      "-",
      ",",
      "/",
      "/5",
      "L",
      "#2",
      "mon",
      "JAN",
      "?",
    ];
    const pick = () => pieces[Math.floor(rng() * pieces.length)] ?? "";
    const field = () =>
      rng() < 0.5 ? "*" : Array.from({ length: 1 + Math.floor(rng() * 4) }, pick).join("");
    let taken = 0;
    for (let run = 0; run < 20_000; run++) {
      const expression = Array.from({ length: 5 }, field).join(" ");
      if (!grammar.test(expression)) continue;
      taken++;
      expect(refusalOf(expression), expression).toMatch(/^$|From value is larger/);
    }
    expect(taken).toBeGreaterThan(500);
  });
});

function refusalOf(expression: string): string {
  try {
    new Cron(expression, { mode: "5-part", paused: true });
    return "";
  } catch (error) {
    return String(error);
  }
}
