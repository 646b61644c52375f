import type { Node, Pod } from "kubernetes-types/core/v1.js";
import { describe, expect, it } from "vitest";
import { type AuditEntry, unanswered } from "../support/audit-log.ts";
import type { Change, History } from "./history.ts";
import { cordonedAgain, judge, leftApart, zonesAlternate } from "./judge.ts";

const user = "controller";
const charge = { rotated: ["uid-a"], user, atOnce: 1 };

/** One node, one pod under a budget: cordoned, evicted, released, removed and replaced. */
const good: History = {
  changes: [
    nodeAt(2, {}),
    podAt(3, { name: "p1", node: "a" }),
    podAt(4, { name: "p2", node: "b" }),
    budgetAt(4.5),
    departureAt(5, "1970-01-01T00:00:10Z"),
    nodeAt(6, { cordoned: true }),
    podAt(7, { name: "p1", node: "a", evicted: true }),
    podAt(8, { name: "p1", node: "a", evicted: true, leaving: true }),
    { ...podAt(9, { name: "p1", node: "a", evicted: true, leaving: true }), type: "Gone" },
    { ...nodeAt(10, { cordoned: true }), type: "Gone" },
    nodeAt(11, { uid: "uid-a2", boot: "boot-2" }),
  ],
  audit: [
    entry({ verb: "patch", resource: "nodes", name: "a", atMs: 10_000 }),
    entry({ verb: "create", resource: "pods", subresource: "eviction", name: "p1", atMs: 11_000 }),
    entry({ verb: "delete", resource: "nodes", name: "a", atMs: 20_000 }),
  ],
  releases: [{ machine: "a", at: 15_000, podsThen: [] }],
  machineEnds: [{ machine: "a", at: 19_000 }],
};

