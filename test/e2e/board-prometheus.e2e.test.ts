/** Outcomes that a real Prometheus has counted, on a page of the board, and its alerts. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { realClock } from "../../src/runtime/real-clock.ts";
import { secondsBuckets } from "../../src/server/metrics.ts";
import { type ModelServer, serveModel } from "../../src/sim/http/serve-model.ts";
import { type BoardProcess, startBoardProcess } from "../support/board-process.ts";
import { axeFindings, openBoard, startBrowser } from "../support/browser.ts";
import { type ChildPart, startPart } from "../support/child-part.ts";
import { freePort } from "../support/free-port.ts";
import { modelClusterApi } from "../support/model-cluster-api.ts";
import { waitUntil } from "../support/wait-until.ts";

const dayMs = 86_400_000;
const scrapeMs = 300_000;
const today = Math.floor(realClock.now() / dayMs) * dayMs;
const dayOf = (ago: number): string => new Date(today - ago * dayMs).toISOString().slice(0, 10);

/** When departures ended, in minutes after midnight, `ago` days ago. */
interface Ended {
  readonly policy: string;
  readonly outcome: string;
  readonly ago: number;
  readonly minutes: readonly number[];
}

const ended: readonly Ended[] = [
  { policy: "spot", outcome: "Planned", ago: 5, minutes: [30, 200, 1000] },
  { policy: "spot", outcome: "Preempted", ago: 5, minutes: [700] },
  { policy: "spot", outcome: "Planned", ago: 4, minutes: [100, 101] },
  { policy: "batch", outcome: "Forced", ago: 3, minutes: [600] },
];

/** Notices of five days ago, in minutes after midnight, as the controller measured them. */
const noticed = Array.from({ length: 20 }, (_, index) => ({
  minute: 40 + 60 * index,
  toCordon: index % 10 === 9 ? 4 : 0.3,
  left: index % 10 === 9 ? 15 : 80,
}));

/** A process exposes its histograms from its start, with each bucket at zero. */
function scrapedHistogram(name: string, value: (one: (typeof noticed)[number]) => number) {
  const lines = [`# TYPE ${name} histogram`];
  for (const half of [0, 1]) {
    const start = today - 5 * dayMs + (half * dayMs) / 2;
    for (let at = start; at < start + dayMs / 2; at += scrapeMs) {
      const heard = noticed.filter(({ minute }) => {
        const end = today - 5 * dayMs + minute * 60_000;
        return end >= start && end <= at;
      });
      const sample = (series: string, count: number): void => {
        lines.push(`${name}_${series} ${count} ${at / 1000}`);
      };
      for (const bound of [...secondsBuckets, Number.POSITIVE_INFINITY]) {
        const le = Number.isFinite(bound) ? String(bound) : "+Inf";
        const count = heard.filter((one) => value(one) <= bound).length;
        sample(`bucket{instance="process-${half}",le="${le}"}`, count);
      }
      sample(`count{instance="process-${half}"}`, heard.length);
    }
  }
  return lines;
}

/**
 * A controller's scraped counters, each from its first departure on. The process that counts
 * changes every 12 hours, as when a new version is rolled out.
 */
function scraped(): string {
  const lines = ["# TYPE lastcall_departures counter"];
  const first = today - 6 * dayMs;
  for (let half = 0; half < 12; half += 1) {
    const [from, to] = [first + (half * dayMs) / 2, first + ((half + 1) * dayMs) / 2];
    const kinds = Map.groupBy(
      ended,
      ({ policy, outcome }) => `policy="${policy}",outcome="${outcome}"`,
    );
    for (const [labels, all] of kinds) {
      const ends = all.flatMap(({ ago, minutes }) =>
        minutes.map((minute) => today - ago * dayMs + minute * 60_000),
      );
      for (let at = from; at < to; at += scrapeMs) {
        const count = ends.filter((end) => end >= from && end <= at).length;
        if (count === 0) continue;
        const series = `lastcall_departures_total{instance="process-${half}",cause="Planned",${labels}}`;
        lines.push(`${series} ${count} ${at / 1000}`);
      }
    }
  }
  lines.push(...scrapedHistogram("lastcall_notice_to_cordon_seconds", (one) => one.toCordon));
  lines.push(...scrapedHistogram("lastcall_deadline_left_seconds", (one) => one.left));
  return `${lines.join("\n")}\n# EOF\n`;
}

let folder: string;
const death = new AbortController();
let prometheus: ChildPart;
let model: ModelServer;
let board: BoardProcess | undefined;
let browser: Browser;
let url: string;

