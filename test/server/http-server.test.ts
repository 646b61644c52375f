import { connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { StreamClient } from "../../src/contracts/http-route.ts";
import { serve } from "../../src/server/http-server.ts";
import { waitUntil } from "../support/wait-until.ts";

let close: () => Promise<void> = async () => {};
afterEach(() => close());

const wait = { timeoutMs: 5000, signal: new AbortController().signal, intervalMs: 5 };

/** Starts a server with a stream; `clients` are those that are connected. */
async function start(): Promise<{ url: string; port: number; clients: Set<StreamClient> }> {
  const clients = new Set<StreamClient>();
  const open = (client: StreamClient) => {
    clients.add(client);
    client.send("hello\n");
    return () => void clients.delete(client);
  };
  const server = await serve("127.0.0.1:0", { "/s": () => ({ type: "text/event-stream", open }) });
  close = server.close;
  return { url: `http://127.0.0.1:${server.port}/s`, port: server.port, clients };
}

describe("a stream of the server", () => {
  it("sends data at once, and notices when its client disconnects", async () => {
    const { url, clients } = await start();
    const leaving = new AbortController();
    const response = await fetch(url, { signal: leaving.signal });
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    const first = await response.body?.getReader().read();
    expect(new TextDecoder().decode(first?.value)).toBe("hello\n");
    expect(clients.size).toBe(1);
    leaving.abort();
    await waitUntil(async () => clients.size === 0, { what: "the client is gone", ...wait });
  });

  it("is not opened by a HEAD request, which gets its headers at once", async () => {
    const { url, clients } = await start();
    const response = await fetch(url, { method: "HEAD", signal: AbortSignal.timeout(2000) });
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    expect(clients.size).toBe(0);
    // The connection is free for the next request, which a response without an end would hold.
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    let told = "";
    socket.on("data", (part) => {
      told += part;
    });
    socket.write("HEAD /s HTTP/1.1\r\nHost: x\r\n\r\nGET /none HTTP/1.1\r\nHost: x\r\n\r\n");
    const both = async () => told.includes("200 OK") && told.includes("not found");
    await waitUntil(both, { what: "both are answered", ...wait, timeoutMs: 2000 });
    socket.destroy();
  });

  it("disconnects a client that does not read", async () => {
    const { port, clients } = await start();
    const socket = connect(port, "127.0.0.1");
    socket.pause();
    socket.on("error", () => {});
    socket.write("GET /s HTTP/1.1\r\nHost: x\r\n\r\n");
    await waitUntil(async () => clients.size === 1, { what: "it is connected", ...wait });
    // The kernel's own buffers do not count.
    const text = "x".repeat(64_000);
    const flood = async () => {
      for (const client of clients) client.send(text);
      return clients.size === 0;
    };
    await waitUntil(flood, { what: "it is cut off", ...wait });
    socket.destroy();
  });

  it("ends with the server", async () => {
    const { url } = await start();
    const response = await fetch(url);
    await close();
    close = async () => {};
    await expect(response.text()).rejects.toThrow();
  });
});
