/**
 * The pictures of docs/board, of a fleet whose clock is stopped: taken again and compared with the
 * committed ones (`E2E_PICTURES=1` writes them first). A region of 40 by 40 pixels differs if more
 * than a tenth of its pixels are off by more than 48 of 255 in a color. At most one region in 200
 * may differ, because of the edges of letters.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { nodePage } from "../../src/board/node-page.ts";
import { EndedDepartures } from "../../src/board/outcome/ended-departures.ts";
import { boardPicture } from "../../src/board/picture.ts";
import type { StreamMessage } from "../../src/board/stream.ts";
import { readPolicies } from "../../src/config/policy/read-policy.ts";
import type { FleetView } from "../../src/contracts/cluster.ts";
import type { PageServer } from "../../src/contracts/http-route.ts";
import type { NodeFacts } from "../../src/core/cluster/node.ts";
import type { PodFacts } from "../../src/core/cluster/pod.ts";
import type { Departure } from "../../src/core/departure/departure.ts";
import { cronProblem } from "../../src/core/limits/windows.ts";
import { explain } from "../../src/core/reason/reason.ts";
import { hours, type Instant, instant, minus, plus, seconds } from "../../src/core/time/time.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import { servePage } from "../../src/server/page-server.ts";
import { openBoard, startBrowser } from "../support/browser.ts";

const writes = process.env.E2E_PICTURES === "1";
const pictures = join(import.meta.dirname, "../../docs/board");
const now = instant(Date.UTC(2026, 10, 20, 21, 4, 20));
const from = (ms: number): Instant => plus(now, ms as never);

const policyText = `
apiVersion: lastcall.dev/v1alpha1
kind: DeparturePolicy
metadata: {name: spot}
spec:
  lifetime: {min: 2h, max: 24h}
  spacing: {min: 45m}
  # The nodes that replaced those that have left are not drawn.
  replacement: {expectFor: 0s}
  windows: [{name: settlement, type: Deny, timeZone: UTC, start: "00:00", end: "01:00"}]
---
apiVersion: lastcall.dev/v1alpha1
kind: DeparturePolicy
metadata: {name: batch}
spec:
  weight: 1
  nodeSelector:
    nodeSelectorTerms:
    - matchExpressions: [{key: cloud.google.com/gke-nodepool, operator: In, values: [batch]}]
  lifetime: {min: 2h, max: 24h}
  spacing: {min: 45m}
  waves: {sizes: [1, 2]}
  gates: {freezeUntil: "2026-11-21T06:00:00Z"}
`;
const { policies } = readPolicies([{ file: "policy", text: policyText }], { cronProblem });

function nodeOf(name: string, bornHoursAgo: number): NodeFacts {
  const [pool = "", zone = ""] = name.split("-");
  return {
    ...{ name, uid: `uid-${name}`, annotations: {}, taints: [], unschedulable: false, ready: true },
    labels: {
      "cloud.google.com/gke-spot": "true",
      "cloud.google.com/gke-nodepool": pool,
      "topology.kubernetes.io/zone": `europe-west1-${zone}`,
    },
    ...{ providerID: `gce://demo/${zone}/${name}`, createdAt: from(-hours(bornHoursAgo)) },
  };
}

function departureOf(name: string, fields: Partial<Departure>): Departure {
  return {
    ...{ name: `${name}-1`, uid: `d-${name}`, resourceVersion: "1", hold: false, policy: "spot" },
    ...{ cause: "Planned", node: { name, uid: `uid-${name}` } },
    ...fields,
  } as Departure;
}

const counts = { total: 8, left: 0, evicted: 8, forced: 0, waiting: 0, blocked: 0, cut: 0 };
const endedAt = (name: string, hoursAgo: number, status: object, fields: object = {}): Departure =>
  departureOf(name, {
    status: {
      ...{ phase: "Ended", outcome: "Planned", reason: "Released" },
      message: explain("Released", { node: name }),
      ...{ endedAt: from(-hours(hoursAgo)), startedAt: from(-hours(hoursAgo + 0.1)) },
      ...{ drain: counts, timeline: [], ...status },
    },
    ...fields,
  } as never);

/** The times of a notice so long ago. */
const noticedFor = (agoMs: number, noticeSeconds: number) => ({
  noticedAt: from(-agoMs),
  deadlineAt: from(-agoMs + seconds(noticeSeconds)),
});
/** Seconds from the notice to the cordon, and to the exit of the last pod. */
const stepsOf = (agoMs: number, toCordon: number, toEmpty: number) => [
  { at: from(-agoMs + seconds(toCordon)), step: "Draining", result: "Prepared" },
  { at: from(-agoMs + seconds(toEmpty)), step: "Releasing", result: "Drained" },
];