beforeAll(async () => {
  for (const program of ["/usr/bin/prometheus", "/usr/bin/promtool"]) {
    if (existsSync(program)) continue;
    throw new Error(`Cannot test outcomes: there is no ${program}; apt-get install prometheus`);
  }
  folder = mkdtempSync(join(tmpdir(), "lastcall-prometheus-"));
  const [data, metrics] = [join(folder, "data"), join(folder, "metrics")];
  mkdirSync(data);
  writeFileSync(metrics, scraped());
  execFileSync("promtool", ["tsdb", "create-blocks-from", "openmetrics", metrics, data]);
  writeFileSync(join(folder, "prometheus.yml"), "{}\n");
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  prometheus = startPart({
    name: "prometheus",
    // Otherwise Prometheus would outlive its parent.
    command: "setpriv",
    args: [
      ...["--pdeathsig=KILL", "prometheus", `--config.file=${join(folder, "prometheus.yml")}`],
      ...[`--storage.tsdb.path=${data}`, `--web.listen-address=127.0.0.1:${port}`],
    ],
    folder,
    onDeath: (error) => death.abort(error),
  });
  const isReady = () =>
    fetch(`${url}/-/ready`).then(
      ({ ok }) => ok || undefined,
      () => undefined,
    );
  await waitUntil(isReady, {
    what: "Prometheus is ready",
    timeoutMs: 60_000,
    signal: death.signal,
  });
  model = await serveModel({ api: await modelClusterApi(realClock) });
  writeFileSync(join(folder, "kubeconfig"), model.kubeconfig);
  browser = await startBrowser();
});

afterAll(async () => {
  await browser?.close();
  await board?.process.stop();
  await model?.close();
  await prometheus?.kill();
  rmSync(folder, { recursive: true, force: true });
});

async function outcomesPage(prometheusUrl: string) {
  await board?.process.stop();
  const kubeconfig = join(folder, "kubeconfig");
  const args = ["board", "--kubeconfig", kubeconfig, "--prometheus", prometheusUrl];
  board = await startBoardProcess(args, { folder });
  const { page } = await openBoard(browser, board.url);
  await page.goto(new URL(".#/outcomes", board.url).href);
  return page.locator("section[aria-labelledby=counted]");
}

test("shows outcomes by day and policy, across restarts of the controller", async () => {
  const section = await outcomesPage(url);
  await section.locator("table.days").waitFor();
  const rows = await section.locator("tbody tr").all();
  const shown = await Promise.all(
    rows.map(async (row) => {
      const [day, policy] = await row.locator("td").allTextContents();
      return [day, policy, (await row.locator(".outcome").allTextContents()).join(", ")];
    }),
  );
  expect(shown).toEqual([
    [dayOf(3), "batch", "Forced 1"],
    [dayOf(4), "spot", "Planned 2"],
    [dayOf(5), "spot", "Planned 3, Preempted 1"],
  ]);
});

test("shows how much time of notices was used, from the controller's histograms", async () => {
  const section = await outcomesPage(url);
  const rows = section.page().locator("section[aria-labelledby=at-notice] tbody tr");
  await rows.first().waitFor();
  const cells = (await rows.all()).map((row) => row.locator("td").allTextContents());
  // Prometheus assumes a uniform distribution within a bucket.
  expect(await Promise.all(cells)).toEqual([
    ["Notice to cordon", "30 days, Prometheus", "20", "within 0.4 s", "within 3.5 s"],
    ["Time left", "30 days, Prometheus", "20", "at least 1 min 13 s", "at least 15 s"],
  ]);
  expect(await axeFindings(section.page())).toEqual([]);
});

test("reports the response of an address that is not Prometheus, and shows the rest", async () => {
  const { server } = JSON.parse(model.kubeconfig).clusters[0].cluster;
  const section = await outcomesPage(server);
  const problem = await section.getByRole("alert").textContent();
  expect(problem).toContain(`Cannot ask Prometheus at ${server}: it responded with 404`);
  await section.page().getByRole("heading", { name: "Departed" }).waitFor();
});

test("alerts on a fleet that stays unhealthy, and on no other", () => {
  const alerts = join(import.meta.dirname, "../../deploy/prometheus/alerts.yaml");
  const alertname = "LastcallFleetUnhealthy";
  const { groups } = parse(readFileSync(alerts, "utf8"));
  const { description } = groups[0].rules.find(
    ({ alert }: { alert: string }) => alert === alertname,
  ).annotations;
  const series = (policy: string, values: string) => ({
    ...{ series: `lastcall_fleet_unhealthy{policy="${policy}",pod="lastcall-1"}`, values },
  });
  const firing = {
    exp_labels: { policy: "spot", severity: "warning" },
    exp_annotations: {
      summary: "No voluntary departure of the policy spot starts: its fleet is unhealthy",
      description,
    },
  };
  const file = join(folder, "alert-test.yaml");
  const unit = {
    interval: "1m",
    input_series: [series("spot", "1x40"), series("batch", "1x10 0x30")],
    alert_rule_test: [
      { alertname, eval_time: "14m", exp_alerts: [] },
      { alertname, eval_time: "16m", exp_alerts: [firing] },
    ],
  };
  writeFileSync(
    file,
    stringify({ rule_files: [alerts], evaluation_interval: "1m", tests: [unit] }),
  );
  execFileSync("promtool", ["check", "rules", alerts], { stdio: "pipe" });
  expect(execFileSync("promtool", ["test", "rules", file]).toString()).toContain("SUCCESS");
});
