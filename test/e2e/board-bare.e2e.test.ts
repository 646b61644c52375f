/**
 * The board on a real control plane without a controller: before Lastcall's CRDs are installed,
 * while the user's credentials are rejected, and who holds a node, as the board of another user
 * shows it: two users with tokens of their own, a third one as whom the administrator acts, and
 * kubectl.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BoardProcess, startBoardProcess } from "../support/board-process.ts";
import { type OpenPage, openBoard, startBrowser } from "../support/browser.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { runLastcall } from "../support/lastcall-process.ts";
import { mustRun } from "./must-run.ts";

const names = ["n1", "n2", "n3"];
const account = (name: string) => `system:serviceaccount:people:${name}`;
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
  const crds = ["setup", "crds", "--apply", "--kubeconfig", plane.kubeconfig];
  expect((await runLastcall(crds, { folder })).code).toBe(0);
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

describe("the holds of several users", () => {
  let anna: string;
  let ben: string;

  async function kubeconfigOf(name: string): Promise<string> {
    await mustRun(plane, ["create", "serviceaccount", name, "-n", "people"]);
    const binding = ["create", "clusterrolebinding", name, "--clusterrole", "holder"];
    await mustRun(plane, [...binding, "--serviceaccount", `people:${name}`]);
    return plane.kubeconfigFor(name, await plane.tokenFor("people", name));
  }

  async function hold(kubeconfig: string, ...args: readonly string[]): Promise<string> {
    const command = ["hold", "n1", ...args, "--kubeconfig", kubeconfig];
    const { code, stdout, stderr } = await runLastcall(command, { folder });
    expect([code, stderr]).toEqual([0, expect.any(String)]);
    return `${stdout}${stderr}`;
  }

  const shown = (text: RegExp) => page.getByText(text).first().waitFor();

  beforeAll(async () => {
    await mustRun(plane, ["create", "namespace", "people"]);
    const look = { verbs: ["get", "list", "watch"] };
    await mustRun(plane, ["apply", "-f", "-"], {
      ...{ apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole" },
      metadata: { name: "holder" },
      rules: [
        { apiGroups: [""], resources: ["nodes"], verbs: [...look.verbs, "patch"] },
        { ...look, apiGroups: ["lastcall.dev"], resources: ["departures", "departurepolicies"] },
      ],
    });
    anna = await kubeconfigOf("anna");
    ben = await kubeconfigOf("ben");
    await board.process.stop();
    board = await startBoardProcess(["board", "--kubeconfig", ben], { folder });
    ({ page } = await openBoard(browser, board.url));
  });

  test("a hold from a terminal is the user's who set it, on the board of another", async () => {
    await hold(anna);
    await shown(/^Held by system:serviceaccount:people:anna since .*, until released$/);
  });

  test("the other one is told whose hold is replaced, and becomes its author", async () => {
    const said = await hold(ben, "--for", "4h");
    expect(said).toContain(`It replaces the hold "true" of n1 by ${account("anna")}`);
    await page.goto(new URL(".#/node/n1", board.url).href);
    await shown(/Held by system:serviceaccount:people:ben since .*, until /);
  });

  test("a hold as another user by the kubeconfig is that user's", async () => {
    const as = join(folder, "as-carla");
    writeFileSync(as, impersonating(readFileSync(plane.kubeconfig, "utf8"), account("carla")));
    await mustRun(plane, [
      ...["create", "clusterrolebinding", "carla", "--clusterrole", "holder"],
      ...["--serviceaccount", "people:carla"],
    ]);
    await hold(as);
    await shown(/^Held by system:serviceaccount:people:carla since .*, until released$/);
  });

  test("a hold that kubectl sets is nobody's who held the node before", async () => {
    const annotate = ["annotate", "--overwrite", "node", "n1", "lastcall.dev/hold=9h"];
    expect((await plane.kubectl(annotate, { kubeconfig: anna })).code).toBe(0);
    await shown(/^Held by kubectl-annotate since /);
    const said = await hold(ben);
    expect(said).toContain('It replaces the hold "9h" of n1 by kubectl-annotate');
    await shown(/^Held by system:serviceaccount:people:ben since .*, until released$/);
  });

  test("nothing of it is left when the hold ends", async () => {
    expect(await hold(anna, "--undo")).toContain(`of n1 by ${account("ben")}`);
    const { stdout } = await plane.kubectl(["get", "node", "n1", "-o", "yaml"]);
    expect(stdout).not.toContain("lastcall.dev/hold");
  });
});

/** The same credentials, acting as another user. */
function impersonating(kubeconfig: string, user: string): string {
  const config: Kubeconfig = JSON.parse(kubeconfig);
  const users = config.users.map((one) => ({ ...one, user: { ...one.user, as: user } }));
  return JSON.stringify({ ...config, users });
}

interface Kubeconfig {
  readonly users: readonly { readonly name: string; readonly user: object }[];
}
