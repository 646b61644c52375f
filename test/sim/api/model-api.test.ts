import { beforeEach, describe, expect, it } from "vitest";
import type { KubeWatchEvent } from "../../../src/contracts/kube-api.ts";
import { seededRng } from "../../../src/core/chance/chance.ts";
import { instant, minutes, seconds } from "../../../src/core/time/time.ts";
import { eventLoopTurn } from "../../../src/runtime/real-clock.ts";
import { ModelApi } from "../../../src/sim/api/model-api.ts";
import { VirtualClock } from "../../../src/sim/time/virtual-clock.ts";

const startAt = instant(Date.UTC(2026, 10, 20));
const maps = "/api/v1/namespaces/default/configmaps";

let clock: VirtualClock;
let api: ModelApi;

beforeEach(() => {
  clock = new VirtualClock({ startAt, settle: eventLoopTurn });
  api = new ModelApi({ clock, rng: seededRng(7) });
});

function create(name: string): Promise<unknown> {
  return api.send({ method: "POST", path: maps, body: { metadata: { name } } });
}

/** Reads a watch into a list, which grows as long as the watch lives. */
function follow(query: Readonly<Record<string, string>>): {
  events: KubeWatchEvent[];
  ended: () => boolean;
} {
  const events: KubeWatchEvent[] = [];
  let over = false;
  void (async () => {
    const signal = new AbortController().signal;
    for await (const event of api.watch({ path: maps, query, signal })) events.push(event);
    over = true;
  })();
  return { events, ended: () => over };
}

