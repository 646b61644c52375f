import { describe, expect, it } from "vitest";
import type { KubeObject, KubeWatchEvent } from "../../../src/contracts/kube-api.ts";
import { minutes, seconds } from "../../../src/core/time/time.ts";
import { settle } from "../../support/manual-clock.ts";
import { type ScriptedApi, unreachable } from "../../support/scripted-api.ts";
import {
  bookmark,
  errorEvent,
  event,
  names,
  object,
  page,
  refused,
  setUp,
  shortly,
} from "./reflector-stage.ts";

describe("a reflector", () => {
  it("lists in pages, is synced, watches from the list's version and follows the events", async () => {
    const { api, reflector, changes } = setUp(({ query }) =>
      query?.continue === "t1"
        ? page("10", [object("b", "5")])
        : page("10", [object("a", "4")], "t1"),
    );
    await reflector.synced;
    expect(names(reflector)).toEqual(["a@4", "b@5"]);
    await settle();
    expect(api.sent.map((request) => request.query)).toEqual([
      { limit: "500" },
      { limit: "500", continue: "t1" },
    ]);
    expect(api.watching.request.query).toMatchObject({
      resourceVersion: "10",
      allowWatchBookmarks: "true",
    });
    api.watching.push(event("MODIFIED", "a", "11"), event("ADDED", "c", "12"));
    api.watching.push(event("DELETED", "b", "13"));
    await settle();
    expect(names(reflector)).toEqual(["a@11", "c@12"]);
    expect(shortly(changes)).toEqual(["set a@4", "set b@5", "set a@11", "set c@12", "removed b"]);
  });

  it("keeps its objects if a response is not a list, and lists again", async () => {
    const answers = [page("10", [object("a", "4")]), { status: 200, body: "<html>" }];
    const again = { status: 200, body: { kind: "NodeList", items: null, metadata: {} } };
    const { api, clock, reflector, troubles } = setUp(() => answers.shift() ?? again);
    await reflector.synced;
    api.onWatch = (watch) => watch.push(errorEvent(410));
    await settle();
    api.watches[0]?.push(errorEvent(410));
    while (troubles.length === 0) await clock.advance(20);
    expect(troubles).toEqual(["API_ANSWER_INVALID"]);
    expect(names(reflector)).toEqual(["a@4"]);
    await clock.advance(60_000);
    expect(names(reflector)).toEqual([]);
  });

  it("reads no page twice if a list names one again as the next, and keeps its objects", async () => {
    let sent = 0;
    const { api, clock, reflector, troubles } = setUp(({ query }) => {
      sent += 1;
      if (sent > 100) return refused(500);
      if (sent === 1) return page("10", [object("a", "4")]);
      return page("11", [], query?.continue === "t1" ? "t2" : "t1");
    });
    await reflector.synced;
    api.onWatch = (watch) => watch.push(errorEvent(410));
    await settle();
    api.watches[0]?.push(errorEvent(410));
    while (troubles.length === 0) await clock.advance(20);
    expect(troubles).toEqual(["API_ANSWER_INVALID"]);
    expect(api.sent.map(({ query }) => query?.continue)).toEqual([
      undefined,
      undefined,
      "t1",
      "t2",
    ]);
    expect(names(reflector)).toEqual(["a@4"]);
  });

  it("requests watches of 30 to 50 minutes, so an hour costs a handful of requests", async () => {
    const { api, clock, reflector } = setUp(() => page("1", []));
    await reflector.synced;
    api.onWatch = (watch) => {
      const spanMs = Number(watch.request.query?.timeoutSeconds) * 1000;
      void clock.sleep(spanMs as never).then(() => watch.end());
    };
    await settle();
    api.watching.end();
    await clock.advance(minutes(24 * 60));
    const spans = api.watches.map((watch) => Number(watch.request.query?.timeoutSeconds));
    expect(Math.min(...spans)).toBeGreaterThanOrEqual(1800);
    expect(Math.max(...spans)).toBeLessThan(3000);
    expect(new Set(spans).size).toBeGreaterThan(10);
    // A day of watches of 30 to 50 minutes: 29 to 48, and the one that was cut short above.
    expect(api.watches.length).toBeGreaterThanOrEqual(30);
    expect(api.watches.length).toBeLessThanOrEqual(50);
    expect(api.sent).toHaveLength(1);
  });

  it("continues from the last version, also that of a bookmark, when a watch ends", async () => {
    const { api, clock, reflector } = setUp(() => page("10", []));
    await reflector.synced;
    await settle();
    api.watching.push(event("ADDED", "a", "11"), bookmark("20"));
    await settle();
    api.watching.end();
    await clock.advance(100);
    expect(api.watches).toHaveLength(2);
    expect(api.watching.request.query?.resourceVersion).toBe("20");
    expect(api.sent).toHaveLength(1);
  });

  it("keys by uid, so a recreated object of the same name is a new one", async () => {
    const { api, reflector, changes } = setUp(() => page("1", [object("a", "1")]));
    await reflector.synced;
    await settle();
    const reborn: KubeObject = { metadata: { name: "a", uid: "uid-new", resourceVersion: "3" } };
    api.watching.push({ type: "ADDED", object: reborn }, event("DELETED", "a", "2"));
    await settle();
    expect([...reflector.items().keys()]).toEqual(["uid-new"]);
    expect(shortly(changes)).toEqual(["set a@1", "set a@3", "removed a"]);
  });

  it("keys by namespace and name if requested", async () => {
    const pod = { metadata: { namespace: "shop", name: "p", uid: "u", resourceVersion: "1" } };
    const { reflector } = setUp(() => page("1", [pod]), { keyBy: "name" });
    await reflector.synced;
    expect([...reflector.items().keys()]).toEqual(["shop/p"]);
  });

  it("ends when its signal aborts, and leaves no timer", async () => {
    const { api, clock, reflector, stop, run } = setUp(() => page("1", []));
    await reflector.synced;
    await settle();
    stop.abort();
    await run;
    expect(api.watching.closed).toBe(true);
    expect(clock.sleeping).toBe(0);
  });

  it("rejects `synced` if it ends before its first list", async () => {
    const { reflector, stop, run } = setUp(() => new Promise(() => {}));
    stop.abort();
    await run;
    await expect(reflector.synced).rejects.toMatchObject({ code: "INTERRUPTED" });
  });
});

