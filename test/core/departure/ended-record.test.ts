import { describe, expect, it } from "vitest";
import { isForgettable } from "../../../src/core/departure/decision.ts";
import { hours, instant, minus, minutes } from "../../../src/core/time/time.ts";
import { aDeparture, aNode } from "../fleet-builder.ts";

const now = instant(Date.UTC(2026, 10, 20, 12));

function ended(number: number, endedAt = minus(now, minutes(1000 - number))) {
  const status = { phase: "Ended", outcome: "Cancelled", endedAt } as const;
  return aDeparture(aNode("n1"), { name: `n1-${number}`, status });
}

describe("the record of an ended departure", () => {
  it.each([
    ["71 hours", 71, false],
    ["72 hours", 72, true],
  ])("is forgotten after %s: %s", (_, age, forgotten) => {
    const record = ended(1, minus(now, hours(age)));
    expect(isForgettable(record, [record], now)).toBe(forgotten);
  });

  it("is forgotten if a hundred of its node are younger, and no other is", () => {
    const records = Array.from({ length: 103 }, (_, index) => ended(index + 1));
    const forgotten = records.filter((one) => isForgettable(one, records, now));
    expect(forgotten.map(({ name }) => name)).toEqual(["n1-1", "n1-2", "n1-3"]);
  });

  it("is not pushed out by live departures", () => {
    const live = Array.from({ length: 100 }, (_, index) =>
      aDeparture(aNode("n1"), { name: `n1-live-${index}` }),
    );
    const record = ended(1);
    expect(isForgettable(record, [record, ...live], now)).toBe(false);
  });

  it("is forgotten only if it has ended", () => {
    const records = Array.from({ length: 103 }, (_, index) => ended(index + 1));
    expect(isForgettable(aDeparture(aNode("n1")), records, now)).toBe(false);
  });
});
