import { describe, expect, it } from "vitest";
import type { BoardRow } from "../../src/board/stream.ts";
import { terminalBoard } from "../../src/cli/board/terminal-board.ts";
import { plainText, widthOf } from "../../src/cli/command-line/terminal.ts";
import { hours, minus, minutes, plus, seconds } from "../../src/core/time/time.ts";
import {
  blocked,
  line,
  many,
  now,
  past,
  pictureOf,
  podsLeft,
  policy,
  row,
  small,
  textOf,
} from "./terminal-picture.ts";

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
    expect(text.split("\n").at(-1)).toMatch(/move .*Enter describe .*\/ filter .*s sort .*q quit/);
  });

  it("keeps what is unique in the names of departed nodes, and what happened, on 80 columns", () => {
    const node = "gke-prod-spot-pool-n2d-standard-8-3f9ac21b-x7km";
    const explain = `${node} is drained, and its machine is released.`;
    const text = textOf(pictureOf({ past: [{ ...past, node, explain }] }));
    expect(text).toContain(
      " 11-20 05:55  Planned     gke-prod-spo…3f9ac21b-x7km is drained, and its",
    );
  });

  it("cuts what happened between words, since half a number is another number", () => {
    const explain = "gone is gone; all its pods were drained in the first 90 s of 120.";
    const cut = textOf(pictureOf({ past: [{ ...past, explain }] }));
    expect(cut).toContain(" drained in the first …");
    expect(textOf(pictureOf({ past: [{ ...past, explain }] }), { columns: 100 })).toContain(
      explain,
    );
  });

  it("marks the rows of a dry run, which does not make anybody leave", () => {
    const policies = [{ ...policy, isDryRun: true }];
    const rows = [row("n1"), row("n2", { cause: "Manual", plannedBy: null, reason: "Requested" })];
    const text = textOf(pictureOf({ policies, rows }));
    expect(text).toMatch(/^ n1 .*Dry run: Spaced from its neighbours$/m);
    expect(text).toMatch(/^ n2 (?!.*Dry run)/m);
  });

  it.each<[string, Partial<BoardRow>, RegExp]>([
    [
      "a draining node",
      { state: "Leaving", phase: "Draining", pods: podsLeft(2, 8) },
      /^ n1 +20h00m {2}now +████▌· 2 of 8 pods there, 4h00m to go$/m,
    ],
    [
      "a running notice",
      {
        ...{ state: "Leaving", noticedAt: now, deadlineAt: plus(now, seconds(34)) },
        pods: { ...podsLeft(3, 4), blocked: 1 },
      },
      /NOTICE +█▌···· 3 of 4 pods there, 34 s to go, 1 blocked$/m,
    ],
    ["a hold", { state: "Held", reason: "BudgetSpent" }, /held +Waits for the budget/],
    ["a time that has passed", { departAt: now }, / due +Spaced/],
    [
      "a hold by a budget, and its expected end",
      { state: "Held", reason: "BudgetSpent", heldBackTo: plus(now, minutes(9)) },
      /held +Waits for the budget, expected in 9m$/m,
    ],
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

  it.each([
    [59, /^ NODE +LEAVES +WHY$/m],
    [80, /^ NODE +AGE +LEAVES +WHY$/m],
    [120, /^ NODE +AGE +ZONE +DEADLINE +LEAVES +WHY$/m],
    [200, /^ NODE +AGE +ZONE +POOL +POLICY +DEADLINE +LEAVES +WHY$/m],
  ])("shows on %i columns what there is room for", (columns, heads) => {
    const text = textOf(pictureOf(), { columns });
    expect(text).toMatch(heads);
    const head = text.split("\n").find((line) => heads.test(line)) ?? "";
    const cells = text.split("\n").find((line) => line.startsWith(" n1 ")) ?? "";
    const at = (name: string) => cells.slice(head.indexOf(name)).split(" ")[0];
    const found = { ZONE: "a", POOL: "spot", POLICY: "spot", DEADLINE: "in" };
    for (const [name, value] of Object.entries(found)) {
      if (head.includes(name)) expect([name, at(name)]).toEqual([name, value]);
    }
  });

  it.each([
    [80, "gke-prod-spo…3f9ac21b-x7km"],
    [120, "gke-prod-spot-pool-n2d-sta…3f9ac21b-x7km"],
    [200, "gke-prod-spot-pool-n2d-standard-8-3f9ac21b-x7km"],
  ])("keeps on %i columns the end of a name, which is what is unique", (columns, expected) => {
    const names = ["x7km", "b2wd"].map(
      (end) => `gke-prod-spot-pool-n2d-standard-8-3f9ac21b-${end}`,
    );
    const text = textOf(pictureOf({ rows: names.map((name) => row(name)) }), { columns });
    expect(text).toContain(` ${expected}  `);
    expect(text).toContain(` ${expected.replace("x7km", "b2wd")}  `);
  });

  it.each([
    [120, "Missed", "missed its time at eight.", "missed its time at eight."],
    [120, "Missed", "missed its time ".repeat(20), "Missed its time"],
    [200, "Spaced", "leaves at 2026-11-20T09:00:00Z.", "Spaced from its neighbours"],
  ] as const)("explains on %i columns a row planned as %s: %s", (columns, plannedBy, why, said) => {
    const rows = [row("n1", { reason: plannedBy, plannedBy, explain: `n1 ${why}` })];
    expect(`${textOf(pictureOf({ rows }), { columns })}\n`).toContain(` in 3h00m    ${said}\n`);
  });

  it.each([80, 200])(
    "says on %i columns that a node is held past its deadline, or frozen",
    (columns) => {
      const hold = { mark: "m", isOurs: true, by: null, sinceAt: null };
      const rows = [
        row("n1", {
          ...{ reason: "DeadlineBeatsWindow", plannedBy: "DeadlineBeatsWindow" },
          ...{ deadlineAt: plus(now, hours(3)), hold: { ...hold, untilAt: plus(now, hours(4)) } },
          explain: `n1 leaves ${"late ".repeat(40)}`,
        }),
        row("n2", { frozenUntil: plus(now, hours(5)) }),
      ];
      const text = `${textOf(pictureOf({ rows }), { columns })}\n`;
      expect(text).toMatch(/^ n1 .* On hold past its deadline\n/m);
      expect(text).toMatch(/^ n2 .* frozen for 5h00m\n/m);
    },
  );

  it("shows the whole message of a blocking budget if there is room", () => {
    const rows = [
      row("n1", {
        ...{ state: "Leaving", phase: "Draining", reason: "DrainBlocked" },
        ...{ pods: { ...podsLeft(3, 4), blocked: 2 }, explain: blocked },
      }),
    ];
    expect(textOf(pictureOf({ rows }), { columns: 200 })).toContain(
      "3 of 4 pods still there, 2 blocked by shop/web-0: The disruption budget web needs 2 healthy pods and has 2 currently; and 1 more pod",
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
      " spot        Closed for departures. 2 departures are held back. Held: Waits for the budget (2)",
    );
    expect(text).toContain(" Next        n1 leaves at 11-20 09:00");
    const small = textOf(picture, { rows: 16 });
    expect(small).toContain("No controller leads");
    expect(small).not.toContain("Next");
  });
});

