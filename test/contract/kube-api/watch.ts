import { describe, expect, it } from "vitest";
import type { KubeWatchEvent } from "../../../src/contracts/kube-api.ts";
import {
  configMap,
  configMaps,
  field,
  metadataOf,
  mustBe,
  pod,
  pods,
  type TargetOf,
} from "./dialog.ts";
import { expectDeclared } from "./patch.ts";

export function watchSentences(target: TargetOf): void {
  describe("watches", () => {
    const maps = configMaps(target);

    /** Reads `count` events while `act` causes them, and then closes the watch. */
    async function events(
      query: Readonly<Record<string, string>>,
      options: { count: number; act?: () => Promise<unknown>; path?: string },
    ): Promise<KubeWatchEvent[]> {
      const abort = new AbortController();
      const seen: KubeWatchEvent[] = [];
      const path = options.path ?? maps.path();
      const watch = target().api.watch({ path, query, signal: abort.signal });
      const reading = (async () => {
        for await (const event of watch) {
          seen.push(event);
          if (seen.length === options.count) break;
        }
      })();
      await options.act?.();
      await reading;
      abort.abort();
      return seen;
    }

    async function versionNow(): Promise<string> {
      const list = mustBe(200, await maps.get("", { limit: "1" }));
      return String(field(list, "metadata.resourceVersion"));
    }

    function told(seen: readonly KubeWatchEvent[]): string[] {
      return seen.map(({ type, object }) => `${type} ${object.metadata?.name}`);
    }

    function labelled(name: string, watched: string): object {
      return { ...configMap(name), metadata: { name, labels: { watched } } };
    }

    it("sends the events since a version in order, even from before it started", async () => {
      const resourceVersion = await versionNow();
      await maps.mustCreate(labelled("told", "a"));
      await maps.merge("told", { data: { a: "1" } });
      const seen = await events(
        { resourceVersion, labelSelector: "watched=a" },
        { count: 3, act: () => maps.delete("told") },
      );
      expect(told(seen)).toEqual(["ADDED told", "MODIFIED told", "DELETED told"]);
      const versions = seen.map(({ object }) => Number(metadataOf(object).resourceVersion));
      expect(versions).toEqual(versions.toSorted((a, b) => a - b));
      expect(new Set(versions).size).toBe(3);
    });

    it("sends whole objects with their kind", async () => {
      const resourceVersion = await versionNow();
      const made = await maps.mustCreate(labelled("whole", "b"));
      const [event] = await events({ resourceVersion, labelSelector: "watched=b" }, { count: 1 });
      expect(event?.object).toEqual(made);
      expect(event?.object).toMatchObject({ apiVersion: "v1", kind: "ConfigMap" });
    });

    it("starts with the existing objects if no version is given", async () => {
      await maps.mustCreate(labelled("there-1", "c"));
      await maps.mustCreate(labelled("there-2", "c"));
      const seen = await events({ labelSelector: "watched=c" }, { count: 2 });
      expect(told(seen).toSorted()).toEqual(["ADDED there-1", "ADDED there-2"]);
    });

    it("sends ADDED for an object that enters the selection, DELETED for a leaver", async () => {
      await maps.mustCreate(labelled("mover", "elsewhere"));
      const resourceVersion = await versionNow();
      const move = (watched: string): Promise<unknown> =>
        maps.merge("mover", { metadata: { labels: { watched } } });
      const seen = await events(
        { resourceVersion, labelSelector: "watched=d" },
        {
          count: 2,
          act: async () => {
            await move("d");
            await move("elsewhere");
          },
        },
      );
      expect(told(seen)).toEqual(["ADDED mover", "DELETED mover"]);
    });

    it("follows one node's pods by a field selector", async () => {
      const resourceVersion = await versionNow();
      const seen = await events(
        { resourceVersion, fieldSelector: "spec.nodeName=watch-node" },
        {
          count: 1,
          path: pods(target).path(),
          act: async () => {
            await pods(target).mustCreate(pod("watched-else", { nodeName: "watch-else" }));
            await pods(target).mustCreate(pod("watched-here", { nodeName: "watch-node" }));
          },
        },
      );
      expect(told(seen)).toEqual(["ADDED watched-here"]);
    });

    it("sends a pod's deletion as MODIFIED with a deadline, and DELETED at the end", async () => {
      const ours = pods(target);
      await ours.mustCreate(pod("leaver", { nodeName: "watch-leave", graceSeconds: 600 }));
      const resourceVersion = await versionNow();
      const seen = await events(
        { resourceVersion, fieldSelector: "metadata.name=leaver" },
        {
          count: 3,
          path: ours.path(),
          act: async () => {
            await ours.delete("leaver");
            await ours.delete("leaver", { query: { gracePeriodSeconds: "0" } });
          },
        },
      );
      expect(seen[0]?.type).toBe("MODIFIED");
      expect(field(seen[0]?.object, "metadata.deletionTimestamp")).toBeDefined();
      expect(seen.at(-1)?.type).toBe("DELETED");
    });

    it("sends the initial state and a bookmark at its end on request", async () => {
      await maps.mustCreate(labelled("initial", "e"));
      const seen = await events(
        {
          labelSelector: "watched=e",
          sendInitialEvents: "true",
          resourceVersionMatch: "NotOlderThan",
          allowWatchBookmarks: "true",
        },
        { count: 2 },
      );
      expect(told(seen)[0]).toBe("ADDED initial");
      expect(seen[1]?.type).toBe("BOOKMARK");
      expect(seen[1]?.object.metadata?.annotations).toEqual({
        "k8s.io/initial-events-end": "true",
      });
    });

    it("ends when the caller aborts", async () => {
      const abort = new AbortController();
      const resourceVersion = await versionNow();
      const watch = target().api.watch({
        path: maps.path(),
        query: { resourceVersion },
        signal: abort.signal,
      });
      const seen: KubeWatchEvent[] = [];
      const reading = (async () => {
        for await (const event of watch) seen.push(event);
      })();
      abort.abort();
      await reading;
      expect(seen).toEqual([]);
    });

    it("sends an ERROR of 410 for a version that is too old, and ends", async () => {
      const { gaps, compactHistory } = target();
      if (gaps.Compaction !== undefined) return expectDeclared(gaps.Compaction);
      const resourceVersion = await versionNow();
      await maps.mustCreate(labelled("compacted", "f"));
      await compactHistory?.();
      const abort = new AbortController();
      const seen: KubeWatchEvent[] = [];
      const query = { resourceVersion };
      const watch = target().api.watch({ path: maps.path(), query, signal: abort.signal });
      for await (const event of watch) seen.push(event);
      expect(seen).toMatchObject([{ type: "ERROR", object: { kind: "Status", code: 410 } }]);
    });

    it("sends a rejected request as one ERROR event", async () => {
      const [event] = await events({}, { count: 1, path: "/apis/nowhere.example/v1/things" });
      expect(event?.type).toBe("ERROR");
    });
  });
}
