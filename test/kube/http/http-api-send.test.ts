import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import type { KubeRequest } from "../../../src/contracts/kube-api.ts";
import { plus, seconds } from "../../../src/core/time/time.ts";
import type { KubeAccess, KubeCredentials } from "../../../src/kube/access/kube-access.ts";
import { HttpKubeApi } from "../../../src/kube/http/http-api.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { json, type Script, ScriptedServer } from "../../support/scripted-server.ts";
import { waitUntil } from "../../support/wait-until.ts";

const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

interface Setup {
  readonly tls?: { key: string; cert: string };
  readonly access?: Partial<KubeAccess>;
  readonly maxSockets?: number;
}

async function setUp(script: Script, { tls, access, maxSockets }: Setup = {}) {
  const server = await new ScriptedServer(script, tls).start();
  const clock = new ManualClock();
  const api = new HttpKubeApi({ access: accessTo(server.url, access), clock, maxSockets });
  closing.push(
    () => server.stop(),
    () => api.close(),
  );
  return { server, clock, api };
}

function accessTo(server: string, more: Partial<KubeAccess> = {}): KubeAccess {
  const nobody: KubeCredentials = { headers: {}, tls: {} };
  return {
    server,
    namespace: undefined,
    credentials: async () => nobody,
    reload: async () => {},
    ...more,
  };
}

const get: KubeRequest = { method: "GET", path: "/api/v1/nodes" };
const post: KubeRequest = { method: "POST", path: "/api/v1/nodes", body: {} };

function fixture(name: string): string {
  return readFileSync(new URL(`../fixtures/${name}`, import.meta.url), "utf8");
}

describe("a request", () => {
  it("sends method, path, query, body and content type, and returns status and JSON", async () => {
    const { server, api } = await setUp((_, response) => json(response, 201, { kind: "Status" }));
    const answer = await api.send({
      method: "PATCH",
      path: "/api/v1/nodes/n1",
      query: { fieldManager: "lastcall", dryRun: "All" },
      body: [{ op: "test", path: "/metadata/uid", value: "u-ß" }],
      patchType: "application/json-patch+json",
    });
    expect(answer).toMatchObject({ status: 201, body: { kind: "Status" } });
    const [seen] = server.seen;
    expect(seen?.method).toBe("PATCH");
    expect(seen?.url).toBe("/api/v1/nodes/n1?fieldManager=lastcall&dryRun=All");
    expect(seen?.headers["content-type"]).toBe("application/json-patch+json");
    expect(JSON.parse(seen?.body ?? "")).toEqual([
      { op: "test", path: "/metadata/uid", value: "u-ß" },
    ]);
  });

  it("requests only metadata if the caller ignores the body, and reads the body of an error", async () => {
    const { server, api } = await setUp((_, to, turn) => json(to, 200 * turn, { kind: turn }));
    const ask = () => api.send({ ...post, ignoresBody: true });
    expect([await ask(), await ask()]).toMatchObject([{ body: undefined }, { body: { kind: 2 } }]);
    expect(server.seen[0]?.headers.accept).toMatch(/^application.json;as=PartialObjectMetadata;/);
  });

  it("keeps the path of the server's URL", async () => {
    const server = await new ScriptedServer((_, response) => json(response, 200, {})).start();
    const access = accessTo(`${server.url}/k8s/clusters/c1/`);
    const api = new HttpKubeApi({ access, clock: new ManualClock() });
    closing.push(() => server.stop());
    await api.send(get);
    expect(server.seen[0]?.url).toBe("/k8s/clusters/c1/api/v1/nodes");
  });

  it("returns plain text as text, with Retry-After in seconds", async () => {
    const { api } = await setUp((_, response) => {
      response.writeHead(429, { "content-type": "text/plain; charset=utf-8", "retry-after": "7" });
      response.end("Too many requests, please try again later.");
    });
    expect(await api.send(post)).toMatchObject({
      status: 429,
      body: "Too many requests, please try again later.",
      retryAfterSeconds: 7,
    });
  });

  it.each([
    ["Fri, 20 Nov 2026 00:00:07 GMT", Date.UTC(2026, 10, 20, 0, 0, 7)],
    ["yesterday", undefined],
  ])("returns the server's time from the Date header: %s", async (date, serverAt) => {
    const { api } = await setUp((_, response) => {
      response.setHeader("date", date);
      json(response, 200, {});
    });
    expect((await api.send(get)).serverAt).toBe(serverAt);
  });

  it("rejects a response that is not valid JSON", async () => {
    const { api } = await setUp((_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end('{"kind":');
    });
    await expect(api.send(get)).rejects.toMatchObject({ code: "API_ANSWER_INVALID" });
  });

  it("uses one socket for consecutive requests", async () => {
    const { server, api } = await setUp((_, response) => json(response, 200, {}));
    for (let round = 0; round < 5; round += 1) await api.send(get);
    expect(server.seen.map((seen) => seen.connection)).toEqual([1, 1, 1, 1, 1]);
  });
});

