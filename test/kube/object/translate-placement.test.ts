import { describe, expect, it } from "vitest";
import { podRequests, translatePlacement } from "../../../src/kube/object/translate-node.ts";

const asks = (cpu: string) => ({ resources: { requests: { cpu } } });
const sidecar = (cpu: string) => ({ ...asks(cpu), restartPolicy: "Always" });

// Expected values by hand, from the rule in k8s.io/component-helpers resource/helpers.go.
describe("a pod's requests", () => {
  it.each<[string, object, number]>([
    ["the sum of its containers", { containers: [asks("1"), asks("500m")] }, 1.5],
    [
      "an init container that requests more",
      { containers: [asks("1")], initContainers: [asks("3"), asks("2")] },
      3,
    ],
    ["a sidecar in addition", { containers: [asks("1")], initContainers: [sidecar("500m")] }, 1.5],
    [
      "an init container with the sidecars before it, not after",
      { containers: [asks("1")], initContainers: [sidecar("1"), asks("4"), sidecar("2")] },
      5,
    ],
    [
      "the pod-level requests, if they are higher",
      { containers: [asks("1")], resources: { requests: { cpu: "2" } } },
      2,
    ],
    [
      "the overhead of its runtime in addition",
      { containers: [asks("1")], overhead: { cpu: "250m" } },
      1.25,
    ],
    ["nothing, if it requests nothing", { containers: [{ name: "c" }] }, 0],
  ])("are %s", (_, spec, cpu) => {
    expect(podRequests(spec as Readonly<Record<string, unknown>>).cpu ?? 0).toBeCloseTo(cpu, 9);
  });
});

describe("a pod's placement", () => {
  const required = "requiredDuringSchedulingIgnoredDuringExecution";
  const term = { topologyKey: "zone", labelSelector: { matchLabels: { app: "web" } } };

  it("has the required terms, without the preferred ones", () => {
    const wish = { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1 }] };
    const found = translatePlacement({
      nodeSelector: { disk: "ssd" },
      schedulerName: "default-scheduler",
      affinity: {
        nodeAffinity: {
          [required]: {
            nodeSelectorTerms: [
              { matchExpressions: [{ key: "zone", operator: "In", values: ["a"] }] },
            ],
          },
          ...wish,
        },
        podAffinity: wish,
        podAntiAffinity: { [required]: [term], ...wish },
      },
    });
    expect(found).toEqual({
      requests: {},
      nodeSelector: { disk: "ssd" },
      requiredNodes: {
        nodeSelectorTerms: [
          {
            matchExpressions: [{ key: "zone", operator: "In", values: ["a"] }],
            matchFields: [],
          },
        ],
      },
      podAffinity: [],
      podAntiAffinity: [term],
      schedulerName: undefined,
    });
  });

  it("matches no node by an unknown operator", () => {
    const nodeSelectorTerms = [{ matchExpressions: [{ key: "zone", operator: "Like" }] }];
    const affinity = { nodeAffinity: { [required]: { nodeSelectorTerms } } };
    const [only] = translatePlacement({ affinity }).requiredNodes?.nodeSelectorTerms ?? [];
    expect(only?.matchExpressions).toEqual([{ key: "zone", operator: "In", values: [] }]);
  });
});
