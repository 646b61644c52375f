import { describe, expect, it } from "vitest";
import { auditYaml } from "./support/audit-yaml.ts";

async function found(yaml: string) {
  const { findings } = await auditYaml(yaml, { platforms: ["gke"] });
  const own = findings.filter(({ rule }) => rule === "unreadable-mark");
  return own.map(({ object, message, fix, fieldLine }) => ({ object, message, fix, fieldLine }));
}

const podMark = (key: string, value: string) => `apiVersion: apps/v1
kind: Deployment
metadata: {name: batch}
spec:
  template:
    metadata:
      labels: {app: batch}
      annotations:
        ${key}: ${value}
    spec:
      containers: [{name: batch, image: batch}]
`;

const nodeMark = (key: string, value: string) => `apiVersion: v1
kind: Node
metadata:
  name: n1
  annotations:
    ${key}: ${value}
`;

describe("a mark on pods whose value cannot be read", () => {
  it.each([
    ["lastcall.dev/do-not-disturb", '"2 hours"', '"2h"'],
    ["lastcall.dev/do-not-disturb", '"yes"', '"true"'],
    ["karpenter.sh/do-not-disrupt", '"1d"', '"24h"'],
  ])("is reported at its line, with what is meant: %s: %s", async (key, value, meant) => {
    expect(await found(podMark(key, value))).toEqual([
      {
        object: "Deployment default/batch",
        message: `Has the annotation ${key}: ${value}, which cannot be read: its pods are not evicted in a planned departure, however old they are`,
        fix: `Write ${meant}; expected are "true", "false", or for how long from the pod's start, such as "2h"`,
        fieldLine: 9,
      },
    ]);
  });

  it("is reported without a guess if nobody knows what is meant", async () => {
    const [first] = await found(podMark("lastcall.dev/do-not-disturb", "for-a-while"));
    expect(first?.fix).toBe(
      `Write "true", "false", or for how long from the pod's start, such as "2h"`,
    );
  });

  it("says of cluster-autoscaler's that it does nothing", async () => {
    const key = "cluster-autoscaler.kubernetes.io/safe-to-evict";
    expect(await found(podMark(key, '"no"'))).toMatchObject([
      {
        message: `Has the annotation ${key}: "no", which cannot be read: its pods are evicted like any other`,
        fix: 'Write "false"; expected are "true" or "false"',
      },
    ]);
  });

  it("says of a value without quotes that the API server refuses it", async () => {
    expect(await found(podMark("lastcall.dev/do-not-disturb", "true"))).toMatchObject([
      {
        message:
          "Has the annotation lastcall.dev/do-not-disturb: true without quotes, which the API server refuses",
        fix: 'Write "true"',
        fieldLine: 9,
      },
    ]);
  });

  it.each(['"true"', '"false"', '""', '"2h"', '"12h30m"'])("is none with %s", async (value) => {
    expect(await found(podMark("lastcall.dev/do-not-disturb", value))).toEqual([]);
  });

  it("is reported of a pod that has it alone, and not of each pod of a workload", async () => {
    const key = "lastcall.dev/do-not-disturb";
    const pod = (name: string, value: string) => `---
apiVersion: v1
kind: Pod
metadata:
  name: ${name}
  uid: u-${name}
  annotations: {${key}: ${value}}
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: batch, controller: true}]
spec: {containers: [{name: batch, image: batch}]}
status: {phase: ${name === "over" ? "Succeeded" : "Running"}}
`;
    const pods = [pod("a", '"2 hours"'), pod("b", '"3 hours"'), pod("over", '"4 hours"')];
    const all = await found(podMark(key, '"2 hours"') + pods.join(""));
    expect(all.map(({ object }) => object)).toEqual(["Deployment default/batch", "Pod default/b"]);
  });
});

describe("a mark on a node whose value cannot be read", () => {
  it.each([
    ['"4 hours"', '"4h"'],
    ['"2026-12-01"', '"2026-12-01T00:00:00Z"'],
  ])("is reported at its line: %s", async (value, meant) => {
    expect(await found(nodeMark("lastcall.dev/hold", value))).toEqual([
      {
        object: "Node n1",
        message: `Has the annotation lastcall.dev/hold: ${value}, which cannot be read: the node is held until the annotation is removed`,
        fix: `Write ${meant}; expected are "true", "false", for how long from its launch, such as "4h", or an instant such as "2026-12-01T00:00:00Z"`,
        fieldLine: 6,
      },
    ]);
  });

  it.each(["cluster-autoscaler.kubernetes.io/scale-down-disabled", "karpenter.sh/do-not-disrupt"])(
    "of another tool does nothing: %s",
    async (key) => {
      const [first] = await found(nodeMark(key, '"yes"'));
      expect(first?.message).toBe(
        `Has the annotation ${key}: "yes", which cannot be read: the node leaves like any other`,
      );
    },
  );

  it.each(['"true"', '"false"', '""', '"4h"', '"2026-12-01T00:00:00Z"'])(
    "is none with %s",
    async (value) => {
      expect(await found(nodeMark("lastcall.dev/hold", value))).toEqual([]);
    },
  );
});
