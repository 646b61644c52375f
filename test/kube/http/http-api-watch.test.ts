import type { ServerResponse } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import type { KubeWatchEvent } from "../../../src/contracts/kube-api.ts";
import { HttpKubeApi } from "../../../src/kube/http/http-api.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { json, type Script, ScriptedServer } from "../../support/scripted-server.ts";
import { waitUntil } from "../../support/wait-until.ts";

const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function setUp(script: Script) {
  const server = await new ScriptedServer(script).start();
  const clock = new ManualClock();
  const credentials = async () => ({ headers: {}, tls: {} });
  const access = { server: server.url, namespace: undefined, credentials, reload: async () => {} };
  const api = new HttpKubeApi({ access, clock });
  closing.push(
    () => server.stop(),
    () => api.close(),
  );
  const caller = new AbortController();
  closing.push(() => caller.abort());
  return { server, clock, api, caller };
}

const path = "/api/v1/nodes";
const query = { allowWatchBookmarks: "true", timeoutSeconds: "1800" };

function added(name: string): KubeWatchEvent {
  return { type: "ADDED", object: { metadata: { name } } };
}

function line(event: KubeWatchEvent): string {
  return `${JSON.stringify(event)}\n`;
}

function begin(response: ServerResponse): ServerResponse {
  response.writeHead(200, { "content-type": "application/json" });
  response.flushHeaders();
  return response;
}

const bookmark: KubeWatchEvent = {
  type: "BOOKMARK",
  object: { metadata: { resourceVersion: "12" } },
};

/** How many seconds a watch lives that gets these events at first, and then nothing. */
async function silentSeconds(
  watched: {
    readonly api: HttpKubeApi;
    readonly clock: ManualClock;
    readonly signal: AbortSignal;
  },
  events: readonly KubeWatchEvent[],
): Promise<number> {
  const { api, clock, signal } = watched;
  const watch = api.watch({ path, query, signal })[Symbol.asyncIterator]();
  for (const event of events) expect((await watch.next()).value).toEqual(event);
  const end = watch.next();
  let count = 0;
  for (; clock.sleeping > 0; count += 1) await clock.advance(1_000);
  expect((await end).done).toBe(true);
  return count;
}

async function collect(events: AsyncIterable<KubeWatchEvent>): Promise<KubeWatchEvent[]> {
  const out: KubeWatchEvent[] = [];
  for await (const event of events) out.push(event);
  return out;
}

