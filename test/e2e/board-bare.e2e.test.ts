/** The board on a real control plane before and after Lastcall's CRDs are installed. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type BoardProcess, startBoardProcess } from "../support/board-process.ts";
import { type OpenPage, openBoard, startBrowser } from "../support/browser.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { mustRun } from "./must-run.ts";

const names = ["n1", "n2", "n3"];

let plane: ControlPlane;
let browser: Browser;
let board: BoardProcess;
let open: OpenPage;
let page: Page;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-bare-"));
  plane = await startControlPlane();
  await createNodes(
    plane,
    names.map((name) => ({ name })),
  );
  browser = await startBrowser();
  board = await startBoardProcess(["board", "--kubeconfig", plane.kubeconfig], { folder });
  open = await openBoard(browser, board.url);
  ({ page } = open);
});
afterAll(async () => {
  await browser?.close();
  await board?.process.stop();
  await plane?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const show = async (hash: string): Promise<void> => {
  await page.goto(new URL(`.#/${hash}`, board.url).href);
  await page.locator("main > div").waitFor();
};

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
  await expect
    .poll(() => page.locator("table.next tbody tr").count(), { timeout: 60_000 })
    .toBe(names.length);
  // Each resource is retried after its own 20 s.
  await expect.poll(() => page.locator(".notice").count(), { timeout: 60_000 }).toBe(0);
  await show("node/n2");
  await page.getByRole("button", { name: "Depart", exact: true }).waitFor();
  expect(open.complaints).toEqual([]);
});
