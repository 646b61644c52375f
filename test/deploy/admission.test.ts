import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";

const deploy = join(import.meta.dirname, "../../deploy");

interface Policy {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly failurePolicy?: string;
    readonly policyName?: string;
    readonly validationActions?: readonly string[];
    readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
  };
}

function documentsIn(file: string): readonly Policy[] {
  return parseAllDocuments(readFileSync(join(deploy, file), "utf8")).map((one) => one.toJS());
}

const files = globSync("**/admission.yaml", { cwd: deploy });
const objects = files.flatMap(documentsIn);
const policies = objects.filter(({ kind }) => kind === "ValidatingAdmissionPolicy");

describe("the admission policies that are installed", () => {
  test("are all found here, and enforced by a binding each", () => {
    expect(policies.map(({ metadata }) => metadata.name).toSorted()).toEqual([
      ...["lastcall-agent", "lastcall-agent-eviction", "lastcall-agent-node", "lastcall-agent-pod"],
      ...["lastcall-placeholder", "lastcall-restart-owner"],
    ]);
    const bindings = objects.filter(({ kind }) => kind === "ValidatingAdmissionPolicyBinding");
    expect(bindings.map(({ spec }) => spec.policyName).toSorted()).toEqual(
      policies.map(({ metadata }) => metadata.name).toSorted(),
    );
    for (const { spec } of bindings) expect(spec.validationActions).toEqual(["Deny"]);
    for (const { spec } of policies) expect(spec.failurePolicy).toBe("Fail");
  });

  // No tool that changes names and namespaces looks into an expression.
  test("name no account and no namespace of the installation", () => {
    for (const { metadata, spec } of policies) {
      const accounts = JSON.stringify(spec).match(/system:serviceaccount:[^']+/g) ?? [];
      const ours = accounts.filter((one) => one !== "system:serviceaccount:kube-system:");
      expect({ metadata, ours }).toEqual({ metadata, ours: [] });
    }
  });

  test("recognize an agent everywhere by the same permissions, and so the controller", () => {
    const conditions = policies.flatMap(({ spec }) => spec.matchConditions ?? []);
    const agents = conditions.filter(({ name }) => name === "is-an-agent");
    expect(agents).toHaveLength(4);
    expect(new Set(agents.map(({ expression }) => expression)).size).toBe(1);
    const controllers = conditions.filter(({ name }) => name === "is-the-controller");
    expect(controllers).toHaveLength(2);
    const rights = controllers.map(({ expression }) => expression.match(/authorizer.*/s)?.[0]);
    expect(new Set(rights).size).toBe(1);
  });

  // Kustomize before 5.5 knows no reference from a binding to its policy.
  test("keep their bindings under a prefix, in every folder that has a policy", () => {
    for (const file of files) {
      const kustomization = readFileSync(join(deploy, dirname(file), "kustomization.yaml"), "utf8");
      expect(kustomization, file).toMatch(/^ {2}- \.\.\/(references|cordon|\.\.\/agent)$/m);
    }
  });
});
