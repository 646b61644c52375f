/**
 * What the board costs: the bytes of the first picture, the time until a browser shows it, the time
 * from a keystroke in the what-if to its picture, how smoothly a page follows changes, and the
 * memory of the server. Uses the model cluster over HTTP and the bundled command. Needs Chromium.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Page } from "playwright-core";
import { millis, seconds } from "../src/core/time/time.ts";
import { realClock } from "../src/runtime/real-clock.ts";
import { serveModel } from "../src/sim/http/serve-model.ts";
import { openBoard, startBrowser } from "../test/support/browser.ts";
import { modelClusterApi } from "../test/support/model-cluster-api.ts";
import { memoryMiB } from "./process-figures.ts";
import { type Figure, rounded, writeResult } from "./result-file.ts";

const program = join(import.meta.dirname, "../bin/lastcall.js");
const sizes = [50, 1000, 5000];
const zones = ["europe-west1-b", "europe-west1-c", "europe-west1-d"];

async function fleetOf(nodes: number) {
  const api = await modelClusterApi(realClock);
  for (let place = 0; place < nodes; place += 1) {
    const zone = zones[place % zones.length] as string;
    const name = nameOf(place);
    const labels = { "cloud.google.com/gke-spot": "true", "topology.kubernetes.io/zone": zone };
    const spec = { providerID: `gce://demo/${zone}/${name}` };
    const body = { apiVersion: "v1", kind: "Node", metadata: { name, labels }, spec, status: {} };
    api.handle({ method: "POST", path: "/api/v1/nodes", body });
  }
  const spec = { lifetime: { max: "24h" }, spacing: { min: "15m" } };
  api.handle({
    method: "POST",
    path: "/apis/lastcall.dev/v1alpha1/departurepolicies",
    body: {
      ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy", spec },
      metadata: { name: "spot" },
    },
  });
  const served = await serveModel({ api });
  const names = Array.from({ length: nodes }, (_, place) => nameOf(place));
  /** Sets or removes a hold on one node, which changes its row and the plan. */
  const change = (): void => {
    const name = names[Math.floor(Math.random() * names.length)] ?? "";
    const path = `/api/v1/nodes/${name}`;
    const patchType = "application/merge-patch+json";
    const { body } = api.handle({ method: "GET", path });
    const { metadata } = body as { metadata?: { annotations?: Record<string, string> } };
    const hold = metadata?.annotations?.[holdAnnotation] === undefined ? "true" : null;
    const annotations = { [holdAnnotation]: hold };
    api.handle({ method: "PATCH", path, patchType, body: { metadata: { annotations } } });
  };
  return { ...served, change, close: () => served.close() };
}

const holdAnnotation = "lastcall.dev/hold";

function nameOf(place: number): string {
  return `gke-main-spot-${((place * 7919) % 65_536).toString(16)}-${place}`;
}

async function measure(nodes: number) {
  const folder = mkdtempSync(join(tmpdir(), "lastcall-bench-"));
  const model = await fleetOf(nodes);
  const kubeconfig = join(folder, "kubeconfig");
  writeFileSync(kubeconfig, model.kubeconfig);
  const args = [program, "board", "--kubeconfig", kubeconfig, "--address", "127.0.0.1:18187"];
  const board = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"] });
  const lines = createInterface({ input: board.stdout })[Symbol.asyncIterator]();
  const url = String((await lines.next()).value);
  // By then the first list has arrived and the plan is computed.
  await realClock.sleep(seconds(5));
  const browser = await startBrowser();
  try {
    const startMs = performance.now();
    const { page, context } = await openBoard(browser, url);
    await page.locator("table.next tbody tr").first().waitFor();
    const shownMs = performance.now() - startMs;
    const paintMs = await page.evaluate(firstPaintMs);
    const [cookie] = await context.cookies();
    const headers = { cookie: `${cookie?.name}=${cookie?.value}` };
    const bytes = await firstPictureBytes(new URL("api/stream", url), headers);
    const whatIf = await keyToPicture(page);
    await page.goto(new URL(".#/", url).href);
    const smooth = await followChanges(page, model.change);
    const residentMiB = () => memoryMiB(board.pid ?? 0, "VmRSS");
    const followedMiB = residentMiB();
    await page.close();
    const isMost = nodes === sizes.at(-1);
    const hourMiB = isMost ? await changeForAnHour(model.change).then(residentMiB) : undefined;
    return { paintMs, shownMs, bytes, whatIf, smooth, followedMiB, hourMiB };
  } finally {
    await browser.close();
    board.kill();
    await model.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs in the page: the time since the address was opened, by the browser's own clock. */
function firstPaintMs(): number {
  const [first] = performance.getEntriesByName("first-contentful-paint");
  if (first === undefined) throw new Error("nothing has been painted");
  return first.startTime;
}

/** The median time from an edit of the policy until the drawing of its plan is painted. */
async function keyToPicture(page: Page): Promise<number> {
  await page.goto(new URL(".#/timeline", page.url()).href);
  await page.locator("button.ask").first().click();
  await page.locator(".what-if textarea").waitFor({ timeout: 60_000 });
  const times: number[] = [];
  for (let minutes = 10; minutes < 21; minutes += 1) {
    times.push(await page.evaluate(editPolicy, minutes));
  }
  return times.toSorted((a, b) => a - b)[5] ?? Number.NaN;
}

/** Runs in the page. Changing the lifetime moves every node. */
async function editPolicy(minutes: number): Promise<number> {
  const drawing = document.querySelector(".drawing");
  drawing?.scrollIntoView();
  await new Promise((resolve) => setTimeout(resolve, 300));
  const area = document.querySelector<HTMLTextAreaElement>(".what-if textarea");
  if (drawing === null || area === null) throw new Error("there is no what-if");
  const startMs = performance.now();
  const painted = new Promise<void>((resolve) => {
    const observer = new MutationObserver(() => {
      observer.disconnect();
      // A message posted here arrives after the frame has been painted.
      requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => resolve();
        port2.postMessage(0);
      });
    });
    observer.observe(drawing, { subtree: true, attributes: true, childList: true });
  });
  area.value = area.value.replace(/max: \S+/, `max: 23h${minutes}m`);
  area.dispatchEvent(new Event("input", { bubbles: true }));
  await painted;
  return performance.now() - startMs;
}