describe("rejected credentials", () => {
  function rotatingAccess() {
    let generation = 0;
    const access: Partial<KubeAccess> = {
      credentials: async () => ({
        headers: { authorization: `Bearer token-${generation}` },
        tls: {},
      }),
      reload: async () => {
        generation += 1;
      },
    };
    return { access, reloads: () => generation };
  }

  it("are renewed once for all requests in flight, and each is then answered", async () => {
    const { access, reloads } = rotatingAccess();
    const { api } = await setUp(
      (seen, response) =>
        json(response, seen.headers.authorization === "Bearer token-1" ? 200 : 401, {}),
      { access },
    );
    const answers = await Promise.all(Array.from({ length: 20 }, () => api.send(post)));
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]));
    expect(reloads()).toBe(1);
  });

  it("are reported as 401 if the new ones are rejected, too", async () => {
    const { access, reloads } = rotatingAccess();
    const { server, api } = await setUp((_, response) => json(response, 401, { code: 401 }), {
      access,
    });
    expect(await api.send(get)).toMatchObject({ status: 401 });
    expect(reloads()).toBe(1);
    expect(server.seen).toHaveLength(2);
  });

  it("are read once for a burst of requests, and again after ten seconds", async () => {
    let reads = 0;
    const credentials = async () => {
      reads += 1;
      return { headers: {}, tls: {} };
    };
    const { api, clock } = await setUp((_, response) => json(response, 200, {}), {
      access: { credentials },
    });
    await Promise.all(Array.from({ length: 50 }, () => api.send(get)));
    expect(reads).toBe(1);
    await clock.advance(10_000);
    await api.send(get);
    expect(reads).toBe(2);
  });

  it("are given up in time if a plugin hangs", async () => {
    const { api, clock } = await setUp((_, response) => json(response, 200, {}), {
      access: { credentials: () => new Promise(() => {}) },
    });
    const failed = expect(api.send(get)).rejects.toMatchObject({ code: "API_UNREACHABLE" });
    await clock.advance(30_000);
    await failed;
  });
});

describe("a lost connection", () => {
  const dropSecond: Script = (_, response, turn) => {
    if (turn === 2) response.destroy();
    else json(response, 200, { turn });
  };

  it("is not retried if the request may have been carried out", async () => {
    const { server, api } = await setUp((_, response) => void response.destroy());
    await expect(api.send(post)).rejects.toMatchObject({
      code: "API_UNREACHABLE",
      retryable: true,
      message: `Cannot create nodes: no response from ${server.url} (connection lost), expected a reachable API server, check its address and the network`,
    });
    expect(server.seen).toHaveLength(1);
  });

  it("on a kept-alive socket is retried for a GET, on a new socket", async () => {
    const { server, api } = await setUp(dropSecond);
    await api.send(get);
    expect(await api.send(get)).toMatchObject({ status: 200, body: { turn: 3 } });
    expect(server.seen.map((seen) => seen.connection)).toEqual([1, 1, 2]);
  });

  it("on a kept-alive socket is not retried for a POST", async () => {
    const { server, api } = await setUp(dropSecond);
    await api.send(get);
    await expect(api.send(post)).rejects.toMatchObject({ code: "API_UNREACHABLE" });
    expect(server.seen).toHaveLength(2);
  });

  it("in the middle of a response is an error", async () => {
    const { api } = await setUp((_, response) => {
      response.writeHead(200, { "content-type": "application/json", "content-length": "100" });
      response.write('{"items":', () => response.destroy());
    });
    await expect(api.send(get)).rejects.toMatchObject({ code: "API_UNREACHABLE" });
  });

  it("recovers when the server is back on the same port", async () => {
    const { server, api } = await setUp((_, response) => json(response, 200, {}));
    await api.send(get);
    await server.stop();
    await expect(api.send(post)).rejects.toThrow(/connection (refused|lost)/);
    await server.start();
    expect(await api.send(post)).toMatchObject({ status: 200 });
  });
});

