import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Dialog, field, metadataOf, mustBe, mustRefuse, type TargetOf, until } from "./dialog.ts";
import { expectDeclared } from "./patch.ts";

const crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const crdName = "leavings.suite.lastcall.dev";
const collection = "/apis/suite.lastcall.dev/v1/leavings";

export function customResourceSentences(target: TargetOf): void {
  describe("custom resources", () => {
    const leavings = new Dialog(target, () => collection);

    beforeAll(async () => {
      const { api } = target();
      mustBe(201, await api.send({ method: "POST", path: crdPath, body: definition() }));
      await until({
        what: "the definition is served",
        isMet: async () => (await api.send({ method: "GET", path: collection })).status === 200,
      });
    });
    afterAll(async () => {
      await target().api.send({ method: "DELETE", path: `${crdPath}/${crdName}` });
    });

    function leaving(name: string, spec: object): object {
      return { apiVersion: "suite.lastcall.dev/v1", kind: "Leaving", metadata: { name }, spec };
    }

    it("reports that a definition is established", async () => {
      const answer = await target().api.send({ method: "GET", path: `${crdPath}/${crdName}` });
      const conditions = field(mustBe(200, answer), "status.conditions") as object[];
      expect(conditions).toContainEqual(
        expect.objectContaining({ type: "Established", status: "True" }),
      );
    });

    it("fills in defaults and prunes unknown fields", async () => {
      const made = await leavings.mustCreate(leaving("pruned", { node: "n1", unknown: "x" }));
      expect(made.spec).toEqual({ node: "n1", mode: "Late" });
      expect(metadataOf(made).generation).toBe(1);
    });

    it.each([
      ["a missing required field", { mode: "Late" }, "spec.node"],
      ["a value that is not in the enum", { node: "n1", mode: "Never" }, "spec.mode"],
      ["a value of another type", { node: 7 }, "spec.node"],
      ["a number below its minimum", { node: "n1", weight: -1 }, "spec.weight"],
      ["a string that does not match its pattern", { node: "N 1" }, "spec.node"],
      ["a text that is no instant", { node: "n1", at: "tomorrow" }, "spec.at"],
      ["an instant without a zone", { node: "n1", at: "2026-12-01T00:00:00" }, "spec.at"],
    ])("rejects %s, and names the field", async (_what, spec, wanted) => {
      const status = mustRefuse(await leavings.create(leaving("refused", spec)), {
        status: 422,
        reason: "Invalid",
      });
      expect(field(status, "details.causes.0.field")).toBe(wanted);
      expect(status.message).toContain(wanted);
    });

    it("accepts an instant in any zone", async () => {
      const at = "2026-12-01T00:00:00.5+09:00";
      const made = await leavings.mustCreate(leaving("instant", { node: "n1", at }));
      expect(made.spec).toMatchObject({ at });
    });

    it("rejects unknown fields if the caller is strict", async () => {
      const body = leaving("strict", { node: "n1", unknown: "x" });
      const answer = await leavings.create(body, { fieldValidation: "Strict" });
      const status = mustRefuse(answer, { status: 400, reason: "BadRequest" });
      expect(status.message).toContain('unknown field "spec.unknown"');
    });

    it("keeps spec and status apart, and counts generations by the spec only", async () => {
      const born = { ...leaving("halved", { node: "n1" }), status: { phase: "Early" } };
      const made = await leavings.mustCreate(born);
      expect(field(made, "status.phase")).not.toBe("Early");
      const status = { phase: "Draining" };
      const both = { status, spec: { node: "n2" } };
      const second = mustBe(200, await leavings.merge("halved/status", both));
      expect(second).toMatchObject({ status, spec: { node: "n1" }, metadata: { generation: 1 } });
      const other = { status: { phase: "Ended" }, spec: { node: "n2" } };
      const third = mustBe(200, await leavings.merge("halved", other));
      expect(third).toMatchObject({ status, spec: { node: "n2" }, metadata: { generation: 2 } });
    });

    it("shows the defaults of a status that was never written", async () => {
      await leavings.mustCreate(leaving("unwritten", { node: "n1" }));
      const read = mustBe(200, await leavings.get("unwritten"));
      expect(read.status).toEqual({ phase: "Scheduled" });
    });

    it("rejects a status written from an old read with Conflict", async () => {
      const read = await leavings.mustCreate(leaving("fenced", { node: "n1" }));
      const { resourceVersion } = metadataOf(read);
      const write = (phase: string): Promise<unknown> =>
        leavings.merge("fenced/status", { metadata: { resourceVersion }, status: { phase } });
      expect(await write("Draining")).toMatchObject({ status: 200 });
      expect(await write("Ended")).toMatchObject({ status: 409, body: { reason: "Conflict" } });
    });

    it("rejects a PUT without a resourceVersion", async () => {
      await leavings.mustCreate(leaving("blind", { node: "n1" }));
      mustRefuse(await leavings.put("blind", leaving("blind", { node: "n2" })), {
        status: 422,
        reason: "Invalid",
      });
    });

    it("rejects a strategic merge patch", async () => {
      await leavings.mustCreate(leaving("unstrategic", { node: "n1" }));
      const type = "application/strategic-merge-patch+json";
      const body = { spec: { node: "n2" } };
      mustRefuse(await leavings.patch("unstrategic", { type, body }), {
        status: 415,
        reason: "UnsupportedMediaType",
      });
    });

    it("enforces a definition's CEL rules", async () => {
      const gap = target().gaps.Cel;
      if (gap !== undefined) return expectDeclared(gap);
      const body = leaving("ruled", { node: "n1", weight: 9, mode: "Even" });
      const status = mustRefuse(await leavings.create(body), { status: 422, reason: "Invalid" });
      expect(status.message).toContain("Even weighs nothing");
    });
  });
}

function definition(): object {
  const node = { type: "string", pattern: "^[a-z0-9-]+$" };
  const mode = { type: "string", enum: ["Late", "Even"], default: "Late" };
  const weight = { type: "integer", minimum: 0 };
  const rule = {
    rule: "self.mode != 'Even' || !has(self.weight)",
    message: "Even weighs nothing",
  };
  const spec = {
    type: "object",
    required: ["node"],
    properties: { node, mode, weight, at: { type: "string", format: "date-time" } },
    "x-kubernetes-validations": [rule],
  };
  const phase = { type: "string", default: "Scheduled" };
  const status = { type: "object", default: {}, properties: { phase } };
  const openAPIV3Schema = { type: "object", required: ["spec"], properties: { spec, status } };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: crdName },
    spec: {
      group: "suite.lastcall.dev",
      scope: "Cluster",
      names: { kind: "Leaving", plural: "leavings" },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema },
          subresources: { status: {} },
        },
      ],
    },
  };
}
