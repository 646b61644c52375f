import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from "node:http2";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { KubeWatchEvent } from "../../../src/contracts/kube-api.ts";
import { HttpKubeApi } from "../../../src/kube/http/http-api.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { json } from "../../support/scripted-server.ts";
import { startTunnel } from "../../support/tunnel.ts";

const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const tls = {
  key: readFileSync(new URL("../fixtures/server.key.pem", import.meta.url), "utf8"),
  cert: readFileSync(new URL("../fixtures/server.cert.pem", import.meta.url), "utf8"),
};

type Spoken = "HTTP/2" | "HTTP/1.1";

interface Server {
  readonly port: number;
  /** Requested paths, without the query. */
  readonly asked: string[];
  /**
   * Closes the HTTP/2 connections gracefully, as an API server does with those without a request
   * for 90 s. Returns how many.
   */
  closeIdle(): number;
}

/** Answers requests as an API server does; a watch stays open and silent. */
async function startServer(spoken: Spoken): Promise<Server> {
  const asked: string[] = [];
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url ?? "";
    asked.push(path.split("?")[0] as string);
    if (path.startsWith("/slow")) return;
    if (!path.includes("watch=1")) return json(response, 200, {});
    response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
  };
  const server: Http2SecureServer | ReturnType<typeof createTlsServer> =
    spoken === "HTTP/2"
      ? createSecureServer({ ...tls, allowHTTP1: true }, answer as never)
      : createTlsServer(tls, answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => server.close());
  const sessions = new Set<ServerHttp2Session>();
  server.on("session", (session: ServerHttp2Session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
  });
  const closeIdle = (): number => {
    const idle = [...sessions].filter((session) => !session.closed);
    for (const session of idle) session.close();
    return idle.length;
  };
  return { port: (server.address() as AddressInfo).port, asked, closeIdle };
}

async function setUp(spoken: Spoken) {
  const server = await startServer(spoken);
  const tunnel = await startTunnel(server.port);
  const clock = new ManualClock();
  const access = {
    server: `https://127.0.0.1:${tunnel.port}`,
    namespace: undefined,
    credentials: async () => ({ headers: {}, tls: { rejectUnauthorized: false } }),
    reload: async () => {},
  };
  const api = new HttpKubeApi({ access, clock, probesConnections: true });
  const stop = new AbortController();
  closing.push(
    () => tunnel.close(),
    () => api.close(),
    () => stop.abort(),
  );
  return { server, tunnel, clock, api, stop };
}

type World = Awaited<ReturnType<typeof setUp>>;

/** Opens a watch. The result shows how it ended, once it has. */
function watch({ api, stop }: World) {
  const ended: { error?: unknown; done?: boolean } = {};
  const query = { allowWatchBookmarks: "true", timeoutSeconds: "1800" };
  const run = (async () => {
    const events: KubeWatchEvent[] = [];
    for await (const one of api.watch({ path: "/api/v1/nodes", query, signal: stop.signal })) {
      events.push(one);
    }
  })();
  void run.then(
    () => Object.assign(ended, { done: true }),
    (error: unknown) => Object.assign(ended, { done: true, error }),
  );
  return ended;
}

/** Advances time in steps of 100 ms, and lets sockets work, until `isSo` returns true. */
async function until({ clock }: World, isSo: () => boolean, mostMs: number): Promise<number> {
  const fromMs = clock.monotonic();
  while (!isSo() && clock.monotonic() - fromMs < mostMs) {
    await new Promise((resolve) => setTimeout(resolve, 2));
    await clock.advance(100);
  }
  return clock.monotonic() - fromMs;
}

