import { expect, it } from "vitest";
import type { BoardRow } from "../../src/board/stream.ts";
import { type RowTime, rowTime } from "../../src/web/row-time.ts";

const row = {
  ...{ state: "Scheduled", noticedAt: null, deadlineAt: null, startedAt: null, departAt: null },
  ...{ reason: "Spaced", hold: null },
};

it.each<[string, object, RowTime]>([
  ["is planned", { departAt: 5, deadlineAt: 9 }, { kind: "Departs", at: 5 }],
  ["stays", { state: "Stays" }, { kind: "Stays" }],
  [
    "leaves as planned",
    { state: "Leaving", departAt: 5, startedAt: 6, deadlineAt: 9 },
    { kind: "Began", at: 6 },
  ],
  [
    "leaves on a request without a time",
    { state: "Leaving", startedAt: 6 },
    { kind: "Began", at: 6 },
  ],
  [
    "leaves on a notice without a deadline",
    { state: "Leaving", noticedAt: 4, startedAt: 6 },
    { kind: "Began", at: 6 },
  ],
  [
    "leaves on a notice",
    { state: "Leaving", noticedAt: 4, startedAt: 6, deadlineAt: 9 },
    { kind: "UntilDeadline", at: 9 },
  ],
  ["is on hold", { state: "Held", reason: "OnHold", hold: { untilAt: null } }, { kind: "OnHold" }],
])("of a node that %s", (_, fields, expected) => {
  expect(rowTime({ ...row, ...fields } as unknown as BoardRow)).toEqual(expected);
});
