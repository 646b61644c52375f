import { beforeAll, describe, expect, it } from "vitest";
import {
  configMap,
  configMaps,
  field,
  mustBe,
  mustRefuse,
  pod,
  pods,
  type TargetOf,
} from "./dialog.ts";

export function listSentences(target: TargetOf): void {
  describe("lists", () => {
    const maps = configMaps(target);
    const ours = "suite=list";

    beforeAll(async () => {
      for (const [name, labels] of [
        ["list-a", { suite: "list", tier: "web", zone: "1" }],
        ["list-b", { suite: "list", tier: "db" }],
        ["list-c", { suite: "list", tier: "web" }],
      ] as const) {
        await maps.mustCreate({ ...configMap(name), metadata: { name, labels } });
      }
      for (const [name, nodeName] of [
        ["on-1", "list-n1"],
        ["on-2", "list-n2"],
      ] as const) {
        await pods(target).mustCreate(pod(name, { nodeName, labels: { suite: "list" } }));
      }
    });

    async function names(query: Readonly<Record<string, string>>): Promise<unknown[]> {
      const list = mustBe(200, await maps.get("", query));
      return (list.items as unknown[]).map((item) => field(item, "metadata.name"));
    }

    it("returns the resourceVersion of the list", async () => {
      const list = mustBe(200, await maps.get("", { labelSelector: ours }));
      expect(list).toMatchObject({ apiVersion: "v1", kind: "ConfigMapList" });
      expect(Number(field(list, "metadata.resourceVersion"))).toBeGreaterThan(0);
    });

    it.each([
      ["tier=web", ["list-a", "list-c"]],
      ["tier==db", ["list-b"]],
      ["tier!=web", ["list-b"]],
      ["tier in (web,db),zone", ["list-a"]],
      ["tier notin (db)", ["list-a", "list-c"]],
      ["!zone", ["list-b", "list-c"]],
    ])("selects by the labels %s", async (selector, wanted) => {
      expect(await names({ labelSelector: `${ours},${selector}` })).toEqual(wanted);
    });

    it("selects by name", async () => {
      expect(await names({ fieldSelector: "metadata.name=list-b" })).toEqual(["list-b"]);
    });

    it("selects pods by node and phase", async () => {
      const select = async (fieldSelector: string): Promise<unknown> => {
        const list = mustBe(200, await pods(target).get("", { fieldSelector }));
        return (list.items as unknown[]).map((item) => field(item, "metadata.name"));
      };
      expect(await select("spec.nodeName=list-n1")).toEqual(["on-1"]);
      expect(await select("spec.nodeName=list-n2,status.phase!=Succeeded")).toEqual(["on-2"]);
      expect(await select("spec.nodeName=list-n1,status.phase=Running")).toEqual([]);
    });

    it("rejects a field selector that is not supported", async () => {
      mustRefuse(await pods(target).get("", { fieldSelector: "spec.priority=1" }), {
        status: 400,
        reason: "BadRequest",
      });
    });

    it("returns a long list in pages of one version", async () => {
      const query = { labelSelector: ours, limit: "2" };
      const first = mustBe(200, await maps.get("", query));
      const token = String(field(first, "metadata.continue"));
      const second = mustBe(200, await maps.get("", { ...query, continue: token }));
      const seen = [first, second].flatMap((page) => page.items as unknown[]);
      expect(seen.map((item) => field(item, "metadata.name"))).toEqual([
        "list-a",
        "list-b",
        "list-c",
      ]);
      expect(field(second, "metadata.resourceVersion")).toBe(
        field(first, "metadata.resourceVersion"),
      );
      expect(field(second, "metadata.continue") ?? "").toBe("");
    });

    it("deletes the objects that a selector matches", async () => {
      for (const name of ["many-1", "many-2"]) {
        await maps.mustCreate({ ...configMap(name), metadata: { name, labels: { many: "yes" } } });
      }
      mustBe(200, await maps.delete("", { query: { labelSelector: "many=yes" } }));
      expect(await names({ labelSelector: "many=yes" })).toEqual([]);
    });
  });
}
