/**
 * The board of the demo in a real browser: what people see first, in both languages and themes, and
 * by keyboard alone; and the picture of the README (`E2E_PICTURES=1` writes it).
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BoardProcess, startBoardProcess } from "../support/board-process.ts";
import { axeFindings, type OpenPage, openBoard, startBrowser } from "../support/browser.ts";

const takesPictures = process.env.E2E_PICTURES === "1";
const pictures = join(import.meta.dirname, "../../docs/board");

let browser: Browser;
let board: BoardProcess;
let open: OpenPage;
let page: Page;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-board-"));
  browser = await startBrowser();
  board = await startBoardProcess(["demo", "--speed", "60"], { folder });
  open = await openBoard(browser, board.url);
  ({ page } = open);
});

afterAll(async () => {
  await browser?.close();
  await board?.process.stop();
  rmSync(folder, { recursive: true, force: true });
});

const pageAt = (hash: string): string => new URL(`.#/${hash}`, board.url).href;

async function show(hash: string, taste: { theme: string; language: string }): Promise<void> {
  await page.evaluate((chosen) => {
    localStorage.setItem("lastcall-theme", chosen.theme);
    localStorage.setItem("lastcall-language", chosen.language);
  }, taste);
  await page.goto(pageAt(hash));
  await page.reload();
  await page.locator("main h2").first().waitFor();
}

/** Calls the model's own API server, as kubectl does. */
async function modelApi(method: string, path: string, body: object) {
  const kubeconfig = /^KUBECONFIG=(.+)$/m.exec(board.process.out())?.[1] ?? "";
  const { clusters } = JSON.parse(readFileSync(kubeconfig, "utf8"));
  const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  const answer = await fetch(`${clusters[0].cluster.server}${path}`, {
    ...{ method, headers: { "content-type": type }, body: JSON.stringify(body) },
  });
  const json = await answer.json();
  if (!answer.ok) throw new Error(JSON.stringify(json));
  return json;
}

/** Creates a node that no controller manages. */
async function makeNode(name: string, labels: object): Promise<readonly [uid: string]> {
  const metadata = { name, labels };
  const node = { apiVersion: "v1", kind: "Node", metadata, spec: {}, status: {} };
  return [(await modelApi("POST", "/api/v1/nodes", node)).metadata.uid];
}

async function someNode(): Promise<string> {
  await page.goto(pageAt(""));
  return (await page.locator("table.next a.name").nth(5).textContent()) ?? "";
}

const tastes = ["en", "ja"].flatMap((language) =>
  ["dark", "light"].map((theme) => ({ language, theme })),
);

