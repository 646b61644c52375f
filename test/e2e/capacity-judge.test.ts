import { describe, expect, it } from "vitest";
import { judgeCapacity } from "./capacity-judge.ts";
import type { Change, History } from "./history.ts";

interface Sight {
  readonly name: string;
  readonly node?: string;
  readonly ready?: true;
  readonly leaving?: true;
}

function podAt(order: number, { name, node = "a", ready, leaving }: Sight): Change {
  const isCapacity = name.startsWith("placeholder-");
  return {
    kind: "Pod",
    type: "Set",
    order,
    object: {
      metadata: {
        name,
        namespace: isCapacity ? "lastcall" : "default",
        uid: `uid-${name}`,
        ...(leaving && { deletionTimestamp: "1970-01-01T00:00:00Z" }),
      },
      spec: { nodeName: node, containers: [{ name: "c" }] },
      status: { conditions: [{ type: "Ready", status: ready ? "True" : "False" }] },
    },
  };
}

function goneAt(order: number, sight: Sight): Change {
  return { ...podAt(order, sight), type: "Gone" };
}

const capacity = { name: "placeholder-uid-p", node: "b" };

/** One pod, and capacity reserved for it on another node. */
const good = [
  podAt(1, { name: "p", ready: true }),
  podAt(2, capacity),
  podAt(3, { ...capacity, ready: true }),
  podAt(4, { name: "p", ready: true, leaving: true }),
  goneAt(5, capacity),
  goneAt(6, { name: "p", leaving: true }),
];

function judged(changes: readonly Change[]): readonly string[] {
  const history: History = { changes, audit: [], releases: [], machineEnds: [] };
  return judgeCapacity(history, "a");
}

function changed(orders: readonly number[], more: readonly Change[] = []): readonly Change[] {
  const kept = good.filter(({ order }) => !orders.includes(order));
  return [...kept, ...more].toSorted((a, b) => a.order - b.order);
}

describe("judgeCapacity", () => {
  it("finds nothing in a correct history", () => {
    expect(judged(good)).toEqual([]);
  });

  it.each<[string, readonly Change[], string]>([
    ["a run without departures", changed([4, 6]), "nobody left a"],
    ["a pod without reserved capacity", changed([2, 3, 5]), "p left without room elsewhere"],
    [
      "capacity that was ready too late",
      changed([3], [podAt(4.5, { ...capacity, ready: true })]),
      "the room of p was not ready before the first pod had to leave",
    ],
    ["capacity that was kept", changed([5]), "the room of p was never given up"],
    [
      "capacity that was released too early",
      changed([5], [goneAt(3.5, capacity)]),
      "the room of p was given up before it had to leave",
    ],
    [
      "capacity on the leaving node",
      changed(
        [2, 3, 5],
        [podAt(2, { name: capacity.name, ready: true }), goneAt(5, { name: capacity.name })],
      ),
      "the room of p was on the node that leaves",
    ],
  ])("finds %s", (_, changes, sentence) => {
    expect(judged(changes)).toEqual([sentence]);
  });
});
