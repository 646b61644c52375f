import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../../src/contracts/kube-api.ts";
import { translateNode } from "../../../src/kube/object/translate-node.ts";
import { translateBudget, translatePod } from "../../../src/kube/object/translate-pod.ts";

describe("the facts of a node", () => {
  const node: KubeObject = {
    metadata: {
      name: "n1",
      uid: "u1",
      resourceVersion: "7",
      creationTimestamp: "2026-11-20T00:00:00Z",
      labels: { "topology.kubernetes.io/zone": "a" },
      annotations: {
        "lastcall.dev/hold": "4h",
        "karpenter.sh/do-not-disrupt": "true",
        "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true",
        "estafette.io/gke-preemptible-killer-state": "2026-11-20T06:00:00Z",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
      },
      managedFields: [{ manager: "kubelet" }],
    },
    spec: {
      providerID: "gce://p/z/n1",
      unschedulable: true,
      taints: [
        { key: "spot", value: "true", effect: "NoSchedule" },
        { key: "odd", effect: "Maybe" },
      ],
    },
    status: {
      nodeInfo: { bootID: "b1" },
      conditions: [
        { type: "MemoryPressure", status: "True" },
        { type: "Ready", status: "False", message: "node is shutting down" },
      ],
    },
  };

  it("are what decisions need, with only the annotations that they need", () => {
    expect(translateNode(node)).toEqual({
      name: "n1",
      uid: "u1",
      providerID: "gce://p/z/n1",
      bootID: "b1",
      labels: { "topology.kubernetes.io/zone": "a" },
      annotations: {
        "lastcall.dev/hold": "4h",
        "karpenter.sh/do-not-disrupt": "true",
        "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true",
        "estafette.io/gke-preemptible-killer-state": "2026-11-20T06:00:00Z",
      },
      taints: [{ key: "spot", value: "true", effect: "NoSchedule" }],
      unschedulable: true,
      ready: false,
      readyMessage: "node is shutting down",
      createdAt: Date.UTC(2026, 10, 20),
      deletionAt: undefined,
    });
  });

  describe("about who holds it", () => {
    const entry = (manager: string, time: string, mark: string) => ({
      ...{ manager, time, operation: "Update", fieldsType: "FieldsV1" },
      fieldsV1: { "f:metadata": { "f:annotations": { ".": {}, [`f:${mark}`]: {} } } },
    });
    const hold = "lastcall.dev/hold";
    const kubectl = entry("kubectl-annotate", "2026-11-20T03:00:00Z", hold);
    const board = entry("lastcall", "2026-11-20T04:00:00Z", hold);
    const other = entry("karpenter", "2026-11-20T05:00:00Z", "karpenter.sh/do-not-disrupt");
    const at = (hour: number) => Date.UTC(2026, 10, 20, hour);

    it.each([
      ["the only owner of its hold", hold, [kubectl], { manager: "kubectl-annotate", at: at(3) }],
      ["the last of several owners", hold, [board, kubectl], { manager: "lastcall", at: at(4) }],
      ["no owner of another annotation", hold, [other], undefined],
      [
        "the owner of a foreign mark",
        "karpenter.sh/do-not-disrupt",
        [other, kubectl],
        { manager: "karpenter", at: at(5) },
      ],
      ["nobody if there is no hold", "some/other", [kubectl, other], undefined],
      ["nobody without managedFields", hold, undefined, undefined],
      [
        "nobody if managedFields are invalid",
        hold,
        [7, { manager: 1 }, { fieldsV1: [] }],
        undefined,
      ],
    ])("name %s", (_, mark, managedFields, expected) => {
      const annotations = { [mark]: "true" };
      const held = { ...node, metadata: { ...node.metadata, annotations, managedFields } };
      expect(translateNode(held as KubeObject).holdWriter).toEqual(expected);
    });

    const both = {
      ...board,
      fieldsV1: { "f:metadata": { "f:annotations": { [`f:${hold}`]: {}, [`f:${hold}-by`]: {} } } },
    };
    const onlyName = entry("lastcall", "2026-11-20T04:00:00Z", `${hold}-by`);

    it.each([
      ["the user that was written with the hold", [both], "eve"],
      ["no user if another program has set another hold since", [onlyName, kubectl], undefined],
      [
        "no user if another program wrote the name",
        [board, { ...onlyName, manager: "x" }],
        undefined,
      ],
      ["no user without managedFields", undefined, undefined],
    ])("name %s", (_, managedFields, user) => {
      const annotations = { [hold]: "true", [`${hold}-by`]: "eve" };
      const held = { ...node, metadata: { ...node.metadata, annotations, managedFields } };
      expect(translateNode(held as KubeObject).holdWriter?.user).toBe(user);
    });
  });

  it.each([["garbage"], [undefined], [17], ["2026-02-30T00:00:00Z"]])(
    "have no creation time if the object's is %s",
    (creationTimestamp) => {
      const odd = { metadata: { name: "n", creationTimestamp } } as unknown as KubeObject;
      expect(translateNode(odd).createdAt).toBeUndefined();
    },
  );
});