describe.each<Spoken>(["HTTP/2", "HTTP/1.1"])("with a server that speaks %s", (spoken) => {
  const mostMs = spoken === "HTTP/2" ? 3_200 : 4_200;

  it("a watch on a connection that died silently ends with an error that says so", async () => {
    const world = await setUp(spoken);
    const ended = watch(world);
    await until(world, () => world.server.asked.includes("/api/v1/nodes"), 5_000);
    await until(world, () => false, 8_000);
    expect(ended.done).toBe(undefined);
    world.tunnel.blackHole();
    expect(await until(world, () => ended.done === true, 10_000)).toBeLessThanOrEqual(mostMs);
    expect(ended.error).toMatchObject({ code: "API_UNREACHABLE" });
    expect(String(ended.error)).toContain("a probe of the connections within 2 s");
  });

  it("a request that is not urgent ends with it, and can be retried", async () => {
    const world = await setUp(spoken);
    watch(world);
    await until(world, () => world.server.asked.includes("/api/v1/nodes"), 5_000);
    await until(world, () => false, 4_000);
    let fault: unknown;
    const patch = { method: "PATCH", path: "/slow/status", body: {}, urgency: "Later" } as const;
    void world.api.send(patch).catch((error: unknown) => {
      fault = error;
    });
    await until(world, () => world.server.asked.includes("/slow/status"), 5_000);
    // While the connections live, the request has its 30 s.
    await until(world, () => false, 8_000);
    expect(fault).toBe(undefined);
    world.tunnel.blackHole();
    expect(await until(world, () => fault !== undefined, 10_000)).toBeLessThanOrEqual(mostMs);
    expect(fault).toMatchObject({ code: "API_UNREACHABLE", retryable: true });
    expect(String(fault)).toContain("Cannot patch /slow/status");
  });

  it("a watch that was opened after a reset of all connections, and died before the next probe, ends", async () => {
    const world = await setUp(spoken);
    const first = watch(world);
    await until(world, () => world.server.asked.includes("/api/v1/nodes"), 5_000);
    await until(world, () => false, 4_000);
    world.tunnel.reset();
    await until(world, () => first.done === true, 1_000);
    world.server.asked.length = 0;
    const second = watch(world);
    await until(world, () => world.server.asked.includes("/api/v1/nodes"), 1_000);
    world.tunnel.blackHole();
    expect(await until(world, () => second.done === true, 20_000)).toBeLessThanOrEqual(mostMs);
    expect(second.error).toMatchObject({ code: "API_UNREACHABLE" });
  });

  it("later requests use new connections, and a new watch is not disturbed", async () => {
    const world = await setUp(spoken);
    const first = watch(world);
    await world.api.send({ method: "GET", path: "/api/v1/pods" });
    await until(world, () => world.server.asked.includes("/api/v1/nodes"), 5_000);
    await until(world, () => false, 4_000);
    world.tunnel.blackHole();
    await until(world, () => first.done === true, 10_000);
    const second = watch(world);
    expect(await world.api.send({ method: "GET", path: "/api/v1/pods" })).toMatchObject({
      status: 200,
    });
    await until(world, () => false, 10_000);
    expect(second.done).toBe(undefined);
  });

  it("probes are no requests with HTTP/2, and are sent only while a watch is open", async () => {
    const world = await setUp(spoken);
    await world.api.send({ method: "GET", path: "/api/v1/pods" });
    await until(world, () => false, 5_000);
    expect(world.server.asked).toEqual(["/api/v1/pods"]);
    watch(world);
    await until(world, () => false, 10_000);
    const probes = world.server.asked.filter((path) => path === "/version").length;
    expect(probes > 0).toBe(spoken === "HTTP/1.1");
    world.stop.abort();
    await until(world, () => false, 1_000);
    const asked = world.server.asked.length;
    await until(world, () => false, 5_000);
    expect(world.server.asked).toHaveLength(asked);
  });
});

describe("with a server that closes connections without recent requests", () => {
  it("the watches stay open, and end if their connection dies after that", async () => {
    const world = await setUp("HTTP/2");
    const ended = watch(world);
    await until(world, () => world.server.asked.includes("/api/v1/nodes"), 5_000);
    for (let time = 1; time <= 5; time += 1) {
      await until(world, () => false, 3_000);
      expect(world.server.closeIdle()).toBe(1);
    }
    await until(world, () => false, 3_000);
    expect(ended.done).toBe(undefined);
    world.tunnel.blackHole();
    expect(await until(world, () => ended.done === true, 10_000)).toBeLessThanOrEqual(3_200);
  });

  it("a watch whose connection dies at the same time ends", async () => {
    const world = await setUp("HTTP/2");
    const ended = watch(world);
    await until(world, () => world.server.asked.includes("/api/v1/nodes"), 5_000);
    await until(world, () => false, 4_000);
    expect(world.server.closeIdle()).toBe(1);
    world.tunnel.blackHole();
    expect(await until(world, () => ended.done === true, 20_000)).toBeLessThanOrEqual(4_200);
  });

  it("a watch ends if its connection dies while a new one hangs, and one connection remains", async () => {
    const world = await setUp("HTTP/2");
    const ended = watch(world);
    await until(world, () => world.server.asked.includes("/api/v1/nodes"), 5_000);
    await until(world, () => false, 4_000);
    world.tunnel.hangNext();
    expect(world.server.closeIdle()).toBe(1);
    await until(world, () => false, 500);
    world.tunnel.blackHole();
    expect(await until(world, () => ended.done === true, 20_000)).toBeLessThanOrEqual(4_200);
    expect(ended.error).toMatchObject({ code: "API_UNREACHABLE" });
    const next = watch(world);
    await until(world, () => false, 10_000);
    expect(next.done).toBe(undefined);
    expect(world.server.closeIdle()).toBe(1);
  });
});