describe("an expired version", () => {
  const both = [
    ["as an ERROR event with 410", errorEvent(410, { reason: "Expired" })],
    ["as a 410 response to the watch", errorEvent(410)],
    ["as an ERROR event with only the reason", { type: "ERROR", object: { reason: "Expired" } }],
  ] as const;

  it.each(both)(
    "%s leads to a new list, of which only the differences are reported",
    async (_, expired) => {
      let list = page("10", [object("a", "4"), object("b", "5"), object("c", "6")]);
      const { api, clock, reflector, changes } = setUp(() => list);
      await reflector.synced;
      await settle();
      const before = reflector.items().get("uid-a");
      changes.length = 0;
      list = page("30", [object("a", "4"), object("b", "25"), object("d", "26")]);
      api.watching.push(expired as KubeWatchEvent);
      await clock.advance(100);
      expect(shortly(changes)).toEqual(["set b@25", "set d@26", "removed c"]);
      expect(reflector.items().get("uid-a")).toBe(before);
      expect(api.watching.request.query?.resourceVersion).toBe("30");
    },
  );

  it("while pages are read leads to a list in one page", async () => {
    const { api, clock, reflector } = setUp(({ query }) => {
      if (query?.continue) return refused(410, { reason: "Expired" });
      return query?.limit ? page("1", [object("a", "1")], "t1") : page("2", [object("b", "2")]);
    });
    await clock.advance(1000);
    await reflector.synced;
    expect(api.sent.at(-1)?.query).toEqual({});
    expect(names(reflector)).toEqual(["b@2"]);
  });

  it("at every watch does not lead to lists in a hot loop", async () => {
    const { api, clock } = setUp(() => page("1", []));
    api.onWatch = (watch) => watch.push(errorEvent(410));
    await clock.advance(60_000);
    // Waits of 0.05 to 0.1, 0.1 to 0.2, … 5 to 10 s: seven of them take at most 12.7 s, the others
    // at least 5 s each.
    expect(api.sent.length).toBeGreaterThan(7);
    expect(api.sent.length).toBeLessThan(20);
  });
});

