import { describe, expect, it } from "vitest";
import { endSentence, pastDeparture } from "../../src/board/outcome/ended-departures.ts";
import { FleetNews } from "../../src/cli/demo/fleet-picture.ts";
import type { Departure, Outcome } from "../../src/core/departure/departure.ts";
import { instant } from "../../src/core/time/time.ts";
import { translated } from "../../src/web/words/translated.ts";

const endedAt = instant(Date.UTC(2026, 10, 20, 12));
const message = "n1 is gone: its Node object was deleted.";

interface Counts {
  readonly left: number;
  readonly total: number;
  readonly killed?: number;
}

function ended(outcome: Outcome, drain?: Counts) {
  return {
    ...{ name: "n1-1", uid: "d1", resourceVersion: "1", createdAt: endedAt, hold: false },
    ...{ node: { name: "n1", uid: "u1" }, cause: "Preempted", policy: "spot" },
    status: { phase: "Ended", outcome, message, endedAt, timeline: [], drain },
  } as unknown as Departure;
}

describe("the end of a departure", () => {
  it.each([
    ["Preempted", { left: 0, total: 4 }, "n1 is gone; all 4 pods were drained before."],
    ["Preempted", { left: 0, total: 1 }, "n1 is gone; its pod was drained before."],
    ["Preempted", { left: 0, total: 0 }, "n1 is gone; it had no pods to drain."],
    ["Expired", { left: 1, total: 4 }, "n1 is gone; 1 of 4 pods was not drained before."],
    ["Expired", { left: 3, total: 4 }, "n1 is gone; 3 of 4 pods were not drained before."],
    ["Preempted", { left: 0, total: 1, killed: 1 }, "n1 is gone; its pod was killed."],
    ["Preempted", { left: 0, total: 2, killed: 2 }, "n1 is gone; both pods were killed."],
    [
      "Preempted",
      { left: 0, total: 5, killed: 1 },
      "n1 is gone; 1 of 5 pods was killed, the other 4 were drained before.",
    ],
    [
      "Expired",
      { left: 0, total: 3, killed: 2 },
      "n1 is gone; 2 of 3 pods were killed, the other was drained before.",
    ],
    [
      "Expired",
      { left: 2, total: 5, killed: 1 },
      "n1 is gone; 1 of 5 pods was killed and 2 were not drained before.",
    ],
    // Not drained, or not taken by the cloud: the message of the status counts.
    ["Preempted", undefined, message],
    ["Planned", { left: 0, total: 4 }, message],
  ] as const)("as %s of %j: %s", (outcome, drain, expected) => {
    expect(endSentence(ended(outcome, drain))).toBe(expected);
  });

  it("has the same words in the demo's news, on the page and in the terminal", () => {
    const departure = ended("Preempted", { left: 0, total: 4 });
    const messages: string[] = [];
    new FleetNews().seeDepartures([departure], endedAt, ({ message }) => messages.push(message));
    expect(messages).toEqual([pastDeparture(departure)?.explain]);
  });

  it.each([
    ["n1 is gone; all 4 pods were drained before.", /n1 .*4 個の Pod/],
    ["n1 is gone; its pod was drained before.", /n1 .* Pod は退避/],
    ["n1 is gone; it had no pods to drain.", /n1 .*Pod はありません/],
    ["n1 is gone; 3 of 4 pods were not drained before.", /n1 .*4 個中 3 個/],
    ["n1 is gone; its pod was killed.", /n1 .*Pod は強制終了/],
    ["n1 is gone; both pods were killed.", /n1 .*両方の Pod は強制終了|n1 .*両方の Pod が強制終了/],
    [
      "n1 is gone; 1 of 5 pods was killed, the other 4 were drained before.",
      /n1 .*5 個中 1 個.*残り/,
    ],
    [
      "n1 is gone; 2 of 3 pods were killed, the other was drained before.",
      /n1 .*3 個中 2 個.*残り/,
    ],
    [
      "n1 is gone; 1 of 5 pods was killed and 2 were not drained before.",
      /n1 .*5 個中 1 個.*2 個は/,
    ],
  ])("is translated to Japanese: %s", (english, expected) => {
    const text = translated(english, "ja");
    expect(text).toMatch(expected);
    expect(text.replaceAll(/n1|Pod/g, "")).not.toMatch(/[A-Za-z]/);
  });
});