describe("a missing response", () => {
  it("ends the request and its socket after the timeout", async () => {
    const arrived = Promise.withResolvers<void>();
    const { server, api, clock } = await setUp(() => arrived.resolve());
    const failed = expect(api.send(get)).rejects.toMatchObject({
      code: "API_UNREACHABLE",
      message: `Cannot list nodes: no response from ${server.url} within 30 s, expected one in time`,
    });
    await arrived.promise;
    await clock.advance(30_000);
    await failed;
    expect(clock.sleeping).toBe(0);
  });

  it("counts its timeout from when the request is sent, which it waits for until it is due", async () => {
    const arrived: string[] = [];
    const script: Script = ({ url }) => void arrived.push(url ?? "");
    const { server, api, clock } = await setUp(script, { maxSockets: 1 });
    const first = expect(api.send(get)).rejects.toThrow("within 30 s");
    const dueAt = plus(clock.now(), seconds(45));
    const bodies: number[] = [];
    const bodyAtTurn = () => bodies.push(clock.now() - dueAt);
    const second = api.send({ ...post, path: "/second", bodyAtTurn, dueAt });
    const third = api.send({ ...post, path: "/third", bodyAtTurn, dueAt });
    const late = expect(third).rejects.toThrow("no response from");
    await clock.advance(30_000);
    await first;
    await waitUntil(async () => arrived.includes("/second"), {
      what: "the second is sent",
      timeoutMs: 5000,
    });
    const slow = expect(second).rejects.toThrow("within 30 s");
    await clock.advance(15_000);
    await late;
    await clock.advance(15_000);
    await slow;
    // The body was built once, when the request was sent; the third was never sent.
    expect(bodies).toEqual([-15_000]);
    expect(server.seen.map(({ url }) => url)).toEqual(["/api/v1/nodes", "/second"]);
    expect(clock.sleeping).toBe(0);
  });

  it("ends an urgent request after 2.5 s, then after twice as long, until a minute has passed", async () => {
    const arrived: number[] = [];
    const { server, api, clock } = await setUp(({ connection }, response, turn) => {
      arrived.push(connection);
      if (turn === 4) json(response, 200, {});
    });
    const dueAt = plus(clock.now(), seconds(120));
    for (const [at, limit] of ["2.5 s", "5 s", "10 s"].entries()) {
      const failed = expect(api.send({ ...post, dueAt })).rejects.toThrow(`within ${limit}`);
      await waitUntil(async () => arrived.length === at + 1, { what: "sent", timeoutMs: 5000 });
      await clock.advance(Number.parseFloat(limit) * 1000);
      await failed;
    }
    expect(await api.send({ ...post, dueAt })).toMatchObject({ status: 200 });
    expect(server.seen).toHaveLength(4);
    // A minute later the timeout is that of the first one.
    await clock.advance(60_000);
    const failed = expect(api.send({ ...post, dueAt })).rejects.toThrow("within 2.5 s");
    await waitUntil(async () => arrived.length === 5, { what: "sent", timeoutMs: 5000 });
    await clock.advance(2_500);
    await failed;
  });

  it("moves later requests to new connections, as the idle ones may be dead as well", async () => {
    const gate = Promise.withResolvers<void>();
    const { server, api, clock } = await setUp(async ({ url }, response) => {
      if (url === "/dead") return;
      if (url === "/held") await gate.promise;
      json(response, 200, {});
    });
    const held = [1, 2, 3].map(() => api.send({ ...get, path: "/held" }));
    await waitUntil(async () => server.seen.length === 3, { what: "held", timeoutMs: 5000 });
    gate.resolve();
    await Promise.all(held);
    const dueAt = plus(clock.now(), seconds(30));
    const lost = expect(api.send({ ...get, path: "/dead", dueAt })).rejects.toThrow("no response");
    await waitUntil(async () => server.seen.length === 4, { what: "sent", timeoutMs: 5000 });
    await clock.advance(2_500);
    await lost;
    await api.send({ ...get, path: "/next", dueAt });
    expect(server.seen[3]?.connection).toBeLessThanOrEqual(3);
    expect(server.seen[4]?.connection).toBe(4);
  });

  it("ends at once when the caller's signal aborts", async () => {
    const arrived = Promise.withResolvers<void>();
    const { api, clock } = await setUp(() => arrived.resolve());
    const caller = new AbortController();
    const failed = expect(api.send({ ...get, signal: caller.signal })).rejects.toMatchObject({
      code: "INTERRUPTED",
    });
    await arrived.promise;
    caller.abort(new Error("enough"));
    await failed;
    expect(clock.sleeping).toBe(0);
  });
});

