import { expect, it } from "vitest";
import type { BoardRow } from "../../src/board/stream.ts";
import { rowStatus } from "../../src/web/row-status.tsx";
import type { PageView } from "../../src/web/view-state.ts";
import { english } from "../../src/web/words/words-english.ts";

const now = Date.UTC(2026, 10, 20, 12);
const policies = [
  { name: "spot", standing: "InTime", isDryRun: false },
  { name: "tried", standing: "InTime", isDryRun: true },
];
const view = {
  ...{ now, rate: 1, language: "en", words: english, picture: { policies } },
} as unknown as PageView;

const row = (fields: Partial<BoardRow>) =>
  ({
    ...{ state: "Scheduled", policy: "spot", cause: "Planned", reason: "Spaced" },
    ...{ plannedBy: "Spaced", hold: null, heldBackTo: null, frozenUntil: null },
    ...{ departAt: now + 3_600_000, ...fields },
  }) as BoardRow;

it.each<[string, Partial<BoardRow>, string, RegExp]>([
  ["as planned", {}, "Well", /^On schedule$/],
  ["within a freeze", { frozenUntil: (now + 7_200_000) as never }, "Held", /^Frozen until \d/],
  ["held now", { state: "Held", reason: "ConflictWait" }, "Held", /^Held: Waits for another/],
  ["after its turn", { heldBackTo: (now + 1) as never }, "Held", /^Expected \d/],
  ["by a policy that is a dry run", { policy: "tried" }, "Held", /^Dry run$/],
  ["long ago", { departAt: (now - 120_000) as never }, "Held", /^Due, but not started$/],
])("the status of a row that leaves %s", (_, fields, kind, text) => {
  const status = rowStatus(row(fields), view);
  expect(status.kind).toBe(kind);
  expect(status.text).toMatch(text);
});
