/**
 * Where the chart's pods may run, with the real Helm: on Linux, the controller away from Spot nodes
 * if possible, and what the values change about that.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DaemonSet, Deployment } from "kubernetes-types/apps/v1.js";
import type { PodSpec } from "kubernetes-types/core/v1.js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { root } from "../../tools/source-tree.ts";
import { chart, helm, manifestsIn, oldest } from "../support/helm.ts";

const required = "requiredDuringSchedulingIgnoredDuringExecution";
const preferred = "preferredDuringSchedulingIgnoredDuringExecution";

let home: string;

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "lastcall-placement-"));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

function template(values: object) {
  const file = join(home, "values.yaml");
  writeFileSync(file, stringify(values));
  const flags = ["--namespace", "lastcall", "--kube-version", oldest, "--values", file];
  return helm(["template", "lastcall", chart, ...flags], { home });
}

/** The pods of controller and agent. */
function podsWith(values: object): { readonly controller: PodSpec; readonly agent: PodSpec } {
  const { stdout, stderr, code } = template(values);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  const made = manifestsIn(stdout);
  const podOf = (key: string) =>
    (made.get(key) as unknown as Deployment | DaemonSet).spec?.template.spec as PodSpec;
  return {
    controller: podOf("Deployment lastcall/lastcall"),
    agent: podOf("DaemonSet lastcall/lastcall-agent"),
  };
}

function refusal(values: object): string {
  const { stderr, code } = template(values);
  expect(code).not.toBe(0);
  return stderr;
}

function nodeAffinityOf(values: object) {
  return podsWith(values).controller.affinity?.nodeAffinity;
}

test("the controller prefers nodes that are not Spot, unless the values select those", () => {
  const [stable] = nodeAffinityOf({})?.[preferred] ?? [];
  expect(stable?.weight).toBe(100);
  const onDemand = nodeAffinityOf({
    nodeSelector: { "karpenter.sh/capacity-type": "on-demand" },
  });
  expect(onDemand).toEqual({ [preferred]: [stable] });
  for (const spot of [
    { "karpenter.sh/capacity-type": "spot" },
    { "cloud.google.com/gke-preemptible": "true" },
  ]) {
    expect(nodeAffinityOf({ nodeSelector: spot })).toBeUndefined();
  }
  expect(nodeAffinityOf({ affinity: { nodeAffinity: { [preferred]: [] } } })).toBeUndefined();
  const own = [
    { weight: 10, preference: { matchExpressions: [{ key: "a", operator: "Exists" }] } },
  ];
  const both = nodeAffinityOf({ affinity: { nodeAffinity: { [preferred]: own } } });
  expect(both).toEqual({ [preferred]: [stable, ...own] });
  const only = { nodeSelectorTerms: [own[0]?.preference] };
  const limited = nodeAffinityOf({ affinity: { nodeAffinity: { [required]: only } } });
  expect(limited).toEqual({ [preferred]: [stable], [required]: only });
});

test("the controller requires such nodes by a value", () => {
  const [stable] = nodeAffinityOf({})?.[preferred] ?? [];
  const strict = { requireStableNodes: true };
  expect(nodeAffinityOf({ controller: strict })).toEqual({
    [required]: { nodeSelectorTerms: [stable?.preference] },
  });
  const spot = { "eks.amazonaws.com/capacityType": "SPOT" };
  const only = { nodeSelectorTerms: [stable?.preference] };
  for (const values of [
    { nodeSelector: spot },
    { affinity: { nodeAffinity: { [required]: only } } },
  ]) {
    const refused = refusal({ ...values, controller: strict });
    expect(refused).toContain("controller.requireStableNodes: found true");
  }
});

test("both run on Linux nodes, in addition to the values' labels", () => {
  const { controller, agent } = podsWith({
    nodeSelector: { pool: "a", "kubernetes.io/os": "linux" },
    agent: { nodeSelector: { pool: "b" } },
  });
  const linux = { "kubernetes.io/os": "linux" };
  expect(controller.nodeSelector).toEqual({ ...linux, pool: "a" });
  expect(agent.nodeSelector).toEqual({ ...linux, pool: "b" });
  const windows = { "kubernetes.io/os": "windows" };
  expect(refusal({ agent: { nodeSelector: windows } })).toContain("kubernetes.io");
});

test("the values for Autopilot install nothing that it rejects, and poll for preemptions", () => {
  const page = readFileSync(join(root, "docs/cloud/gcp.md"), "utf8");
  const [, text = ""] = /## Autopilot\n[\s\S]*?```yaml\n([\s\S]*?)```/.exec(page) ?? [];
  const values = parse(text);
  const everything = {
    ...values,
    agent: { ...values.agent, options: { fallback: "Drain" } },
    controller: { ...values.controller, restartOwner: true },
    networkPolicy: { enabled: true },
    metrics: { podMonitor: { enabled: true }, serviceMonitor: { enabled: true } },
    secret: { workloadIdentityServiceAccount: "killer@my-project-1.iam.gserviceaccount.com" },
  };
  for (const given of [values, everything]) {
    const { stdout, stderr, code } = template(given);
    expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
    const made = manifestsIn(stdout);
    // Nor what only agents need, such as the right to drain or a quota for their class.
    expect([...made.keys()].filter((key) => /^DaemonSet|agent|fallback/.test(key))).toEqual([]);
    expect(made.has("DeparturePolicy /spot")).toBe(true);
    const { spec } = (made.get("Deployment lastcall/lastcall") as unknown as Deployment).spec
      ?.template ?? { spec: undefined };
    expect(JSON.stringify(spec)).not.toMatch(/hostNetwork|hostPort|hostPath/);
    expect(spec?.nodeSelector).toMatchObject({ "kubernetes.io/os": "linux" });
    expect(spec?.containers[0]?.args).toEqual(["run", "--gcp-preemption-poll=10s"]);
  }
});