describe("judge", () => {
  it("finds nothing in a correct rotation", () => {
    expect(judge(good, charge)).toEqual([]);
  });

  it("counts a new boot under the old Node object as a replacement", () => {
    const takenOver = without(good, [10, 11], [nodeAt(10, { boot: "boot-2" })]);
    const audit = good.audit.filter(({ verb }) => verb !== "delete");
    expect(judge({ ...takenOver, audit }, charge)).toEqual([]);
  });

  it("lets the owner of a finalizer delete a Node before its machine is gone", () => {
    const isDeletion = ({ verb }: AuditEntry) => verb === "delete";
    const early = withAudit(isDeletion, { user: "owner", receivedAtUs: 16_000_000 });
    expect(judge(early, { ...charge, finalizer: "owner" })).toEqual([]);
    expect(judge(early, { ...charge, finalizer: "another" })).toEqual([
      "the Node object a was removed before its machine was gone",
    ]);
  });

  it("does not count the first boot of a Node created before it as a new machine", () => {
    const unknown = nodeAt(11, { uid: "uid-a2", boot: "" });
    const known = nodeAt(12, { uid: "uid-a2", boot: "boot-2" });
    expect(judge(without(good, [11], [unknown, known]), charge)).toEqual([]);
  });

  it("does not count a node that had to leave as a replacement", () => {
    const renamed = without(good, [11], [nodeAt(11, { name: "c", uid: "uid-c" })]);
    expect(judge(renamed, { ...charge, heirs: /^[abc]$/ })).toEqual([]);
    const none = without(good, [11]);
    expect(judge(none, { ...charge, heirs: /^[abc]$/ })).toEqual(["nothing has replaced a"]);
  });

  it.each([
    ["the API server", unanswered],
    ["the controller", 504],
  ])("counts an eviction whose response was lost with %s", (_, code) => {
    const isEviction = ({ subresource }: AuditEntry) => subresource === "eviction";
    expect(judge(withAudit(isEviction, { code }), charge)).toEqual([]);
  });

  it("does not count an eviction that was refused", () => {
    const isEviction = ({ subresource }: AuditEntry) => subresource === "eviction";
    expect(judge(withAudit(isEviction, { code: 429 }), charge)).toEqual([
      "p1 left a, but not by an eviction of controller",
    ]);
  });

  it.each<[string, History, RegExp]>([
    ["a node never cordoned", without(good, [6]), /a was never cordoned/],
    [
      "an eviction before the cordon",
      without(good, [6], [nodeAt(8.5, { cordoned: true })]),
      /p1 had to leave a before it was cordoned/,
    ],
    ["a pod that stayed", without(good, [9]), /p1 is still on a/],
    [
      "a pod that was not evicted",
      without(good, [7, 8, 9], [{ ...podAt(9, { name: "p1", node: "a" }), type: "Gone" }]),
      /p1 left a without a mark of the eviction API/,
    ],
    [
      "an eviction by another user",
      withAudit(({ subresource }) => subresource === "eviction", { user: "other" }),
      /p1 left a, but not by an eviction of controller/,
    ],
    [
      "a direct deletion",
      {
        ...good,
        audit: [
          ...good.audit,
          entry({ verb: "delete", resource: "pods", name: "p1", atMs: 12_000 }),
        ],
      },
      /default\/p1 was deleted past the eviction API/,
    ],
    [
      "an exceeded budget",
      without(good, [4], [podAt(4, { name: "p2", node: "b", ready: false })]),
      /at 8 budget had 0 healthy pods of 1/,
    ],
    [
      "a release of a node with pods",
      {
        ...good,
        releases: [{ machine: "a", at: 15_000, podsThen: [pod({ name: "p1", node: "a" })] }],
      },
      /a was released with p1 on it/,
    ],
    ["no release", { ...good, releases: [] }, /a was never released/],
    [
      "a release of another machine",
      { ...good, releases: [...good.releases, { machine: "z", at: 16_000, podsThen: [] }] },
      /z was released, too/,
    ],
    [
      "a machine that ended twice",
      { ...good, machineEnds: [...good.machineEnds, { machine: "a", at: 19_500 }] },
      /the machine of a ended 2 times/,
    ],
    [
      "a Node object removed before its machine was gone",
      withAudit(({ verb }) => verb === "delete", { receivedAtUs: 18_999_000 }),
      /the Node object a was removed before its machine was gone/,
    ],
    [
      "a departure before its time",
      without(good, [5], [departureAt(5, "1970-01-01T00:00:12Z")]),
      /a was cordoned 2000 ms before its time/,
    ],
    ["no replacement", without(good, [11]), /nothing has replaced a/],
    [
      "a replacement that left, too",
      without(good, [], [{ ...nodeAt(12, { uid: "uid-a2", boot: "boot-2" }), type: "Gone" }]),
      /the replacement of a did not last/,
    ],
    [
      "a node left cordoned",
      without(good, [11], [nodeAt(11, { uid: "uid-a2", boot: "boot-2", cordoned: true })]),
      /a was left with a cordon/,
    ],
  ])("finds %s", (_what, history, finding) => {
    expect(judge(history, charge)).toContainEqual(expect.stringMatching(finding));
  });

  it("finds two nodes out at once, and zonesAlternate two of one zone in a row", () => {
    const both: History = {
      ...good,
      changes: [
        nodeAt(1, { name: "a" }),
        nodeAt(2, { name: "b", uid: "uid-b" }),
        nodeAt(3, { name: "a", cordoned: true }),
        nodeAt(4, { name: "b", uid: "uid-b", cordoned: true }),
      ],
    };
    const two = { ...charge, rotated: ["uid-a", "uid-b"] };
    expect(judge(both, two)).toContain("b left while 1 others were out, expected 0");
    expect(zonesAlternate(both, two)).toEqual(["a and then b, both in zone-1, left in a row"]);
  });

  it("finds, by leftApart, two nodes that left too close together", () => {
    const second = entry({ verb: "patch", resource: "nodes", name: "b", atMs: 14_999 });
    const both: History = {
      ...good,
      changes: [nodeAt(1, { name: "a" }), nodeAt(2, { name: "b", uid: "uid-b" })],
      audit: [second, ...good.audit],
    };
    const two = { ...charge, rotated: ["uid-a", "uid-b"] };
    expect(leftApart(both, { ...two, gapMs: 4_999 })).toEqual([]);
    expect(leftApart(both, { ...two, gapMs: 5_000 })).toEqual([
      "b was cordoned 4999 ms after a, expected 5000",
    ]);
  });
});

