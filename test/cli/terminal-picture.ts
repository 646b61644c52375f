/** Pictures of a small fleet for the tests of the board in a terminal. */
import {
  type BoardPicture,
  type BoardRow,
  noRights,
  type PastDeparture,
  type PodCounts,
  type PolicyCard,
} from "../../src/board/stream.ts";
import { terminalBoard } from "../../src/cli/board/terminal-board.ts";
import { plainText } from "../../src/cli/command-line/terminal.ts";
import type { HeadlineLine } from "../../src/core/plan/headline.ts";
import { explain } from "../../src/core/reason/reason.ts";
import { hours, instant, minus, minutes, plus } from "../../src/core/time/time.ts";

export const now = instant(Date.UTC(2026, 10, 20, 6));

export function row(node: string, more: Partial<BoardRow> = {}): BoardRow {
  return {
    ...{ id: node, node, uid: node, zone: "a", pool: "spot", policy: "spot" },
    ...{ state: "Scheduled", phase: "Scheduled", cause: "Planned", departure: node },
    ...{ departureUid: node, bornAt: minus(now, hours(20)), earliestAt: null },
    ...{ departAt: plus(now, hours(3)), deadlineAt: plus(now, hours(4)), noticedAt: null },
    ...{
      startedAt: null,
      heldBackTo: null,
      frozenUntil: null,
      window: null,
      wave: null,
      reason: "Spaced",
    },
    ...{ plannedBy: "Spaced", explain: `${node} leaves at nine.`, hold: null, pods: null },
    ...more,
  };
}

export const podsLeft = (left: number, total: number): PodCounts => ({
  ...{ total, left, evicted: 0, forced: 0, waiting: 0, blocked: 0 },
  ...{ cut: 0, killed: 0, leftBehind: 0 },
});

export const policy: PolicyCard = {
  ...{ id: "spot", name: "spot", matched: 3, problem: null, standing: "InTime", isDryRun: false },
  ...{
    wantedMs: null,
    reachedMs: null,
    bestMs: null,
    freezeUntil: null,
    waves: [],
  },
  ...{ held: 0, forecast: "All 3 departures are on schedule", shut: [] },
};

export const line = (
  subject: HeadlineLine["subject"],
  says: string,
  more: Partial<HeadlineLine> = {},
): HeadlineLine => ({ subject, says, policy: null, tone: "Good", waiting: [], ...more });

export const headline: readonly HeadlineLine[] = [
  line("Policy", "All 3 departures are on schedule", { policy: "spot" }),
  line("Next", "n1 leaves at 2026-11-20T09:00:00.000Z"),
];

export const past: PastDeparture = {
  ...{
    id: "p",
    name: "p",
    node: "gone",
    nodeUid: "u",
    policy: "spot",
    cause: "Planned",
    outcome: "Planned",
  },
  ...{ reason: null, explain: "gone is drained, and its machine is released.", departAt: null },
  ...{ deadlineAt: null, noticedAt: null, startedAt: null, endedAt: minus(now, minutes(5)) },
  ...{ noticeToCordonMs: null, timeLeftMs: null, pods: null, losses: [] },
};

export function pictureOf(
  more: Partial<BoardPicture> = {},
  fleet: Partial<BoardPicture["fleet"]> = {},
) {
  const picture: BoardPicture = {
    fleet: {
      ...{ cluster: "prod", isDemo: false, connection: { kind: "Live" }, missing: [] },
      ...{ rights: noRights, days: [], headline, isCounted: false, ...fleet },
    },
    ...{ rows: [row("n1"), row("n2"), row("n3")], past: [past], policies: [policy], ...more },
  };
  return picture;
}

export const blocked = explain("DrainBlocked", {
  node: "n1",
  detail:
    "shop/web-0: The disruption budget web needs 2 healthy pods and has 2 currently; and 1 more pod",
});

export const small = { columns: 80, rows: 24, sort: "Leaving", scroll: 0 } as const;

export function textOf(
  picture: BoardPicture,
  look: Partial<Parameters<typeof terminalBoard>[2]> = {},
) {
  return terminalBoard(picture, now, { ...small, ...look })
    .lines.map(plainText)
    .join("\n");
}

export const many = Array.from({ length: 40 }, (_, index) =>
  row(`n${String(index).padStart(2, "0")}`, { departAt: plus(now, minutes(index + 1)) }),
);