describe("The headline at 80 columns", () => {
  it("tells a broken policy in full, also if more policies are listed than fit", () => {
    const problem = 'spec.windows[0].timeZone: found "Local", expected an IANA time zone';
    const names = ["a", "b", "c", "d", "e"];
    const lines = names.map((policy) => line("Policy", "On schedule", { policy }));
    const text = `It cannot be read, and its 18 nodes stay: ${problem}`;
    const broken = line("Policy", text, { policy: "spot", tone: "Bad" });
    const shown = textOf(pictureOf({}, { headline: [...lines, broken] }));
    expect(shown.replaceAll(/\s+/g, " ")).toContain(text);
    expect(shown).toMatch(/^ and 3 more policies$/m);
    expect(shown).toMatch(/^ a .*\n b /m);
  });

  const budgets =
    "21 of 22 departures are on schedule; budgets hold back 1 departure: 2 nodes at once; 3 nodes would hold none back";

  it.each([80, 100, 120])("tells the whole sentence of a policy in %i columns", (columns) => {
    const waiting = [{ reason: "BudgetSpent", departures: 1 } as const];
    const one = line("Policy", budgets, { policy: "spot", tone: "Note", waiting });
    const shown = textOf(pictureOf({}, { headline: [one] }), { columns });
    expect(shown.replaceAll(/\s+/g, " ")).toContain(`${budgets}. Held: Waits for the budget (1)`);
  });

  it("ends a sentence for which there is no room where a part of it ends", () => {
    const one = line("Policy", budgets, { policy: "spot", tone: "Note" });
    const low = (columns: number) => {
      const shown = textOf(pictureOf({}, { headline: [one] }), { columns, rows: 16 });
      return shown.split("\n").find((text) => text.startsWith(" spot"));
    };
    expect(low(80)).toBe(
      " spot  21 of 22 departures are on schedule; budgets hold back 1 departure: …",
    );
    expect(low(100)).toBe(
      " spot  21 of 22 departures are on schedule; budgets hold back 1 departure: 2 nodes at once; …",
    );
    expect(low(40)).toBe(" spot  21 of 22 departures are on …");
  });

  it("marks that a problem goes on", () => {
    const problem = `connection refused ${"by 10.0.0.1 ".repeat(20)}`;
    const connection = { kind: "Away", sinceAt: minus(now, minutes(1)), problem } as const;
    const shown = textOf(pictureOf({}, { connection }), { columns: 80 });
    expect(shown.split("\n").slice(1, 3).join("\n")).toMatch(/ …$/);
  });

  it("keeps the end of each long name", () => {
    const names = ["x7km", "p566", "omu9"].map((end) => `gke-prod-euw1-spot-n2d-3f9ac21b-${end}`);
    const held = line("Held", `3 nodes are on hold (${names.join(", ")})`);
    const text = textOf(pictureOf({}, { headline: [held] }), { columns: 80 });
    expect(text.replaceAll(/\s+/g, " ")).toContain(
      "3 nodes are on hold (gke-prod-euw…3f9ac21b-x7km, gke-prod-euw…3f9ac21b-p566, gke-prod-euw…3f9ac21b-omu9)",
    );
    expect(textOf(pictureOf({}, { headline: [held] }), { columns: 160 })).toContain(names[2]);
  });
});

describe("A filter", () => {
  const rows = [row("web-1", { zone: "eu-a" }), row("web-2", { zone: "eu-b" }), row("db-1")];

  it("shows the rows in which every word occurs, and how many of all", () => {
    const text = textOf(pictureOf({ rows, past: [] }), { filter: "WEB eu-b", cursor: 0 });
    expect(text).toContain(">web-2 ");
    expect(text).not.toContain("web-1");
    expect(text).toContain(" 1 of 3 match WEB eu-b");
    expect(text).toMatch(/Esc show all/);
  });

  it("counts no rows before the cluster is known", () => {
    const text = textOf(pictureOf({}, { connection: { kind: "Connecting" } }), { filter: "n1" });
    expect(text).not.toContain("match");
  });

  it("says that nothing matches", () => {
    expect(textOf(pictureOf({ rows }), { filter: "x", cursor: 0 })).toContain("0 of 3 match x");
  });

  it("is shown while it is typed", () => {
    const text = textOf(pictureOf({ rows }), { mode: "Filter", filter: "we", cursor: 0 });
    expect(text).toMatch(/^ \/we_ +Enter keep +Esc clear/m);
  });
});