describe("an error", () => {
  it("of the connection is waited out, and the watch continues from the last version", async () => {
    const { api, clock, reflector, troubles } = setUp(() => page("10", []));
    await reflector.synced;
    await settle();
    api.watching.push(event("ADDED", "a", "11"));
    await settle();
    api.onWatch = (watch) => watch.fail(unreachable());
    api.watching.end();
    await clock.advance(60_000);
    expect(troubles.length).toBeGreaterThan(5);
    expect(new Set(troubles)).toEqual(new Set(["API_UNREACHABLE"]));
    api.onWatch = () => {};
    await clock.advance(10_000);
    expect(api.watching.request.query?.resourceVersion).toBe("11");
    expect(api.sent).toHaveLength(1);
  });

  it.each([
    ["500", errorEvent(500)],
    ["429", errorEvent(429, { details: { retryAfterSeconds: 1 } })],
  ])("in an ERROR event with %s continues from the last version", async (_, error) => {
    const { api, clock, reflector } = setUp(() => page("10", []));
    await reflector.synced;
    await settle();
    api.watching.push(error);
    await clock.advance(1000);
    expect(api.watches).toHaveLength(2);
    expect(api.watching.request.query?.resourceVersion).toBe("10");
  });

  it.each<[string, (watch: ScriptedApi["watching"]) => void]>([
    ["is refused its connections", (watch) => watch.fail(unreachable())],
    ["is ended at once", (watch) => watch.end()],
  ])("of the watch alone, which %s, leads to a list every three minutes", async (_, broken) => {
    const { api, clock, reflector } = setUp(() => page("10", []));
    api.onWatch = broken;
    await reflector.synced;
    api.answer = () => page("20", [object("new", "15")]);
    await clock.advance(175_000);
    expect([api.sent.length, reflector.items().size]).toEqual([1, 0]);
    await clock.advance(20_000);
    expect([api.sent.length, reflector.items().size]).toEqual([2, 1]);
    await clock.advance(10 * 60_000);
    expect(api.sent.length).toBeLessThanOrEqual(6);
    expect(reflector.silentMs()).toBeLessThan(195_000);
  });

  it("of nobody, but no bookmark either, on a quiet server, is no silence: a watch that ended was open", async () => {
    const { api, clock, reflector } = setUp(() => page("10", []));
    await reflector.synced;
    for (let minute = 0; minute < 70; minute += 1) {
      await clock.advance(140_000);
      expect(reflector.silentMs()).toBeLessThanOrEqual(141_000);
      api.watching.end();
      await settle();
    }
    expect(api.sent).toHaveLength(1);
  });

  it("that one version always causes leads to a new list", async () => {
    const { api, clock, reflector } = setUp(() => page("10", []));
    api.onWatch = (watch) => {
      if (watch.request.query?.resourceVersion === "10") watch.push(errorEvent(500));
    };
    await reflector.synced;
    api.answer = () => page("11", []);
    await clock.advance(20_000);
    expect(api.watching.request.query?.resourceVersion).toBe("11");
    expect(api.sent).toHaveLength(2);
  });

  it("of a new definition (429) is waited out as long as the server requests", async () => {
    let busy = true;
    const { api, clock, reflector, troubles } = setUp(() =>
      busy
        ? refused(429, {
            message: "storage is (re)initializing",
            details: { retryAfterSeconds: 3 },
          })
        : page("1", []),
    );
    await clock.advance(2999);
    expect(api.sent).toHaveLength(1);
    busy = false;
    await clock.advance(1);
    await reflector.synced;
    expect(troubles).toEqual(["API_OVERLOADED"]);
  });

  it("of a server that ends every watch at once does not cause a hot loop", async () => {
    const { api, clock } = setUp(() => page("1", []));
    api.onWatch = (watch) => watch.end();
    await clock.advance(60_000);
    expect(api.watches.length).toBeLessThan(20);
  });

  it("in one object does not stop the stream, and keeps the last known state of the object", async () => {
    const { api, reflector, skipped } = setUp(() =>
      page("1", [object("a", "1"), object("x", "2", { spec: "odd" }), object("b", "3")]),
    );
    await reflector.synced;
    await settle();
    expect(names(reflector)).toEqual(["a@1", "b@3"]);
    api.watching.push(
      { type: "MODIFIED", object: object("a", "4", { spec: "odd" }) },
      event("ADDED", "c", "5"),
      { type: "ADDED", object: { metadata: { name: "nobody" } } },
    );
    await settle();
    expect(names(reflector)).toEqual(["a@1", "b@3", "c@5"]);
    expect(skipped.map((skip) => skip.name)).toEqual(["x", "a", "nobody"]);
  });
});