describe("the facts of a pod", () => {
  const pod: KubeObject = {
    metadata: {
      namespace: "shop",
      name: "web-0",
      uid: "u1",
      labels: { app: "web" },
      annotations: { "kubernetes.io/config.mirror": "x", "cni/state": "…" },
      ownerReferences: [
        { kind: "Other", name: "o", uid: "u8" },
        {
          apiVersion: "apps/v1",
          kind: "StatefulSet",
          name: "web",
          uid: "u9",
          controller: true,
        },
      ],
      deletionTimestamp: "2026-11-20T00:01:00Z",
    },
    spec: {
      nodeName: "n1",
      priority: 2_000_001_000,
      priorityClassName: "system-node-critical",
      terminationGracePeriodSeconds: 60,
      tolerations: [{ operator: "Exists" }, { key: "spot", value: "true", effect: "NoSchedule" }],
      volumes: [
        { name: "cache", emptyDir: {} },
        { name: "data", persistentVolumeClaim: { claimName: "data-web-0" } },
        { name: "scratch", ephemeral: { volumeClaimTemplate: {} } },
      ],
    },
    status: {
      phase: "Running",
      startTime: "2026-11-20T00:00:00Z",
      conditions: [{ type: "Ready", status: "True" }],
    },
  };

  it("are what a drain needs", () => {
    expect(translatePod(pod)).toEqual({
      namespace: "shop",
      name: "web-0",
      uid: "u1",
      nodeName: "n1",
      phase: "Running",
      ready: true,
      labels: { app: "web" },
      annotations: { "kubernetes.io/config.mirror": "x" },
      priority: 2_000_001_000,
      priorityClassName: "system-node-critical",
      graceSeconds: 60,
      graceSource: "Set",
      controller: { group: "apps", kind: "StatefulSet", name: "web", uid: "u9" },
      mirror: true,
      emptyDir: true,
      hostPath: false,
      volumeClaims: ["data-web-0", "web-0-scratch"],
      tolerations: [
        { key: undefined, operator: "Exists", value: undefined, effect: undefined },
        { key: "spot", operator: undefined, value: "true", effect: "NoSchedule" },
      ],
      placement: {
        requests: {},
        nodeSelector: {},
        requiredNodes: undefined,
        podAffinity: [],
        podAntiAffinity: [],
        schedulerName: undefined,
      },
      startedAt: Date.UTC(2026, 10, 20),
      deletionAt: Date.UTC(2026, 10, 20, 0, 1),
    });
  });

  it.each([
    [undefined, 30, "Default"],
    ["60", 30, "Default"],
    [0, 0, "Set"],
    [-5, 1, "Set"],
    [30, 30, "Set"],
  ])("take a grace period of %s as %i s, %s", (value, graceSeconds, graceSource) => {
    const odd = { spec: { terminationGracePeriodSeconds: value } };
    expect(translatePod(odd)).toMatchObject({ graceSeconds, graceSource });
  });

  it.each([
    { volume: { name: "v" }, emptyDir: true, why: "the API server defaults to it" },
    { volume: { name: "v", hostPath: null }, emptyDir: true, why: "null is not a source" },
    {
      volume: { name: "v", emptyDir: null, configMap: {} },
      emptyDir: false,
      why: "it has another source",
    },
    { volume: { name: "v", later: {} }, emptyDir: false, why: "later versions may support it" },
  ])("take $volume for an emptyDir: $emptyDir, because $why", ({ volume, emptyDir }) => {
    expect(translatePod({ spec: { volumes: [volume] } })).toMatchObject({ emptyDir });
  });

  it.each([
    { path: "/srv/files", mounts: [{ name: "v" }], hostPath: true },
    { path: "/srv/files", mounts: [{ name: "v", readOnly: true }], hostPath: false },
    { path: "/srv/files", mounts: [{ name: "v", readOnly: true }, { name: "v" }], hostPath: true },
    { path: "/srv/files", mounts: [{ name: "other" }], hostPath: false },
    { path: "/var/run/docker.sock", mounts: [{ name: "v" }], hostPath: false },
  ])("take $path, mounted as $mounts, for data on the machine: $hostPath", (one) => {
    const volumes = [{ name: "v", hostPath: { path: one.path } }];
    const containers = one.mounts.map((mount) => ({ volumeMounts: [mount] }));
    const { hostPath } = one;
    expect(translatePod({ spec: { volumes, containers } })).toMatchObject({ hostPath });
    expect(translatePod({ spec: { volumes, initContainers: containers } })).toMatchObject({
      hostPath,
    });
  });

  it("distinguish a pod that was created with its node's name from one that a scheduler has bound", () => {
    const created = (spec: object) => {
      const fieldsV1 = { "f:metadata": { "f:labels": {} }, "f:spec": spec };
      const kubelet = { manager: "kubelet", fieldsV1: { "f:status": { "f:phase": {} } } };
      const managedFields = [{ manager: "kube-controller-manager", fieldsV1 }, kubelet];
      return translatePod({ metadata: { managedFields }, spec: { nodeName: "n1" } });
    };
    expect(created({ "f:containers": {}, "f:nodeName": {} }).bypassesScheduler).toBe(true);
    expect(created({ "f:containers": {} }).bypassesScheduler).toBeUndefined();
  });

  it("have defaults for a bare object", () => {
    expect(translatePod({ metadata: { name: "p" } })).toMatchObject({
      namespace: "default",
      phase: "Unknown",
      ready: false,
      priority: 0,
      mirror: false,
      emptyDir: false,
      hostPath: false,
      volumeClaims: [],
      tolerations: [],
      controller: undefined,
    });
  });
});