describe("ModelApi", () => {
  it("creates the same names and uids for the same seed", async () => {
    const other = new ModelApi({ clock, rng: seededRng(7) });
    const body = { metadata: { generateName: "x-" } };
    const [one, two] = [api, other].map((each) =>
      each.handle({ method: "POST", path: maps, body }),
    );
    expect(one).toEqual(two);
  });

  it("returns the same frozen object to every reader", async () => {
    await create("shared");
    const read = (): unknown => api.handle({ method: "GET", path: `${maps}/shared` }).body;
    expect(read()).toBe(read());
    expect(Object.isFrozen((read() as { metadata: object }).metadata)).toBe(true);
  });

  it("is not affected by later changes to a request's body", async () => {
    const body = { metadata: { name: "own" }, data: { a: "1" } };
    await api.send({ method: "POST", path: maps, body });
    body.data.a = "2";
    expect(api.handle({ method: "GET", path: `${maps}/own` }).body).toMatchObject({
      data: { a: "1" },
    });
  });

  describe("a watch", () => {
    it("ends after its timeoutSeconds", async () => {
      const watch = follow({ resourceVersion: "1", timeoutSeconds: "300" });
      await clock.advance(seconds(299));
      expect(watch.ended()).toBe(false);
      await clock.advance(seconds(1));
      expect(watch.ended()).toBe(true);
    });

    it("ends on its own between half an hour and an hour", async () => {
      const watch = follow({});
      await clock.advance(minutes(30));
      expect(watch.ended()).toBe(false);
      await clock.advance(minutes(30));
      expect(watch.ended()).toBe(true);
    });

    it("sends a bookmark each minute with the newest version of all objects", async () => {
      const watch = follow({ resourceVersion: "1", allowWatchBookmarks: "true" });
      await clock.advance(seconds(59));
      expect(watch.events).toEqual([]);
      const other = { metadata: { name: "elsewhere" } };
      const { body } = api.handle({ method: "POST", path: "/api/v1/namespaces", body: other });
      await clock.advance(seconds(1));
      const { resourceVersion } = (body as { metadata: { resourceVersion: string } }).metadata;
      expect(watch.events).toMatchObject([
        { type: "BOOKMARK", object: { kind: "ConfigMap", metadata: { resourceVersion } } },
      ]);
    });

    it("can be dropped, and continues from its last version", async () => {
      const first = follow({});
      await create("before");
      await clock.advance(seconds(1));
      api.dropWatches("configmaps");
      await clock.advance(seconds(1));
      expect(first.ended()).toBe(true);
      await create("between");
      const resourceVersion = first.events.at(-1)?.object.metadata?.resourceVersion ?? "";
      const second = follow({ resourceVersion });
      await clock.advance(seconds(1));
      expect(second.events.map(({ object }) => object.metadata?.name)).toEqual(["between"]);
    });

    it("expires when the history has dropped its version", async () => {
      api = new ModelApi({ clock, rng: seededRng(7), historyLimit: 10 });
      await create("first");
      const { resourceVersion } = (
        api.handle({ method: "GET", path: maps }).body as { metadata: { resourceVersion: string } }
      ).metadata;
      for (let index = 0; index < 40; index += 1) await create(`later-${index}`);
      const watch = follow({ resourceVersion });
      await clock.advance(seconds(1));
      expect(watch.events).toMatchObject([{ type: "ERROR", object: { code: 410 } }]);
    });
  });

  describe("with injected failures", () => {
    it("returns the given answer as often as requested", async () => {
      const answer = { status: 429, body: "Too many requests, please try again later." };
      api.failNext({ match: { method: "GET", path: "configmaps" }, answer, times: 2 });
      const get = async (): Promise<number> =>
        (await api.send({ method: "GET", path: maps })).status;
      await create("not-struck");
      expect([await get(), await get(), await get()]).toEqual([429, 429, 200]);
    });

    it("can lose a request before it is carried out", async () => {
      api.failNext({ match: { method: "POST" }, answer: "Drop" });
      await expect(create("lost")).rejects.toMatchObject({ code: "API_UNREACHABLE" });
      expect(api.handle({ method: "GET", path: `${maps}/lost` }).status).toBe(404);
    });

    it("can lose a response after the request was carried out", async () => {
      api.failNext({ match: { path: /configmaps$/ }, answer: "DropAnswer" });
      await expect(create("done")).rejects.toMatchObject({ code: "API_UNREACHABLE" });
      expect(api.handle({ method: "GET", path: `${maps}/done` }).status).toBe(200);
    });

    it("refuses a watch with the given answer", async () => {
      const answer = { status: 403, body: { kind: "Status", code: 403 } };
      api.failNext({ match: { method: "WATCH" }, answer });
      const watch = follow({});
      await clock.advance(seconds(1));
      expect(watch.events).toEqual([{ type: "ERROR", object: answer.body }]);
      expect(watch.ended()).toBe(true);
    });

    it("answers a continued list with 410 after a compaction", async () => {
      for (const name of ["a", "b"]) await create(name);
      const first = api.handle({ method: "GET", path: maps, query: { limit: "1" } });
      const token = (first.body as { metadata: { continue: string } }).metadata.continue;
      api.compactHistory();
      const query = { limit: "1", continue: token };
      expect(api.handle({ method: "GET", path: maps, query })).toMatchObject({
        status: 410,
        body: { reason: "Expired" },
      });
    });
  });

  it("deletes the objects of a custom resource definition with it", () => {
    const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const spec = {
      group: "x.dev",
      scope: "Cluster",
      names: { kind: "Thing", plural: "things" },
      versions: [{ name: "v1", served: true, storage: true }],
    };
    const define = (): number =>
      api.handle({ method: "POST", path: crds, body: { metadata: { name: "things.x.dev" }, spec } })
        .status;
    expect(define()).toBe(201);
    const path = "/apis/x.dev/v1/things";
    const body = { apiVersion: "x.dev/v1", kind: "Thing", metadata: { name: "one" } };
    expect(api.handle({ method: "POST", path, body }).status).toBe(201);
    api.handle({ method: "DELETE", path: `${crds}/things.x.dev` });
    expect(api.handle({ method: "GET", path }).status).toBe(404);
    expect(define()).toBe(201);
    expect(api.handle({ method: "GET", path }).body).toMatchObject({ items: [] });
  });
});
