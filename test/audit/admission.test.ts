import { describe, expect, it } from "vitest";
import { admissionBudget, admissionManifests } from "../../src/audit/admission.ts";
import { parseManifests } from "../../src/audit/input/parse-manifests.ts";
import type { Platform } from "../../src/audit/platform.ts";

import { platform } from "./support/audit-yaml.ts";

const options = {
  action: "Warn",
  regularSeconds: 15,
  criticalSeconds: 5,
  scope: "Possible",
  namespace: "lastcall",
} as const;

function objects(changes: Partial<Parameters<typeof admissionManifests>[0]> = {}) {
  const { documents, problems } = parseManifests({
    file: "-",
    text: admissionManifests({ ...options, ...changes }),
  });
  expect(problems).toEqual([]);
  return documents.map((document) => document.value as { kind: string; [field: string]: unknown });
}

describe("the admission policy", () => {
  it("consists of a budget, and a policy with its binding for each shape of object", () => {
    const kinds = objects().map((object) => object.kind);

    expect(kinds[0]).toBe("ConfigMap");
    expect(kinds.filter((kind) => kind === "ValidatingAdmissionPolicy")).toHaveLength(3);
    expect(kinds.filter((kind) => kind === "ValidatingAdmissionPolicyBinding")).toHaveLength(3);
  });

  it("takes the budget as parameters, so that it can change without the policy", () => {
    expect(objects()[0]).toMatchObject({
      metadata: { name: "lastcall-grace-budget", namespace: "lastcall" },
      data: { regularSeconds: "15", criticalSeconds: "5" },
    });
    for (const binding of objects().filter((one) => one.kind.endsWith("Binding"))) {
      expect(binding.spec).toMatchObject({
        paramRef: { name: "lastcall-grace-budget", parameterNotFoundAction: "Allow" },
      });
    }
  });

  it.each(["Warn", "Deny", "Audit"] as const)("only has the validation action %s", (action) => {
    const bindings = objects({ action }).filter((one) => one.kind.endsWith("Binding"));

    for (const binding of bindings) {
      expect(binding.spec).toMatchObject({ validationActions: [action] });
    }
  });

  it("covers every kind that creates pods", () => {
    const text = admissionManifests(options);
    for (const kind of "deployments statefulsets daemonsets replicasets replicationcontrollers jobs cronjobs pods".split(
      " ",
    )) {
      expect(text).toContain(kind);
    }
  });

  it.each([
    ["gke", { regularSeconds: 15, criticalSeconds: 15 }],
    ["gke-25", { regularSeconds: 25, criticalSeconds: 5 }],
    ["kubelet:60s/20s", { regularSeconds: 40, criticalSeconds: 20 }],
    ["aks", { regularSeconds: 0, criticalSeconds: 0 }],
  ])("has the budget of %s", (name, budget) => {
    expect(admissionBudget(platform(name))).toEqual(budget);
  });

  it("takes the seconds of a regular and of a critical pod from groups by priority", () => {
    const groups = [
      { priority: 100_000, seconds: 10 },
      { priority: 0, seconds: 120 },
      { priority: 2_000_000_500, seconds: 60 },
      { priority: 1_000_000, seconds: 20 },
    ];
    const many: Platform = { name: "kubelet:FILE", groups, source: "File" };

    expect(admissionBudget(many)).toEqual({ regularSeconds: 120, criticalSeconds: 20 });
  });

  it.each([-1, 1.5, Number.NaN])("refuses a budget of %d s", (regularSeconds) => {
    expect(() => admissionManifests({ ...options, regularSeconds })).toThrow(
      "expected whole seconds from 0 on",
    );
  });
});
