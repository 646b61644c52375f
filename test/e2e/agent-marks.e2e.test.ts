/**
 * The marks of an agent with a fallback, judged by the admission policy that limits them, on a real
 * API server: a cordon of a person outlasts them, whatever a stolen token writes.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { KubeRequest, KubeSender } from "../../src/contracts/kube-api.ts";
import { departureName } from "../../src/core/departure/departure.ts";
import { KubeNodeMarks } from "../../src/kube/node/node-marks.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import type { ApiAnswer } from "../support/api-request.ts";
import { GuardWorld } from "./guard-world.ts";
import { type Installed, install, overlay } from "./installed-guards.ts";
import { mustRun } from "./must-run.ts";

let world: GuardWorld;

beforeAll(async () => {
  world = await GuardWorld.start();
});
afterAll(() => world?.stop());

const mark = "lastcall.dev/departure";
const before = "lastcall.dev/cordoned-before";

describe("the marks that an agent with a fallback writes to its node", () => {
  let installed: Installed;
  let token: string;
  let marks: KubeNodeMarks;
  const path = "/api/v1/nodes/n1";

  beforeAll(async () => {
    installed = await install(world.plane, await overlay(world, ""));
    token = await world.tokenOnNode(installed.agent);
    await world.untilInForce(installed, token);
    marks = new KubeNodeMarks({ api: sender(), clock: realClock });
  });
  afterAll(() => installed?.remove());
  // The API server records the writers of a node as long as it has one, such as its kubelet.
  beforeEach(async () => {
    const labels = { "kubernetes.io/hostname": "n1" };
    const applied = await world.plane.request({
      ...{ method: "PATCH", path: `${path}?fieldManager=kubelet&force=true` },
      body: { apiVersion: "v1", kind: "Node", metadata: { name: "n1", labels } },
      contentType: "application/apply-patch+yaml",
    });
    expect(applied.status).toBe(200);
  });
  afterEach(() => administer({ metadata: { annotations: null, labels: null }, spec: null }));

  /** The transport that the program's own marks are written through. */
  function sender(): KubeSender {
    return {
      send: ({ method, path: at, body, patchType }: KubeRequest) =>
        world.plane.request({
          ...{ method, path: at, token, headers: asAgent },
          ...(body !== undefined && { body }),
          ...(patchType && { contentType: patchType }),
        }),
    };
  }

  function change(body: object, sub = ""): Promise<ApiAnswer> {
    return patch(`${path}${sub}`, body, token, asAgent);
  }

  function administer(body: object): Promise<ApiAnswer> {
    return patch(path, body, world.plane.adminToken);
  }

  async function isCordoned(): Promise<boolean> {
    return (await world.plane.request({ path })).body.spec.unschedulable === true;
  }

  const name = () => departureName(world.node("n1"));
  const itsMark = () => ({ departure: name(), cause: "SpotInterruption", message: "" }) as const;
  const lift = () => annotated({ [mark]: null }, { unschedulable: null });
  const annotated = (annotations: object, spec?: object) => ({
    metadata: { annotations },
    ...(spec && { spec }),
  });

  test("are all written and removed again by the agent", async () => {
    expect(await marks.cordon(world.node("n1"), itsMark())).toEqual({ kind: "Done" });
    expect(await isCordoned()).toBe(true);
    expect(await marks.cordon(world.node("n1"), itsMark())).toEqual({ kind: "Done" });
    const back = { ...world.node("n1"), departure: name() };
    expect(await marks.uncordon(back)).toEqual({ kind: "Done" });
    expect(await isCordoned()).toBe(false);
  });

  test("leave the cordon of a person in place when they are removed", async () => {
    await administer({ spec: cordon });
    expect(await marks.cordon(world.node("n1"), itsMark())).toEqual({ kind: "Done" });
    const { annotations } = (await world.plane.request({ path })).body.metadata;
    expect(annotations).toMatchObject({ [mark]: name(), [before]: "true" });
    const back = { ...world.node("n1"), departure: name() };
    expect(await marks.uncordon(back)).toEqual({ kind: "Done" });
    expect(await isCordoned()).toBe(true);
  });

  // The mark of a node that a person uncordoned stays until a controller removes it.
  test.each<[string, readonly object[]]>([
    ["removes it with the cordon", []],
    ["names itself as the writer of the cordon first", [{ metadata: { managedFields: [forged] } }]],
    ["removes all records of writers first", [{ metadata: { managedFields: [{}] } }]],
    [
      "removes all records of writers first, and then names itself",
      [{ metadata: { managedFields: [{}] } }, { metadata: { managedFields: [forged] } }],
    ],
  ])("do not lift a cordon that came after the mark: an agent %s", async (_, writes) => {
    expect(await marks.cordon(world.node("n1"), itsMark())).toEqual({ kind: "Done" });
    for (const act of ["uncordon", "cordon"]) await mustRun(world.plane, [act, "n1"]);
    for (const write of writes) await change(write);
    const lifted = await change(lift());
    expect({ status: lifted.status, message: lifted.body.message }).toMatchObject({ status: 403 });
    expect(await isCordoned()).toBe(true);
  });

  test("do not lift a cordon for which their writer was named before it came", async () => {
    const named = [forged, { ...forged, manager: "lastcall" }];
    await change({ metadata: { managedFields: named } });
    expect(await marks.cordon(world.node("n1"), itsMark())).toEqual({ kind: "Done" });
    await mustRun(world.plane, ["uncordon", "n1"]);
    await change({ metadata: { managedFields: named } });
    await mustRun(world.plane, ["cordon", "n1"]);
    expect((await change(lift())).status).toBe(403);
    expect(await isCordoned()).toBe(true);
  });

  test("do not lift a cordon that a person has confirmed by applying it", async () => {
    expect(await marks.cordon(world.node("n1"), itsMark())).toEqual({ kind: "Done" });
    const applied = await world.plane.request({
      ...{ method: "PATCH", path: `${path}?fieldManager=person`, token: world.plane.adminToken },
      body: { apiVersion: "v1", kind: "Node", metadata: { name: "n1" }, spec: cordon },
      contentType: "application/apply-patch+yaml",
    });
    expect(applied.status).toBe(200);
    expect((await change(lift())).status).toBe(403);
    expect(await isCordoned()).toBe(true);
  });

  test("do not lift a person's cordon by a list of operations that rename its writer", async () => {
    expect(await marks.cordon(world.node("n1"), itsMark())).toEqual({ kind: "Done" });
    for (const act of ["uncordon", "cordon"]) await mustRun(world.plane, [act, "n1"]);
    const { managedFields } = (await world.plane.request({ path })).body.metadata;
    const place = managedFields.findIndex(
      ({ manager }: { manager: string }) => manager === "kubectl",
    );
    const rename = {
      op: "replace",
      path: `/metadata/managedFields/${place}/manager`,
      value: "lastcall",
    };
    const uncordon = { op: "remove", path: "/spec/unschedulable" };
    const unmark = { op: "remove", path: `/metadata/annotations/${mark.replace("/", "~1")}` };
    for (const body of [[rename], [rename, unmark, uncordon], [unmark, uncordon]]) {
      const contentType = "application/json-patch+json";
      const refused = await world.plane.request({
        method: "PATCH",
        path,
        body,
        contentType,
        token,
      });
      expect(refused.status).toBe(403);
    }
    expect(await isCordoned()).toBe(true);
  });

  // Each list of writes would lift the cordon, if all of them were accepted.
  test.each<[string, () => readonly object[]]>([
    ["lifts it", () => [{ spec: { unschedulable: null } }]],
    [
      "marks the node first",
      () => [annotated({ [mark]: name() }), { spec: { unschedulable: null } }],
    ],
    [
      "marks the node first, and removes the mark with the cordon",
      () => [annotated({ [mark]: name() }), annotated({ [mark]: null }, { unschedulable: null })],
    ],
    [
      "removes the record of the person's cordon first",
      () => [
        annotated({ [mark]: name(), [before]: "true" }),
        annotated({ [before]: null }),
        annotated({ [mark]: null }, { unschedulable: null }),
      ],
    ],
    [
      "empties that record first",
      () => [
        annotated({ [mark]: name(), [before]: "" }),
        annotated({ [mark]: null, [before]: null }, { unschedulable: null }),
      ],
    ],
    [
      "removes that record together with the cordon",
      () => [
        annotated({ [mark]: name(), [before]: "true" }),
        annotated({ [mark]: null, [before]: null }, { unschedulable: null }),
      ],
    ],
  ])("do not lift a person's cordon: an agent %s", async (_, writes) => {
    await administer({ spec: cordon });
    const answers: ApiAnswer[] = [];
    for (const write of writes()) answers.push(await change(write));
    expect(await isCordoned()).toBe(true);
    expect(answers.map(({ status }) => status)).toContain(403);
  });

  test("cannot be kept for a later cordon of a person", async () => {
    await change(annotated({ [mark]: name() }, { unschedulable: true }));
    expect(await isCordoned()).toBe(true);
    const kept = await change({ spec: { unschedulable: null } });
    expect(kept.status).toBe(403);
    expect(kept.body.message).toContain("only in the write that removes its mark");
  });

  test.each<[string, () => object, string]>([
    ["a mark without a cordon", () => annotated({ [mark]: name() }), ""],
    ["a cordon without a mark", () => ({ spec: { unschedulable: true } }), ""],
    ["a mark by way of the status", () => annotated({ [mark]: name() }), "/status"],
    [
      "a mark for another node",
      () => annotated({ [mark]: departureName(world.node("n2")) }, { unschedulable: true }),
      "",
    ],
    [
      "a mark for an invented departure",
      () => annotated({ [mark]: "any" }, { unschedulable: true }),
      "",
    ],
    ["the record of another's cordon alone", () => annotated({ [before]: "true" }), ""],
    [
      "a taint without a mark",
      () => ({ spec: { taints: [{ key: "lastcall.dev/departing", effect: "NoSchedule" }] } }),
      "",
    ],
    ["the label without a mark", () => ({ metadata: { labels: { [excluded]: "lastcall" } } }), ""],
    [
      "two conditions",
      () => ({ status: { conditions: [departing(""), departing("")] } }),
      "/status",
    ],
    [
      "a condition of any length",
      () => ({ status: { conditions: [departing("x".repeat(1025))] } }),
      "/status",
    ],
  ])("are not %s", async (_, body, sub) => {
    const refused = await change(body(), sub);
    expect({ status: refused.status, message: refused.body.message }).toMatchObject({
      status: 403,
    });
    expect(refused.body.message).toContain("an agent");
  });

  test("do not replace or remove those of others", async () => {
    const theirs = { [excluded]: "drained-by-hand" };
    const body = { metadata: { annotations: { [mark]: "by-hand" }, labels: theirs }, spec: cordon };
    expect((await administer(body)).status).toBe(200);
    for (const refused of [
      await change(annotated({ [mark]: name() })),
      await change(annotated({ [mark]: null }, { unschedulable: null })),
      await change({ metadata: { labels: { [excluded]: null } } }),
      await change({ metadata: { labels: { [excluded]: "lastcall" } } }),
    ]) {
      expect(refused.status).toBe(403);
      expect(refused.body.message).toContain("an agent");
    }
  });

  test("do not keep a person from cordoning and uncordoning the marked node", async () => {
    await marks.cordon(world.node("n1"), itsMark());
    for (const act of ["uncordon", "cordon", "uncordon"]) await mustRun(world.plane, [act, "n1"]);
    expect(await isCordoned()).toBe(false);
  });

  const labels = Object.fromEntries(
    Array.from({ length: 30 }, (_, at) => [`example.com/label-${at}`, "x"]),
  );
  /** Each under a name of its own, by which the API server records what it has written. */
  function written(by: string, body: object): Promise<ApiAnswer> {
    return patch(`${path}?fieldManager=${by}`, body, world.plane.adminToken);
  }

  test("are written to a node that its kubelet has registered with taints and many labels", async () => {
    // A write of the taints takes them out of the kubelet's part of the record, which stays large.
    const taints = [{ key: "cloud.google.com/gke-spot", value: "true", effect: "NoSchedule" }];
    await written("register", { metadata: { labels }, spec: { taints } });
    expect(await marks.cordon(world.node("n1"), itsMark())).toEqual({ kind: "Done" });
    expect(await isCordoned()).toBe(true);
  });

  test("are written to a node with more writers than the API server tells apart", async () => {
    // From eleven on it merges the oldest ones of the record.
    await written("register", { metadata: { labels } });
    for (let at = 0; at < 12; at += 1) {
      await written(`writer-${at}`, { metadata: { annotations: { [`example.com/${at}`]: "x" } } });
    }
    expect(await marks.cordon(world.node("n1"), itsMark())).toEqual({ kind: "Done" });
    expect(await isCordoned()).toBe(true);
  });

  test("carry no record of their writers, which could have any size", async () => {
    const names = Array.from({ length: 9000 }, (_, at) => [`f:${"x".repeat(40)}${at}`, {}]);
    const record = {
      ...{ manager: "m", operation: "Apply", apiVersion: "v1", fieldsType: "FieldsV1" },
      ...{ time: "2026-11-20T00:00:00Z", fieldsV1: { "f:metadata": Object.fromEntries(names) } },
    };
    const refused = await change({ metadata: { managedFields: [record] } });
    expect(refused.status).toBe(403);
    expect(refused.body.message).toContain("must not write the record of its node's writers");
  });

  test("carry no field manager, of which there could be any number", async () => {
    const refused = await change({ metadata: {} }, "?fieldManager=any");
    expect(refused.status).toBe(403);
    expect(refused.body.message).toContain("must not set a field manager");
  });
});

const cordon = { unschedulable: true };
/** As the agent calls itself, by which the API server records who has written a field. */
const asAgent = { "user-agent": "lastcall-agent/0.1.0" };
/** A record of the cordon's writer, as anyone may send it. */
const forged = {
  ...{ manager: "lastcall-agent", operation: "Update", apiVersion: "v1" },
  ...{ time: "2026-11-20T00:00:00Z", fieldsType: "FieldsV1" },
  fieldsV1: {
    "f:metadata": { "f:labels": { "f:kubernetes.io/hostname": {} } },
    "f:spec": { "f:unschedulable": {} },
  },
};
const excluded = "node.kubernetes.io/exclude-from-external-load-balancers";

function departing(message: string): object {
  return { type: "Departing", status: "True", reason: "Test", message };
}

function patch(
  path: string,
  body: object,
  token: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<ApiAnswer> {
  const contentType = "application/merge-patch+json";
  return world.plane.request({ method: "PATCH", path, body, contentType, token, headers });
}