describe("a watch", () => {
  it("sends the caller's query, and yields events however the bytes are split", async () => {
    const { server, api, caller } = await setUp(async (_, response) => {
      begin(response);
      for (const byte of Buffer.from(line(added("größe-🚂")) + line(added("b")))) {
        // Waiting for each write keeps the bytes from being merged.
        await new Promise((resolve) => response.write(Buffer.from([byte]), resolve));
      }
      response.end();
    });
    const events = await collect(api.watch({ path, query, signal: caller.signal }));
    expect(events).toEqual([added("größe-🚂"), added("b")]);
    expect(server.seen[0]?.url).toBe(
      "/api/v1/nodes?allowWatchBookmarks=true&timeoutSeconds=1800&watch=1",
    );
  });

  it("passes bookmarks and an ERROR event with 410 on unchanged", async () => {
    const expired: KubeWatchEvent = { type: "ERROR", object: { kind: "Status", code: 410 } };
    const { api, caller } = await setUp((_, response) => {
      begin(response).end(line(bookmark) + line(expired));
    });
    const events = await collect(api.watch({ path, query, signal: caller.signal }));
    expect(events).toEqual([bookmark, expired]);
  });

  it.each([
    [
      "a Status in JSON",
      "application/json",
      '{"kind":"Status","code":410,"reason":"Expired"}',
      410,
    ],
    ["plain text", "text/plain", "Too many requests, please try again later.", 429],
    ["an empty body", "text/plain", "", 503],
  ])(
    "that is refused with %s yields one ERROR event with the code",
    async (_, type, body, status) => {
      const { api, caller } = await setUp((_request, response) => {
        response.writeHead(status, { "content-type": type, "retry-after": "3" }).end(body);
      });
      const events = await collect(api.watch({ path, query, signal: caller.signal }));
      expect(events).toHaveLength(1);
      expect(events[0]).toMatchObject({ type: "ERROR", object: { kind: "Status", code: status } });
    },
  );

  it("reports the Retry-After of a refusal in plain text", async () => {
    const { api, caller } = await setUp((_, response) => {
      response.writeHead(429, { "content-type": "text/plain", "retry-after": "3" }).end("no");
    });
    const [event] = await collect(api.watch({ path, query, signal: caller.signal }));
    expect(event?.object).toMatchObject({ message: "no", details: { retryAfterSeconds: 3 } });
  });

  it("ends without an error when the connection drops in the middle of a line", async () => {
    const { api, caller } = await setUp((_, response) => {
      begin(response).write(`${line(added("a"))}{"type":"ADD`, () => response.destroy());
    });
    const events = await collect(api.watch({ path, query, signal: caller.signal }));
    expect(events).toEqual([added("a")]);
  });

  it("yields an ERROR event for a line that is not an event", async () => {
    const { api, caller } = await setUp((_, response) => void begin(response).end("<html>\n"));
    const [event] = await collect(api.watch({ path, query, signal: caller.signal }));
    expect(event).toMatchObject({ type: "ERROR", object: { code: 500 } });
  });

  it("throws if it cannot be opened", async () => {
    const { server, api, caller } = await setUp(() => {});
    await server.stop();
    const failed = collect(api.watch({ path, query, signal: caller.signal }));
    await expect(failed).rejects.toMatchObject({ code: "API_UNREACHABLE" });
  });

  it("is given up after 2.5 s without a response, and then after twice as long", async () => {
    const { server, clock, api, caller } = await setUp(() => {});
    for (const [asked, limitMs] of [2_500, 5_000].entries()) {
      const failed = collect(api.watch({ path, query, signal: caller.signal }));
      const refused = expect(failed).rejects.toMatchObject({ code: "API_UNREACHABLE" });
      await waitUntil(async () => server.seen.length > asked, { what: "asked", timeoutMs: 2_000 });
      const state = { isOver: false };
      failed.catch(() => Object.assign(state, { isOver: true }));
      await clock.advance(limitMs - 1);
      expect(state.isOver).toBe(false);
      await clock.advance(1);
      await refused;
    }
  });

  it("ends with the caller's signal and closes its connection", async () => {
    const gone = Promise.withResolvers<void>();
    const { api, caller } = await setUp((_, response) => {
      response.on("close", () => gone.resolve());
      begin(response).write(line(added("a")));
    });
    const watch = api.watch({ path, query, signal: caller.signal });
    const events: KubeWatchEvent[] = [];
    for await (const event of watch) {
      events.push(event);
      caller.abort();
    }
    expect(events).toEqual([added("a")]);
    await gone.promise;
  });

  it("closes its connection when the reader stops reading", async () => {
    const gone = Promise.withResolvers<void>();
    const { api, caller, clock } = await setUp((_, response) => {
      response.on("close", () => gone.resolve());
      begin(response).write(line(added("a")));
    });
    for await (const _ of api.watch({ path, query, signal: caller.signal })) break;
    await gone.promise;
    expect(clock.sleeping).toBe(0);
  });
});

