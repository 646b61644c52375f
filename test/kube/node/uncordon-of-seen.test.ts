import { beforeEach, expect, it } from "vitest";
import type { KubeSender } from "../../../src/contracts/kube-api.ts";
import { KubeNodeMarks } from "../../../src/kube/node/node-marks.ts";
import { ModelWorld, nodes } from "../../support/model-world.ts";

const mark = { departure: "n1-12345678", cause: "Planned", message: "It leaves." } as const;

let world: ModelWorld;
let marks: KubeNodeMarks;
/** The same, without the right to read a Node. */
let blind: KubeNodeMarks;

beforeEach(() => {
  world = new ModelWorld();
  world.addNode("n1", "a");
  const { clock } = world;
  const message = 'nodes "n1" is forbidden: User "lastcall" cannot get resource "nodes"';
  const body = { kind: "Status", code: 403, reason: "Forbidden", message };
  const api: KubeSender = {
    send: async (request) =>
      request.method === "GET" ? { status: 403, body } : world.watched.send(request),
  };
  marks = new KubeNodeMarks({ api: world.watched, clock, writesCordonTaint: true });
  blind = new KubeNodeMarks({ api, clock, writesCordonTaint: true });
});

async function cordoned() {
  const found = await marks.read("n1");
  if (found === undefined) throw new Error("the node is missing");
  await marks.cordon(found, mark);
  const { uid } = found;
  return { name: "n1", uid, departure: mark.departure, seen: await marks.read("n1") };
}

it.each([
  ["of its own", false],
  ["beside that of somebody else, which stays", true],
])(
  "a cordon %s is taken back by what the watch shows, if the node may not be read",
  async (_, isBefore) => {
    world.patchNode("n1", { metadata: { labels: { pool: "spot" } } });
    if (isBefore) world.patchNode("n1", { spec: { unschedulable: true } });
    const before = world.get(`${nodes}/n1`);
    const target = await cordoned();
    expect(await blind.uncordon(target)).toEqual({ kind: "Done" });
    const after = world.get(`${nodes}/n1`);
    expect(world.marksOf("n1").filter((one) => one !== "unschedulable")).toEqual(
      isBefore ? ["node.kubernetes.io/unschedulable"] : [],
    );
    expect(world.marksOf("n1").includes("unschedulable")).toBe(isBefore);
    expect(after?.metadata?.labels).toEqual(before?.metadata?.labels);
    expect(after?.metadata?.annotations).toEqual(before?.metadata?.annotations);
  },
);

it.each([
  ["somebody has tainted it since", { spec: { taints: [{ key: "a", effect: "NoSchedule" }] } }],
  [
    "it has another departure's marks",
    { metadata: { annotations: { "lastcall.dev/departure": "n1-2" } } },
  ],
])("a cordon is left alone without a read if %s", async (_, change) => {
  const target = await cordoned();
  world.patchNode("n1", change);
  await expect(blind.uncordon(target)).rejects.toMatchObject({ code: "RIGHT_MISSING" });
  await expect(blind.uncordon({ ...target, seen: undefined })).rejects.toThrow("cannot get");
});

it("a node without marks that may not be read is known to have none by a patch that tests it", async () => {
  const seen = await marks.read("n1");
  const target = { name: "n1", uid: seen?.uid ?? "", departure: mark.departure, seen };
  expect(await blind.uncordon(target)).toEqual({ kind: "Done" });
  // The watch is older than the cordon.
  await cordoned();
  await expect(blind.uncordon(target)).rejects.toMatchObject({ code: "RIGHT_MISSING" });
  expect(world.marksOf("n1")).toContain("unschedulable");
});