const noticedAt = from(-seconds(40));
const leaving = departureOf("web-b-rx5l", {
  ...{ cause: "SpotInterruption", noticedAt, deadlineAt: from(seconds(80)) },
  status: {
    ...{ phase: "Draining", reason: "DrainRunning", startedAt: from(-seconds(39)) },
    message: explain("DrainRunning", { node: "web-b-rx5l" }),
    drain: { ...counts, total: 12, left: 5, evicted: 7, blocked: 1 },
    timeline: [
      { at: noticedAt, step: "Preparing", result: "Noticed: the cloud interrupts it." },
      { at: from(-seconds(39)), step: "Draining", result: "Prepared: web-b-rx5l is draining." },
    ],
  },
});

const view: FleetView = {
  nodes: [
    ...["b-8vc7", "b-nznp", "c-hwnr", "c-x7km", "d-f5tc", "d-6ww8"].map((name, place) =>
      nodeOf(`web-${name}`, 22 - 2.4 * place),
    ),
    nodeOf("web-b-rx5l", 5),
    ...["b-1", "c-2", "d-3", "d-4"].map((name, place) => nodeOf(`batch-${name}`, 12 - place)),
    {
      ...{ ...nodeOf("web-d-held", 9), annotations: { "lastcall.dev/hold": "true" } },
      holdWriter: { manager: "kubectl-annotate", at: minus(now, hours(5)) },
    },
  ],
  ...{ policies, badPolicies: [] },
  departures: [
    leaving,
    endedAt("web-c-wnww", 1, {}),
    endedAt("web-d-gvwb", 3, {
      ...{ outcome: "Forced", drain: { ...counts, forced: 1 } },
    }),
    endedAt(
      "web-b-q8ht",
      7,
      {
        ...{ outcome: "Preempted", reason: "NodeGone" },
        message: explain("NodeGone", { node: "web-b-q8ht" }),
        timeline: stepsOf(hours(7), 0.9, 117),
        drain: {
          ...{ ...counts, cut: 2, killed: 1 },
          notClean: [{ namespace: "shop", name: "worker-7", outcome: "Killed", rule: "grace" }],
        },
      },
      { cause: "SpotInterruption", ...noticedFor(hours(7), 120) },
    ),
    endedAt(
      "web-d-5tqz",
      11,
      {
        ...{ outcome: "Preempted", reason: "NodeGone" },
        message: explain("NodeGone", { node: "web-d-5tqz" }),
        ...{ endedAt: from(-hours(11)), timeline: stepsOf(hours(11), 0.4, 62) },
      },
      { cause: "SpotInterruption", ...noticedFor(hours(11), 120) },
    ),
    endedAt("web-c-old1", 26, {}),
    endedAt("web-c-k2kd", 27, {
      ...{ outcome: "RolledBack", reason: "DrainTimeout" },
      message: explain("DrainTimeout", { node: "web-c-k2kd" }),
    }),
  ],
};

function podOf(name: string, graceSeconds: number): PodFacts {
  return {
    ...{ namespace: "shop", name, uid: `uid-${name}`, nodeName: "web-b-8vc7", phase: "Running" },
    ...{ ready: true, labels: {}, annotations: {}, priority: 0, graceSeconds, graceSource: "Set" },
    ...{ mirror: false, emptyDir: false, hostPath: false, volumeClaims: [], tolerations: [] },
    controller: { kind: "ReplicaSet", name: "r", uid: "r" },
  } as PodFacts;
}
const pods = [podOf("api-4zpj9", 60), podOf("checkout-ncmsp", 45), podOf("worker-mklzp", 300)];

const rights = {
  ...{ patchNodes: true, createDepartures: true, patchDepartures: true },
  ...{ deleteDepartures: true, patchPolicies: true },
};
const state = {
  ...{ cluster: "prod-eu", isDemo: false, missing: [], rights },
  ...{ isCounted: false, connection: { kind: "Live" } as const },
};

let server: PageServer;
let browser: Browser;
let page: Page;

