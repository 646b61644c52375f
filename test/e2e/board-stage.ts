/** A board of a cluster in memory, opened in a browser that other boards share. */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { realClock } from "../../src/runtime/real-clock.ts";
import { serveModel } from "../../src/sim/http/serve-model.ts";
import { openBoard } from "../support/browser.ts";
import { type LastcallProcess, startLastcall } from "../support/lastcall-process.ts";
import { modelClusterApi } from "../support/model-cluster-api.ts";
import { waitUntil } from "../support/wait-until.ts";

export const apiVersion = "lastcall.dev/v1alpha1";
export const departures = "/apis/lastcall.dev/v1alpha1/departures";
export const policies = "/apis/lastcall.dev/v1alpha1/departurepolicies";
export const hourMs = 3_600_000;

/** The fields of a response that the tests read. */
export interface Read {
  readonly metadata?: {
    readonly uid?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: {
    readonly node?: { readonly name?: string };
    readonly gates?: { readonly freezeUntil?: string };
    readonly departAt?: string;
    readonly deadlineAt?: string;
  };
  readonly items?: readonly Read[];
}

type Method = "GET" | "POST" | "PATCH" | "DELETE";

export type Ask = (method: Method, path: string, body?: object) => Read;

export interface BoardStage {
  readonly browser: Browser;
  readonly board: LastcallProcess;
  /** The address that the board opened. */
  readonly url: string;
  readonly context: BrowserContext;
  readonly page: Page;
  readonly complaints: readonly string[];
  /** Sends a request to the cluster, and throws if it is refused. */
  readonly ask: Ask;
  /** Leads a tab to this view, by default the first tab. */
  show(hash: string, on?: Page): Promise<void>;
  close(): Promise<void>;
}

/** Opens the board by its own `--open`, of a cluster with what `furnish` creates. */
export async function openBoardStage(
  browser: Browser,
  furnish: (ask: Ask) => void,
): Promise<BoardStage> {
  const folder = mkdtempSync(join(tmpdir(), "lastcall-page-"));
  const api = await modelClusterApi(realClock);
  const ask: Ask = (method, path, body) => {
    const patchType = "application/merge-patch+json";
    const answer = api.handle({ method, path, body, ...(method === "PATCH" && { patchType }) });
    if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
    return answer.body as Read;
  };
  furnish(ask);
  const model = await serveModel({ api });
  writeFileSync(join(folder, "kubeconfig"), model.kubeconfig);
  // Replaces the program that opens addresses on Linux.
  const opened = join(folder, "opened");
  writeFileSync(join(folder, "xdg-open"), `#!/bin/sh\nprintf '%s' "$1" > ${opened}\n`);
  chmodSync(join(folder, "xdg-open"), 0o755);
  const args = ["board", "--open", "--address", "127.0.0.1:18087"];
  const board = startLastcall([...args, "--kubeconfig", join(folder, "kubeconfig")], {
    ...{ folder, env: { PATH: `${folder}:${process.env.PATH}` } },
  });
  const url = await waitUntil(
    async () => (existsSync(opened) ? readFileSync(opened, "utf8") || undefined : undefined),
    { what: "an address is opened", timeoutMs: 30_000, signal: board.death },
  );
  const { context, page, complaints } = await openBoard(browser, url);
  return {
    ...{ browser, board, url, context, page, complaints, ask },
    show: async (hash, on = page) => {
      await on.goto(new URL(`.#/${hash}`, url).href);
      await on.locator("main h2").first().waitFor();
    },
    close: async () => {
      await context.close();
      await board.stop();
      await model.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A Spot node in zone a; returns its uid. */
export function addSpotNode(ask: Ask, name: string): string {
  const labels = { "cloud.google.com/gke-spot": "true", "topology.kubernetes.io/zone": "a" };
  const spec = { providerID: `gce://demo/a/${name}` };
  const body = { apiVersion: "v1", kind: "Node", metadata: { name, labels }, spec, status: {} };
  return ask("POST", "/api/v1/nodes", body).metadata?.uid ?? "";
}

export function addPolicy(ask: Ask, spec: object): void {
  ask("POST", policies, { apiVersion, kind: "DeparturePolicy", metadata: { name: "spot" }, spec });
}