const changesPerSecond = 50;
const followedSeconds = 60;

/** As many changes as in an hour, forty times as fast. */
async function changeForAnHour(change: () => void): Promise<void> {
  const stepMs = millis(100);
  const steps = 3600_000 / 40 / stepMs;
  for (let step = 0; step < steps; step += 1) {
    for (let one = 0; one < (40 * changesPerSecond * stepMs) / 1000; one += 1) change();
    await realClock.sleep(stepMs);
  }
  // Time for a garbage collection to give memory back.
  await realClock.sleep(seconds(30));
}

/** The share of frames that took over 33 ms, and the share of time that the page's script ran. */
async function followChanges(page: Page, change: () => void) {
  await page.reload();
  await page.locator("table.next tbody tr").first().waitFor();
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  const scriptSeconds = async (): Promise<number> => {
    const { metrics } = await session.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "ScriptDuration")?.value ?? Number.NaN;
  };
  const before = await scriptSeconds();
  const timer = setInterval(change, 1000 / changesPerSecond);
  const slowShare = await page.evaluate(watchFrames, followedSeconds * 1000);
  clearInterval(timer);
  return { slowShare, scriptShare: ((await scriptSeconds()) - before) / followedSeconds };
}

/** Runs in the page. */
async function watchFrames(forMs: number): Promise<number> {
  let [frames, slow, lastMs] = [0, 0, performance.now()];
  const endMs = lastMs + forMs;
  while (lastMs < endMs) {
    const nowMs = await new Promise<number>((resolve) => requestAnimationFrame(resolve));
    frames += 1;
    if (nowMs - lastMs > 33.5) slow += 1;
    lastMs = nowMs;
  }
  return slow / frames;
}

/** As sent over the wire, compressed. */
function firstPictureBytes(url: URL, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const asked = { headers: { ...headers, "accept-encoding": "gzip" } };
    const sent = request(url, asked, (response) => {
      let bytes = 0;
      let timer: NodeJS.Timeout | undefined;
      response.on("data", (part: Buffer) => {
        bytes += part.byteLength;
        clearTimeout(timer);
        // The picture arrives in one burst; what follows are changes.
        timer = setTimeout(() => {
          sent.destroy();
          resolve(bytes);
        }, 200);
      });
    });
    sent.once("error", reject);
    sent.end();
  });
}

const figures: Figure[] = [];
for (const nodes of sizes) {
  const found = await measure(nodes);
  const at = `${nodes} nodes`;
  const isGoal = nodes === 1000;
  const isMost = nodes === 5000;
  figures.push(
    {
      ...{ name: `first picture, packed, ${at}`, value: rounded(found.bytes / 1000), unit: "kB" },
      goal: isGoal ? 300 : undefined,
    },
    {
      ...{ name: `first paint, ${at}`, value: rounded(found.paintMs) },
      ...{ unit: "ms", goal: isGoal ? 1000 : undefined },
    },
    {
      // Includes the start of the browser's process for the page.
      ...{ name: `address opened until rows are shown, ${at}`, value: rounded(found.shownMs) },
      unit: "ms",
    },
    {
      ...{ name: `what-if, key to picture, ${at}`, value: rounded(found.whatIf) },
      ...{ unit: "ms", goal: isGoal ? 100 : undefined },
    },
    {
      ...{ name: `frames over 33 ms, ${changesPerSecond} changes a second, ${at}`, unit: "%" },
      ...{ value: rounded(100 * found.smooth.slowShare), goal: isMost ? 5 : undefined },
    },
    {
      ...{ name: `of a core in script, ${changesPerSecond} changes a second, ${at}`, unit: "%" },
      ...{ value: rounded(100 * found.smooth.scriptShare), goal: isMost ? 25 : undefined },
    },
    {
      ...{ name: `server resident, ${at}`, value: rounded(found.followedMiB), unit: "MiB" },
      goal: isMost ? 130 : undefined,
    },
  );
  if (found.hourMiB !== undefined) {
    const name = `server resident after an hour's changes, ${at}`;
    figures.push({ name, value: rounded(found.hourMiB), unit: "MiB", goal: 130 });
  }
}
writeResult({ bench: "board", setting: { bundle: true, access: "HTTP" }, figures });
