import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { audit } from "../../src/audit/audit.ts";
import { defaultPlatformNames, knownPlatform } from "../../src/audit/platform.ts";
import { type LabelRequirement, meetsRequirement } from "../../src/core/cluster/pod.ts";
import { defaultNodeSelector } from "../../src/core/policy/policy.ts";

const root = join(import.meta.dirname, "../../deploy");

interface PodSpec {
  readonly securityContext: object;
  readonly affinity: {
    readonly nodeAffinity: {
      readonly requiredDuringSchedulingIgnoredDuringExecution: {
        readonly nodeSelectorTerms: readonly {
          readonly matchExpressions: readonly LabelRequirement[];
        }[];
      };
    };
  };
  readonly containers: readonly { readonly image: string; readonly securityContext: object }[];
}

function documentsOf(file: string) {
  const documents = parseAllDocuments(readFileSync(join(root, file), "utf8"));
  return documents.map((one) => one.toJS());
}

function podSpec(file: string, kind: string): PodSpec {
  return documentsOf(file).find((one) => one.kind === kind).spec.template.spec;
}

const controller = podSpec("base/controller.yaml", "Deployment");
const agent = podSpec("agent/daemonset.yaml", "DaemonSet");

/** A node for each label by which a policy without a selector selects nodes. */
const spotNodes = defaultNodeSelector.nodeSelectorTerms.flatMap(({ matchExpressions = [] }) =>
  matchExpressions.flatMap(({ key, values = [] }) => values.map((value) => ({ [key]: value }))),
);

function mayRun(spec: PodSpec, labels: Readonly<Record<string, string>>): boolean {
  const { requiredDuringSchedulingIgnoredDuringExecution: wanted } = spec.affinity.nodeAffinity;
  return wanted.nodeSelectorTerms.some(({ matchExpressions }) =>
    matchExpressions.every((one) => meetsRequirement(labels, one)),
  );
}

describe("the manifests in deploy", () => {
  it.each(spotNodes)("keep the controller off a node that it may remove, %j", (labels) => {
    expect(mayRun(controller, labels)).toBe(false);
    expect(mayRun(agent, labels)).toBe(true);
  });

  it("keep two controllers on different machines, and one of them up during any drain", () => {
    const [deployment, budget] = documentsOf("base/controller.yaml");
    expect(deployment.spec.replicas).toBe(2);
    const [rule] =
      deployment.spec.template.spec.affinity.podAntiAffinity
        .preferredDuringSchedulingIgnoredDuringExecution;
    const { labels } = deployment.spec.template.metadata;
    expect(rule.podAffinityTerm).toEqual({
      topologyKey: "kubernetes.io/hostname",
      labelSelector: { matchLabels: labels },
    });
    expect(budget).toMatchObject({
      kind: "PodDisruptionBudget",
      spec: { maxUnavailable: 1, selector: { matchLabels: labels } },
    });
  });

  it("run the controller on any other node, and no agent there", () => {
    const ordinary = { "cloud.google.com/gke-provisioning": "standard" };
    for (const labels of [{}, ordinary]) {
      expect(mayRun(controller, labels)).toBe(true);
      expect(mayRun(agent, labels)).toBe(false);
    }
  });

  it.each(defaultPlatformNames)("cause no audit errors on %s", (name) => {
    const sources = ["base/controller.yaml", "agent/daemonset.yaml"]
      .flatMap(documentsOf)
      .map((json) => ({ json, origin: "Recorded" }) as const);
    const { findings } = audit({ sources, platforms: [knownPlatform(name)] });
    expect(findings.filter(({ severity }) => severity === "error")).toEqual([]);
  });

  it.each([
    ["controller", controller],
    ["agent", agent],
  ])("give the %s no privileges, and an image with a version", (_, spec) => {
    expect(spec.securityContext).toMatchObject({
      runAsNonRoot: true,
      seccompProfile: { type: "RuntimeDefault" },
    });
    for (const { image, securityContext } of spec.containers) {
      expect(image).toMatch(/:\d+\.\d+\.\d+$/);
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
    }
  });
});
