/**
 * How a person uses the board: every act by keyboard alone, the timeline by pointer and zoom
 * buttons, in a browser without Temporal, and in one that prefers reduced motion.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { realClock } from "../../src/runtime/real-clock.ts";
import { type ModelServer, serveModel } from "../../src/sim/http/serve-model.ts";
import { type BoardProcess, startBoardProcess } from "../support/board-process.ts";
import { type OpenPage, openBoard, startBrowser } from "../support/browser.ts";
import { modelClusterApi } from "../support/model-cluster-api.ts";

const apiVersion = "lastcall.dev/v1alpha1";
const departures = "/apis/lastcall.dev/v1alpha1/departures";
const policies = "/apis/lastcall.dev/v1alpha1/departurepolicies";
const hourMs = 3_600_000;

let api: Awaited<ReturnType<typeof modelClusterApi>>;
let model: ModelServer;
let board: BoardProcess;
let browser: Browser;
let folder: string;
let open: OpenPage;
let page: Page;

interface Read {
  readonly metadata?: {
    readonly uid?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: {
    readonly gates?: { readonly freezeUntil?: string };
    readonly departAt?: string;
    readonly deadlineAt?: string;
  };
  readonly items?: readonly Read[];
}

function read(path: string): Read {
  return api.handle({ method: "GET", path }).body as Read;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-acts-"));
  api = await modelClusterApi(realClock);
  for (const name of ["n1", "n2", "n3"]) {
    const labels = { "cloud.google.com/gke-spot": "true", "topology.kubernetes.io/zone": "a" };
    const spec = { providerID: `gce://demo/a/${name}` };
    const body = { apiVersion: "v1", kind: "Node", metadata: { name, labels }, spec, status: {} };
    api.handle({ method: "POST", path: "/api/v1/nodes", body });
  }
  const spec = { lifetime: { max: "36h" }, spacing: { min: "15m" } };
  const policy = { apiVersion, kind: "DeparturePolicy", metadata: { name: "spot" }, spec };
  api.handle({ method: "POST", path: policies, body: policy });
  model = await serveModel({ api });
  writeFileSync(join(folder, "kubeconfig"), model.kubeconfig);
  browser = await startBrowser();
  const args = ["board", "--kubeconfig", join(folder, "kubeconfig")];
  board = await startBoardProcess(args, { folder });
  open = await openBoard(browser, board.url);
  ({ page } = open);
  await page.locator("table.next tbody tr").nth(2).waitFor();
});
afterAll(async () => {
  await browser?.close();
  await board?.process.stop();
  await model?.close();
  rmSync(folder, { recursive: true, force: true });
});

const show = async (hash: string): Promise<void> => {
  await page.goto(new URL(`.#/${hash}`, board.url).href);
  await page.locator("main h2").first().waitFor();
};

describe("by keyboard alone", () => {
  /** Presses Tab until the element with this text has the focus, then Enter. */
  async function press(name: string): Promise<void> {
    for (let steps = 0; steps < 60; steps += 1) {
      await page.keyboard.press("Tab");
      const text = await page.evaluate(() => document.activeElement?.textContent?.trim() ?? "");
      if (text !== name) continue;
      await page.keyboard.press("Enter");
      return;
    }
    throw new Error(`Tab does not lead to ${name}`);
  }

  /** Waits for the preview, confirms it and closes the result. */
  async function confirm(): Promise<void> {
    await page.locator("dialog .command").waitFor();
    await press("Confirm");
    await page.locator("dialog .answer.good").waitFor();
    const focused = () => page.evaluate(() => document.activeElement?.textContent);
    await expect.poll(focused).toBe("Close");
    await page.keyboard.press("Enter");
    await page.locator("dialog").waitFor({ state: "detached" });
  }

  /** The button appears once the page has received the result of the previous act. */
  const offered = (name: string) => page.getByRole("button", { name, exact: true }).waitFor();

  test("a node is found, held and released", async () => {
    await show("");
    await press("n1");
    await offered("Hold");
    await press("Hold");
    await press("Until released");
    await confirm();
    const hold = () => read("/api/v1/nodes/n1").metadata?.annotations?.["lastcall.dev/hold"];
    expect(hold()).toBe("true");
    await offered("Release hold");
    await press("Release hold");
    await confirm();
    expect(hold()).toBeUndefined();
  });

  test("a departure is requested for a time and cancelled", async () => {
    await show("node/n2");
    await offered("Depart");
    await press("Depart");
    // Before 09:00 UTC the next morning is on the same day.
    const isNight = new Date(realClock.now()).getUTCHours() < 9;
    await press(isNight ? "Today 09:00" : "Tomorrow 09:00");
    await confirm();
    const [asked] = read(departures).items ?? [];
    expect(asked?.spec).toMatchObject({ cause: "Manual", node: { name: "n2" } });
    const day = new Date(realClock.now() + (isNight ? 0 : 24 * hourMs)).toISOString().slice(0, 10);
    expect(Date.parse(asked?.spec?.departAt ?? "")).toBe(Date.parse(`${day}T09:00:00Z`));
    await offered("Cancel departure");
    await press("Cancel departure");
    await confirm();
    expect(read(departures).items).toEqual([]);
  });

  test("a policy is frozen and the freeze ended", async () => {
    await show("timeline");
    await offered("Freeze");
    await press("Freeze");
    await press("4 h");
    await confirm();
    const until = () => read(`${policies}/spot`).spec?.gates?.freezeUntil;
    const inMs = Date.parse(until() ?? "") - realClock.now();
    expect(inMs).toBeGreaterThan(4 * hourMs - 120_000);
    expect(inMs).toBeLessThanOrEqual(4 * hourMs);
    await offered("End freeze");
    await press("End freeze");
    await confirm();
    expect(until()).toBeUndefined();
  });
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

