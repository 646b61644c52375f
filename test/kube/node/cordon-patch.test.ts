import { beforeEach, describe, expect, it } from "vitest";
import type { KubeApi, KubeObject, KubeRequest } from "../../../src/contracts/kube-api.ts";
import { seededRng } from "../../../src/core/chance/chance.ts";
import { type Instant, parseInstant } from "../../../src/core/time/time.ts";
import { KubeNodeMarks } from "../../../src/kube/node/node-marks.ts";
import { translateNode } from "../../../src/kube/object/translate-node.ts";
import { ModelApi } from "../../../src/sim/api/model-api.ts";
import { ManualClock } from "../../support/manual-clock.ts";

const path = "/api/v1/nodes/n1";
const providerID = "gce://p/europe-west1-b/n1";
const label = "node.kubernetes.io/exclude-from-external-load-balancers";
const mark = { departure: "n1-0badcafe", cause: "SpotInterruption", message: "It goes." } as const;

let api: ModelApi;
let asked: string[];
let marks: KubeNodeMarks;

beforeEach(() => {
  const clock = new ManualClock(parseInstant("2026-11-20T00:00:00Z") as Instant);
  api = new ModelApi({ clock, rng: seededRng(1) });
  asked = [];
  const listening: KubeApi = {
    send: (request: KubeRequest) => {
      asked.push(`${request.method} ${request.path}`);
      return api.send(request);
    },
    watch: (request) => api.watch(request),
  };
  marks = new KubeNodeMarks({ api: listening, clock });
});

async function createNode(more: { readonly spec?: object; readonly labels?: object } = {}) {
  const body = {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "n1", labels: { zone: "b", ...more.labels }, annotations: { theirs: "1" } },
    spec: { providerID, ...more.spec },
  };
  await api.send({ method: "POST", path: "/api/v1/nodes", body });
  return translateNode(await node());
}

async function patchNode(body: object): Promise<void> {
  const patchType = "application/merge-patch+json";
  await api.send({ method: "PATCH", path, patchType, body });
}

async function node(): Promise<KubeObject> {
  return (await api.send({ method: "GET", path })).body as KubeObject;
}

const foreignTaint = { key: "theirs", effect: "NoSchedule" };
const departingTaint = {
  key: "lastcall.dev/departing",
  value: "SpotInterruption",
  effect: "NoSchedule",
};

