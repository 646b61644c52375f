/**
 * What the board costs: the bytes of a first picture, the time until a browser shows it, and the
 * memory of the server, on the model cluster behind HTTP and the bundled command. Needs Chromium.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { realClock } from "../src/runtime/real-clock.ts";
import { serveModel } from "../src/sim/http/serve-model.ts";
import { openBoard, startBrowser } from "../test/support/browser.ts";
import { modelClusterApi } from "../test/support/model-cluster-api.ts";
import { memoryMiB } from "./process-figures.ts";
import { type Figure, rounded, writeResult } from "./result-file.ts";

const program = join(import.meta.dirname, "../bin/lastcall.js");
const zones = ["europe-west1-b", "europe-west1-c", "europe-west1-d"];

async function fleetOf(nodes: number) {
  const api = await modelClusterApi(realClock);
  for (let place = 0; place < nodes; place += 1) {
    const zone = zones[place % zones.length] as string;
    const name = `gke-main-spot-${((place * 7919) % 65_536).toString(16)}-${place}`;
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
  return serveModel({ api });
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
  // Its first list is there by then, and the plan made.
  await realClock.sleep(5000 as never);
  const browser = await startBrowser();
  try {
    const startMs = performance.now();
    const { page, context } = await openBoard(browser, url);
    await page.locator("table.next tbody tr").first().waitFor();
    const shownMs = performance.now() - startMs;
    const [cookie] = await context.cookies();
    const headers = { cookie: `${cookie?.name}=${cookie?.value}` };
    const bytes = await firstPictureBytes(new URL(url).origin, headers);
    return { shownMs, bytes, residentMiB: memoryMiB(board.pid ?? 0, "VmRSS") };
  } finally {
    await browser.close();
    board.kill();
    await model.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** As they go over the wire, packed. */
function firstPictureBytes(origin: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const asked = { headers: { ...headers, "accept-encoding": "gzip" } };
    const sent = request(`${origin}/api/stream`, asked, (response) => {
      let bytes = 0;
      let timer: NodeJS.Timeout | undefined;
      response.on("data", (part: Buffer) => {
        bytes += part.byteLength;
        clearTimeout(timer);
        // The picture is one burst; what follows are changes.
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
for (const nodes of [50, 1000, 5000]) {
  const found = await measure(nodes);
  const at = `${nodes} nodes`;
  const isGoal = nodes === 1000;
  figures.push(
    {
      ...{ name: `first picture, packed, ${at}`, value: rounded(found.bytes / 1000), unit: "kB" },
      goal: isGoal ? 300 : undefined,
    },
    {
      ...{ name: `address opened until rows are shown, ${at}`, value: rounded(found.shownMs) },
      ...{ unit: "ms", goal: isGoal ? 1000 : undefined },
    },
    {
      ...{ name: `server resident, ${at}`, value: rounded(found.residentMiB), unit: "MiB" },
      goal: nodes === 5000 ? 130 : undefined,
    },
  );
}
writeResult({ bench: "board", setting: { bundle: true, access: "HTTP" }, figures });