test("a browser without Temporal shows everything but the what-if", async () => {
  const context = await browser.newContext({ timezoneId: "UTC", locale: "en-GB" });
  await context.addCookies(await open.context.cookies());
  await context.addInitScript(() => Reflect.deleteProperty(globalThis, "Temporal"));
  const old = await context.newPage();
  const problems: string[] = [];
  old.on("pageerror", ({ message }) => problems.push(message));
  await old.goto(new URL(".#/timeline", board.url).href);
  expect(await old.evaluate(() => "Temporal" in globalThis)).toBe(false);
  await old.getByRole("button", { name: "What if" }).click();
  await old.getByText("What-if needs a browser with Temporal, which this one lacks").waitFor();
  expect(await old.locator(".drawing g.lane").count()).toBe(3);
  await old.goto(new URL(".#/node/n3", board.url).href);
  await old.getByText(/^n3 leaves at /).waitFor();
  expect(problems).toEqual([]);
  await context.close();
});

test("nothing moves in a browser that prefers reduced motion", async () => {
  const { uid } = read("/api/v1/nodes/n3").metadata ?? {};
  const departure = { apiVersion, kind: "Departure", metadata: { name: "n3-1" } };
  const spec = { node: { name: "n3", uid }, cause: "Manual" };
  api.handle({ method: "POST", path: departures, body: { ...departure, spec } });
  const drain = { total: 4, left: 2, evicted: 2, forced: 0, waiting: 0, blocked: 0, cut: 0 };
  const status = { phase: "Draining", startedAt: new Date(realClock.now()).toISOString(), drain };
  const patchType = "application/merge-patch+json";
  const path = `${departures}/n3-1/status`;
  api.handle({ method: "PATCH", path, patchType, body: { status } });
  await show("");
  await page.locator(".leaving .marks .here").first().waitFor();
  const moving = () =>
    page.evaluate(
      () =>
        [...document.querySelectorAll("*")].filter((one) => {
          const { transitionDuration, animationName } = getComputedStyle(one);
          const waits = transitionDuration.split(",").some((part) => Number.parseFloat(part) > 0);
          return waits || animationName !== "none";
        }).length,
    );
  await page.emulateMedia({ reducedMotion: "no-preference" });
  expect(await moving()).toBeGreaterThan(0);
  await page.emulateMedia({ reducedMotion: "reduce" });
  expect(await moving()).toBe(0);
  await page.emulateMedia({ reducedMotion: null });
});

test("the page logs no errors", () => {
  expect(open.complaints).toEqual([]);
});