describe("the board of the demo", () => {
  test("shows a notice of the first minutes with its pods, its clock and its outcome", async () => {
    await page.locator(".leaving .urgent .marks").waitFor({ timeout: 60_000 });
    expect(await page.locator(".leaving .urgent .clock").textContent()).toMatch(/^\d:\d\d$/);
    await page.locator("ul.past li", { hasText: "Preempted" }).waitFor({ timeout: 60_000 });
  });

  test("shows both fleets side by side, with the fate of the pods in each", async () => {
    const figure = (name: string) =>
      page.locator(".fates tr", { hasText: name }).locator("td").allTextContents();
    await expect.poll(async () => Number((await figure("Pods killed"))[0])).toBeGreaterThan(0);
    expect((await figure("Pods killed"))[1]).toBe("0");
    expect(await page.locator(".machines").count()).toBe(2);
    await page.keyboard.press("p");
    await page.getByRole("button", { name: "Resume" }).waitFor();
    await page.keyboard.press("i");
    await page.getByRole("button", { name: "Pause" }).waitFor();
    await page.locator(".fates .notice-row .pods li").first().waitFor();
    await page.getByRole("button", { name: "Faster" }).click();
    await expect.poll(() => page.locator(".stage-speed").textContent()).toContain("120×");
    await page.getByRole("button", { name: "Slower" }).click();
  });

  test("keeps its clock at hand on every page, and pauses while one reads about a node", async () => {
    const said = page.locator(".stage-speed");
    const link = (name: string) => page.getByRole("navigation").getByRole("link", { name });
    for (const name of ["Timeline", "Outcomes", "Departures"]) {
      await link(name).click();
      // The link has the focus.
      await page.keyboard.press("Space");
      await expect.poll(() => said.textContent()).toBe("Paused");
      await page.keyboard.press("p");
      await expect.poll(() => said.textContent()).toMatch(/×/);
      await page.getByRole("button", { name: "Next event" }).waitFor();
    }
    const pause = page.getByRole("button", { name: /Pause|Resume/ });
    await pause.focus();
    await page.evaluate(() => {
      location.hash = "#/timeline";
    });
    await page.locator(".drawing").waitFor();
    expect(await page.evaluate(() => document.activeElement?.textContent)).toContain("Pause");
    await page.goto(pageAt(`node/${encodeURIComponent(await someNode())}`));
    await expect.poll(() => said.textContent()).toBe("Paused while you read about a node");
    await page.goto(pageAt(""));
    await expect.poll(() => said.textContent()).toMatch(/×/);
  });

  test("leads from a departed node to the steps of its departure", async () => {
    await page.goto(pageAt(""));
    const row = page.locator("ul.past li").first();
    const name = row.locator("a.name");
    const node = await name.getAttribute("aria-label");
    await name.click();
    await page.getByRole("heading", { name: node ?? "" }).waitFor();
    const step = page.locator("ul.past details[open] ol.steps li").first();
    await step.waitFor();
    expect(await step.textContent()).toMatch(/\d/);
  });

  test("explains a drain plan's tiers, and names the pods that nobody touches", async () => {
    await page.goto(pageAt(`node/${encodeURIComponent(await someNode())}`));
    await page.locator(".tiers dd").first().waitFor();
    const tiers = await page.locator(".tiers").first().textContent();
    expect(tiers).toMatch(/^Tiers leave one after another:0workloads/);
    const untouched = page.locator("details", { hasText: /\d+ pods? not touched/ }).first();
    await untouched.locator("summary").click();
    expect(await untouched.locator("li").first().textContent()).toMatch(/\/.* DaemonSet/);
  });

  test("shows a what-if's text beside its picture, and names the bars of a policy", async () => {
    await show("timeline", { theme: "dark", language: "en" });
    expect(await page.locator("dl.spacing").first().getAttribute("aria-label")).toBe("Spacing");
    await page.locator("button.ask").first().click();
    const boxOf = async (selector: string) => {
      const box = await page.locator(selector).first().boundingBox();
      if (box === null) throw new Error(`there is no ${selector}`);
      return box;
    };
    await page.locator(".what-if textarea").waitFor();
    const [text, drawing] = [await boxOf(".what-if textarea"), await boxOf(".drawing")];
    expect(text.x + text.width).toBeLessThanOrEqual(drawing.x);
    const shared = Math.min(text.y + text.height, drawing.y + drawing.height);
    expect(shared - Math.max(text.y, drawing.y)).toBeGreaterThan(100);
  });

  test.runIf(takesPictures)("takes the picture of the README", async () => {
    const times = 3;
    const press = async (key: string): Promise<void> => {
      for (let count = 0; count < times; count += 1) await page.keyboard.press(key);
    };
    const lost = page.locator(".fates tr", { hasText: "Lost at once" }).locator("td").first();
    await page.setViewportSize({ width: 1280, height: 760 });
    await page.mouse.move(0, 0);
    await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
    await press("+");
    await expect
      .poll(async () => Number(await lost.textContent()), { timeout: 90_000 })
      .toBeGreaterThan(15);
    await page.screenshot({ path: join(pictures, "demo.png") });
    await page.setViewportSize({ width: 1280, height: 860 });
    await press("-");
  });

  test("says that a filter matches no node", async () => {
    await page.goto(pageAt(""));
    await page.locator("input.filter").fill("zzz");
    await page.getByText("No node matches “zzz”.").first().waitFor();
    expect(await page.getByText("No node matches “zzz”.").count()).toBe(2);
    await page.locator("input.filter").fill("");
  });

  test.each(tastes)("passes axe: $language, $theme", async (taste) => {
    const node = encodeURIComponent(await someNode());
    for (const hash of ["", "timeline", "outcomes", `node/${node}`]) {
      await show(hash, taste);
      expect([hash, await axeFindings(page)]).toEqual([hash, []]);
    }
    await page.locator(".acts button").first().click();
    await page.locator("dialog .command").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.keyboard.press("Escape");
  });

  test.each(tastes)(
    "shows the result of a what-if, and passes axe: $language, $theme",
    async (taste) => {
      await show("timeline", taste);
      await page.locator("button.ask").first().click();
      const area = page.locator(".what-if textarea");
      await area.waitFor();
      const text = await area.inputValue();
      expect(text).toContain("mode: Late");
      // A plan that still satisfies its policy stays; departures planned after 02:00 have to move.
      await area.fill(text.replace('start: "05:00"', 'start: "02:00"'));
      // Only visible lanes are drawn.
      await page.locator(".drawing svg").scrollIntoViewIfNeeded();
      await page.locator(".drawing circle.ghost").first().waitFor();
      expect(await page.locator(".what-if table tbody tr").count()).toBeGreaterThan(1);
      expect(await axeFindings(page)).toEqual([]);
      await area.fill(text.replace("mode: Late", "mode: Never"));
      expect(await page.locator(".what-if .mistakes").textContent()).toContain("spec.spacing.mode");
      await page.locator(".what-if .acts button").first().click();
      expect(await area.inputValue()).toBe(text);
      expect(await page.locator(".drawing circle.ghost").count()).toBe(0);
    },
  );

  test("allows a hold by keyboard alone", async () => {
    await show(`node/${encodeURIComponent(await someNode())}`, { theme: "dark", language: "en" });
    const reach = async (name: string): Promise<void> => {
      for (let steps = 0; steps < 60; steps += 1) {
        await page.keyboard.press("Tab");
        const text = await page.evaluate(() => document.activeElement?.textContent ?? "");
        if (text === name) return;
      }
      throw new Error(`Tab does not lead to ${name}`);
    };
    await page.locator(".acts button").first().waitFor();
    await reach("Hold");
    await page.keyboard.press("Enter");
    await page.locator("dialog .command").waitFor();
    await reach("Confirm");
    await page.keyboard.press("Enter");
    await page.locator("dialog .answer.good").waitFor();
    // The buttons that confirmed and opened it are gone; the focus must not be lost with them.
    const focused = () =>
      page.evaluate(() => document.activeElement?.id || document.activeElement?.textContent);
    await expect.poll(focused).toBe("Close");
    await page.getByRole("button", { name: "Release hold", includeHidden: true }).waitFor();
    await page.keyboard.press("Enter");
    await expect.poll(focused).toBe("main");
  });

  test("does not let a half-typed time be confirmed", async () => {
    await show(`node/${encodeURIComponent(await someNode())}`, { theme: "dark", language: "en" });
    await page.getByRole("button", { name: "Depart", exact: true }).click();
    const confirm = page.locator("dialog button.primary");
    await page.locator("dialog .command").waitFor();
    expect(await confirm.isEnabled()).toBe(true);
    await page.locator("dialog input").first().focus();
    await page.keyboard.type("11");
    await page.getByText("Choose a day and a time.").waitFor();
    expect(await confirm.isEnabled()).toBe(false);
    await page.locator("dialog").getByRole("button", { name: "Now", exact: true }).click();
    await page.locator("dialog .command").waitFor();
    expect(await confirm.isEnabled()).toBe(true);
    await page.keyboard.press("Escape");
  });

  test("explains a lane of the timeline by the arrow keys, and shows a table instead", async () => {
    await show("timeline", { theme: "dark", language: "en" });
    await page.locator(".drawing svg").focus();
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => page.locator("figcaption").textContent()).toMatch(/^spot-/);
    // The demo's keys work here as well.
    const said = page.locator(".stage-speed");
    const before = await said.textContent();
    await page.keyboard.press("Space");
    await expect.poll(() => said.textContent()).not.toBe(before);
    await page.keyboard.press("Space");
    await expect.poll(() => said.textContent()).toBe(before);
    await page.getByRole("button", { name: "Table" }).click();
    expect(await page.locator("table.lanes tbody tr").count()).toBeGreaterThan(15);
  });

  test.each([360, 1280, 2560])("fits into %i pixels in either language", async (width) => {
    await page.setViewportSize({ width, height: 900 });
    const node = encodeURIComponent(await someNode());
    for (const language of ["en", "ja"]) {
      for (const hash of ["", "timeline", "outcomes", `node/${node}`]) {
        await show(hash, { theme: "light", language });
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        expect([hash, language, over <= 0]).toEqual([hash, language, true]);
      }
    }
  });
});

