import { expect, it } from "vitest";
import { existedAt } from "../../../src/core/cluster/machine-age.ts";
import { instant, minutes, plus, seconds } from "../../../src/core/time/time.ts";

const now = instant(Date.UTC(2026, 10, 20));
const startAt = plus(now, minutes(-10));

const clocks = [
  ["alike", 0],
  ["the cloud's two seconds ahead", 2],
  ["the cloud's an hour ahead", 3600],
  ["the cloud's five minutes behind", -300],
] as const;

it.each(clocks)("a machine that is older than the start existed then: clocks %s", (_, ahead) => {
  const bornAt = plus(startAt, seconds(-1 + ahead));
  expect(existedAt(startAt, { bornAt, asOf: plus(now, seconds(ahead)) }, now)).toBe(true);
});

it.each(clocks)("one that is younger than the start did not: clocks %s", (_, ahead) => {
  const bornAt = plus(startAt, seconds(1 + ahead));
  expect(existedAt(startAt, { bornAt, asOf: plus(now, seconds(ahead)) }, now)).toBe(false);
});

it("the clocks count as one if the cloud tells no time", () => {
  expect(existedAt(startAt, { bornAt: startAt }, now)).toBe(true);
  expect(existedAt(startAt, { bornAt: plus(startAt, seconds(1)) }, now)).toBe(false);
});
