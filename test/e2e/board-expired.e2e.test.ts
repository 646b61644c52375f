/** The board while the API server rejects the user's credentials, and afterwards. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type BoardProcess, startBoardProcess } from "../support/board-process.ts";
import { openBoard, startBrowser } from "../support/browser.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { mustRun } from "./must-run.ts";

const names = ["n1", "n2", "n3"];

let plane: ControlPlane;
let proxy: FaultProxy;
let browser: Browser;
let board: BoardProcess;
let page: Page;
let folder: string;
/** Whether the token has expired. */
let isExpired = false;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-expired-"));
  plane = await startControlPlane();
  const deploy = join(import.meta.dirname, "..", "..", "deploy");
  await mustRun(plane, ["apply", "-k", join(deploy, "crds")]);
  await mustRun(plane, ["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
  await mustRun(plane, ["apply", "-f", "-"], {
    ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy", metadata: { name: "spot" } },
    spec: { lifetime: { max: "24h" } },
  });
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
    ...{ apiVersion: "v1", kind: "Config", "current-context": "a" },
    clusters: [{ name: "a", cluster: { server: proxy.url } }],
    users: [{ name: "a", user: { token: plane.adminToken } }],
    contexts: [{ name: "a", context: { cluster: "a", user: "a" } }],
  };
  writeFileSync(kubeconfig, JSON.stringify(config));
  browser = await startBrowser();
  board = await startBoardProcess(["board", "--kubeconfig", kubeconfig], { folder });
  ({ page } = await openBoard(browser, board.url));
});
afterAll(async () => {
  await browser?.close();
  await board?.process.stop();
  await proxy?.close();
  await plane?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const leaving = () => page.locator("table.next tbody tr");

test("says that the credentials are rejected and what to do, and keeps its rows", async () => {
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
