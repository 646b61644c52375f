import type { ServerResponse } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../../../src/contracts/kube-api.ts";
import { seededRng } from "../../../src/core/chance/chance.ts";
import { HttpKubeApi } from "../../../src/kube/http/http-api.ts";
import { Reflector } from "../../../src/kube/watch/reflector.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { json, ScriptedServer } from "../../support/scripted-server.ts";

const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function node(name: string, resourceVersion: string): KubeObject {
  return { metadata: { name, uid: name, resourceVersion } };
}

describe("a reflector over HTTP", () => {
  it("survives a restart of the server: its version has expired, and it lists again", async () => {
    let items = [node("a", "1"), node("b", "2")];
    let generation = 1;
    let open: ServerResponse | undefined;
    const server = await new ScriptedServer((seen, response) => {
      const url = new URL(seen.url, "http://server");
      const version = String(generation * 10);
      if (url.searchParams.get("watch") !== "1") {
        return json(response, 200, { metadata: { resourceVersion: version }, items });
      }
      if (url.searchParams.get("resourceVersion") !== version) {
        return json(response, 410, { kind: "Status", code: 410, reason: "Expired" });
      }
      response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
      open = response;
    }).start();
    const clock = new ManualClock();
    const credentials = async () => ({ headers: {}, tls: {} });
    const access = { server: server.url, namespace: "", credentials, reload: async () => {} };
    const api = new HttpKubeApi({ access, clock });
    const removed: string[] = [];
    const reflector = new Reflector({
      api,
      clock,
      rng: seededRng(1),
      path: "/api/v1/nodes",
      translate: (object) => object.metadata?.name ?? "",
      onChange: (change) => change.kind === "Removed" && removed.push(change.key),
    });
    const stop = new AbortController();
    const run = reflector.run(stop.signal);
    closing.push(
      () => server.stop(),
      () => api.close(),
      () => run,
      () => stop.abort(),
    );

    /** Advances time in steps of 100 ms, and lets sockets work, until `isSo` returns true. */
    async function until(isSo: () => boolean): Promise<void> {
      while (!isSo()) await clock.advance(100);
    }

    await until(() => open !== undefined);
    open?.write(`${JSON.stringify({ type: "ADDED", object: node("c", "11") })}\n`);
    await until(() => reflector.items().size === 3);
    await server.stop();
    await until(() => reflector.silentMs() > 3_000);
    items = [node("a", "1"), node("c", "11"), node("d", "15")];
    generation = 2;
    await server.start();
    await until(() => reflector.items().has("d"));
    expect([...reflector.items().values()]).toEqual(["a", "c", "d"]);
    expect(removed).toEqual(["b"]);
  });

  it("does not take a proxy's JSON for the response to a write, even if the caller ignores the body", async () => {
    const server = await new ScriptedServer((_, response) =>
      json(response, 200, { message: "log in" }),
    ).start();
    const credentials = async () => ({ headers: {}, tls: {} });
    const access = { server: server.url, namespace: "", credentials, reload: async () => {} };
    const api = new HttpKubeApi({ access, clock: new ManualClock() });
    closing.push(
      () => server.stop(),
      () => api.close(),
    );
    const cordon = { method: "PATCH", path: "/api/v1/nodes/a", ignoresBody: true } as const;
    await expect(api.send(cordon)).rejects.toMatchObject({
      code: "API_ANSWER_INVALID",
      retryable: true,
    });
  });

  it("does not take a proxy's page for a list or for the response to a write", async () => {
    let isProxy = true;
    const server = await new ScriptedServer((seen, response) => {
      if (isProxy) {
        response.writeHead(200, { "content-type": "text/html" });
        response.end("<html>Please log in</html>");
        return;
      }
      if (seen.url.includes("watch=1")) return response.writeHead(200).flushHeaders();
      return json(response, 200, { metadata: { resourceVersion: "1" }, items: [node("a", "1")] });
    }).start();
    const clock = new ManualClock();
    const credentials = async () => ({ headers: {}, tls: {} });
    const access = { server: server.url, namespace: "", credentials, reload: async () => {} };
    const api = new HttpKubeApi({ access, clock });
    closing.push(
      () => server.stop(),
      () => api.close(),
    );
    for (const ignoresBody of [undefined, true] as const) {
      const cordon = { method: "PATCH", path: "/api/v1/nodes/a", ignoresBody } as const;
      await expect(api.send(cordon)).rejects.toMatchObject({
        code: "API_ANSWER_INVALID",
        message: expect.stringContaining("check whether a proxy responds in its place"),
      });
    }
    const troubles: string[] = [];
    const reflector = new Reflector<string>({
      ...{ api, clock, rng: seededRng(1), path: "/api/v1/nodes" },
      translate: (object) => object.metadata?.name ?? "",
      onError: ({ code }) => troubles.push(code),
    });
    const stop = new AbortController();
    closing.push(() => stop.abort());
    void reflector.run(stop.signal).catch(() => undefined);
    while (troubles.length === 0) await clock.advance(100);
    expect([...new Set(troubles)]).toEqual(["API_ANSWER_INVALID"]);
    expect(reflector.items().size).toBe(0);
    isProxy = false;
    while (reflector.items().size === 0) await clock.advance(100);
    expect([...reflector.items().values()]).toEqual(["a"]);
  });
});
