import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { WhatIfFacts } from "../../src/board/picture.ts";
import { type BoardPicture, type StreamMessage, withChange } from "../../src/board/stream.ts";
import type { CommandIo, Screen } from "../../src/cli/command-line/command.ts";
import { runCommandLine } from "../../src/cli/command-line/command-line.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { minutes } from "../../src/core/time/time.ts";
import { processIo } from "../../src/runtime/process-io.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import { type ModelServer, serveModel } from "../../src/sim/http/serve-model.ts";
import { frozenProxy } from "../support/frozen-proxy.ts";
import { dawn, departures, ModelWorld, nodes, policies } from "../support/model-world.ts";
import { waitUntil } from "../support/wait-until.ts";

let world: ModelWorld;
let server: ModelServer;
let folder: string;
let stopping: AbortController;
/** Watched paths, in the order in which the watches started. */
let watches: string[];
/** All other requests. */
let requests: string[];

beforeEach(async () => {
  world = new ModelWorld();
  for (const name of ["n0", "n1"]) world.addNode(name, "a");
  [watches, requests] = [[], []];
  const send = world.api.send.bind(world.api);
  world.api.send = (request) => {
    // GET /version tests the connection and reads a model's time.
    if (request.path !== "/version") requests.push(`${request.method} ${request.path}`);
    return send(request);
  };
  const watch = world.api.watch.bind(world.api);
  world.api.watch = (request) => {
    watches.push(request.path);
    return watch(request);
  };
  server = await serveModel({ api: world.api });
  folder = await mkdtemp(join(tmpdir(), "lastcall-board-"));
  await writeFile(join(folder, "kubeconfig"), server.kubeconfig);
  stopping = new AbortController();
});

afterEach(async () => {
  stopping.abort();
  await server.close();
  await rm(folder, { recursive: true });
});

function start(...more: readonly string[]) {
  return startWith({}, ...more);
}

function startWith(world: Partial<CommandIo>, ...more: readonly string[]) {
  const heard = { stdout: "", stderr: "" };
  const io: Partial<CommandIo> = {
    ...processIo(),
    out: (text) => {
      heard.stdout += text;
    },
    err: (text) => {
      heard.stderr += text;
    },
    env: { KUBECONFIG: join(folder, "kubeconfig") },
    ...{ isTerminal: false, colour: false, columns: 80 },
    ...{ clock: realClock, rng: seededRng(1), signal: stopping.signal },
    openScreen: undefined,
    ...world,
  };
  const served = more.includes("--tui") ? [] : ["--address", "127.0.0.1:0"];
  const args = ["board", ...served, ...more];
  return { heard, ended: runCommandLine(args, io as CommandIo) };
}

async function opened(more: Partial<CommandIo> = {}) {
  const { heard, ended } = startWith(more);
  const what = "the address is printed";
  await waitUntil(async () => heard.stdout.includes("\n"), { what, timeoutMs: 10_000 });
  const url = heard.stdout.split("\n")[0] as string;
  const page = await fetch(url);
  const cookie = page.headers.get("set-cookie")?.split(";")[0] ?? "";
  const base = new URL(".", url).href.slice(0, -1);
  return { url, page, cookie, ended, heard, base };
}

function connectionIn(message: StreamMessage): string | undefined {
  if (message.kind === "Picture") return message.picture.fleet.connection.kind;
  return message.kind === "Change" ? message.change.fleet?.connection.kind : undefined;
}

/** Reads the stream up to the first message that matches, and returns it. */
async function hearUntil(
  base: string,
  cookie: string,
  isWanted: (message: StreamMessage) => boolean,
): Promise<StreamMessage> {
  const { body } = await fetch(`${base}/api/stream`, { headers: { cookie } });
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("the stream ended");
    text += new TextDecoder().decode(value);
    const events = text.split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) {
      const message = JSON.parse(event.slice(event.indexOf("data: ") + 6)) as StreamMessage;
      if (!isWanted(message)) continue;
      await reader.cancel();
      return message;
    }
  }
}

