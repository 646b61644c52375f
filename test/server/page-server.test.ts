import { createServer, request as httpRequest } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { PageServer, PageStreamClient } from "../../src/contracts/http-route.ts";
import { hours, type Instant, plus } from "../../src/core/time/time.ts";
import { servePage } from "../../src/server/page-server.ts";
import { waitUntil } from "../support/wait-until.ts";

let server: PageServer;
/** The first URL that the server gave. */
let url: string;
let now: Instant;
let acts: unknown[];
let clients: Set<PageStreamClient>;

const html = new TextEncoder().encode("<!doctype html><title>page</title>");

async function start(address = "127.0.0.1:0"): Promise<PageServer> {
  return servePage({
    ...{ address, now: () => now },
    entry: { en: "run lastcall demo again", ja: "もう一度実行してください" },
    files: new Map([["/", { type: "text/html; charset=utf-8", bytes: html }]]),
    routes: {
      get: {
        "/api/node": ({ query }) => ({ status: 200, json: { name: query.get("name") } }),
        "/api/stream": ({ lastEventId }) => ({
          type: "text/event-stream",
          open: (client) => {
            clients.add(client);
            client.send([`data: after ${lastEventId ?? "nothing"}\n\n`]);
            return () => void clients.delete(client);
          },
        }),
      },
      post: {
        "/api/act": ({ body }) => {
          acts.push(body);
          return { status: 200, json: { kind: "Done" } };
        },
      },
    },
  });
}

beforeEach(async () => {
  now = 0 as Instant;
  acts = [];
  clients = new Set();
  server = await start();
  url = server.url();
});
afterEach(() => server.close());

interface Call {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Unlike fetch, it sends any Host and Origin, as a malicious program would. */
function call({ path, ...rest }: Call) {
  return callAt({ path: `${base()}${path}`, ...rest });
}

/** The same at any path of the server, instead of one below the board's own. */
function callAt({ method = "GET", path, headers = {}, body }: Call) {
  const { hostname, port } = new URL(url);
  return new Promise<{ status: number; headers: Record<string, unknown>; text: string }>(
    (resolve, reject) => {
      const sent = httpRequest({ hostname, port, method, path, headers }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
        );
      });
      sent.once("error", reject);
      sent.end(body);
    },
  );
}

/** The board's own path, without the slash at its end. */
const base = (): string => new URL(url).pathname.slice(0, -1);
const pathOf = (address: string): string => `/${new URL(address).search}`;
const tokenPath = (): string => pathOf(url);
const origin = (): string => new URL(url).origin;

async function letIn(): Promise<string> {
  const { headers } = await call({ path: tokenPath() });
  return String(headers["set-cookie"]).split(";")[0] as string;
}