test("a dry run is marked on every page", async () => {
  const taste = { theme: "dark", language: "en" };
  const path = "/apis/lastcall.dev/v1alpha1/departurepolicies/spot";
  const node = encodeURIComponent(await someNode());
  await modelApi("PATCH", path, { spec: { dryRun: true } });
  await show("", taste);
  await page.locator(".headline", { hasText: "Dry run: " }).waitFor();
  await page
    .locator("table.next td", { hasText: /^.?Dry run$/ })
    .first()
    .waitFor();
  await show("timeline", taste);
  await page.locator(".drawing g.lane.dry-run").first().waitFor();
  await show(`node/${node}`, taste);
  await page.locator(".node-head", { hasText: "Dry run" }).waitFor();
  await modelApi("PATCH", path, { spec: { dryRun: false } });
  await page.locator(".node-head", { hasNotText: "Dry run" }).waitFor();
});

describe("the board of a hostile cluster", () => {
  test("shows long names and markup of the cluster as plain text", async () => {
    const name = `${"very-long-node-name.".repeat(12)}and-end-of-it`;
    const markup = `<img src=x onerror="document.title='owned'"> \u202Ereversed`;
    const [uid] = await makeNode(name, { "topology.kubernetes.io/zone": "z".repeat(63) });
    await modelApi("POST", "/apis/lastcall.dev/v1alpha1/departures", {
      ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "Departure", metadata: { name: "hostile" } },
      spec: { node: { name, uid }, cause: "Manual", departAt: "2026-11-21T00:00:00Z" },
    });
    // No controller writes to a departure that has ended.
    const status = {
      ...{ phase: "Ended", outcome: "Failed", reason: "ReleaseFailed", message: markup },
      endedAt: "2026-11-29T00:00:00Z",
    };
    await modelApi("PATCH", "/apis/lastcall.dev/v1alpha1/departures/hostile/status", { status });
    await page.setViewportSize({ width: 360, height: 900 });
    await show("", { theme: "dark", language: "en" });
    await page.locator("ul.past li", { hasText: "<img src=x" }).waitFor();
    expect(await page.locator("main img").count()).toBe(0);
    expect(await page.title()).not.toContain("owned");
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(over).toBeLessThanOrEqual(0);
    await show(`node/${encodeURIComponent(name)}`, { theme: "dark", language: "en" });
    await page.locator(".node-name", { hasText: "end-of-it" }).waitFor();
    const overNode = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(overNode).toBeLessThanOrEqual(0);
  });

  test("sends no requests elsewhere and logs no errors", () => {
    expect(open.complaints).toEqual([]);
  });
});
