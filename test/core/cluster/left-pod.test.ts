import { expect, it } from "vitest";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import { type FailedPod, isOfEarlierMachine } from "../../../src/core/cluster/pod.ts";
import { instant, minus, plus, seconds } from "../../../src/core/time/time.ts";

const at = instant(Date.UTC(2026, 10, 20));
const node: NodeFacts = {
  ...{ name: "n1", uid: "new", labels: {}, annotations: {}, taints: [] },
  ...{ unschedulable: false, ready: true, createdAt: at },
};
const left: FailedPod = {
  ...{ namespace: "default", name: "web-1", uid: "u", nodeName: "n1", reason: "Terminated" },
  controller: { kind: "ReplicaSet", name: "web", uid: "r" },
  ...{ createdAt: minus(at, seconds(600)), startedAt: minus(at, seconds(590)) },
};

it.each<readonly [what: string, change: Partial<FailedPod>, node: Partial<NodeFacts>, boolean]>([
  ["that was shut down with the previous machine", {}, {}, true],
  [
    "that the previous kubelet rejected while it was shutting down",
    { reason: "NodeShutdown" },
    {},
    true,
  ],
  ["that an older version of the kubelet shut down", { reason: "Shutdown" }, {}, true],
  ["of another node", { nodeName: "n2" }, {}, false],
  ["that was bound to no node", { nodeName: undefined }, {}, false],
  ["that was evicted for lack of memory", { reason: "Evicted" }, {}, true],
  ["that failed on its own", { reason: undefined }, {}, true],
  ["that was not replaced", { controller: undefined }, {}, false],
  ["of a static pod", { controller: { kind: "Node", name: "n1", uid: "old" } }, {}, false],
  ["created in the same second as the Node", { createdAt: at }, {}, false],
  ["created after the Node", { createdAt: plus(at, seconds(1)) }, {}, false],
  // It was pending until this machine had room for it.
  ["created before the Node and started on it", { startedAt: plus(at, seconds(30)) }, {}, false],
  ["that no kubelet has started", { startedAt: undefined }, {}, false],
  ["of unknown age", { createdAt: undefined }, {}, false],
  ["if the Node's age is unknown", {}, { createdAt: undefined }, false],
])("recognizes the failed pods of the machine before: one %s", (_, change, also, wanted) => {
  expect(isOfEarlierMachine({ ...left, ...change }, { ...node, ...also })).toBe(wanted);
});