describe("TLS", () => {
  const own = { key: fixture("server.key.pem"), cert: fixture("server.cert.pem") };
  const other = { key: fixture("other-name.key.pem"), cert: fixture("other-name.cert.pem") };
  const ok: Script = (_, response) => json(response, 200, {});

  function trusting(ca: string): Partial<KubeAccess> {
    return { credentials: async () => ({ headers: {}, tls: { ca } }) };
  }

  it("connects to a server whose certificate the CA signed, and reuses the socket", async () => {
    const { server, api } = await setUp(ok, { tls: own, access: trusting(own.cert) });
    await api.send(get);
    expect(await api.send(get)).toMatchObject({ status: 200 });
    expect(server.mostSockets).toBe(1);
  });

  it.each([
    [
      "an unknown signer",
      own,
      other.cert,
      /is not trusted, its certificate is self-signed, expected one/,
    ],
    ["another name", other, other.cert, /the certificate of https:\S+ is for another name \(/],
  ])("rejects a certificate with %s, and says why", async (_, tls, ca, words) => {
    const { api } = await setUp(ok, { tls, access: trusting(ca) });
    await expect(api.send(get)).rejects.toMatchObject({
      code: "API_UNREACHABLE",
      message: expect.stringMatching(words),
    });
  });

  it("with a plain HTTP server fails with an error that says so", async () => {
    const server = await new ScriptedServer(ok).start();
    closing.push(() => server.stop());
    const access = accessTo(server.url.replace("http:", "https:"));
    const api = new HttpKubeApi({ access, clock: new ManualClock() });
    await expect(api.send(get)).rejects.toThrow(
      /no TLS connection to https:.*expected a TLS server/,
    );
  });

  it("uses new sockets for new certificates, and lets a request on the old ones complete", async () => {
    const held = Promise.withResolvers<void>();
    const both = `${own.cert}\n${other.cert}`;
    let ca = own.cert;
    const { server, api, clock } = await setUp(
      async (_, response, turn) => {
        if (turn === 1) await held.promise;
        json(response, 200, { turn });
      },
      { tls: own, access: { credentials: async () => ({ headers: {}, tls: { ca } }) } },
    );
    const first = api.send(get);
    while (server.seen.length === 0) await new Promise((resolve) => setImmediate(resolve));
    ca = both;
    await clock.advance(10_000);
    expect(await api.send(get)).toMatchObject({ status: 200 });
    held.resolve();
    expect(await first).toMatchObject({ body: { turn: 1 } });
    expect(server.seen.map((seen) => seen.connection)).toEqual([1, 2]);
  });
});
