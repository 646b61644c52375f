import { describe, expect, it } from "vitest";
import { windowState } from "../../../src/core/limits/windows.ts";
import type { Window } from "../../../src/core/policy/policy.ts";
import { formatInstant } from "../../../src/core/time/time.ts";
import { at, daily } from "../fleet-builder.ts";

const deny = (text: string): Window => daily(text, { type: "Deny" });
const never = {
  ...daily("02:00-03:00"),
  kind: "Cron",
  cron: "0 0 31 2 *",
  durationMs: 1,
} as Window;

describe("the windows of a policy at noon", () => {
  it.each<[string, readonly Window[], string]>([
    ["are open at any time if there are none", [], "Open"],
    [
      "are open until the next Deny window, which is named",
      [deny("18:00-19:00")],
      "Open 20T18:00 18:00-19:00",
    ],
    ["are shut by a Deny window until its end", [deny("11:00-13:00")], "Shut 20T13:00 11:00-13:00"],
    [
      "are open in an Allow window until its end",
      [daily("10:00-14:00")],
      "Open 20T14:00 10:00-14:00",
    ],
    ["are shut until an Allow window opens", [daily("22:00-06:00")], "Shut 20T22:00"],
    [
      "are open from the first instant of a window on",
      [daily("12:00-13:00")],
      "Open 20T13:00 12:00-13:00",
    ],
    ["are shut from the last instant of a window on", [daily("11:00-12:00")], "Shut 21T11:00"],
    ["are shut forever if nothing ever opens", [never], "Shut"],
  ])("%s", (_, windows, expected) => {
    const { state, until, window } = windowState(windows, at("2026-11-20T12:00:00Z"));
    const words = [state, until && formatInstant(until).slice(8, 16), window];
    expect(words.filter((word) => word !== undefined).join(" ")).toBe(expected);
  });
});
