import { describe, expect, it } from "vitest";
import {
  clusterPolicyReader,
  readClusterPolicy,
} from "../../src/config/policy/parse-policy-object.ts";
import { cronProblem } from "../../src/core/limits/windows.ts";
import { defaultNodeSelector } from "../../src/core/policy/policy.ts";

const selector = {
  nodeSelectorTerms: [{ matchExpressions: [{ key: "pool", operator: "In", values: ["a"] }] }],
};
const understood = {
  nodeSelectorTerms: [
    { matchExpressions: [{ key: "pool", operator: "In", values: ["a"] }], matchFields: [] },
  ],
};

function read(spec: unknown) {
  const metadata = { name: "odd", generation: 4, uid: "uid-4" };
  const object = { apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy", metadata, spec };
  return readClusterPolicy(object, { cronProblem });
}

const local = [{ timeZone: "Local", start: "22:00", end: "06:00" }];

describe("an unreadable policy in the cluster", () => {
  it("is reported with the field and the value", () => {
    expect(read({ windows: local })).toMatchObject({
      ...{ name: "odd", generation: 4, uid: "uid-4" },
      problem:
        'spec.windows[0].timeZone: found "Local", expected an IANA time zone such as Asia/Tokyo',
    });
  });

  it.each<[string, object, Readonly<Record<string, unknown>>]>([
    [
      "its weight and its selector",
      { weight: 7, nodeSelector: selector, windows: local },
      { weight: 7, nodeSelector: understood },
    ],
    [
      "the defaults of both",
      { spacing: { mode: "Random" } },
      { weight: 0, nodeSelector: defaultNodeSelector },
    ],
    [
      "its selector if the weight cannot be read",
      { weight: "heavy", nodeSelector: selector },
      { weight: undefined, nodeSelector: understood },
    ],
    [
      "its weight if the selector cannot be read",
      { weight: 7, nodeSelector: { nodeSelectorTerms: [{ matchExpressions: [{ key: "a b" }] }] } },
      { weight: 7, nodeSelector: undefined },
    ],
    [
      "no selector with fields of a newer version",
      { nodeSelector: { ...selector, exclude: ["n1"] }, windows: local },
      { weight: 0, nodeSelector: undefined },
    ],
    ["nothing if the spec is not an object", [], { weight: undefined, nodeSelector: undefined }],
  ])("keeps %s", (_, spec, { weight, nodeSelector }) => {
    const reading = read(spec);
    expect(reading).toHaveProperty("problem");
    expect(reading).toMatchObject({
      ...(weight !== undefined && { weight }),
      ...(nodeSelector !== undefined && { nodeSelector }),
    });
    if (weight === undefined) expect(reading).not.toHaveProperty("weight");
    if (nodeSelector === undefined) expect(reading).not.toHaveProperty("nodeSelector");
  });
});

it("a policy in the cluster is read even if it has a field of a newer version", () => {
  expect(read({ weight: 3, fairness: "Total" })).toMatchObject({ policy: { weight: 3 } });
});

describe("a reader of the cluster's policies", () => {
  const object = (generation: number, uid: string, weight: number) => ({
    ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy" },
    ...{ metadata: { name: "spot", generation, uid }, spec: { weight } },
  });

  it("reads a policy once while only its status changes", () => {
    const reader = clusterPolicyReader({ cronProblem });
    const first = reader(object(1, "uid-1", 3));
    expect(reader({ ...object(1, "uid-1", 3), status: { matchedNodes: 2 } })).toBe(first);
  });

  it.each([
    ["its spec has changed", 2, "uid-1"],
    ["it was deleted and made again", 1, "uid-2"],
  ])("reads it again when %s", (_, generation, uid) => {
    const reader = clusterPolicyReader({ cronProblem });
    reader(object(1, "uid-1", 3));
    expect(reader(object(generation, uid, 5))).toMatchObject({ policy: { weight: 5 } });
  });

  it("remembers nothing of an object without a generation", () => {
    const reader = clusterPolicyReader({ cronProblem });
    const { metadata, ...rest } = object(1, "uid-1", 3);
    const { generation: _, ...unversioned } = metadata;
    reader({ ...rest, metadata: unversioned });
    const changed = { ...rest, spec: { weight: 5 }, metadata: unversioned };
    expect(reader(changed)).toMatchObject({ policy: { weight: 5 } });
  });
});