describe("a silent watch", () => {
  it.each([
    ["70 seconds if bookmarks were requested", query, 70],
    ["its own timeout and 30 s otherwise", { timeoutSeconds: "300" }, 330],
    ["an hour and 30 s without a timeout", undefined, 3630],
  ])("ends after %s", async (_, asked, limitSeconds) => {
    const { api, caller, clock } = await setUp((_request, response) => {
      begin(response).write(line(added("a")));
    });
    const watch = api.watch({ path, query: asked, signal: caller.signal })[Symbol.asyncIterator]();
    await watch.next();
    let ended = false;
    const rest = watch.next().then((next) => {
      ended = next.done === true;
    });
    await clock.advance(limitSeconds * 1000 - 1);
    expect(ended).toBe(false);
    await clock.advance(1);
    await rest;
    expect(ended).toBe(true);
  });

  it("may last 140 seconds after one has missed nothing, on a server that sends no bookmarks", async () => {
    const { api, caller, clock } = await setUp((_request, response) => {
      begin(response).write(line(bookmark));
    });
    const watched = { api, clock, signal: caller.signal };
    expect(await silentSeconds(watched, [bookmark])).toBe(70);
    expect(await silentSeconds(watched, [bookmark])).toBe(140);
    expect(await silentSeconds(watched, [bookmark])).toBe(140);
  });

  it("gives the longer limit to other watches, also to those that are open", async () => {
    const { api, caller, clock } = await setUp((_request, response) => {
      begin(response).write(line(bookmark));
    });
    const older = api.watch({ path, query, signal: caller.signal })[Symbol.asyncIterator]();
    await older.next();
    const olderEnd = older.next();
    await clock.advance(1_000);
    const pods = "/api/v1/pods";
    const newer = api.watch({ path: pods, query, signal: caller.signal })[Symbol.asyncIterator]();
    await newer.next();
    const newerEnd = newer.next();
    await clock.advance(69_000);
    expect(await olderEnd).toEqual({ done: true, value: undefined });
    await clock.advance(70_999);
    expect(clock.sleeping).toBe(1);
    await clock.advance(1);
    expect(await newerEnd).toEqual({ done: true, value: undefined });
  });

  it("ends after 70 seconds again once one has missed a change", async () => {
    let opened = 0;
    const { api, caller, clock } = await setUp((_request, response) => {
      opened += 1;
      begin(response).write(line(opened === 2 ? added("missed") : bookmark));
    });
    const watched = { api, clock, signal: caller.signal };
    expect(await silentSeconds(watched, [bookmark])).toBe(70);
    expect(await silentSeconds(watched, [added("missed")])).toBe(70);
    expect(await silentSeconds(watched, [bookmark])).toBe(140);
  });

  it("is not ended while its reader is busy", async () => {
    let server: ServerResponse | undefined;
    const { api, caller, clock } = await setUp((_, response) => {
      server = begin(response);
      server.write(line(added("a")));
    });
    const watch = api.watch({ path, query, signal: caller.signal })[Symbol.asyncIterator]();
    await watch.next();
    await clock.advance(3_600_000);
    const next = watch.next();
    server?.write(line(added("b")));
    expect((await next).value).toEqual(added("b"));
  });
});

describe("a slow reader", () => {
  it("slows the server down instead of filling memory", async () => {
    const event = Buffer.from(line(added("x".repeat(1000))));
    const total = 60_000;
    let sent = 0;
    let taken = 0;
    let mostAhead = 0;
    const { api, caller } = await setUp(async (_, response) => {
      begin(response);
      for (; sent < total; sent += 1) {
        mostAhead = Math.max(mostAhead, sent - taken);
        if (response.write(event)) continue;
        await new Promise((resolve) => response.once("drain", resolve));
      }
      response.end();
    });
    for await (const _ of api.watch({ path, query, signal: caller.signal })) {
      taken += 1;
      // Ten events per turn of the event loop: less than one read from the socket returns.
      if (taken % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(taken).toBe(total);
    // 60 MB in all; the kernel's buffers of both sockets hold a few MB.
    expect(mostAhead * event.length).toBeLessThan(20_000_000);
  });
});

describe("many requests beside watches", () => {
  it("500 concurrent requests use 64 sockets, and 5 watches stay open", async () => {
    const { server, api, caller } = await setUp((seen, response) => {
      if (seen.url.includes("watch=1")) begin(response).write(line(added("first")));
      else json(response, 200, { url: seen.url });
    });
    const watches = Array.from({ length: 5 }, () =>
      api.watch({ path, query, signal: caller.signal })[Symbol.asyncIterator](),
    );
    for (const watch of watches) await watch.next();
    const answers = await Promise.all(
      Array.from({ length: 500 }, (_, at) => api.send({ method: "GET", path: `/pods/${at}` })),
    );
    expect(answers.map((answer) => answer.body)).toEqual(
      Array.from({ length: 500 }, (_, at) => ({ url: `/pods/${at}` })),
    );
    expect(server.mostSockets).toBeLessThanOrEqual(64 + 5);
    expect(server.seen.filter((seen) => seen.url.includes("watch=1"))).toHaveLength(5);
  });

  it("100 watches delay no request", async () => {
    const { api, caller } = await setUp((seen, response) => {
      if (seen.url.includes("watch=1")) begin(response).write(line(added("first")));
      else json(response, 200, {});
    });
    const watches = Array.from({ length: 100 }, () =>
      api.watch({ path, query, signal: caller.signal })[Symbol.asyncIterator](),
    );
    await Promise.all(watches.map((watch) => watch.next()));
    expect(await api.send({ method: "GET", path })).toMatchObject({ status: 200 });
  });
});
