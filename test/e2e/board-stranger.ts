/**
 * Five questions of somebody who has never seen the board, each answered from its start page in at
 * most three clicks and 20 seconds, by the path that docs/board.md gives: on nine nodes, and on a
 * thousand with names such as those of GKE.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { realClock } from "../../src/runtime/real-clock.ts";
import {
  type Ask,
  addPolicy,
  addSpotNode,
  apiVersion,
  type BoardStage,
  departures,
  hourMs,
  openBoardStage,
  policies,
} from "./board-stage.ts";

const mostClicks = 3;
const mostMs = 20_000;
const now = realClock.now();
const isoAgo = (hours: number): string => new Date(now - hours * hourMs).toISOString();

let page: Page;
let path: string[];
let beganMs: number;

export interface Fleet {
  readonly what: string;
  readonly nodes: number;
  /** The name of the node that the documentation calls n7, n3 and so on. */
  readonly nameOf: (short: string) => string;
}

export const fleets: readonly Fleet[] = [
  { what: "nine nodes", nodes: 9, nameOf: (short) => short },
  {
    ...{ what: "a thousand nodes with long names", nodes: 1000 },
    nameOf: (short) => `gke-shop-europe-west1-spot-c3-highcpu-22-7f8d9c6b-${short}xk`,
  },
];

/** Nodes with a nightly window, one held by its budget; another one was cut some hours ago. */
function furnish(ask: Ask, { nodes, nameOf }: Fleet): void {
  const uids = new Map<string, string>();
  for (let place = 1; place <= nodes; place += 1) {
    const name = nameOf(`n${place}`);
    uids.set(name, addSpotNode(ask, name));
  }
  addPolicy(ask, {
    ...{ lifetime: { max: "48h" }, spacing: { mode: "Even" } },
    windows: [{ name: "nights", type: "Allow", timeZone: "UTC", start: "22:00", end: "06:00" }],
  });
  const departure = (short: string, spec: object, status: object) => {
    const name = nameOf(short);
    const node = { name, uid: uids.get(name) ?? `uid-${name}` };
    const meta = { apiVersion, kind: "Departure", metadata: { name: `${name}-1` } };
    ask("POST", departures, { ...meta, spec: { node, policy: "spot", ...spec } });
    ask("PATCH", `${departures}/${name}-1/status`, { status });
  };
  departure(
    "n3",
    { cause: "Planned", departAt: isoAgo(0), deadlineAt: isoAgo(-20) },
    {
      ...{ phase: "Held", reason: "BudgetSpent" },
      message: "n3 waits, because the policy's budget was used up: 1 of 1 nodes of the policy.",
    },
  );
  departure(
    "n0",
    { cause: "SpotInterruption", noticedAt: isoAgo(8), deadlineAt: isoAgo(7.99) },
    {
      ...{ phase: "Ended", outcome: "Preempted", reason: "NodeGone", endedAt: isoAgo(7.98) },
      message: "n0 is gone: its Node object was deleted.",
      drain: {
        ...{ total: 4, left: 0, evicted: 4, forced: 0, waiting: 0, blocked: 0, cut: 2, killed: 1 },
        notClean: [{ namespace: "shop", name: "worker-7", outcome: "Killed", rule: "grace" }],
      },
    },
  );
}

/** `named`: what the documentation calls it, if not by its text. */
async function click(target: Locator, named?: string): Promise<void> {
  path.push(named ?? (await target.textContent())?.trim() ?? "");
  await target.click();
}
const link = (name: string): Locator => page.getByRole("link", { name, exact: true });
const button = (name: string): Locator => page.getByRole("button", { name, exact: true });

/** The row of docs/board.md that tells how to answer this question. */
function documented(question: string): string {
  const docs = readFileSync(join(import.meta.dirname, "../../docs/board.md"), "utf8");
  const row = docs.split("\n").find((line) => line.startsWith(`| ${question} |`));
  if (row === undefined) throw new Error(`docs/board.md does not ask: ${question}`);
  return row;
}

/** The row names every click, in this order. */
function expectDocumented(question: string): void {
  const named = [...documented(question).matchAll(/\*\*(.+?)\*\*/g)].map(([, name]) => name);
  expect(named).toEqual(path);
}

export function boardStrangerTests(fleet: Fleet, browserOf: () => Browser): void {
  const { nameOf } = fleet;
  let stage: BoardStage;

  beforeAll(async () => {
    stage = await openBoardStage(browserOf(), (ask) => furnish(ask, fleet));
    ({ page } = stage);
    await page.locator("table.next tbody tr").nth(8).waitFor();
  });
  afterAll(() => stage?.close());

  beforeEach(async () => {
    await page.goto(new URL(".#/", stage.url).href);
    await page.locator("table.next tbody tr").first().waitFor();
    [path, beganMs] = [[], realClock.monotonic()];
  });
  afterEach(() => {
    expect(path.length).toBeLessThanOrEqual(mostClicks);
    expect(realClock.monotonic() - beganMs).toBeLessThan(mostMs);
  });

  test("When does n7 go, and why?", async () => {
    if (fleet.nodes > 9) await page.getByRole("searchbox").fill("n7x");
    const row = page.locator("table.next tr", { has: link(nameOf("n7")) });
    expect(await row.locator(".clock").textContent()).toMatch(/^\d\d:\d\d$/);
    await click(link(nameOf("n7")), "n7");
    await page
      .getByText(
        new RegExp(`^${nameOf("n7")} leaves at .* in the window nights, by the spacing of`),
      )
      .waitFor();
    expectDocumented("When does n7 go, and why?");
  });

  test("What holds n3?", async () => {
    await page.locator("table.next tr", { hasText: "Held: Waits for the budget" }).waitFor();
    await click(link(nameOf("n3")), "n3");
    await page.getByText("the policy's budget was used up: 1 of 1 nodes of the policy").waitFor();
    expectDocumented("What holds n3?");
  });

  test("Who was cut last night?", async () => {
    await click(link("Outcomes"));
    const day = page.locator("section[aria-labelledby=days] tbody tr").first();
    expect(await day.locator("td.number").first().textContent()).toBe("2");
    const past = page.locator("ul.past li", { hasText: nameOf("n0") });
    expect(await past.textContent()).toContain("2 pods cut");
    expect(await past.textContent()).toContain("shop/worker-7: killed (grace)");
    expectDocumented("Who was cut last night?");
  });

  test("What if the window began at 21:00?", async () => {
    await click(link("Timeline"));
    await click(button("What if"));
    const area = page.locator(".what-if textarea");
    await area.waitFor();
    const text = await area.inputValue();
    await area.fill(text.replace("22:00", "21:00"));
    await page.getByText(/\d+ departures? would move\./).waitFor();
    await page.locator(".what-if table tbody tr").first().waitFor();
    expectDocumented("What if the window began at 21:00?");
  });

  test("Freeze until Monday", async () => {
    await click(link("Timeline"));
    await click(button("Freeze"));
    await page.locator("dialog .command").waitFor();
    await click(button("Confirm"));
    await page.locator("dialog .answer.good").waitFor();
    const { spec } = stage.ask("GET", `${policies}/spot`);
    const until = new Date(spec?.gates?.freezeUntil ?? "");
    expect([until.getUTCDay(), until.getUTCHours()]).toEqual([1, 9]);
    expectDocumented("Freeze until Monday");
  });
}
