import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  configMap,
  configMaps,
  field,
  metadataOf,
  mustBe,
  mustRefuse,
  nodes,
  pod,
  pods,
  type TargetOf,
} from "./dialog.ts";

const json = "application/json-patch+json";
const strategic = "application/strategic-merge-patch+json";
const apply = "application/apply-patch+yaml";

export function patchSentences(target: TargetOf): void {
  describe("patches", () => {
    const maps = configMaps(target);
    const node = (): string => `patched-${target().namespace}`;

    beforeAll(async () => {
      await nodes(target).mustCreate({ metadata: { name: node() } });
    });
    afterAll(async () => {
      await nodes(target).delete(node());
    });

    it("applies a JSON patch whose tests hold", async () => {
      await maps.mustCreate(configMap("json", { a: "1", b: "2" }));
      const body = [
        { op: "test", path: "/data/a", value: "1" },
        { op: "test", path: "/data/c", value: null },
        { op: "replace", path: "/data/a", value: "9" },
        { op: "remove", path: "/data/b" },
        { op: "add", path: "/metadata/annotations", value: {} },
        { op: "add", path: "/metadata/annotations/c~1d", value: "3" },
      ];
      const after = mustBe(200, await maps.patch("json", { type: json, body }));
      expect(after.data).toEqual({ a: "9" });
      expect(metadataOf(after).annotations).toEqual({ "c/d": "3" });
    });

    it.each([
      ["a test that fails", [{ op: "test", path: "/data/a", value: "other" }]],
      ["a test for absence that fails", [{ op: "test", path: "/data/a", value: null }]],
      [
        "a test for absence in a missing field",
        [{ op: "test", path: "/binaryData/a", value: null }],
      ],
      ["a removal of a missing field", [{ op: "remove", path: "/data/nothing" }]],
      ["a path that does not exist", [{ op: "add", path: "/nowhere/deep", value: "1" }]],
    ])("rejects a JSON patch with %s as Invalid, and changes nothing", async (what, operations) => {
      const name = `json-${what.replaceAll(" ", "-")}`;
      const before = await maps.mustCreate(configMap(name, { a: "1" }));
      const body = [{ op: "add", path: "/data/new", value: "x" }, ...operations];
      const answer = await maps.patch(name, { type: json, body });
      // Unlike an object that a schema or a policy refuses.
      expect(mustRefuse(answer, { status: 422, reason: "Invalid" })).toMatchObject({
        message: "the server rejected our request due to an error in our request",
      });
      expect(await maps.mustGet(name)).toEqual(before);
    });

    it("removes the fields that a merge patch sets to null", async () => {
      await maps.mustCreate(configMap("merged", { a: "1", b: "2" }));
      const after = mustBe(200, await maps.merge("merged", { data: { a: null, c: "3" } }));
      expect(after.data).toEqual({ b: "2", c: "3" });
    });

    it("rejects a merge patch with an old version with Conflict", async () => {
      const read = await maps.mustCreate(configMap("fenced", { a: "1" }));
      const { resourceVersion } = metadataOf(read);
      mustBe(200, await maps.merge("fenced", { metadata: { resourceVersion }, data: { a: "2" } }));
      const late = await maps.merge("fenced", { metadata: { resourceVersion }, data: { a: "3" } });
      mustRefuse(late, { status: 409, reason: "Conflict" });
    });

    it("replaces all taints of a Node, and cordons it in the same patch", async () => {
      const taint = (key: string): object => ({ key, effect: "NoSchedule" });
      const set = async (...keys: string[]): Promise<unknown> => {
        const body = { spec: { unschedulable: true, taints: keys.map(taint) } };
        return mustBe(200, await nodes(target).patch(node(), { type: strategic, body }));
      };
      await set("suite.example/a", "suite.example/b");
      const after = await set("suite.example/c");
      const keys = (field(after, "spec.taints") as { key: string }[]).map((one) => one.key);
      expect(keys.filter((key) => key.startsWith("suite.example/"))).toEqual(["suite.example/c"]);
      expect(field(after, "spec.unschedulable")).toBe(true);
    });

    it("omits a Node's list of taints if it is empty", async () => {
      const set = (value: readonly object[]) => {
        const body = [{ op: "add", path: "/spec/taints", value }];
        return nodes(target).patch(node(), { type: json, body });
      };
      mustBe(200, await set([{ key: "suite.example/a", effect: "NoSchedule" }]));
      const after = mustBe(200, await set([]));
      expect(field(after, "spec")).not.toHaveProperty("taints");
    });

    it("merges a Node's conditions by their type", async () => {
      const set = async (type: string, status: string): Promise<unknown> => {
        const body = { status: { conditions: [{ type, status }] } };
        return mustBe(
          200,
          await nodes(target).patch(`${node()}/status`, { type: strategic, body }),
        );
      };
      await set("SuiteA", "True");
      await set("SuiteB", "True");
      const after = await set("SuiteA", "False");
      const conditions = field(after, "status.conditions") as { type: string; status: string }[];
      const ours = conditions.filter((one) => one.type.startsWith("Suite"));
      expect(ours.map(({ type, status }) => `${type}=${status}`).toSorted()).toEqual([
        "SuiteA=False",
        "SuiteB=True",
      ]);
    });

    it("ignores the status in a write of the object, and the reverse", async () => {
      await pods(target).mustCreate(pod("halves"));
      const both = { metadata: { labels: { half: "spec" } }, status: { phase: "Failed" } };
      const first = mustBe(200, await pods(target).merge("halves", both));
      expect(field(first, "metadata.labels.half")).toBe("spec");
      expect(field(first, "status.phase")).toBe("Pending");
      const other = { spec: { activeDeadlineSeconds: 9 }, status: { message: "waits" } };
      const second = mustBe(200, await pods(target).merge("halves/status", other));
      expect(field(second, "spec.activeDeadlineSeconds")).toBeUndefined();
      expect(field(second, "status.message")).toBe("waits");
    });

    it("creates a missing object by server-side apply, and merges into others", async () => {
      const query = { fieldManager: "suite", force: "true" };
      const send = (data: object): Promise<unknown> =>
        maps
          .patch("applied", { type: apply, query, body: { ...configMap("applied"), data } })
          .then((answer) => {
            expect([200, 201]).toContain(answer.status);
            return answer.body;
          });
      expect(field(await send({ a: "1" }), "data")).toEqual({ a: "1" });
      expect(field(await send({ a: "1", b: "2" }), "data")).toEqual({ a: "1", b: "2" });
    });

    it("rejects server-side apply without a field manager", async () => {
      const body = configMap("unmanaged");
      mustRefuse(await maps.patch("unmanaged", { type: apply, body }), {
        status: 422,
        reason: "Invalid",
      });
    });

    it("reports a conflict between two appliers of one field", async () => {
      const gap = target().gaps.FieldOwners;
      if (gap !== undefined) return expectDeclared(gap);
      const send = (manager: string, a: string): ReturnType<typeof maps.patch> =>
        maps.patch("owned", {
          type: apply,
          query: { fieldManager: manager },
          body: configMap("owned", { a }),
        });
      mustBe(201, await send("one", "1"));
      mustRefuse(await send("two", "2"), { status: 409, reason: "Conflict" });
    });

    it("rejects a patch of an object that does not exist", async () => {
      mustRefuse(await maps.merge("nobody", { data: {} }), { status: 404, reason: "NotFound" });
    });
  });
}

/** A gap must be declared: its reason is part of the suite. */
export function expectDeclared(reason: string): void {
  expect(reason.length).toBeGreaterThan(10);
}