beforeAll(async () => {
  const picture = boardPicture(view, { now, state, ended: new EndedDepartures() });
  const message: StreamMessage = {
    ...{ kind: "Picture", id: "still.1", picture },
    clock: { at: now, rate: 0 },
  };
  const types = { html: "text/html", js: "text/javascript", css: "text/css", svg: "image/svg+xml" };
  const file = (name: string) => {
    const bytes = readFileSync(join(import.meta.dirname, "../../dist/board", name));
    return { type: types[name.split(".")[1] as keyof typeof types], bytes };
  };
  const names = ["board.js", "what-if.js", "board.css", "icon.svg"];
  server = await servePage({
    ...{ address: "127.0.0.1:18087", entry: { en: "run it again", ja: "もう一度" } },
    now: () => realClock.now(),
    files: new Map([
      ["/", file("index.html")],
      ...names.map((name) => [`/${name}`, file(name)] as const),
    ]),
    routes: {
      get: {
        "/api/stream": () => ({
          type: "text/event-stream",
          open: (client) => {
            client.send(`id: still.1\ndata: ${JSON.stringify(message)}\n\n`);
            // A page that receives nothing for long reports that its board is gone.
            const clock = JSON.stringify({ kind: "Clock", clock: message.clock });
            const timer = setInterval(() => client.send(`data: ${clock}\n\n`), 3000);
            return () => clearInterval(timer);
          },
        }),
        "/api/node": async ({ query }) => ({
          status: 200,
          json: nodePage(query.get("name") ?? "", { view, pods, budgets: [], now }),
        }),
      },
      post: {},
    },
  });
  browser = await startBrowser();
  ({ page } = await openBoard(browser, server.url()));
});
afterAll(async () => {
  await browser?.close();
  await server?.close();
});

const shots = [
  ["notice", "", "dark", "en", 1280, 700],
  ["departures-dark", "", "dark", "en", 1280, 1400],
  ["departures-light", "", "light", "en", 1280, 1400],
  ["departures-ja", "", "dark", "ja", 1280, 860],
  ["departures-wide", "", "dark", "en", 2560, 1440],
  ["departures-narrow", "", "dark", "en", 360, 780],
  ["timeline", "timeline", "dark", "en", 1280, 1060],
  ["timeline-light", "timeline", "light", "en", 1280, 1060],
  ["node", "node/web-b-8vc7", "dark", "en", 1280, 900],
  ["node-narrow", "node/web-b-8vc7", "light", "ja", 360, 780],
  ["outcomes", "outcomes", "light", "en", 1280, 1080],
] as const;

test.each(shots)(
  "%s.png matches a new screenshot of the board",
  async (name, hash, theme, language, width, height) => {
    await page.setViewportSize({ width, height });
    await page.evaluate(
      (taste) => {
        localStorage.setItem("lastcall-theme", taste.theme);
        localStorage.setItem("lastcall-language", taste.language);
      },
      { theme, language },
    );
    await page.goto(new URL(`.#/${hash}`, page.url()).href);
    await page.reload();
    await page
      .locator(hash.startsWith("node") ? "table.bars" : "main h2")
      .first()
      .waitFor();
    const shown = await page.screenshot({ animations: "disabled" });
    const path = join(pictures, `${name}.png`);
    if (writes) writeFileSync(path, shown);
    const kept = readFileSync(path);
    const share = await page.evaluate(differingRegions, {
      kept: kept.toString("base64"),
      shown: shown.toString("base64"),
    });
    expect(share).toBeLessThanOrEqual(1 / 200);
  },
);

test("a browser whose clock is five hours off shows the board's times", async () => {
  const context = await browser.newContext({ timezoneId: "UTC", locale: "en-GB" });
  await context.addCookies(await page.context().cookies());
  const late = await context.newPage();
  await late.addInitScript(() => {
    const now = Date.now;
    Date.now = () => now() + 5 * 3_600_000;
  });
  await late.goto(new URL(".", page.url()).href);
  await late.locator("table.next tbody tr").first().waitFor();
  expect(await late.locator(".now .clock").textContent()).toBe("21:04:20");
  expect(await late.locator(".leaving .urgent .clock").textContent()).toBe("1:20");
  const first = late.locator("table.next tbody tr").first().locator(".time span");
  expect(await first.allTextContents()).toEqual(["22:34", "in 1 h 30 min"]);
  await context.close();
});

/** Runs in the page: the share of regions that differ; 1 if the sizes differ. */
async function differingRegions(pair: { readonly kept: string; readonly shown: string }) {
  const pixels = async (base64: string): Promise<ImageData> => {
    const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d");
    if (context === null) throw new Error("there is no canvas");
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, image.width, image.height);
  };
  const [kept, shown] = [await pixels(pair.kept), await pixels(pair.shown)];
  if (kept.width !== shown.width || kept.height !== shown.height) return 1;
  const side = 40;
  const columns = Math.ceil(kept.width / side);
  const off = new Map<number, number>();
  for (let place = 0; place < kept.data.length; place += 4) {
    const isOff = [0, 1, 2].some(
      (colour) =>
        Math.abs((kept.data[place + colour] ?? 0) - (shown.data[place + colour] ?? 0)) > 48,
    );
    if (!isOff) continue;
    const [x, y] = [(place / 4) % kept.width, Math.floor(place / 4 / kept.width)];
    const region = Math.floor(y / side) * columns + Math.floor(x / side);
    off.set(region, (off.get(region) ?? 0) + 1);
  }
  const differing = [...off.values()].filter((count) => count > (side * side) / 10).length;
  return differing / (columns * Math.ceil(kept.height / side));
}
