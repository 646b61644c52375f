/**
 * The live board: the browser that the board opens, a drain pod by pod with the budgets that block
 * it, a node that has to be gone by a time, two people who act on one node, and the policy of a
 * what-if.
 */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { explain } from "../../src/core/reason/reason.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import { type ModelServer, serveModel } from "../../src/sim/http/serve-model.ts";
import { startBrowser } from "../support/browser.ts";
import { type LastcallProcess, startLastcall } from "../support/lastcall-process.ts";
import { modelClusterApi } from "../support/model-cluster-api.ts";
import { waitUntil } from "../support/wait-until.ts";

const apiVersion = "lastcall.dev/v1alpha1";
const departures = "/apis/lastcall.dev/v1alpha1/departures";
const policies = "/apis/lastcall.dev/v1alpha1/departurepolicies";
const pods = "/api/v1/namespaces/default/pods";
const hourMs = 3_600_000;

let api: Awaited<ReturnType<typeof modelClusterApi>>;
let model: ModelServer;
let board: LastcallProcess;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let folder: string;
let url: string;

interface Read {
  readonly metadata?: {
    readonly uid?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: { readonly deadlineAt?: string; readonly departAt?: string };
  readonly items?: readonly Read[];
}

function ask(method: "GET" | "POST" | "DELETE", path: string, body?: object): Read {
  const answer = api.handle({ method, path, body });
  if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
  return answer.body as Read;
}

function patch(path: string, body: object): void {
  api.handle({ method: "PATCH", path, patchType: "application/merge-patch+json", body });
}

const show = async (hash: string, on = page): Promise<void> => {
  await on.goto(new URL(`.#/${hash}`, url).href);
  await on.locator("main h2").first().waitFor();
};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-live-"));
  api = await modelClusterApi(realClock);
  for (const name of ["n1", "n2", "n3"]) {
    const labels = { "cloud.google.com/gke-spot": "true", "topology.kubernetes.io/zone": "a" };
    const spec = { providerID: `gce://demo/a/${name}` };
    const body = { apiVersion: "v1", kind: "Node", metadata: { name, labels }, spec, status: {} };
    ask("POST", "/api/v1/nodes", body);
  }
  const spec = { lifetime: { max: "36h" }, spacing: { min: "15m" } };
  ask("POST", policies, { apiVersion, kind: "DeparturePolicy", metadata: { name: "spot" }, spec });
  model = await serveModel({ api });
  writeFileSync(join(folder, "kubeconfig"), model.kubeconfig);
  // Replaces the program that opens addresses on Linux.
  const opened = join(folder, "opened");
  writeFileSync(join(folder, "xdg-open"), `#!/bin/sh\nprintf '%s' "$1" > ${opened}\n`);
  chmodSync(join(folder, "xdg-open"), 0o755);
  const args = ["board", "--open", "--address", "127.0.0.1:18087"];
  board = startLastcall([...args, "--kubeconfig", join(folder, "kubeconfig")], {
    ...{ folder, env: { PATH: `${folder}:${process.env.PATH}` } },
  });
  url = await waitUntil(
    async () => (existsSync(opened) ? readFileSync(opened, "utf8") || undefined : undefined),
    { what: "an address is opened", timeoutMs: 30_000, signal: board.death },
  );
  browser = await startBrowser();
  context = await browser.newContext({ timezoneId: "UTC", locale: "en-GB" });
  page = await context.newPage();
});
afterAll(async () => {
  await browser?.close();
  await board?.stop();
  await model?.close();
  rmSync(folder, { recursive: true, force: true });
});

