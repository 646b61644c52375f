/** The board in a real browser on a real control plane, with the real controller at work. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { realClock } from "../../src/runtime/real-clock.ts";
import { type BoardProcess, startBoardProcess } from "../support/board-process.ts";
import { type OpenPage, openBoard, startBrowser } from "../support/browser.ts";
import { FleetWorld } from "./fleet-world.ts";
import { mustRun } from "./must-run.ts";

let world: FleetWorld;
let browser: Browser;
let folder: string;
const boards: BoardProcess[] = [];

async function openFor(kubeconfig: string): Promise<OpenPage & { readonly url: string }> {
  const board = await startBoardProcess(["board", "--kubeconfig", kubeconfig], { folder });
  boards.push(board);
  return { ...(await openBoard(browser, board.url)), url: board.url };
}

/** A kubeconfig of a user with exactly these RBAC rules. */
async function kubeconfigOf(name: string, rules: readonly object[]): Promise<string> {
  const meta = { metadata: { name } };
  const rbac = { apiVersion: "rbac.authorization.k8s.io/v1" };
  const account = { kind: "ServiceAccount", name, namespace: "lastcall" };
  await mustRun(world.plane, ["create", "serviceaccount", name, "-n", "lastcall"]);
  await mustRun(world.plane, ["apply", "-f", "-"], {
    ...rbac,
    kind: "ClusterRole",
    ...meta,
    rules,
  });
  await mustRun(world.plane, ["apply", "-f", "-"], {
    ...{ ...rbac, kind: "ClusterRoleBinding", ...meta, subjects: [account] },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
  });
  return world.plane.kubeconfigFor(name, await world.plane.tokenFor("lastcall", name));
}

const look = { verbs: ["get", "list", "watch"] };
const mayLook = [
  { ...look, apiGroups: [""], resources: ["nodes", "pods"] },
  { ...look, apiGroups: ["policy"], resources: ["poddisruptionbudgets"] },
  { ...look, apiGroups: ["lastcall.dev"], resources: ["departures", "departurepolicies"] },
];

async function kubectl(...args: readonly string[]): Promise<string> {
  return (await world.plane.kubectl(args)).stdout.trim();
}

function holdOn(node: string): Promise<string> {
  return kubectl("get", "node", node, "-o", "jsonpath={.metadata.annotations.lastcall\\.dev/hold}");
}

/** Confirms the open dialog and returns the text of the result. */
async function confirm(page: Page): Promise<string> {
  const dialog = page.getByRole("dialog");
  await dialog.locator(".command").waitFor();
  await dialog.getByRole("button", { name: "Confirm" }).click();
  const answer = await dialog.locator(".answer.good, .answer.held").textContent();
  await dialog.getByRole("button", { name: /Close|Back/ }).click();
  return answer ?? "";
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-board-"));
  browser = await startBrowser();
  world = await FleetWorld.start();
  await world.applyPolicy({
    lifetime: { max: "24h" },
    drain: { timeout: "2m", onTimeout: "Wait" },
  });
  await world.startController(await world.controllerKubeconfig());
  await world.until("departures are planned", async () => (await world.departures()).length === 9);
});

