import { describe, expect, it } from "vitest";
import {
  type BoardPicture,
  type BoardRow,
  noRights,
  type PastDeparture,
  type PodCounts,
  type PolicyCard,
} from "../../src/board/stream.ts";
import { terminalBoard } from "../../src/cli/board/terminal-board.ts";
import { plainText, widthOf } from "../../src/cli/command-line/terminal.ts";
import type { HeadlineLine } from "../../src/core/plan/headline.ts";
import { explain } from "../../src/core/reason/reason.ts";
import { hours, instant, minus, minutes, plus, seconds } from "../../src/core/time/time.ts";

const now = instant(Date.UTC(2026, 10, 20, 6));

function row(node: string, more: Partial<BoardRow> = {}): BoardRow {
  return {
    ...{ id: node, node, uid: node, zone: "a", pool: "spot", policy: "spot" },
    ...{ state: "Scheduled", phase: "Scheduled", cause: "Planned", departure: node },
    ...{ departureUid: node, bornAt: minus(now, hours(20)), earliestAt: null },
    ...{ departAt: plus(now, hours(3)), deadlineAt: plus(now, hours(4)), noticedAt: null },
    ...{ startedAt: null, heldBackTo: null, window: null, wave: null, reason: "Spaced" },
    ...{ plannedBy: "Spaced", explain: `${node} leaves at nine.`, hold: null, pods: null },
    ...more,
  };
}

const podsLeft = (left: number, total: number): PodCounts => ({
  ...{ total, left, evicted: 0, forced: 0, waiting: 0, blocked: 0 },
  ...{ cut: 0, killed: 0, leftBehind: 0 },
});

const policy: PolicyCard = {
  ...{ id: "spot", name: "spot", matched: 3, problem: null, isPaused: false, isDryRun: false },
  ...{
    wantedMs: null,
    reachedMs: null,
    bestMs: null,
    isFeasible: true,
    freezeUntil: null,
    waves: [],
  },
  ...{ forecast: "All 3 departures are on schedule", shut: [] },
};

const line = (
  subject: HeadlineLine["subject"],
  text: string,
  more: Partial<HeadlineLine> = {},
): HeadlineLine => ({ subject, text, policy: null, tone: "Good", waiting: [], ...more });

const headline: readonly HeadlineLine[] = [
  line("Policy", "All 3 departures are on schedule", { policy: "spot" }),
  line("Next", "n1 leaves at 2026-11-20T09:00:00.000Z"),
];