test("--open opens the printed address, which shows the board", async () => {
  expect(board.out()).toBe(`${url}\n`);
  await page.goto(url);
  await expect.poll(() => page.locator("table.next tbody tr").count()).toBe(3);
  expect(board.log()).not.toContain("Cannot open");
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

describe("a drain", () => {
  const names = ["web-0", "web-1", "db-0"];
  const status = (left: number, more: object = {}): void => {
    const gone = names.length - left;
    const drain = { total: names.length, left, evicted: gone, forced: 0, waiting: left };
    patch(`${departures}/n1-1/status`, {
      status: { drain: { ...drain, blocked: 0, cut: 0 }, ...more },
    });
  };
  const end = (pod: string, gracePeriodSeconds: number): Read =>
    ask("DELETE", `${pods}/${pod}`, { gracePeriodSeconds });
  const bar = (pod: string) => page.locator("table.bars tbody tr", { hasText: pod });

  beforeAll(() => {
    for (const name of names) {
      const containers = [{ name: "c", image: "registry.example/c:1" }];
      const spec = { nodeName: "n1", containers, terminationGracePeriodSeconds: 30 };
      ask("POST", pods, { apiVersion: "v1", kind: "Pod", metadata: { name }, spec });
      patch(`${pods}/${name}/status`, { status: { phase: "Running" } });
    }
  });

  test("is shown pod by pod as it proceeds, without a reload", async () => {
    await show("node/n1");
    await expect.poll(() => page.locator("table.bars tbody tr").count()).toBe(3);
    const { uid } = ask("GET", "/api/v1/nodes/n1").metadata ?? {};
    const spec = { node: { name: "n1", uid }, cause: "Manual" };
    ask("POST", departures, { apiVersion, kind: "Departure", metadata: { name: "n1-1" }, spec });
    const startedAt = new Date(realClock.now()).toISOString();
    status(3, { phase: "Draining", startedAt });
    await page.getByRole("button", { name: "What happened" }).waitFor();
    await expect.poll(() => page.getByText("not evicted").count()).toBe(3);

    end("web-0", 30);
    status(3, { message: "n1 is draining." });
    await bar("web-0").locator(".took.going").waitFor();
    await bar("web-0").getByText("terminating").waitFor();
    expect(await page.getByText("not evicted").count()).toBe(2);
    // It grows with time, without an update.
    const wide = () =>
      bar("web-0")
        .locator(".took")
        .evaluate((one) => Number.parseFloat((one as HTMLElement).style.width));
    const before = await wide();
    await expect.poll(wide).toBeGreaterThan(before);

    end("web-0", 0);
    status(2);
    await bar("web-0").locator(".took:not(.going)").waitFor();
    expect(await bar("web-0").textContent()).not.toContain("terminating");
    expect(await page.locator(".node-head .marks .gone").count()).toBe(1);
    expect(await page.locator(".node-head .marks .here").count()).toBe(2);
  });

  test("shows in the list which budgets block it, with their messages", async () => {
    const budget = (name: string, count: number): string =>
      `The disruption budget ${name} needs ${count} healthy pods and has ${count} currently`;
    const detail = `default/web-1: ${budget("web", 2)}; default/db-0: ${budget("db", 1)}`;
    const reason = "DrainBlocked";
    const drain = { total: 3, left: 2, evicted: 1, forced: 0, waiting: 0, blocked: 2, cut: 0 };
    patch(`${departures}/n1-1/status`, {
      status: { reason, message: explain(reason, { node: "n1", detail }), drain },
    });
    await show("");
    const row = page.locator(".leaving li", { hasText: "n1" });
    await row.getByText("2 of 3 pods still there, 2 blocked").waitFor();
    for (const name of ["web-1", "db-0"]) await row.getByText(`default/${name}: The`).waitFor();
    await row.getByText(budget("web", 2)).waitFor();
    await row.getByText(budget("db", 1)).waitFor();
    expect(await row.locator(".marks .blocked").count()).toBe(2);
    await page.evaluate(() => localStorage.setItem("lastcall-language", "ja"));
    await page.reload();
    await row.getByText(`ブロックされています: default/web-1: ${budget("web", 2)}、`).waitFor();
    await page.evaluate(() => localStorage.setItem("lastcall-language", "en"));
    await page.reload();
  });

  test("has an arrow on the timeline, and planned departures have circles", async () => {
    await show("timeline");
    await page.locator(".drawing g.lane.Leaving path.depart").waitFor();
    await page.getByRole("button", { name: "48 hours", exact: true }).click();
    const circles = page.locator(".drawing g.lane.Scheduled circle.depart");
    await expect.poll(() => circles.count()).toBe(2);
    expect(await page.locator(".drawing g.lane.Leaving circle").count()).toBe(0);
  });
});

test("a node is requested to be gone by a time", async () => {
  await show("node/n2");
  await page.getByRole("button", { name: "Depart", exact: true }).click();
  const by = new Date(realClock.now() + 3 * hourMs).toISOString().slice(0, 16);
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Gone by").fill(by);
  const command = dialog.locator(".command code");
  await expect.poll(() => command.textContent()).toContain("--by");
  // If the user denies clipboard access, the command is selected so that it can be copied.
  await page.evaluate(() => {
    const value = () => Promise.reject(new DOMException("denied", "NotAllowedError"));
    Object.defineProperty(navigator.clipboard, "writeText", { value, configurable: true });
  });
  await dialog.getByRole("button", { name: "Copy" }).click();
  await dialog.getByText("Selected: press Ctrl+C (⌘C) to copy it.").waitFor();
  expect(await page.evaluate(() => String(getSelection()))).toBe(await command.textContent());
  await page.evaluate(() => Reflect.deleteProperty(navigator.clipboard, "writeText"));
  await dialog.getByRole("button", { name: "Confirm" }).click();
  await dialog.locator(".answer.good").waitFor();
  await dialog.getByRole("button", { name: "Close" }).click();
  const asked = (ask("GET", departures).items ?? []).filter(({ spec }) => spec?.deadlineAt);
  expect(asked.map(({ spec }) => Date.parse(spec?.deadlineAt ?? ""))).toEqual([
    Date.parse(`${by}Z`),
  ]);
});

test("the second of two people who hold one node is told that it is already held", async () => {
  const other = await context.newPage();
  for (const one of [page, other]) {
    await show("node/n3", one);
    await one.getByRole("button", { name: "Hold", exact: true }).click();
    await one.getByRole("dialog").getByRole("button", { name: "Until released" }).click();
    await one.getByRole("dialog").locator(".command").waitFor();
    await one.getByRole("dialog").getByRole("button", { name: "Confirm" }).waitFor();
  }
  const sent: number[] = [];
  other.on("response", (answer) => {
    if (answer.url().endsWith("/api/act")) sent.push(answer.status());
  });
  await page.getByRole("dialog").getByRole("button", { name: "Confirm" }).click();
  await page.locator("dialog .answer.good").waitFor();
  await other.getByRole("dialog").getByRole("button", { name: "Confirm" }).click();
  await other.locator("dialog .answer.held").waitFor();
  // The change is visible before anything can be confirmed again.
  await other
    .locator("dialog")
    .getByText(/^Held.* until released$/)
    .waitFor();
  expect(sent).toHaveLength(1);
  const { annotations } = ask("GET", "/api/v1/nodes/n3").metadata ?? {};
  expect(annotations?.["lastcall.dev/hold"]).toBe("true");
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await other.close();
});

test("the edited policy of a what-if can be copied", async () => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await show("timeline");
  await page.getByRole("button", { name: "What if" }).click();
  const area = page.locator(".what-if textarea");
  await area.waitFor();
  const edited = (await area.inputValue()).replace("36h", "30h");
  await area.fill(edited);
  const copy = page.locator(".what-if").getByRole("button", { name: /Copy|Copied/ });
  await copy.click();
  await page.locator(".what-if").getByRole("button", { name: "Copied" }).waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied).toBe(edited);
  expect(copied).toContain("max: 30h");
  // Later edits are not in the clipboard.
  await area.fill(edited.replace("30h", "20h"));
  await expect.poll(() => copy.textContent()).toBe("Copy");
  // If pages have no access to the clipboard, the text is selected so that it can be copied.
  await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
  await copy.click();
  await page.locator(".what-if").getByText("Selected: press Ctrl+C (⌘C) to copy it.").waitFor();
  const selected = await area.evaluate((element) => {
    const { selectionStart, selectionEnd, value } = element as HTMLTextAreaElement;
    return document.activeElement === element && value.slice(selectionStart, selectionEnd);
  });
  expect(selected).toBe(edited.replace("30h", "20h"));
});
