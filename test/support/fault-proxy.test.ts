import { Agent, type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import { type Fault, type FaultCall, type FaultProxy, startFaultProxy } from "./fault-proxy.ts";
import { json, ScriptedServer } from "./scripted-server.ts";
import { waitUntil } from "./wait-until.ts";

const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function setUp(faultFor?: (call: FaultCall) => Fault | undefined) {
  const server = await new ScriptedServer((seen, response) => {
    if (!seen.url.includes("watch=1")) return json(response, 200, { asked: seen.url });
    response.writeHead(200).write("first\n");
  }).start();
  const proxy = await startFaultProxy({ target: server.url, ...(faultFor && { faultFor }) });
  const agent = new Agent({ keepAlive: true });
  closing.push(
    () => server.stop(),
    () => proxy.close(),
    () => agent.destroy(),
  );
  return { server, proxy, agent };
}

function open(
  proxy: FaultProxy,
  path: string,
  { agent, method = "GET", signal }: { agent?: Agent; method?: string; signal?: AbortSignal } = {},
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const asked = request(new URL(path, proxy.url), { agent, method, signal }, resolve);
    asked.on("error", reject);
    asked.end();
  });
}

async function ask(proxy: FaultProxy, path: string, how: Parameters<typeof open>[2] = {}) {
  const answer = await open(proxy, path, how);
  const body = await text(answer);
  return { status: answer.statusCode, retryAfter: answer.headers["retry-after"], body };
}

/** Only the first request of its kind. */
function once(fault: Fault) {
  return ({ attempt }: FaultCall) => (attempt === 1 ? fault : undefined);
}

describe("startFaultProxy", () => {
  it("forwards and records a request without a fault, including its query", async () => {
    const { proxy } = await setUp();
    expect(await ask(proxy, "/api/v1/pods?limit=5")).toEqual({
      status: 200,
      retryAfter: undefined,
      body: JSON.stringify({ asked: "/api/v1/pods?limit=5" }),
    });
    expect(proxy.calls.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "GET /api/v1/pods?limit=5",
    ]);
  });

  it("answers with a status itself, without forwarding the request", async () => {
    const { proxy, server } = await setUp(
      once({ kind: "Status", code: 429, retryAfterSeconds: 7 }),
    );
    const refused = await ask(proxy, "/api/v1/pods");
    expect([refused.status, refused.retryAfter]).toEqual([429, "7"]);
    expect(JSON.parse(refused.body)).toMatchObject({ kind: "Status", code: 429 });
    expect(server.seen).toEqual([]);
    expect((await ask(proxy, "/api/v1/pods?limit=1")).status).toBe(200);
  });

  it("resets a connection before the request is forwarded or after the response", async () => {
    const before = await setUp(once({ kind: "Reset" }));
    await expect(ask(before.proxy, "/a", { method: "POST" })).rejects.toThrow("socket hang up");
    expect(before.server.seen).toEqual([]);
    const after = await setUp(once({ kind: "LostAnswer" }));
    await expect(ask(after.proxy, "/a", { method: "POST" })).rejects.toThrow("socket hang up");
    expect(after.server.seen).toHaveLength(1);
  });

  it("counts attempts by method and path", async () => {
    const { proxy } = await setUp();
    for (const path of ["/a?x=1", "/a?x=2", "/b"]) await ask(proxy, path);
    await ask(proxy, "/a", { method: "POST" });
    expect(proxy.calls.map(({ attempt }) => attempt)).toEqual([1, 2, 1, 1]);
  });

  it("swallows a request, and keeps its connection open until the caller aborts", async () => {
    const { proxy, server } = await setUp(once({ kind: "Hole" }));
    const patience = new AbortController();
    const asked = ask(proxy, "/a", { signal: patience.signal });
    await waitUntil(async () => proxy.calls.length === 1, {
      what: "it is heard",
      timeoutMs: 2_000,
    });
    expect((await ask(proxy, "/a")).status).toBe(200);
    patience.abort();
    await expect(asked).rejects.toThrow("aborted");
    expect(server.seen).toHaveLength(1);
  });

  it("delays a request", async () => {
    const { proxy } = await setUp(once({ kind: "Delay", ms: 50 }));
    const beganMs = performance.now();
    expect((await ask(proxy, "/slow")).status).toBe(200);
    // Node's timers may fire up to a millisecond early.
    expect(performance.now() - beganMs).toBeGreaterThanOrEqual(49);
  });
});

describe("blackHole", () => {
  it("silences open connections without closing them, and serves new ones", async () => {
    const { proxy, server, agent } = await setUp();
    const watch = await open(proxy, "/nodes?watch=1");
    const lines: string[] = [];
    watch.setEncoding("utf8").on("data", (line: string) => lines.push(line));
    await ask(proxy, "/a", { agent });
    await waitUntil(async () => lines.length === 1, { what: "it is heard", timeoutMs: 2_000 });
    proxy.blackHole();
    const patience = new AbortController();
    const asked = ask(proxy, "/b", { agent, signal: patience.signal });
    const state = { isSettled: false };
    asked.catch(() => {}).finally(() => Object.assign(state, { isSettled: true }));
    expect((await ask(proxy, "/c")).status).toBe(200);
    expect(server.seen.map(({ url }) => url)).toEqual(["/nodes?watch=1", "/a", "/c"]);
    expect([state.isSettled, watch.complete, lines]).toEqual([false, false, ["first\n"]]);
    patience.abort();
    await expect(asked).rejects.toThrow("aborted");
  });
});
