/**
 * The board on a real control plane that refuses: before Lastcall's CRDs are installed, and while
 * the user's credentials are rejected.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type BoardProcess, startBoardProcess } from "../support/board-process.ts";
import { type OpenPage, openBoard, startBrowser } from "../support/browser.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { mustRun } from "./must-run.ts";

const names = ["n1", "n2", "n3"];
/** As the command line of Google Cloud names it. */
const cluster = "gke_my-company-production-123456_europe-west1-b_spot-cluster-main-blue";

let plane: ControlPlane;
let proxy: FaultProxy;
let browser: Browser;
let board: BoardProcess;
let open: OpenPage;
let page: Page;
let folder: string;
/** Whether the token has expired. */
let isExpired = false;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-bare-"));
  plane = await startControlPlane();
  await createNodes(
    plane,
    names.map((name) => ({ name })),
  );
  proxy = await startFaultProxy({
    target: plane.url,
    ca: () => readFileSync(plane.caFile, "utf8"),
    faultFor: () => (isExpired ? { kind: "Status", code: 401 } : undefined),
  });
  const kubeconfig = join(folder, "kubeconfig");
  const config = {
    ...{ apiVersion: "v1", kind: "Config", "current-context": cluster },
    clusters: [{ name: cluster, cluster: { server: proxy.url } }],
    users: [{ name: "a", user: { token: plane.adminToken } }],
    contexts: [{ name: cluster, context: { cluster, user: "a" } }],
  };
  writeFileSync(kubeconfig, JSON.stringify(config));
  browser = await startBrowser();
  board = await startBoardProcess(["board", "--kubeconfig", kubeconfig], { folder });
  open = await openBoard(browser, board.url);
  ({ page } = open);
});
afterAll(async () => {
  await browser?.close();
  await board?.process.stop();
  await proxy?.close();
  await plane?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const show = async (hash: string): Promise<void> => {
  await page.goto(new URL(`.#/${hash}`, board.url).href);
  await page.locator("main > div").waitFor();
};

const leaving = () => page.locator("table.next tbody tr");

test("keeps a cluster's long name on one line of a phone, with its end", async () => {
  await page.setViewportSize({ width: 360, height: 780 });
  const heading = page.getByRole("heading", { level: 1 });
  const { height = 0 } = (await heading.boundingBox()) ?? {};
  expect(height).toBeLessThan(40);
  const name = page.locator(".cluster .cut");
  expect(await name.getAttribute("title")).toBe(cluster);
  const end = await name.locator("span").last().boundingBox();
  const language = await page.locator(".tastes").boundingBox();
  expect(await name.locator("span").last().textContent()).toBe("main-blue");
  expect((end?.x ?? 0) + (end?.width ?? 0)).toBeLessThan(language?.x ?? 0);
  await page.setViewportSize({ width: 1280, height: 860 });
  expect((await heading.boundingBox())?.height).toBeLessThan(40);
});

test("names each missing definition, and shows every node", async () => {
  const lines = page.locator(".notice li");
  await expect.poll(() => lines.count()).toBe(2);
  const said = await lines.allTextContents();
  for (const what of ["departurepolicies.lastcall.dev", "departures.lastcall.dev"]) {
    const [line, ...more] = said.filter((one) => one.includes(what));
    expect([what, more]).toEqual([what, []]);
    expect(line).toMatch(/lastcall setup crds/);
  }
  await page.getByText("Not planned", { exact: true }).click();
  await expect.poll(() => page.locator("table.staying a.name").allTextContents()).toEqual(names);
  await show("timeline");
  await expect.poll(() => page.locator(".drawing g.lane").count()).toBe(names.length);
  // Policies are unknown, so none are shown.
  expect(await page.locator("section.cards").count()).toBe(0);
  await show("outcomes");
  await page.getByText("Cannot be read: the notice above says why").first().waitFor();
  await show("node/n2");
  await page.getByRole("heading", { name: "n2" }).waitFor();
  expect(await page.getByRole("button", { name: "Depart", exact: true }).count()).toBe(0);
  const steps = page.getByRole("region", { name: "Steps" });
  await steps.getByText("Cannot be read: the notice above says why").waitFor();
});

test("shows the plan once the definitions are installed, without a restart", async () => {
  const deploy = join(import.meta.dirname, "..", "..", "deploy");
  await mustRun(plane, ["apply", "-k", join(deploy, "crds")]);
  await mustRun(plane, ["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
  await show("");
  await page
    .getByText("so no departure is planned. Create one")
    .first()
    .waitFor({ timeout: 60_000 });
  await mustRun(plane, ["apply", "-f", "-"], {
    ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy", metadata: { name: "spot" } },
    spec: { lifetime: { max: "24h" } },
  });
  await expect.poll(() => leaving().count(), { timeout: 60_000 }).toBe(names.length);
  // Each resource is retried after its own 20 s.
  await expect.poll(() => page.locator(".notice").count(), { timeout: 60_000 }).toBe(0);
  await show("node/n2");
  await page.getByRole("button", { name: "Depart", exact: true }).waitFor();
  expect(open.complaints).toEqual([]);
});

test("says that the credentials are rejected and what to do, and keeps its rows", async () => {
  await show("");
  await expect.poll(() => leaving().count()).toBe(names.length);
  isExpired = true;
  proxy.reset();
  const said = page.getByText(/rejected the credentials/).first();
  await said.waitFor();
  expect(await said.textContent()).toMatch(/check the kubeconfig/);
  expect(await leaving().count()).toBe(names.length);
});

test("reports that a hold fails because of rejected credentials", async () => {
  await page.goto(new URL(".#/node/n2", board.url).href);
  await page.getByRole("button", { name: "Hold", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Confirm" }).click();
  await page
    .locator("dialog .answer.held")
    .getByText(/rejected the credentials/)
    .waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Back" }).click();
  const { metadata } = (await plane.request({ path: "/api/v1/nodes/n2" })).body;
  expect(metadata.annotations?.["lastcall.dev/hold"]).toBeUndefined();
});

test("continues on its own once the credentials are accepted again", async () => {
  isExpired = false;
  await page.goto(new URL(".#/", board.url).href);
  await expect
    .poll(() => page.getByText(/rejected the credentials/).count(), { timeout: 60_000 })
    .toBe(0);
  await mustRun(plane, ["delete", "node", "n3"]);
  await expect.poll(() => leaving().count(), { timeout: 30_000 }).toBe(2);
});