describe("lastcall board --tui", () => {
  it.each([
    ["if stdout is not a terminal", [], "stdout is not an interactive terminal"],
    ["with --open", ["--open"], "Cannot use --open with --tui"],
  ])("is rejected %s, before it looks for a cluster", async (_, more, problem) => {
    const { heard, ended } = start("--tui", ...more);
    expect(await ended).toBe(2);
    expect(heard.stderr).toContain(problem);
  });

  it("shows the nodes, says while the API server is away, and then catches up", async () => {
    const frames: string[] = [];
    let isOpen = true;
    const close = (): void => {
      isOpen = false;
    };
    const openScreen = (): Screen => ({
      ...{ size: () => ({ columns: 100, rows: 24 }), draw: (frame) => void frames.push(frame) },
      ...{ onResize: () => () => {}, close },
    });
    const last = (): string => frames.at(-1) ?? "";
    const isAway = (): boolean => last().includes("has not responded for");
    const shows = (what: string, isShown: () => boolean) =>
      waitUntil(async () => isShown() || undefined, { what, timeoutMs: 25_000 });
    const { heard, ended } = startWith({ openScreen }, "--tui");
    await shows("two nodes", () => last().includes("2 nodes of"));
    world.addNode("n2", "a");
    await shows("three nodes", () => last().includes("3 nodes of"));
    await server.close();
    await shows("that the server is away", isAway);
    // The rows are the last known ones.
    expect(last()).toContain(" n2 ");
    world.addNode("n3", "a");
    world.api.handle({ method: "DELETE", path: `${nodes}/n2` });
    server = await serveModel({ api: world.api, port: Number(new URL(server.url).port) });
    await shows("the node that came meanwhile", () => last().includes(" n3 "));
    await shows("that the server is back", () => !isAway());
    expect(last()).toContain("3 nodes of");
    // The first row is selected, which its mark shows.
    expect(
      last()
        .match(/[ ›>]n[0-9]+ /g)
        ?.map((one) => one.slice(1)),
    ).toEqual(["n0 ", "n1 ", "n3 "]);
    stopping.abort();
    expect(await ended).toBe(130);
    expect([isOpen, heard.stdout]).toEqual([false, ""]);
  }, 60_000);
});