describe("the page server", () => {
  it("exchanges the token in its URL for a cookie, once", async () => {
    const first = await call({ path: tokenPath() });
    expect(first.status).toBe(200);
    expect(String(first.headers["set-cookie"])).toMatch(
      /^lastcall-board=[\w-]{32}; Path=\/[\w-]{16}\/; Max-Age=604800; HttpOnly; SameSite=Strict$/,
    );
    const second = await call({ path: tokenPath() });
    expect(second.status).toBe(401);
    expect(second.headers["set-cookie"]).toBeUndefined();
    expect(second.text).toContain(
      "has already been used; it opens the board only once: run lastcall demo again",
    );
  });

  it("has a new URL once the previous one was used, each for one browser", async () => {
    expect(server.url()).toBe(url);
    const first = await letIn();
    const next = server.url();
    expect(next).not.toBe(url);
    const other = await call({ path: pathOf(next) });
    expect(other.status).toBe(200);
    for (const used of [url, next]) {
      const { status, text } = await call({ path: pathOf(used) });
      expect([status, text]).toEqual([401, expect.stringContaining("has already been used")]);
    }
    // No third URL was requested, so no token is valid; a browser that is in stays in.
    expect((await call({ path: "/?token=" })).status).toBe(401);
    expect((await call({ path: "/", headers: { cookie: first } })).status).toBe(200);
  });

  it("spends no token on a HEAD request, and accepts a used URL with the cookie", async () => {
    expect((await call({ method: "HEAD", path: tokenPath() })).status).toBe(401);
    const cookie = await letIn();
    expect((await call({ path: tokenPath(), headers: { cookie } })).status).toBe(200);
    expect((await call({ path: "/", headers: { cookie } })).status).toBe(200);
  });

  it("shows nothing without the cookie, and says how to get in", async () => {
    for (const path of ["/", "/?token=guessed", "/api/node?name=n1", "/api/stream"]) {
      const { status, text } = await call({ path });
      expect([path, status]).toEqual([path, 401]);
      expect(text).not.toBe("");
    }
    expect(
      (await call({ path: "/api/node", headers: { cookie: "lastcall-board=x" } })).status,
    ).toBe(401);
  });

  it("limits its cookie to a path that no other server on the host can guess", async () => {
    const { headers } = await call({ path: tokenPath() });
    const [, path = ""] = /Path=([^;]+)/.exec(String(headers["set-cookie"])) ?? [];
    expect(path).toBe(new URL(url).pathname);
    // Two slashes, and 96 random bits.
    expect(path).toHaveLength(18);
    const other = await start();
    expect(new URL(other.url()).pathname).not.toBe(path);
    await other.close();
  });

  it("serves nothing outside of that path, even with the cookie", async () => {
    const cookie = await letIn();
    for (const path of ["/", tokenPath(), "/api/node?name=n1", base(), "/guessed/api/node"]) {
      const { status } = await callAt({ path, headers: { cookie } });
      expect([path, status]).toEqual([path, 401]);
    }
    expect((await callAt({ path: `${base()}/`, headers: { cookie } })).status).toBe(200);
  });

  it("finds its cookie next to one that another server on the host has set", async () => {
    const cookie = `lastcall-board=forged; ${await letIn()}`;
    expect((await call({ path: "/api/node", headers: { cookie } })).status).toBe(200);
  });

  it("ends each browser's access after a week", async () => {
    const first = await letIn();
    now = plus(now, hours(100));
    const pathOfNext = pathOf(server.url());
    const { headers } = await call({ path: pathOfNext });
    const second = String(headers["set-cookie"]).split(";")[0] as string;
    now = plus(now, hours(67.9));
    const status = async (cookie: string) =>
      (await call({ path: "/api/node", headers: { cookie } })).status;
    expect(await status(first)).toBe(200);
    now = plus(now, hours(0.1));
    expect([await status(first), await status(second)]).toEqual([401, 200]);
  });

  it("ends a stream that was opened before its browser's access ended", async () => {
    const headers = { cookie: await letIn() };
    const ended = call({ path: "/api/stream", headers });
    await waitUntil(async () => clients.size === 1, { what: "it is open", timeoutMs: 5000 });
    now = plus(now, hours(7 * 24));
    for (const client of clients) client.send(["data: secret\n\n"]);
    expect((await ended).text).toBe("data: after nothing\n\n");
    expect(clients.size).toBe(0);
  });

  it("says how to get in in the first supported language of the browser", async () => {
    const asked = async (accepted: string | undefined) => {
      const headers = { ...(accepted !== undefined && { "accept-language": accepted }) };
      const { text } = await call({ path: "/?token=guessed", headers });
      return [/<html lang="(..)">/.exec(text)?.[1], text.includes("もう一度実行してください。")];
    };
    expect(await asked("ja,en-US;q=0.9,en;q=0.8")).toEqual(["ja", true]);
    expect(await asked("fr-FR, ja-JP;q=0.5")).toEqual(["ja", true]);
    expect(await asked("en-GB,ja;q=0.5")).toEqual(["en", false]);
    expect(await asked("jav")).toEqual(["en", false]);
    expect(await asked(undefined)).toEqual(["en", false]);
    const headers = { "accept-language": "ja", host: "evil.example" };
    expect((await call({ path: "/", headers })).text).toMatch(/<html lang="ja">.*"evil.example" /);
  });

  it("answers only to loopback host names, against DNS rebinding", async () => {
    const cookie = await letIn();
    for (const host of ["evil.example", `evil.example:${new URL(url).port}`, "127.0.0.1"]) {
      const { status } = await call({ path: "/api/node", headers: { cookie, host } });
      expect([host, status]).toEqual([host, 403]);
    }
    const host = `localhost:${new URL(url).port}`;
    expect((await call({ path: "/api/node", headers: { cookie, host } })).status).toBe(200);
  });

  it("accepts an action only from its own page", async () => {
    const cookie = await letIn();
    const json = { "content-type": "application/json" };
    const post = (headers: Record<string, string>) =>
      call({ method: "POST", path: "/api/act", headers: { ...json, ...headers }, body: "{}" });
    expect((await post({ origin: origin() })).status).toBe(401);
    expect((await post({ cookie })).status).toBe(403);
    expect((await post({ cookie, origin: "https://evil.example" })).status).toBe(403);
    expect((await post({ cookie, origin: "null" })).status).toBe(403);
    expect((await post({ cookie, origin: origin(), "sec-fetch-site": "cross-site" })).status).toBe(
      403,
    );
    expect(acts).toEqual([]);
    expect((await post({ cookie, origin: origin() })).status).toBe(200);
    expect(acts).toEqual([{}]);
  });

  it("accepts neither forms nor invalid or oversized JSON as an action", async () => {
    const headers = { cookie: await letIn(), origin: origin() };
    const post = (type: string, body: string) =>
      call({
        ...{ method: "POST", path: "/api/act", body },
        headers: { ...headers, "content-type": type },
      });
    expect((await post("text/plain", "{}")).status).toBe(400);
    expect((await post("application/json", "{")).status).toBe(400);
    expect((await post("application/json", `"${"x".repeat(70_000)}"`)).status).toBe(400);
    expect(acts).toEqual([]);
  });

  it("forbids inline code, frames and external content in every response", async () => {
    const cookie = await letIn();
    for (const path of ["/", "/api/node", "/nothing"]) {
      const { headers } = await call({ path, headers: { cookie } });
      const policy = String(headers["content-security-policy"]);
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("script-src 'self';");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toContain("unsafe");
      expect(headers["x-content-type-options"]).toBe("nosniff");
      expect(headers["referrer-policy"]).toBe("no-referrer");
    }
  });

  it("refuses other methods and unknown paths", async () => {
    const headers = { cookie: await letIn() };
    expect((await call({ path: "/nothing", headers })).status).toBe(404);
    expect((await call({ method: "PUT", path: "/api/act", headers })).status).toBe(405);
    expect((await call({ path: "/../../etc/passwd", headers })).status).toBe(401);
    expect((await callAt({ path: "//", headers })).status).toBe(400);
  });

  it("answers a HEAD request for a stream at once", async () => {
    const headers = { cookie: await letIn() };
    expect((await call({ method: "HEAD", path: "/", headers })).status).toBe(200);
    expect((await call({ method: "HEAD", path: "/api/stream", headers })).status).toBe(405);
    expect(clients.size).toBe(0);
  });

  it("disconnects a stream that is never read", async () => {
    const cookie = await letIn();
    const { hostname, port, host } = new URL(url);
    const socket = connect(Number(port), hostname);
    socket.pause();
    socket.on("error", () => {});
    socket.write(`GET ${base()}/api/stream HTTP/1.1\r\nHost: ${host}\r\nCookie: ${cookie}\r\n\r\n`);
    await waitUntil(async () => clients.size === 1, { what: "it is open", timeoutMs: 5000 });
    const text = "x".repeat(1_000_000);
    const flood = async () => {
      for (const client of clients) client.send([text]);
      return clients.size === 0;
    };
    await waitUntil(flood, { what: "it is cut off", timeoutMs: 15_000, intervalMs: 5 });
    socket.destroy();
  });

  it("passes on the last event ID of a reconnecting stream", async () => {
    const headers = { cookie: await letIn(), "last-event-id": "r.7", "accept-encoding": "gzip" };
    const response = await fetch(`${origin()}${base()}/api/stream`, { headers });
    const first = await response.body?.getReader().read();
    expect(new TextDecoder().decode(first?.value)).toBe("data: after r.7\n\n");
  });
});

describe("the page server's address", () => {
  it("has the next free port if its port is taken", async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
    const { port } = taken.address() as AddressInfo;
    const other = await start(`127.0.0.1:${port}`);
    expect(Number(new URL(other.url()).port)).toBeGreaterThan(port);
    await other.close();
    taken.close();
  });

  it("must be on loopback, because the server acts with its user's permissions", async () => {
    await expect(start("0.0.0.0:0")).rejects.toThrow(/expected a loopback address/);
    await expect(start(":8087")).rejects.toThrow(/expected a loopback address/);
    await expect(start("nonsense")).rejects.toThrow(/that is not an address/);
  });
});
