/**
 * Who holds a node, as the board of another user shows it, on a real API server: two users with
 * tokens of their own, a third one as whom the administrator acts, and kubectl.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type BoardProcess, startBoardProcess } from "../support/board-process.ts";
import { openBoard, startBrowser } from "../support/browser.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { nodeObject } from "../support/kwok-fleet.ts";
import { runLastcall } from "../support/lastcall-process.ts";
import { mustRun } from "./must-run.ts";

const account = (name: string) => `system:serviceaccount:people:${name}`;
let folder: string;
let plane: ControlPlane;
let browser: Browser;
let board: BoardProcess;
let page: Page;
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
  folder = mkdtempSync(join(tmpdir(), "lastcall-author-"));
  plane = await startControlPlane({
    ...{ withControllerManager: false, withScheduler: false, withKwok: false },
  });
  const crds = ["setup", "crds", "--apply", "--kubeconfig", plane.kubeconfig];
  expect((await runLastcall(crds, { folder })).code).toBe(0);
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
  await mustRun(plane, ["apply", "-f", "-"], {
    ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy" },
    ...{ metadata: { name: "spot" }, spec: { lifetime: { max: "24h" } } },
  });
  await mustRun(plane, ["create", "-f", "-"], nodeObject({ name: "n1" }));
  anna = await kubeconfigOf("anna");
  ben = await kubeconfigOf("ben");
  board = await startBoardProcess(["board", "--kubeconfig", ben], { folder });
  browser = await startBrowser();
  ({ page } = await openBoard(browser, board.url));
});

afterAll(async () => {
  await browser?.close();
  await board?.process.stop();
  await plane?.stop();
  rmSync(folder, { recursive: true, force: true });
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

/** The same credentials, acting as another user. */
function impersonating(kubeconfig: string, user: string): string {
  const config: Kubeconfig = JSON.parse(kubeconfig);
  const users = config.users.map((one) => ({ ...one, user: { ...one.user, as: user } }));
  return JSON.stringify({ ...config, users });
}

interface Kubeconfig {
  readonly users: readonly { readonly name: string; readonly user: object }[];
}