describe("the facts of a budget", () => {
  const budget: KubeObject = {
    metadata: { namespace: "shop", name: "web", uid: "u1", generation: 2 },
    spec: {
      minAvailable: "50%",
      selector: {
        matchLabels: { app: "web" },
        matchExpressions: [{ key: "tier", operator: "In", values: ["a", "b"] }],
      },
      unhealthyPodEvictionPolicy: "AlwaysAllow",
    },
    status: {
      observedGeneration: 2,
      disruptionsAllowed: 1,
      currentHealthy: 3,
      desiredHealthy: 2,
      expectedPods: 4,
    },
  };

  it("are selector, limits and current counts", () => {
    expect(translateBudget(budget)).toEqual({
      namespace: "shop",
      name: "web",
      uid: "u1",
      selector: {
        matchLabels: { app: "web" },
        matchExpressions: [{ key: "tier", operator: "In", values: ["a", "b"] }],
      },
      minAvailable: "50%",
      maxUnavailable: undefined,
      unhealthyPodEvictionPolicy: "AlwaysAllow",
      disruptionsAllowed: 1,
      currentHealthy: 3,
      desiredHealthy: 2,
      expectedPods: 4,
      observed: true,
    });
  });

  it.each([
    ["empty selects all", {}, { matchLabels: undefined, matchExpressions: undefined }],
    [
      "missing selects none",
      undefined,
      { matchExpressions: [{ key: "", operator: "In", values: [] }] },
    ],
    [
      "with an unknown operator selects none",
      { matchExpressions: [{ key: "a", operator: "Like", values: ["b"] }] },
      { matchExpressions: [{ key: "", operator: "In", values: [] }] },
    ],
  ])("whose selector is %s", (_, selector, wanted) => {
    expect(translateBudget({ spec: { selector } }).selector).toEqual(wanted);
  });

  it.each([
    ["SyncFailed", "jobs.batch does not implement the scale subresource"],
    ["InsufficientPods", undefined],
  ])("say why it cannot be computed, if the reason is %s", (reason, wanted) => {
    const message = "jobs.batch does not implement the scale subresource";
    const conditions = [{ type: "DisruptionAllowed", status: "False", reason, message }];
    const failing = { ...budget, status: { ...(budget.status as object), conditions } };
    expect(translateBudget(failing).syncFailure).toBe(wanted);
  });

  it("allow nothing and are unobserved without a status", () => {
    const { status: _, ...fresh } = budget;
    expect(translateBudget(fresh)).toMatchObject({ disruptionsAllowed: 0, observed: false });
  });
});

describe("every translation", () => {
  it("accepts any JSON without throwing", () => {
    const parts = fc.dictionary(
      fc.constantFrom(
        ...["metadata", "spec", "status", "conditions", "taints", "volumes", "tolerations"],
        ...[
          "ownerReferences",
          "selector",
          "matchLabels",
          "matchExpressions",
          "labels",
          "annotations",
        ],
      ),
      fc.jsonValue({ maxDepth: 3 }),
    );
    const odd = fc.record({ metadata: parts, spec: parts, status: parts }, { requiredKeys: [] });
    fc.assert(
      fc.property(fc.oneof(parts, odd), (object) => {
        for (const translate of [translateNode, translatePod, translateBudget]) {
          expect(translate(object as KubeObject)).toBeTypeOf("object");
        }
      }),
      { seed: 1, numRuns: 500 },
    );
  });
});