describe("lastcall board", () => {
  it("prints its address first, serves the page there, and exits when interrupted", async () => {
    const { url, page, ended } = await opened();
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[\w-]+\/\?token=[\w-]+$/);
    expect(await page.text()).toContain('<script type="module" src="board.js">');
    stopping.abort();
    expect(await ended).toBe(130);
  });

  it("prints another address for the next browser at each press of Enter", async () => {
    let type = (): void => {};
    let isRead = true;
    const onLine: CommandIo["onLine"] = (listener) => {
      type = listener;
      return () => {
        isRead = false;
      };
    };
    const { url, ended, heard } = await opened({ onLine });
    expect(heard.stderr).toContain("press Enter for an address for another browser");
    const again = await fetch(url);
    expect([again.status, await again.text()]).toEqual([
      401,
      expect.stringContaining("press Enter where lastcall board runs"),
    ]);
    type();
    const [, next = ""] = heard.stdout.split("\n");
    expect((await fetch(next)).status).toBe(200);
    stopping.abort();
    await ended;
    expect(isRead).toBe(false);
  });

  it("streams the cluster's rows, and sets a hold that was previewed", async () => {
    const { base, cookie } = await opened();
    const hasRows = (message: StreamMessage): boolean =>
      (message.kind === "Picture" && message.picture.rows.length === 2) ||
      (message.kind === "Change" && message.change.rows?.set.length === 2);
    await hearUntil(base, cookie, hasRows);
    const uid = world.get(`${nodes}/n0`)?.metadata?.uid;
    const act = { kind: "Hold", node: "n0", uid, until: null };
    const headers = { cookie, origin: new URL(base).origin, "content-type": "application/json" };
    const post = async (path: string, body: object) => {
      const answer = await fetch(`${base}${path}`, {
        ...{ method: "POST", headers, body: JSON.stringify(body) },
      });
      return { status: answer.status, json: await answer.json() };
    };
    const { json: preview } = await post("/api/preview", act);
    const request = { act, seen: preview.seen, key: "a-key-of-this-act" };
    expect(await post("/api/act", request)).toMatchObject({ status: 200, json: { kind: "Done" } });
    const held = world.get(`${nodes}/n0`)?.metadata?.annotations?.["lastcall.dev/hold"];
    expect(held).toBe("true");
    expect((await post("/api/act", { nonsense: 1 })).status).toBe(400);
  });

  it("serves a node's details, and a problem if the node does not exist", async () => {
    const { base, cookie } = await opened();
    const get = (name: string) => fetch(`${base}/api/node?name=${name}`, { headers: { cookie } });
    await waitUntil(async () => (await get("n1")).status === 200, {
      ...{ what: "n1 is known", timeoutMs: 10_000 },
    });
    const page = (await (await get("n1")).json()) as { drains: readonly { kind: string }[] };
    expect(page.drains.map(({ kind }) => kind)).toEqual(["Planned", "Notice", "Notice"]);
    expect(await (await get("n9")).json()).toEqual({ problem: "There is no node n9" });
  });

  it("serves the nodes, the policies as written and the script for what-if plans", async () => {
    const spec = { lifetime: { max: "24h" }, spacing: { min: "5m" } };
    const apiVersion = "lastcall.dev/v1alpha1";
    world.create(policies, {
      apiVersion,
      kind: "DeparturePolicy",
      metadata: { name: "own" },
      spec,
    });
    const { base, cookie } = await opened();
    const get = () => fetch(`${base}/api/what-if`, { headers: { cookie } });
    const facts = await waitUntil(
      async () => {
        const told = (await (await get()).json()) as WhatIfFacts;
        return told.nodes.length === 2 ? told : undefined;
      },
      { what: "both nodes are known", timeoutMs: 10_000 },
    );
    expect(facts.nodes.map(({ name }) => name).toSorted()).toEqual(["n0", "n1"]);
    expect(facts.policies.map(({ metadata }) => metadata)).toEqual([{ name: "own" }]);
    expect(facts.policies[0]?.spec).toMatchObject(spec);
    const script = await fetch(`${base}/what-if.js`, { headers: { cookie } });
    expect([script.status, script.headers.get("content-type")]).toEqual([
      200,
      "text/javascript; charset=utf-8",
    ]);
  });

  it("watches nodes, departures and policies once each for any number of pages", async () => {
    const { base, cookie } = await opened();
    const hasRows = (message: StreamMessage): boolean =>
      (message.kind === "Picture" && message.picture.rows.length === 2) ||
      (message.kind === "Change" && message.change.rows?.set.length === 2);
    for (let pages = 0; pages < 3; pages += 1) await hearUntil(base, cookie, hasRows);
    await waitUntil(async () => watches.length >= 3 || undefined, {
      ...{ what: "all is watched", timeoutMs: 10_000 },
    });
    expect(watches.toSorted()).toEqual([departures, policies, nodes].toSorted());
  });

  it("polls nothing, however many pages follow the changes", async () => {
    const { base, cookie } = await opened();
    const saysOf = (message: StreamMessage): "Held" | "Free" | undefined => {
      if (message.kind === "Clock") return undefined;
      const rows = message.kind === "Picture" ? message.picture.rows : message.change.rows?.set;
      const row = rows?.find(({ node }) => node === "n0");
      return row && (row.hold === null ? "Free" : "Held");
    };
    const reviews = () => requests.filter((one) => one.includes("selfsubjectaccessreviews")).length;
    await hearUntil(base, cookie, (message) => message.kind !== "Clock");
    await waitUntil(async () => reviews() >= 7 && watches.length >= 3, {
      ...{ what: "all is watched, and the rights are known", timeoutMs: 10_000 },
    });
    const before = [...requests];
    expect(before.filter((one) => one === `GET ${nodes}`)).toHaveLength(1);
    for (let change = 0; change < 4; change += 1) {
      const next = change % 2 === 0 ? "Held" : "Free";
      const annotations = { "lastcall.dev/hold": next === "Held" ? "true" : null };
      world.patchNode("n0", { metadata: { annotations } });
      const hear = () => hearUntil(base, cookie, (message) => saysOf(message) === next);
      await Promise.all([hear(), hear(), hear()]);
    }
    expect(requests).toEqual(before);
    expect(watches).toHaveLength(3);
  });

  it("shows objects that older CRDs stored without the newer fields", async () => {
    const apiVersion = "lastcall.dev/v1alpha1";
    const departureOf = (name: string, node: string, status: object): void => {
      const uid = world.get(`${nodes}/${node}`)?.metadata?.uid;
      const spec = { node: { name: node, uid }, cause: "Planned" };
      const object = { apiVersion, kind: "Departure", metadata: { name }, spec };
      world.create(departures, object);
      world.api.handle({
        ...{ method: "PATCH", path: `${departures}/${name}/status`, body: { status } },
        patchType: "application/merge-patch+json",
      });
    };
    world.create(policies, {
      ...{ apiVersion, kind: "DeparturePolicy", metadata: { name: "old" } },
      spec: { lifetime: { max: "24h" } },
    });
    departureOf("leaving", "n0", { phase: "Draining" });
    departureOf("ended", "n1", { phase: "Ended" });
    const { base, cookie } = await opened();
    let picture: BoardPicture | undefined;
    await hearUntil(base, cookie, (message) => {
      if (message.kind === "Picture") ({ picture } = message);
      if (message.kind === "Change" && picture !== undefined) {
        picture = withChange(picture, message.change);
      }
      return picture?.rows.length === 2 && picture.past.length === 1;
    });
    const leaving = picture?.rows.find(({ node }) => node === "n0");
    expect(leaving).toMatchObject({ state: "Leaving", phase: "Draining", pods: null });
    expect(picture?.past).toMatchObject([{ node: "n1", outcome: "Failed", pods: null }]);
    expect(picture?.policies).toMatchObject([{ name: "old", problem: null }]);
  });

  it("follows the clock and speed of a demo's cluster, and names its context", async () => {
    await server.close();
    let rate = 60;
    server = await serveModel({ api: world.api, rate: () => rate });
    await writeFile(join(folder, "kubeconfig"), server.kubeconfig);
    const { base, cookie } = await opened();
    const first = await hearUntil(base, cookie, () => true);
    expect(first).toMatchObject({ kind: "Picture", clock: { rate: 60 } });
    // The model's time stands still; the board extrapolates from the last answer for at most half a
    // second.
    expect(Math.abs(first.clock.at - dawn)).toBeLessThan(minutes(10));
    expect(first.kind === "Picture" && first.picture.fleet.cluster).toBe("lastcall-model");
    rate = 0;
    await hearUntil(base, cookie, ({ clock }) => clock.rate === 0 && clock.at === dawn);
  });

  it("serves its page while the cluster is unreachable, and says so there", async () => {
    await server.close();
    const { base, cookie } = await opened();
    const isAway = (message: StreamMessage) => connectionIn(message) === "Away";
    expect(await hearUntil(base, cookie, isAway)).toBeDefined();
    server = await serveModel({ api: world.api });
  });

  it("sees within 5 s that the API server hangs, and at once that it is back", async () => {
    const proxy = await frozenProxy(new URL(server.url));
    const kubeconfig = server.kubeconfig.replaceAll(server.url, proxy.url);
    await writeFile(join(folder, "kubeconfig"), kubeconfig);
    const { base, cookie } = await opened();
    await hearUntil(base, cookie, (message) => connectionIn(message) === "Live");
    proxy.freeze();
    const frozenMs = performance.now();
    await hearUntil(base, cookie, (message) => connectionIn(message) === "Away");
    expect(performance.now() - frozenMs).toBeLessThan(5000);
    proxy.thaw();
    const thawedMs = performance.now();
    await hearUntil(base, cookie, (message) => connectionIn(message) === "Live");
    expect(performance.now() - thawedMs).toBeLessThan(3000);
    proxy.close();
  });

  it.each([
    ["0.0.0.0:8087", "nobody else may reach it"],
    [":8080", "nobody else may reach it"],
    ["nonsense", 'found "nonsense"'],
  ])("refuses to listen on %s, before it looks for a cluster", async (address, why) => {
    const { heard, ended } = start("--address", address, "--kubeconfig", "/not/there");
    expect(await ended).toBe(2);
    expect(heard.stdout).toBe("");
    expect(heard.stderr).toContain(why);
    expect(heard.stderr).toContain("such as 127.0.0.1:8087");
  });
});
