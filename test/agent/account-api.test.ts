import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AccountApi } from "../../src/agent/account-api.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { json, type Script, ScriptedServer } from "../support/scripted-server.ts";
import { waitUntil } from "../support/wait-until.ts";

const clock = new ManualClock();
let server: ScriptedServer;
let tokens: string[];

async function serve(script: Script): Promise<AccountApi> {
  server = await new ScriptedServer(script).start();
  return new AccountApi({
    server: server.url,
    readToken: async () => tokens.shift() ?? "none",
    fetch,
    clock,
    userAgent: "lastcall-agent/test",
  });
}

beforeEach(() => {
  tokens = ["first", "second"];
});
afterEach(() => server.stop());

describe("the agent's API client", () => {
  it("reads the token again for each request, and sends a patch with its content type", async () => {
    const api = await serve((_, response) => json(response, 200, { kind: "Departure" }));
    await api.send({ method: "GET", path: "/a" });
    const answer = await api.send({
      method: "PATCH",
      path: "/b",
      patchType: "application/merge-patch+json",
      body: { spec: {} },
    });
    expect(answer).toEqual({ status: 200, body: { kind: "Departure" } });
    expect(server.seen.map((one) => one.headers.authorization)).toEqual([
      "Bearer first",
      "Bearer second",
    ]);
    expect(server.seen[1]).toMatchObject({ method: "PATCH", url: "/b", body: '{"spec":{}}' });
    expect(server.seen[1]?.headers["content-type"]).toBe("application/merge-patch+json");
  });

  it("keeps no idle connection, as it may be dead by the next request", async () => {
    const api = await serve((_, response) => json(response, 200, {}));
    await api.send({ method: "GET", path: "/a" });
    await waitUntil(async () => server.sockets.size === 0, {
      what: "its connection is closed",
      timeoutMs: 2_000,
    });
    await api.send({ method: "GET", path: "/b" });
    expect(server.seen.map(({ connection }) => connection)).toEqual([1, 2]);
  });

  it("returns an overloaded server's message and Retry-After", async () => {
    const api = await serve((_, response) => {
      response.writeHead(429, { "retry-after": "1" }).end("Too many requests");
    });
    expect(await api.send({ method: "GET", path: "/a" })).toEqual({
      status: 429,
      body: "Too many requests",
      retryAfterSeconds: 1,
    });
  });

  it("rejects a proxy's page as a response to a write", async () => {
    const api = await serve((_, response) => {
      response.writeHead(200, { "content-type": "text/html" }).end("<html>Please log in</html>");
    });
    await expect(api.send({ method: "POST", path: "/a", body: {} })).rejects.toMatchObject({
      ...{ code: "API_ANSWER_INVALID", retryable: true },
      message: expect.stringContaining("check whether a proxy responds in its place"),
    });
  });

  it("gives up on a server after five seconds without a response", async () => {
    const api = await serve(() => {});
    const asked = api.send({ method: "GET", path: "/a" });
    const failed = expect(asked).rejects.toMatchObject({
      code: "API_UNREACHABLE",
      retryable: true,
    });
    await waitUntil(async () => server.seen.length === 1, { what: "it is asked", timeoutMs: 5000 });
    await clock.advance(5000);
    await failed;
  });

  it("reports a lost connection and a refused one as unreachable", async () => {
    const api = await serve((_, response) => void response.destroy());
    await expect(api.send({ method: "GET", path: "/a" })).rejects.toMatchObject({
      code: "API_UNREACHABLE",
    });
    await server.stop();
    await expect(api.send({ method: "GET", path: "/a" })).rejects.toThrow(/does not respond/);
  });

  it("ends when its signal aborts", async () => {
    const api = await serve(() => {});
    const ending = new AbortController();
    const asked = api.send({ method: "GET", path: "/a", signal: ending.signal });
    const failed = expect(asked).rejects.toMatchObject({ code: "INTERRUPTED" });
    ending.abort();
    await failed;
  });
});