describe("the marks on a node that the watch has shown", () => {
  it("are one patch without a read, and the condition after it", async () => {
    const seen = await createNode();
    expect(await marks.cordon(seen, { ...mark, seen })).toEqual({ kind: "Done" });
    await expect.poll(() => asked).toEqual([`PATCH ${path}`, `PATCH ${path}/status`]);
  });

  it("are cordon, taint, annotation and label, and keep those of others", async () => {
    const seen = await createNode({ spec: { taints: [foreignTaint] } });
    await marks.cordon(seen, { ...mark, seen });
    expect(await node()).toMatchObject({
      metadata: {
        annotations: { theirs: "1", "lastcall.dev/departure": "n1-0badcafe" },
        labels: { zone: "b", [label]: "lastcall" },
      },
      spec: { unschedulable: true, taints: [foreignTaint, departingTaint] },
    });
  });

  it("keep somebody else's value of the load-balancer label", async () => {
    const seen = await createNode({ labels: { [label]: "somebody" } });
    await marks.cordon(seen, { ...mark, seen });
    expect((await node()).metadata?.labels).toEqual({ zone: "b", [label]: "somebody" });
  });

  it("record that somebody else had cordoned the node", async () => {
    const seen = await createNode({ spec: { unschedulable: true } });
    await marks.cordon(seen, { ...mark, seen });
    await marks.uncordon({ name: "n1", uid: seen.uid, departure: mark.departure });
    expect((await node()).spec).toMatchObject({ unschedulable: true });
  });

  describe("with the taint of a cordoned node", () => {
    beforeEach(() => {
      const clock = new ManualClock(parseInstant("2026-11-20T00:00:00Z") as Instant);
      marks = new KubeNodeMarks({ api, clock, writesCordonTaint: true });
    });

    const cordonTaint = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };
    const taintsNow = async () => (await node()).spec as { taints?: readonly object[] };

    it.each([
      ["as the watch has shown the node", true],
      ["as read", false],
    ])("have it in the same patch, %s, and lose it with the cordon", async (_, isSeen) => {
      const seen = await createNode({ spec: { taints: [foreignTaint] } });
      await marks.cordon(seen, { ...mark, ...(isSeen ? { seen } : {}) });
      expect(await taintsNow()).toMatchObject({
        unschedulable: true,
        taints: [foreignTaint, cordonTaint, departingTaint],
      });
      await marks.uncordon({ name: "n1", uid: seen.uid, departure: mark.departure });
      expect(await taintsNow()).toEqual({ providerID, taints: [foreignTaint] });
    });

    it("have it once on a node that somebody else had cordoned, and leave it there", async () => {
      const timed = { ...cordonTaint, timeAdded: "2026-11-19T00:00:00Z" };
      const seen = await createNode({ spec: { unschedulable: true, taints: [timed] } });
      await marks.cordon(seen, { ...mark, seen });
      expect(await taintsNow()).toMatchObject({ taints: [cordonTaint, departingTaint] });
      await marks.uncordon({ name: "n1", uid: seen.uid, departure: mark.departure });
      expect(await taintsNow()).toMatchObject({ unschedulable: true, taints: [cordonTaint] });
    });

    it("lose it after somebody else's uncordon", async () => {
      const seen = await createNode();
      await marks.cordon(seen, { ...mark, seen });
      await patchNode({ spec: { unschedulable: null } });
      await marks.uncordon({ name: "n1", uid: seen.uid, departure: mark.departure });
      expect(await taintsNow()).toEqual({ providerID });
    });
  });

  it.each([
    [
      "a new taint",
      { spec: { taints: [foreignTaint] } },
      { spec: { taints: [foreignTaint, departingTaint] } },
    ],
    [
      "a cordon",
      { spec: { unschedulable: true } },
      { metadata: { annotations: { "lastcall.dev/cordoned-before": "true" } } },
    ],
    [
      "a load-balancer label",
      { metadata: { labels: { [label]: "x" } } },
      { metadata: { labels: { [label]: "x" } } },
    ],
    [
      "rid of its annotations",
      { metadata: { annotations: null } },
      { spec: { unschedulable: true } },
    ],
  ])(
    "are based on a new read if the node has meanwhile got %s, which stays",
    async (_, change, after) => {
      const seen = await createNode();
      await patchNode(change);
      expect(await marks.cordon(seen, { ...mark, seen })).toEqual({ kind: "Done" });
      expect(asked.slice(0, 3)).toEqual([`PATCH ${path}`, `GET ${path}`, `PATCH ${path}`]);
      expect(await node()).toMatchObject(after);
    },
  );

  it("do not replace those of another departure", async () => {
    const seen = await createNode();
    await patchNode({ metadata: { annotations: { "lastcall.dev/departure": "another" } } });
    expect(await marks.cordon(seen, { ...mark, seen })).toMatchObject({ kind: "NotOurs" });
    expect((await node()).spec).not.toHaveProperty("unschedulable");
  });

  it("are not written on another machine that has taken over the node", async () => {
    const seen = await createNode();
    const meant = { ...seen, providerID: "gce://p/europe-west1-b/former" };
    const found = { kind: "Mismatch", found: "OtherMachine" };
    expect(await marks.cordon(meant, { ...mark, seen })).toEqual(found);
  });

  it("are Gone if the node is gone", async () => {
    const seen = await createNode();
    await api.send({ method: "DELETE", path });
    expect(await marks.cordon(seen, { ...mark, seen })).toEqual({ kind: "Gone" });
  });
});
