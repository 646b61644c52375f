/**
 * The board's page in a browser, on the cluster in memory: the browser that it opens, its addresses
 * and tabs, a drain pod by pod, every act by keyboard alone, and the questions of a stranger.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startBrowser } from "../support/browser.ts";
import { boardActTests } from "./board-acts.ts";
import { boardDrainTests } from "./board-drain.ts";
import { addPolicy, addSpotNode, type BoardStage, openBoardStage } from "./board-stage.ts";
import { boardStrangerTests, fleets } from "./board-stranger.ts";

let browser: Browser;

beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser?.close());

describe("the board of three nodes", () => {
  let stage: BoardStage;
  let context: BrowserContext;
  let page: Page;
  let url: string;
  let show: BoardStage["show"];

  beforeAll(async () => {
    stage = await openBoardStage(browser, (ask) => {
      for (const name of ["n1", "n2", "n3"]) addSpotNode(ask, name);
      addPolicy(ask, { lifetime: { max: "36h" }, spacing: { min: "15m" } });
    });
    ({ context, page, url, show } = stage);
  });
  afterAll(() => stage?.close());

  test("--open opens the printed address, which shows the board", async () => {
    expect(stage.board.out()).toBe(`${url}\n`);
    await expect.poll(() => page.locator("table.next tbody tr").count()).toBe(3);
    expect(stage.board.log()).not.toContain("Cannot open");
  });

  test("the page follows an address that changes while it is first drawn", async () => {
    const quick = await context.newPage();
    await quick.addInitScript(() => {
      const drawn = new MutationObserver(() => {
        if (document.querySelector("#board header") === null) return;
        drawn.disconnect();
        location.hash = "#/timeline";
      });
      drawn.observe(document, { childList: true, subtree: true });
    });
    await quick.goto(new URL(".#/", url).href);
    await quick.locator(".timeline .drawing g.lane").first().waitFor({ timeout: 10_000 });
    expect(quick.url()).toMatch(/#\/timeline$/);
    await quick.close();
  });

  /** Another tab, on the board's start page. */
  async function fresh() {
    const visitor = await context.newPage();
    await visitor.goto(new URL(".#/", url).href);
    await visitor.locator("table.next tbody tr").first().waitFor();
    return { page: visitor, close: () => visitor.close() };
  }

  test("the filter follows to other views, and Back shows what the earlier address says", async () => {
    const { page: visitor, close } = await fresh();
    const filter = visitor.getByRole("searchbox", { name: "Filter" });
    await filter.fill("n2");
    await visitor.getByRole("link", { name: "Timeline" }).click();
    await expect.poll(() => visitor.locator(".drawing g.lane").count()).toBe(1);
    await filter.fill("n3");
    await expect.poll(() => visitor.url()).toMatch(/\?filter=n3#\/timeline$/);
    await visitor.goBack();
    await expect.poll(() => visitor.url()).toMatch(/\?filter=n2#\/$/);
    await expect.poll(() => visitor.locator("table.next a.name").allTextContents()).toEqual(["n2"]);
    expect(await filter.inputValue()).toBe("n2");
    await close();
  });

  test("a browser without Temporal shows everything but the what-if", async () => {
    const context = await browser.newContext({ timezoneId: "UTC", locale: "en-GB" });
    await context.addCookies(await stage.context.cookies());
    await context.addInitScript(() => Reflect.deleteProperty(globalThis, "Temporal"));
    const old = await context.newPage();
    const problems: string[] = [];
    old.on("pageerror", ({ message }) => problems.push(message));
    await old.goto(new URL(".#/timeline", url).href);
    expect(await old.evaluate(() => "Temporal" in globalThis)).toBe(false);
    await old.getByRole("button", { name: "What if" }).click();
    await old.getByText("What-if needs a browser with Temporal, which this one lacks").waitFor();
    expect(await old.locator(".drawing g.lane").count()).toBe(3);
    await old.goto(new URL(".#/node/n3", url).href);
    await old.getByText(/^n3 leaves at /).waitFor();
    expect(problems).toEqual([]);
    await context.close();
  });

  test("the browser sends the board's cookie to no other server on this machine", async () => {
    const heard: string[] = [];
    const other = createServer((request, response) => {
      heard.push(`${request.url} ${request.headers.cookie ?? "without a cookie"}`);
      response.setHeader("set-cookie", "lastcall-board=forged; Path=/");
      response.end("<!doctype html>");
    });
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as AddressInfo;
    const visitor = await context.newPage();
    await visitor.goto(`http://127.0.0.1:${port}/board`);
    expect(heard[0]).toBe("/board without a cookie");
    await new Promise((resolve) => other.close(resolve));
    // What that server has set does not keep the board's own page out.
    await visitor.goto(new URL(".#/", url).href);
    await visitor.locator("table.next tbody tr").first().waitFor();
    await visitor.close();
  });

  test("a hidden tab opens no stream until it becomes visible", async () => {
    const hidden = await context.newPage();
    const streams: string[] = [];
    hidden.on("request", (request) => {
      if (request.url().includes("/api/stream")) streams.push(request.url());
    });
    await hidden.addInitScript(() => {
      Object.defineProperty(Document.prototype, "hidden", { configurable: true, get: () => true });
    });
    await hidden.goto(new URL(".#/", url).href);
    await hidden.getByRole("heading", { name: "Lastcall" }).waitFor();
    expect(streams).toEqual([]);
    await hidden.evaluate(() => {
      Object.defineProperty(Document.prototype, "hidden", { configurable: true, get: () => false });
      document.dispatchEvent(new Event("visibilitychange"));
    });
    await expect.poll(() => hidden.locator("table.next tbody tr").count()).toBeGreaterThan(0);
    expect(streams).toHaveLength(1);
    await hidden.close();
  });

  test("the timeline explains the lane under the pointer, and zooms", async () => {
    await show("timeline");
    const caption = page.locator("figcaption");
    await page.getByRole("button", { name: "48 hours", exact: true }).click();
    await page.getByText("6 h back, 2 d ahead").waitFor();
    const lane = page.locator(".drawing g.lane", { hasText: "n3" });
    await lane.hover();
    await expect.poll(() => caption.textContent()).toMatch(/^n3 leaves at .*, by the spacing of/);
    await page.getByRole("button", { name: "12 hours", exact: true }).click();
    await page.getByText("1 h 30 min back, 12 h ahead").waitFor();
    // Its departure is more than twelve hours ahead; its lane stays, with an arrow at the edge.
    expect(await lane.locator("circle").count()).toBe(0);
    expect(await lane.locator("path.beyond").count()).toBe(1);
    await page.getByText(/^\d departures? later →$/).waitFor();
    await page.getByRole("button", { name: "48 hours", exact: true }).click();
    await lane.locator("circle").first().waitFor();
    await lane.click();
    await page.getByRole("heading", { name: "n3" }).waitFor();
    await show("timeline");
    await page.locator(".drawing svg").press("ArrowDown");
    await expect.poll(() => caption.textContent()).toMatch(/^n\d leaves at /);
    const [picked = ""] = (await caption.textContent())?.split(" ") ?? [];
    await page.locator(".drawing svg").press("Enter");
    await page.getByRole("heading", { name: picked }).waitFor();
  });

  boardDrainTests(() => stage);
  boardActTests(() => stage);

  test("logs no errors", () => {
    expect(stage.complaints).toEqual([]);
  });
});

describe.each(fleets)("a stranger to the board of $what", (fleet) => {
  boardStrangerTests(fleet, () => browser);
});
