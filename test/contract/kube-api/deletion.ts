import { describe, expect, it } from "vitest";
import {
  configMap,
  configMaps,
  field,
  metadataOf,
  mustBe,
  mustRefuse,
  pod,
  pods,
  type TargetOf,
  until,
} from "./dialog.ts";

const nodeName = "deletion-node";

export function deletionSentences(target: TargetOf): void {
  describe("deletions", () => {
    const maps = configMaps(target);
    const ours = pods(target);

    async function isGone(name: string): Promise<boolean> {
      return (await ours.get(name)).status === 404;
    }

    it("removes a plain object at once and returns a Status", async () => {
      const made = await maps.mustCreate(configMap("plain"));
      const status = mustBe(200, await maps.delete("plain"));
      expect(status).toMatchObject({
        kind: "Status",
        status: "Success",
        details: { name: "plain", kind: "configmaps", uid: metadataOf(made).uid },
      });
      mustRefuse(await maps.delete("plain"), { status: 404, reason: "NotFound" });
    });

    it("rejects the deletion of an object with another uid or version", async () => {
      const made = await maps.mustCreate(configMap("meant"));
      const { uid, resourceVersion } = metadataOf(made);
      mustBe(200, await maps.merge("meant", { data: { a: "1" } }));
      const tryTo = (preconditions: object): ReturnType<typeof maps.delete> =>
        maps.delete("meant", { body: { preconditions } });
      const conflict = { status: 409, reason: "Conflict" };
      mustRefuse(await tryTo({ uid: "11111111-2222-4333-8444-555555555555" }), conflict);
      mustRefuse(await tryTo({ resourceVersion }), conflict);
      mustBe(200, await tryTo({ uid }));
    });

    it("keeps an object with finalizers until the last one is removed", async () => {
      const finalizers = ["suite.example/last", "suite.example/first"];
      await maps.mustCreate({ ...configMap("final"), metadata: { name: "final", finalizers } });
      await maps.delete("final");
      const going = await maps.mustGet("final");
      expect(metadataOf(going).deletionTimestamp).toBeDefined();
      mustBe(200, await maps.merge("final", { metadata: { finalizers: finalizers.slice(0, 1) } }));
      mustBe(200, await maps.merge("final", { metadata: { finalizers: null } }));
      mustRefuse(await maps.get("final"), { status: 404, reason: "NotFound" });
    });

    it("removes a pod without a node at once", async () => {
      await ours.mustCreate(pod("nodeless"));
      mustBe(200, await ours.delete("nodeless"));
      expect(await isGone("nodeless")).toBe(true);
    });

    it("removes a finished pod at once", async () => {
      await ours.mustCreate(pod("finished", { nodeName }));
      mustBe(200, await ours.merge("finished/status", { status: { phase: "Succeeded" } }));
      mustBe(200, await ours.delete("finished"));
      expect(await isGone("finished")).toBe(true);
    });

    it("gives a pod on a node its own grace period, and sets its deadline", async () => {
      await ours.mustCreate(pod("graceful", { nodeName, graceSeconds: 600 }));
      const going = mustBe(200, await ours.delete("graceful"));
      expect(metadataOf(going).deletionGracePeriodSeconds).toBe(600);
      expect(metadataOf(going).deletionTimestamp).toMatch(/^\d{4}-.*Z$/);
      expect(await isGone("graceful")).toBe(false);
      mustBe(200, await ours.delete("graceful", { query: { gracePeriodSeconds: "0" } }));
      expect(await isGone("graceful")).toBe(true);
    });

    it("lets a second deletion only shorten the first, counted from its start", async () => {
      await ours.mustCreate(pod("hastened", { nodeName, graceSeconds: 600 }));
      const first = deadlineMs(mustBe(200, await ours.delete("hastened")));
      const longer = await ours.delete("hastened", { body: { gracePeriodSeconds: 900 } });
      expect(deadlineMs(mustBe(200, longer))).toBe(first);
      const shorter = mustBe(
        200,
        await ours.delete("hastened", { body: { gracePeriodSeconds: 500 } }),
      );
      expect(first - deadlineMs(shorter)).toBe(100_000);
      expect(metadataOf(shorter).deletionGracePeriodSeconds).toBe(500);
      await ours.delete("hastened", { query: { gracePeriodSeconds: "0" } });
    });

    it("accepts a first grace period that is longer than the pod's own", async () => {
      await ours.mustCreate(pod("longer", { nodeName, graceSeconds: 10 }));
      const going = mustBe(200, await ours.delete("longer", { body: { gracePeriodSeconds: 700 } }));
      expect(metadataOf(going).deletionGracePeriodSeconds).toBe(700);
      await ours.delete("longer", { query: { gracePeriodSeconds: "0" } });
    });

    it("rejects new objects in a terminating namespace", async () => {
      const name = `${target().namespace}-going`;
      const { api } = target();
      const body = { metadata: { name } };
      mustBe(201, await api.send({ method: "POST", path: "/api/v1/namespaces", body }));
      const path = `/api/v1/namespaces/${name}`;
      const held = { metadata: { name: "held", finalizers: ["suite.example/held"] } };
      mustBe(201, await api.send({ method: "POST", path: `${path}/configmaps`, body: held }));
      mustBe(200, await api.send({ method: "DELETE", path }));
      const late = await api.send({
        method: "POST",
        path: `${path}/configmaps`,
        body: configMap("late"),
      });
      const status = mustRefuse(late, { status: 403, reason: "Forbidden" });
      expect(field(status, "details.causes.0.reason")).toBe("NamespaceTerminating");
      const patch = { metadata: { finalizers: null } };
      await api.send({
        method: "PATCH",
        path: `${path}/configmaps/held`,
        patchType: "application/merge-patch+json",
        body: patch,
      });
    });

    it("keeps a pod's name taken while the pod terminates", async () => {
      await ours.mustCreate(pod("taken", { nodeName, graceSeconds: 600 }));
      await ours.delete("taken");
      mustRefuse(await ours.create(pod("taken", { nodeName })), {
        status: 409,
        reason: "AlreadyExists",
      });
      await ours.delete("taken", { query: { gracePeriodSeconds: "0" } });
      await until({ what: "the pod is gone", isMet: () => isGone("taken") });
    });
  });
}

function deadlineMs(object: unknown): number {
  return Date.parse(String(metadataOf(object).deletionTimestamp));
}
