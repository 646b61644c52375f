import { Cron } from "croner";
import { describe, expect, it } from "vitest";
import { backwardsCronPattern, cronPattern } from "../../src/config/schema/window-schema.ts";
import { seededRng } from "../../src/core/chance/chance.ts";

const grammar = new RegExp(cronPattern, "i");
const backwards = new RegExp(backwardsCronPattern, "i");

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
  ])("accepts %s", (expression) => {
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

  it("accepts nothing that the cron library rejects, apart from backward ranges", () => {
    const rng = seededRng(7);
    const pieces = "* 1 07 23 59 60 0 - - , / /5 L #2 mon JAN ?".split(" ");
    const pick = () => pieces[Math.floor(rng() * pieces.length)] ?? "";
    const field = () =>
      rng() < 0.5 ? "*" : Array.from({ length: 1 + Math.floor(rng() * 4) }, pick).join("");
    let taken = 0;
    for (let run = 0; run < 20_000; run++) {
      const expression = Array.from({ length: 5 }, field).join(" ");
      if (!grammar.test(expression) || backwards.test(expression)) continue;
      taken++;
      expect(refusalOf(expression), expression).toBe("");
    }
    expect(taken).toBeGreaterThan(500);
  });
});

describe("a backward range", () => {
  // All possible values in their field: 60 minutes in two spellings, and so on.
  const number = (value: number) => [`${value}`, ...(value < 10 ? [`0${value}`] : [])];
  const upTo = (last: number, first = 0) =>
    Array.from({ length: last - first + 1 }, (_, place) => number(first + place)).flat();
  const months = "jan feb mar apr may jun JUL Aug sep oct nov dec".split(" ");
  const weekdays = "sun mon tue WED thu fri Sat".split(" ");
  it.each([
    { field: 0, values: upTo(59) },
    { field: 1, values: upTo(23) },
    { field: 2, values: upTo(31, 1) },
    { field: 3, values: [...upTo(12, 1), ...months] },
    { field: 4, values: ["0", "1", "2", "3", "4", "5", "6", "7", ...weekdays] },
  ])("in field $field is found where the cron library rejects it", ({ field, values }) => {
    for (const first of values) {
      for (const last of values) {
        const fields = ["*", "*", "*", "*", "*"];
        fields[field] = `${first}-${last}`;
        const expression = fields.join(" ");
        expect(grammar.test(expression), expression).toBe(true);
        expect(backwards.test(expression), expression).toBe(refusalOf(expression) !== "");
      }
    }
  });

  it.each(["1,5-3 * * * *", "* * * * 5-1/2", "0 0 * dec-JAN,3 *", "* 3-4,2-1,5 * * *"])(
    "is detected in %s",
    (expression) => {
      expect(backwards.test(expression)).toBe(true);
    },
  );
});

function refusalOf(expression: string): string {
  try {
    new Cron(expression, { mode: "5-part", paused: true });
    return "";
  } catch (error) {
    return String(error);
  }
}