afterAll(async () => {
  await browser?.close();
  await Promise.all(boards.map(({ process }) => process.stop()));
  await world?.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe("the board of a user with all permissions", () => {
  let open: OpenPage;
  let page: Page;

  test("shows the next departures in the order of the cluster's Departures", async () => {
    open = await openFor(world.plane.kubeconfig);
    ({ page } = open);
    await expect.poll(() => page.locator("table.next tbody tr").count()).toBe(9);
    const shown = await page.locator("table.next a.name").allTextContents();
    const byTime = (await world.departures()).toSorted((a, b) =>
      String(a.spec?.departAt) < String(b.spec?.departAt) ? -1 : 1,
    );
    expect(shown).toEqual(byTime.map(({ spec }) => spec?.node?.name));
  });

  test("puts a hold on a node and removes it, both visible to kubectl", async () => {
    await page.goto(new URL(".#/node/spot-5", page.url()).href);
    await page.getByRole("button", { name: "Hold", exact: true }).click();
    expect(await confirm(page)).toContain("spot-5 has no planned departure");
    expect(await holdOn("spot-5")).toBe("true");
    await page.getByText(/^Held by e2e-admin since .*, until released$/).waitFor();
    await page.getByRole("button", { name: "Release hold" }).click();
    await confirm(page);
    expect(await holdOn("spot-5")).toBe("");
  });

  test("shows a kubectl command that works from a terminal without a kubeconfig", async () => {
    await page.getByRole("button", { name: "Hold", exact: true }).click();
    const line = (await page.locator("dialog .command code").textContent()) ?? "";
    await page.getByRole("dialog").getByRole("button", { name: "Back" }).click();
    const [program, ...args] = line.split(" ");
    expect(program).toBe("kubectl");
    const { code, stderr } = await world.plane.kubectl(args, { kubeconfig: "/dev/null" });
    expect([code, stderr]).toEqual([0, ""]);
    expect(await holdOn("spot-5")).toBe("true");
    await page.getByText(/^Held by kubectl-annotate since .*, until released$/).waitFor();
    await page.getByRole("button", { name: "Release hold" }).click();
    await confirm(page);
    expect(await holdOn("spot-5")).toBe("");
  });

  test("freezes the policy, and ends the freeze", async () => {
    const freeze = () => kubectl("get", "dpol", "spot", "-o", "jsonpath={.spec.gates.freezeUntil}");
    await page.goto(new URL(".#/timeline", page.url()).href);
    await page.getByRole("button", { name: "Freeze", exact: true }).click();
    await confirm(page);
    expect(await freeze()).toMatch(/^20\d\d-.*T09:00:00/);
    await page.getByRole("button", { name: "End freeze" }).click();
    await confirm(page);
    expect(await freeze()).toBe("");
  });

  const webMayLose = (maxUnavailable: number) =>
    kubectl("patch", "pdb", "web", "-p", JSON.stringify({ spec: { maxUnavailable } }));

  test("makes a node depart, and shows the message of the budget that blocks it", async () => {
    await webMayLose(0);
    await page.goto(new URL(".#/node/spot-1", page.url()).href);
    await page.getByRole("button", { name: "Depart", exact: true }).click();
    expect(await page.getByRole("dialog").textContent()).toMatch(/spot-1/);
    await confirm(page);
    await page.goto(new URL(".#/", page.url()).href);
    const row = page.locator(".leaving li", { hasText: "spot-1" });
    const words = /default\/web-\S+: The disruption budget web needs 20 healthy pods/;
    await row.getByText(words).waitFor({ timeout: 60_000 });
    await row.getByText(/\d+ blocked/).waitFor();
  });

  test("shows the drain pod by pod, up to its outcome", async () => {
    await page.goto(new URL(".#/node/spot-1", page.url()).href);
    await page.getByRole("button", { name: "What happened" }).waitFor();
    const pods = page.locator("table.bars tbody tr");
    const gone = pods.filter({ has: page.locator(".took:not(.going)") });
    const web = pods.filter({ hasText: /web-/ });
    const held = web.filter({ hasText: "not evicted" });
    const [all, ofWeb] = [await pods.count(), await web.count()];
    // All pods leave meanwhile, except those of the budget.
    await expect.poll(() => gone.count(), { timeout: 60_000 }).toBe(all - ofWeb);
    expect([ofWeb > 0, await held.count()]).toEqual([true, ofWeb]);
    await webMayLose(2);
    await expect.poll(() => gone.count(), { timeout: 60_000 }).toBe(all);
    await page.goto(new URL(".#/", page.url()).href);
    const past = page.locator("ul.past li", { hasText: "spot-1 is drained" });
    await past.waitFor({ timeout: 180_000 });
    expect(await past.locator(".outcome").textContent()).toBe("Planned");
    const departures = await world.departures();
    const asked = departures.filter(({ spec }) => spec?.cause === "Manual");
    expect(asked.map(({ status }) => status?.outcome)).toEqual(["Planned"]);
  });

  test("schedules a departure in two hours, and cancels it", async () => {
    const asked = async () =>
      (await world.departures()).filter(
        ({ spec, status }) =>
          spec?.node?.name === "spot-2" && spec?.cause === "Manual" && status?.phase !== "Ended",
      );
    await page.goto(new URL(".#/node/spot-2", page.url()).href);
    await page.getByRole("button", { name: "Depart", exact: true }).click();
    const at = new Date(realClock.now() + 2 * 3_600_000).toISOString().slice(0, 16);
    await page.getByLabel("At a time").fill(at);
    await confirm(page);
    const times = (await asked()).map(({ spec }) => Date.parse(spec?.departAt ?? ""));
    expect(times).toEqual([Date.parse(`${at}Z`)]);
    await page.getByRole("button", { name: "Cancel departure", exact: true }).click();
    await confirm(page);
    expect(await asked()).toEqual([]);
  });

  test("sends no requests elsewhere and logs no errors", () => {
    expect(open.complaints).toEqual([]);
  });
});

describe("the board of a user with read-only permissions", () => {
  let page: Page;

  test("shows the fleet, and offers no acts", async () => {
    ({ page } = await openFor(await kubeconfigOf("looker", mayLook)));
    await page.goto(new URL(".#/node/spot-6", page.url()).href);
    await page.getByText("You can view, but not act").waitFor();
    await page.locator("table.bars").waitFor();
    expect(await page.locator(".acts button").count()).toBe(0);
  });

  test("passes a forged act on, which the API server rejects", async () => {
    const node = JSON.parse(await kubectl("get", "node", "spot-6", "-o", "json"));
    const act = { kind: "Hold", node: "spot-6", uid: node.metadata.uid, until: null };
    const answer = await page.evaluate(async (forged) => {
      const body = JSON.stringify({ act: forged, seen: "null", key: "a-forged-act" });
      const headers = { "content-type": "application/json" };
      const response = await fetch("api/act", { method: "POST", headers, body });
      return { status: response.status, json: await response.json() };
    }, act);
    expect(answer.status).toBe(409);
    expect(answer.json.says).toMatch(/forbidden/);
    expect(await holdOn("spot-6")).toBe("");
  });

  test("offers an act granted in the meantime after a reload", async () => {
    const mayHold = { verbs: ["patch"], apiGroups: [""], resources: ["nodes"] };
    await mustRun(world.plane, ["apply", "-f", "-"], {
      ...{ apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole" },
      ...{ metadata: { name: "looker" }, rules: [...mayLook, mayHold] },
    });
    const offered = async (): Promise<readonly string[]> => {
      await page.reload();
      await page.locator("table.bars").waitFor();
      return page.locator(".acts button").allTextContents();
    };
    await expect.poll(offered, { timeout: 60_000, interval: 2_000 }).toEqual(["Hold"]);
  });
});

describe("the board of a user who may read only nodes", () => {
  test("names each missing permission, and shows the nodes", async () => {
    const rules = [{ ...look, apiGroups: [""], resources: ["nodes"] }];
    const { page } = await openFor(await kubeconfigOf("nodesonly", rules));
    const notice = page.locator(".notice li");
    await expect.poll(() => notice.count()).toBe(4);
    const said = (await notice.allTextContents()).join("\n");
    for (const what of ["departures", "departurepolicies", "pods", "poddisruptionbudgets"]) {
      expect(said).toContain(what);
    }
    await page.getByText("Not planned", { exact: true }).click();
    await expect.poll(() => page.locator("table.staying tbody tr").count()).toBe(9);
  });
});

describe("the board of a user who may read all but nodes", () => {
  test("says of neither a node nor a policy what only the nodes would show", async () => {
    const rules = mayLook.filter(({ resources }) => !resources.includes("nodes"));
    const { page } = await openFor(await kubeconfigOf("nodeless", rules));
    await page.getByRole("link", { name: "Timeline" }).click();
    await page.locator(".card").getByText("Cannot be read").waitFor();
    expect(await page.locator(".card").textContent()).not.toMatch(/On schedule|\d+ node/);
    // It has departed, and is still there under the name of its next machine.
    await page.goto(new URL(".#/node/spot-1", page.url()).href);
    await page.locator(".node-head").getByText("Cannot be read").waitFor();
    expect(await page.locator(".node-head").textContent()).not.toContain("gone");
  });
});

describe("an outage of the API server", () => {
  test("is reported on the page, which keeps all rows and afterwards repeats none", async () => {
    const { page } = await openFor(world.plane.kubeconfig);
    await expect.poll(() => page.locator("table.next tbody tr").count()).toBeGreaterThan(0);
    const before = await page.locator("table.next a.name").allTextContents();
    await world.plane.stopApiServer();
    const stoppedMs = realClock.monotonic();
    await page.getByText("The cluster has not responded since").waitFor({ timeout: 90_000 });
    await page.locator("main.stale").waitFor();
    // For at least half a minute: by then every watch has failed and been retried.
    const awayMs = () => realClock.monotonic() - stoppedMs;
    await expect.poll(awayMs, { timeout: 40_000, interval: 500 }).toBeGreaterThan(30_000);
    expect(await page.locator("table.next a.name").allTextContents()).toEqual(before);
    await world.plane.startApiServer();
    const away = page.getByText("The cluster has not responded since");
    await away.waitFor({ state: "detached", timeout: 90_000 });
    await page.locator("main.stale").waitFor({ state: "detached" });
    await mustRun(world.plane, ["annotate", "node", "spot-7", "lastcall.dev/hold=true"]);
    const held = page.getByRole("region", { name: "On hold" });
    const row = held.getByRole("row").filter({ hasText: "spot-7" });
    await row
      .getByText(/Held by kubectl-annotate since .*, until released/)
      .waitFor({ timeout: 60_000 });
    await page.getByText("Not planned", { exact: true }).click();
    const shown = page.locator("table a.name, .leaving a.name");
    const names = async () => (await shown.allTextContents()).toSorted();
    const inCluster = async () =>
      (await kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"))
        .split(" ")
        .toSorted();
    await expect.poll(names, { timeout: 30_000 }).toEqual(await inCluster());
  });
});

describe("the board in a terminal", () => {
  const program = `${process.execPath} ${join(import.meta.dirname, "../../src/cli/main.ts")}`;

  /** Runs the line in an 80 by 24 terminal made by `script`; `lines` is the last frame. */
  function openTerminal(
    kubeconfig: string,
    line = `exec ${program} board --tui --kubeconfig ${kubeconfig}`,
  ) {
    const env = { ...process.env, TERM: "xterm-256color", HOME: folder };
    const child = spawn("script", ["-qefc", `stty cols 80 rows 24; ${line}`, "/dev/null"], {
      env,
      cwd: folder,
    });
    let out = "";
    child.stdout.on("data", (chunk: Buffer) => {
      out += chunk.toString("utf8");
    });
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    const lines = (): readonly string[] =>
      // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences.
      (out.split("\u001b[H").at(-1) ?? "").replace(/\u001b\[[?\d;]*[A-Za-z]/g, "").split("\r\n");
    const shows = (text: string) =>
      expect.poll(() => lines().join("\n"), { timeout: 30_000 }).toContain(text);
    return {
      out: () => out,
      lines,
      shows,
      ended,
      press: (keys: string) => child.stdin.write(keys),
    };
  }

  test("shows the nodes, sorts them at s, describes one at Enter, and quits at q", async () => {
    const terminal = openTerminal(world.plane.kubeconfig);
    await terminal.shows("9 nodes of");
    await terminal.shows("q quit");
    expect(terminal.lines()).toHaveLength(24);
    const order = terminal.lines().flatMap((line) => /^[ >](spot-\d+) /.exec(line)?.[1] ?? []);
    expect(order).toHaveLength(9);
    terminal.press("s");
    await expect
      .poll(() => terminal.lines().flatMap((line) => /^[ >](spot-\d+) /.exec(line)?.[1] ?? []))
      .toEqual(order.toSorted());
    terminal.press("\r");
    await terminal.shows("Esc back");
    await terminal.shows(" Reason ");
    terminal.press("\u001b");
    await terminal.shows("Enter describe");
    terminal.press("q");
    expect(await terminal.ended).toBe(0);
  });

  const served = (kubeconfig: string): string =>
    `${program} board --address 127.0.0.1:0 --kubeconfig ${kubeconfig}`;

  test("prints a new address at Enter once the previous one has been used", async () => {
    const { kubeconfig } = world.plane;
    const terminal = openTerminal(kubeconfig, `exec ${served(kubeconfig)}`);
    await terminal.shows("press Enter");
    const addresses = () => terminal.out().match(/http:\S+token=[\w-]+/g) ?? [];
    const [first = ""] = addresses();
    terminal.press("\r");
    await expect.poll(addresses).toEqual([first, first]);
    expect((await fetch(first)).status).toBe(200);
    expect((await fetch(first)).status).toBe(401);
    terminal.press("\r");
    await expect.poll(() => addresses().length).toBe(3);
    expect((await fetch(addresses()[2] ?? "")).status).toBe(200);
    terminal.press("\u0003");
    expect(await terminal.ended).toBe(130);
  });

  test("keeps running as a background job, because it does not read the terminal", async () => {
    const { kubeconfig } = world.plane;
    // Runs it as a background job; a stopped process has the state T.
    const script = [
      ...["set -m", `${served(kubeconfig)} &`, "read typed"],
      ...["sed 's/.*) \\(.\\).*/state \\1./' /proc/$!/stat", "kill $!"],
    ];
    writeFileSync(join(folder, "job.sh"), script.join("\n"));
    const terminal = openTerminal(kubeconfig, `bash ${join(folder, "job.sh")}`);
    await terminal.shows("token=");
    terminal.press("typed\r");
    await expect.poll(terminal.out, { timeout: 10_000 }).toMatch(/state [^T]\./);
    await terminal.ended;
  });

  test("names what the user may not read, and shows the rest", async () => {
    const rules = [{ ...look, apiGroups: [""], resources: ["nodes"] }];
    const terminal = openTerminal(await kubeconfigOf("onlooker", rules));
    await terminal.shows("9 nodes of");
    await terminal.shows("departurepolicies");
    terminal.press("q");
    expect(await terminal.ended).toBe(0);
  });
});