describe("a missing permission or definition", () => {
  const crd = { path: "/apis/lastcall.dev/v1alpha1/departures" };

  it("to list ends the reflector, with verb and resource in the error", async () => {
    const { reflector, run } = setUp(() => refused(403));
    await expect(run).rejects.toMatchObject({
      code: "RIGHT_MISSING",
      message: expect.stringContaining("grant list on nodes"),
    });
    await expect(reflector.synced).rejects.toMatchObject({ code: "RIGHT_MISSING" });
  });

  it("to watch ends the reflector, too", async () => {
    const { api, run } = setUp(() => page("1", []));
    api.onWatch = (watch) => watch.push(errorEvent(403));
    await expect(run).rejects.toMatchObject({
      code: "RIGHT_MISSING",
      message: expect.stringContaining("grant watch on nodes"),
    });
  });

  it("to watch is retried if the caller says so, as a list is enough to work with", async () => {
    const { api, clock, troubles } = setUp(() => page("1", []), { watchRefusals: "Retried" });
    api.onWatch = (watch) => {
      if (api.watches.length === 1) watch.push(errorEvent(403));
    };
    await clock.advance(seconds(10));
    expect(api.watches).toHaveLength(2);
    expect(troubles).toEqual(["RIGHT_MISSING"]);
  });

  it("of the CRD ends the reflector", async () => {
    const { run } = setUp(() => refused(404), crd);
    await expect(run).rejects.toMatchObject({ code: "CRD_MISSING" });
  });

  it("that existed before is retried, as for a server that is starting", async () => {
    const { api, clock, reflector, troubles } = setUp(() => page("1", [object("a", "1")]), crd);
    await reflector.synced;
    await settle();
    api.watching.push(bookmark("2"), errorEvent(410));
    api.answer = () => refused(404);
    await clock.advance(500);
    api.answer = () => refused(403);
    await clock.advance(2000);
    expect(names(reflector)).toEqual(["a@1"]);
    api.answer = () => page("3", []);
    await clock.advance(10_000);
    expect(names(reflector)).toEqual([]);
    expect(new Set(troubles)).toEqual(new Set(["CRD_MISSING", "RIGHT_MISSING"]));
  });
});

describe("freshness", () => {
  it("starts with the first response, and ends after ten minutes of silence", async () => {
    const { api, clock, reflector } = setUp(() => page("1", []));
    expect(reflector.isFresh()).toBe(false);
    expect(reflector.lastHeardAt).toBeUndefined();
    await reflector.synced;
    expect(reflector.lastHeardAt).toBe(clock.now());
    await clock.advance(minutes(9));
    api.watching.push(bookmark("2"));
    await clock.advance(minutes(10));
    expect(reflector.silentMs()).toBe(minutes(10));
    expect(reflector.isFresh()).toBe(true);
    await clock.advance(1);
    expect(reflector.isFresh()).toBe(false);
    expect(reflector.isFresh(minutes(11))).toBe(true);
  });
});
