import { describe, expect, it } from "vitest";
import { audit } from "../../src/audit/audit.ts";
import { parseManifests } from "../../src/audit/input/parse-manifests.ts";
import { leanObject } from "../../src/audit/objects/manifest.ts";
import { ruleList } from "../../src/audit/rule-list.ts";
import { isElastic } from "../../src/core/cluster/gang.ts";
import { fieldsOf } from "../../src/core/json/json-field.ts";
import { platform } from "./support/audit-yaml.ts";

/** Fields that the API server adds to a container, or that the audit does not read. */
const noise = {
  env: [{ name: "TOKEN", value: "x" }],
  resources: { requests: { cpu: "1" } },
  livenessProbe: { httpGet: { path: "/", port: 80 } },
};

describe.each(ruleList)("a lean object under the rule $id", ({ bad, good, id }) => {
  it.each([
    ["bad", bad],
    ["good", good],
  ])("gets the same result as the whole object in the %s example", (_, { yaml, platforms }) => {
    const { documents } = parseManifests({ file: "-", text: yaml });
    const objects = documents.map(({ value }) => fieldsOf(value));
    const report = (read: (object: ReturnType<typeof fieldsOf>) => unknown) =>
      audit({
        sources: objects.map((object) => ({ json: read(object), origin: "Recorded" as const })),
        platforms: (platforms ?? ["gke"]).map(platform),
      });

    expect(report(leanObject)).toEqual(report((object) => object));
    expect(ruleList.map((rule) => rule.id)).toContain(id);
  });
});

it("a lean object has no managedFields, no status and no environment", () => {
  const container = { name: "main", ...noise };
  const lean = leanObject({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", managedFields: [{ manager: "kubectl" }] },
    spec: { template: { spec: { containers: [container], initContainers: [container] } } },
    status: { replicas: 1 },
  });

  expect(lean).toEqual({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", annotations: {} },
    spec: {
      template: { spec: { containers: [{ name: "main" }], initContainers: [{ name: "main" }] } },
    },
  });
});

it("a lean pod still says that torchrun may launch it on fewer nodes", () => {
  const env = [...noise.env, { name: "PET_NNODES", value: "1:4" }];
  const spec = { containers: [{ name: "main", ...noise, env }] };
  const lean = leanObject({ apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec });
  expect(isElastic(fieldsOf(lean.spec))).toBe(true);
});

it.each([
  ['{"spec":{"terminationGracePeriodSeconds":30}}', "Set"],
  ["{}", "Default"],
])("a grace of 30 s that was applied as %s is %s in a lean object", (applied, graceSource) => {
  const annotations = { "kubectl.kubernetes.io/last-applied-configuration": applied };
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p", annotations },
    spec: { terminationGracePeriodSeconds: 30, containers: [] },
  };
  const { workloads } = audit({
    sources: [{ json: leanObject(pod), origin: "Recorded" }],
    platforms: [platform("gke")],
  });

  expect(workloads).toMatchObject([{ graceSource }]);
});

it("a lean budget still says that the cluster cannot compute it", () => {
  const conditions = [{ type: "DisruptionAllowed", status: "False", reason: "SyncFailed" }];
  const budget = {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: "web" },
    spec: { maxUnavailable: 1 },
    status: { conditions, currentHealthy: 3 },
  };

  expect(leanObject(budget)).toMatchObject({ status: { conditions } });
});