const past: PastDeparture = {
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

function pictureOf(more: Partial<BoardPicture> = {}, fleet: Partial<BoardPicture["fleet"]> = {}) {
  const picture: BoardPicture = {
    fleet: {
      ...{ cluster: "prod", isDemo: false, connection: { kind: "Live" }, missing: [] },
      ...{ rights: noRights, days: [], headline, isCounted: false, ...fleet },
    },
    ...{ rows: [row("n1"), row("n2"), row("n3")], past: [past], policies: [policy], ...more },
  };
  return picture;
}

const blocked = explain("DrainBlocked", {
  node: "n1",
  detail:
    "shop/web-0: The disruption budget web needs 2 healthy pods and has 2 currently; and 1 more pod",
});

const small = { columns: 80, rows: 24, sort: "Leaving", scroll: 0 } as const;

function textOf(picture: BoardPicture, look: Partial<Parameters<typeof terminalBoard>[2]> = {}) {
  return terminalBoard(picture, now, { ...small, ...look })
    .lines.map(plainText)
    .join("\n");
}

const many = Array.from({ length: 40 }, (_, index) =>
  row(`n${String(index).padStart(2, "0")}`, { departAt: plus(now, minutes(index + 1)) }),
);

describe("The board in a terminal", () => {
  it.each([
    [80, 24],
    [200, 50],
    [40, 10],
    [10, 3],
    [1, 1],
  ])("fits into %i columns and %i rows, whatever it contains", (columns, rows) => {
    const away = { kind: "Away", sinceAt: minus(now, minutes(1)), problem: "refused ".repeat(50) };
    const long = row("very-long-node-name.".repeat(12), { explain: "why ".repeat(90) });
    const picture = pictureOf(
      { rows: [long, ...many], policies: Array.from({ length: 9 }, () => policy) },
      { connection: away as never, missing: Array.from({ length: 9 }, () => "Cannot list it") },
    );
    const { lines } = terminalBoard(picture, now, { ...small, columns, rows });
    expect(lines.length).toBeLessThanOrEqual(rows);
    for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(columns);
  });

  it("shows cluster, forecast, nodes, past departures and keys on 80x24", () => {
    const text = textOf(pictureOf());
    expect(text).toContain("2026-11-20 06:00:00 UTC   3 nodes of prod");
    expect(text).toContain(" spot  All 3 departures are on schedule");
    expect(text).toMatch(/^ n1 +20h00m {2}in 3h00m +Spaced from its neighbours$/m);
    expect(text).toContain(" 11-20 05:55  Planned     gone is drained");
    expect(text.split("\n").at(-1)).toMatch(/scroll .* s sort .* q quit/);
  });

  it.each<[string, Partial<BoardRow>, RegExp]>([
    [
      "a draining node",
      { state: "Leaving", phase: "Draining", pods: podsLeft(2, 8) },
      /^ n1 +20h00m {2}now +████▌· 2 of 8 pods left, 4h00m to go$/m,
    ],
    [
      "a running notice",
      {
        ...{ state: "Leaving", noticedAt: now, deadlineAt: plus(now, seconds(34)) },
        pods: { ...podsLeft(3, 4), blocked: 1 },
      },
      /NOTICE +█▌···· 3 of 4 pods left, 34 s to go, 1 blocked$/m,
    ],
    ["a hold", { state: "Held", reason: "BudgetSpent" }, /held +Waits for the budget/],
    ["a time that has passed", { departAt: now }, / due +Spaced/],
    ["a departure that will be held", { heldBackTo: plus(now, hours(5)) }, /held back, in 5h00m/],
    [
      "a node without a plan",
      { state: "Stays", departAt: null, reason: "NoPolicy" },
      /20h00m +No policy selects it/,
    ],
    [
      "a node on hold indefinitely",
      {
        ...{ state: "Stays", departAt: null, reason: "OnHold" },
        hold: {
          ...{ mark: "lastcall.dev/hold", untilAt: null, isOurs: true },
          ...{ by: "kubectl-annotate", sinceAt: minus(now, minutes(90)) },
        },
      },
      / on hold {5}Held by kubectl-annotate since 11-20 04:30, until r…$/m,
    ],
    [
      "a reason from a newer version",
      { state: "Held", reason: "SolarFlare" as never },
      /held +SolarFlare/,
    ],
    ["a missing launch time", { bornAt: null }, /^ n1 {12,}in 3h00m/m],
  ])("describes %s", (_, more, expected) => {
    expect(textOf(pictureOf({ rows: [row("n1", more)] }))).toMatch(expected);
  });

  it("shows on 40 columns why a node leaves rather than how old it is", () => {
    const text = textOf(pictureOf({ rows: [row("n1", { state: "Held", reason: "Frozen" })] }), {
      columns: 40,
    });
    expect(text).toMatch(/^ n1 +held +Frozen$/m);
    expect(text).not.toContain("AGE");
  });

  it("shows the whole explanation if there is room", () => {
    expect(textOf(pictureOf(), { columns: 120 })).toContain("n1 leaves at nine.");
  });

  it("shows the whole message of a blocking budget if there is room", () => {
    const rows = [
      row("n1", {
        ...{ state: "Leaving", phase: "Draining", reason: "DrainBlocked" },
        ...{ pods: { ...podsLeft(3, 4), blocked: 2 }, explain: blocked },
      }),
    ];
    expect(textOf(pictureOf({ rows }), { columns: 200 })).toContain(
      "2 blocked by shop/web-0: The disruption budget web needs 2 healthy pods and has 2 currently; and 1 more pod",
    );
    expect(textOf(pictureOf({ rows }))).toMatch(/4h00m to go, 2 blocked$/m);
  });

  it("sorts nodes under way first, then held, next and staying ones, or all by name", () => {
    const rows = [
      row("a", { state: "Stays", departAt: null }),
      row("z", {
        ...{ state: "Stays", departAt: null, reason: "OnHold" },
        hold: { mark: "m", untilAt: null, isOurs: false, by: null, sinceAt: null },
      }),
      row("b", { departAt: plus(now, hours(2)) }),
      row("c", { departAt: plus(now, hours(1)) }),
      row("d", { state: "Held" }),
      row("e", { state: "Leaving" }),
      row("f", { state: "Leaving", noticedAt: now }),
    ];
    const order = (sort: "Leaving" | "Name") =>
      [...textOf(pictureOf({ rows }), { sort }).matchAll(/^ ([a-fz]) /gm)].map(([, name]) => name);
    expect(order("Leaving").join("")).toBe("fedzcba");
    expect(order("Name").join("")).toBe("abcdefz");
  });

  it("scrolls to the last node and no further, and counts the nodes out of view", () => {
    const picture = pictureOf({ rows: many, past: [] });
    const first = terminalBoard(picture, now, small);
    expect(first).toMatchObject({ scroll: 0, page: 17 });
    expect(first.lines.map(plainText).join("\n")).toContain("23 more below");
    const last = terminalBoard(picture, now, { ...small, scroll: 99 });
    expect(last.scroll).toBe(23);
    const text = last.lines.map(plainText).join("\n");
    expect(text).toContain("23 above");
    expect(text).toContain(" n39 ");
    expect(terminalBoard(picture, now, { ...small, scroll: -5 }).scroll).toBe(0);
  });

  it("names what may not be listed, and says how long the cluster has not responded", () => {
    const sinceAt = minus(now, seconds(90));
    const missing = ["Cannot list departures: it is forbidden"];
    const text = textOf(
      pictureOf({}, { missing, connection: { kind: "Away", sinceAt, problem: "ECONNREFUSED" } }),
    );
    expect(text).toContain(missing[0]);
    expect(text.replaceAll("\n", "")).toContain(
      "has not responded for 1m, showing its last known state: ECONNREFUSED",
    );
  });

  it.each([
    ["while it connects", { kind: "Connecting" }, [row("n1")], "Connecting"],
    [
      "from a cluster that was unreachable from the start",
      { kind: "Away", sinceAt: minus(now, minutes(1)), problem: "refused" },
      [],
      "has not responded for 1m",
    ],
  ] as const)("shows no nodes and policies %s", (_, connection, rows, said) => {
    const text = textOf(pictureOf({ rows, policies: [] }, { connection }));
    expect(text).toContain(said);
    expect(text).not.toContain("There is no DeparturePolicy");
    expect(text).not.toContain(" n1 ");
    expect(text).not.toMatch(/\d nodes? of/);
  });

  it("shows the headline, with what due departures wait for and short times", () => {
    const shut = [{ startAt: now, endAt: plus(now, hours(1)), why: "Window" as const }];
    const waiting = [{ reason: "BudgetSpent" as const, departures: 2 }];
    const lines = [
      line("Policy", "2 departures are held back", { policy: "spot", waiting }),
      line("Next", "n1 leaves at 2026-11-20T09:00:00.000Z"),
      line("Controller", "No controller leads", { tone: "Bad" }),
    ];
    const picture = pictureOf({ policies: [{ ...policy, shut }] }, { headline: lines });
    const text = textOf(picture, { columns: 120 });
    expect(text).toContain(
      " spot        closed for departures; 2 departures are held back; Waits for the budget (2)",
    );
    expect(text).toContain(" Next        n1 leaves at 11-20 09:00");
    const small = textOf(picture, { rows: 16 });
    expect(small).toContain("No controller leads");
    expect(small).not.toContain("Next");
  });
});
