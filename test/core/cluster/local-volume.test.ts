import { expect, it } from "vitest";
import { isLocalClass, isOnOneMachine } from "../../../src/core/cluster/local-volume.ts";

const reachedFrom = (...keys: readonly string[]) => ({
  nodeSelectorTerms: keys.map((key) => ({
    matchExpressions: [{ key, operator: "In" as const, values: ["a"] }],
    matchFields: [],
  })),
});

/** From any of these hosts in each of these terms, as replicated volumes are (LINSTOR, DRBD). */
const replicated = (...hosts: readonly (readonly string[])[]) => ({
  nodeSelectorTerms: hosts.map((values) => ({
    matchExpressions: [{ key: "linbit.com/hostname", operator: "In" as const, values }],
    matchFields: [],
  })),
});

it.each([
  ["one host", reachedFrom("kubernetes.io/hostname"), true],
  ["one node of TopoLVM", reachedFrom("topology.topolvm.io/node"), true],
  ["one node of OpenEBS LVM", reachedFrom("openebs.io/nodename"), true],
  ["one node of OpenEBS ZFS", reachedFrom("openebs.io/nodeid"), true],
  ["one node of the CSI driver for host paths", reachedFrom("topology.hostpath.csi/node"), true],
  ["a zone", reachedFrom("topology.gke.io/zone"), false],
  ["a zone, by its newer label", reachedFrom("topology.kubernetes.io/zone"), false],
  ["nodes of a pool", reachedFrom("cloud.google.com/gke-nodepool"), false],
  ["one host, or from a zone", reachedFrom("kubernetes.io/hostname", "a.io/zone"), false],
  ["one of two hosts", replicated(["a", "b"]), false],
  ["one host, or from another", replicated(["a"], ["b"]), false],
  ["one host, or from the same", replicated(["a"], ["a"]), true],
  ["everywhere", undefined, false],
])("a volume that can be reached from %s: %s %s", (_, nodes, expected) => {
  expect(isOnOneMachine({ source: "Elsewhere", nodes })).toBe(expected);
  expect(isOnOneMachine({ source: "Machine", nodes })).toBe(true);
});

it.each([
  ["rancher.io/local-path", "WaitForFirstConsumer", true],
  ["topolvm.io", "WaitForFirstConsumer", true],
  ["kubevirt.io.hostpath-provisioner", "Immediate", true],
  ["lvm.csi.metal-stack.io", "WaitForFirstConsumer", true],
  ["carina.storage.io", "WaitForFirstConsumer", true],
  ["kubernetes.io/no-provisioner", "WaitForFirstConsumer", true],
  // A class for network file systems that somebody creates by hand.
  ["kubernetes.io/no-provisioner", "Immediate", false],
  ["pd.csi.storage.gke.io", "WaitForFirstConsumer", false],
])("the provisioner %s with %s makes local volumes: %s", (provisioner, bindingMode, expected) => {
  expect(isLocalClass({ provisioner, bindingMode })).toBe(expected);
});
