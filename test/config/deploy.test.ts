import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { audit } from "../../src/audit/audit.ts";
import { defaultPlatformNames, knownPlatform } from "../../src/audit/platform.ts";
import { type LabelRequirement, meetsRequirement } from "../../src/core/cluster/pod.ts";
import { defaultNodeSelector } from "../../src/core/policy/policy.ts";

const root = join(import.meta.dirname, "../../deploy");

interface NodeTerm {
  readonly matchExpressions: readonly LabelRequirement[];
}

interface PodSpec {
  readonly securityContext: object;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly affinity: {
    readonly nodeAffinity: {
      readonly requiredDuringSchedulingIgnoredDuringExecution?: {
        readonly nodeSelectorTerms: readonly NodeTerm[];
      };
      readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly {
        readonly weight: number;
        readonly preference: NodeTerm;
      }[];
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

type Labels = Readonly<Record<string, string>>;

/** A node for each label by which a policy without a selector selects nodes. */
const spotNodes = defaultNodeSelector.nodeSelectorTerms.flatMap(({ matchExpressions = [] }) =>
  matchExpressions.flatMap(({ key, values = [] }) =>
    values.map((value): Labels => ({ [key]: value })),
  ),
);

const linux: Labels = { "kubernetes.io/os": "linux" };

function meets(labels: Labels, { matchExpressions }: NodeTerm): boolean {
  return matchExpressions.every((one) => meetsRequirement(labels, one));
}

/** Whether the scheduler may place the pod on a node with these labels. */
function mayRun(spec: PodSpec, labels: Labels): boolean {
  const { nodeSelector = {}, affinity } = spec;
  const { requiredDuringSchedulingIgnoredDuringExecution: wanted } = affinity.nodeAffinity;
  const isSelected = Object.entries(nodeSelector).every(([key, value]) => labels[key] === value);
  return isSelected && (wanted?.nodeSelectorTerms.some((term) => meets(labels, term)) ?? true);
}

/** What the node affinity adds to the scheduler's score of a node with these labels. */
function preference(spec: PodSpec, labels: Labels): number {
  const { preferredDuringSchedulingIgnoredDuringExecution: wanted = [] } =
    spec.affinity.nodeAffinity;
  const met = wanted.filter((one) => meets(labels, one.preference));
  return met.reduce((sum, { weight }) => sum + weight, 0);
}

describe("the manifests in deploy", () => {
  it.each(spotNodes)("prefer any other node for the controller to one with %j", (labels) => {
    const node = { ...linux, ...labels };
    expect(preference(controller, node)).toBe(0);
    expect(preference(controller, linux)).toBe(100);
    // A cluster may have no other node.
    expect(mayRun(controller, node)).toBe(true);
    expect(mayRun(agent, node)).toBe(true);
  });

  it("run on Linux only, which the images are made for", () => {
    for (const labels of [{}, ...spotNodes]) {
      const node = { ...labels, "kubernetes.io/os": "windows" };
      expect([mayRun(controller, node), mayRun(agent, node)]).toEqual([false, false]);
    }
  });

  it("keep two controllers on different machines, and one of them up during any drain", () => {
    const [deployment, budget] = documentsOf("base/controller.yaml");
    expect(deployment.spec.replicas).toBe(2);
    const { labels } = deployment.spec.template.metadata;
    const { affinity, topologySpreadConstraints } = deployment.spec.template.spec;
    // Without the hash, the pods that a rollout replaces would move the new ones to Spot nodes.
    const spread = {
      ...{
        maxSkew: 1,
        whenUnsatisfiable: "ScheduleAnyway",
        labelSelector: { matchLabels: labels },
      },
      matchLabelKeys: ["pod-template-hash"],
    };
    expect(topologySpreadConstraints).toEqual([
      { ...spread, topologyKey: "kubernetes.io/hostname" },
      { ...spread, topologyKey: "topology.kubernetes.io/zone" },
    ]);
    expect(Object.keys(affinity)).toEqual(["nodeAffinity"]);
    expect(budget).toMatchObject({
      kind: "PodDisruptionBudget",
      spec: { maxUnavailable: 1, selector: { matchLabels: labels } },
    });
  });

  it("run the controller on any other node, and no agent there", () => {
    const ordinary = { "cloud.google.com/gke-provisioning": "standard" };
    for (const labels of [{}, ordinary]) {
      expect(mayRun(controller, { ...linux, ...labels })).toBe(true);
      expect(mayRun(agent, { ...linux, ...labels })).toBe(false);
    }
  });

  it.each(defaultPlatformNames)("cause no audit errors on %s", (name) => {
    const sources = ["base/controller.yaml", "agent/daemonset.yaml"]
      .flatMap(documentsOf)
      .map((json) => ({ json }));
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