describe("cordonedAgain", () => {
  it("names a node that was cordoned again, and how often", () => {
    const back = [nodeAt(6.5, { cordoned: false }), nodeAt(6.6, { cordoned: true })];
    expect(cordonedAgain(without(good, [], back))).toEqual(["a was cordoned 2 times"]);
  });

  it("ignores a cordon that stayed, and another node with the same name", () => {
    const heir = [nodeAt(6.5, { cordoned: true }), nodeAt(12, { uid: "uid-a2", cordoned: true })];
    expect(cordonedAgain(without(good, [], heir))).toEqual([]);
  });
});

/** The history without the changes of these orders, and with others instead. */
function without(
  history: History,
  orders: readonly number[],
  instead: readonly Change[] = [],
): History {
  const kept = history.changes.filter(({ order }) => !orders.includes(order));
  return { ...history, changes: [...kept, ...instead].sort((a, b) => a.order - b.order) };
}

function withAudit(which: (one: AuditEntry) => boolean, change: Partial<AuditEntry>): History {
  return { ...good, audit: good.audit.map((one) => (which(one) ? { ...one, ...change } : one)) };
}

function entry(
  what: Pick<AuditEntry, "verb" | "resource" | "name"> & {
    readonly subresource?: string;
    readonly atMs: number;
  },
): AuditEntry {
  const { atMs, subresource = "", ...rest } = what;
  const code = subresource === "eviction" ? 201 : 200;
  const times = { receivedAtUs: atMs * 1000, answeredAtUs: atMs * 1000 };
  return { ...rest, subresource, code, user, namespace: "default", ...times };
}

interface NodeWish {
  readonly name?: string;
  readonly uid?: string;
  readonly boot?: string;
  readonly cordoned?: boolean;
}

function nodeAt(order: number, wish: NodeWish): Extract<Change, { kind: "Node" }> {
  const { name = "a", uid = "uid-a", boot = "boot-1", cordoned = false } = wish;
  const object = {
    metadata: { name, uid, labels: { "topology.kubernetes.io/zone": "zone-1" } },
    spec: { unschedulable: cordoned },
    status: { nodeInfo: { bootID: boot }, conditions: [{ type: "Ready", status: "True" }] },
  };
  return { kind: "Node", type: "Set", order, object: object as unknown as Node };
}

interface PodWish {
  readonly name: string;
  readonly node: string;
  readonly ready?: boolean;
  readonly evicted?: boolean;
  readonly leaving?: boolean;
}

function pod({ name, node, ready = true, evicted, leaving }: PodWish): Pod {
  const target = { type: "DisruptionTarget", status: "True", reason: "EvictionByEvictionAPI" };
  return {
    metadata: {
      ...{ name, namespace: "default", uid: `uid-${name}`, labels: { app: "web" } },
      ...(leaving && { deletionTimestamp: "1970-01-01T00:00:12Z" }),
    },
    spec: { nodeName: node, containers: [] },
    status: {
      conditions: [
        { type: "Ready", status: ready ? "True" : "False" },
        ...(evicted ? [target] : []),
      ],
    },
  };
}

function podAt(order: number, wish: PodWish): Extract<Change, { kind: "Pod" }> {
  return { kind: "Pod", type: "Set", order, object: pod(wish) };
}

function budgetAt(order: number): Change {
  const object = {
    metadata: { name: "budget", namespace: "default", uid: "uid-budget" },
    spec: { selector: { matchLabels: { app: "web" } } },
    status: { desiredHealthy: 1, currentHealthy: 2, disruptionsAllowed: 1, expectedPods: 2 },
  };
  return { kind: "Budget", type: "Set", order, object };
}

function departureAt(order: number, departAt: string): Change {
  const object = {
    metadata: { name: "a-uid", uid: "uid-departure" },
    spec: { node: { name: "a", uid: "uid-a" }, departAt },
  };
  return { kind: "Departure", type: "Set", order, object };
}
