import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { windowsField } from "../../src/config/schema/window-schema.ts";

const zones = readFileSync("deploy/chart/files/time-zones.txt", "utf8").trimEnd().split("\n");
const [rule] = windowsField.items.properties.timeZone.rules;
const world = { cronProblem: () => undefined };

test("the chart's time zones are those that a policy may name", () => {
  expect(zones.filter((zone) => rule.holds?.(zone, world) !== true)).toEqual([]);
  // Aliases, such as Asia/Calcutta, are no part of the runtime's list.
  const known = ["UTC", ...Intl.supportedValuesOf("timeZone")];
  expect(known.filter((zone) => !zones.includes(zone))).toEqual([]);
  expect(zones).toEqual(expect.arrayContaining(["Asia/Calcutta", "US/Pacific", "Europe/Kiev"]));
});
