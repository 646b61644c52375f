/**
 * An API server that limits the system's priority classes, as GKE's does: all installed pods run,
 * by kustomize and by Helm, with the default classes and with another one.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Pod } from "kubernetes-types/core/v1.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { chart, helm } from "../support/helm.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { waitUntil } from "../support/wait-until.ts";
import { mustRun } from "./must-run.ts";

const deploy = join(import.meta.dirname, "../../deploy");

/**
 * Inferred from GKE's own quota `gcp-critical-pods` in kube-system and from its error message; the
 * configuration file of its API server cannot be read.
 */
const limited = {
  apiVersion: "apiserver.config.k8s.io/v1",
  kind: "AdmissionConfiguration",
  plugins: [
    {
      name: "ResourceQuota",
      configuration: {
        apiVersion: "apiserver.config.k8s.io/v1",
        kind: "ResourceQuotaConfiguration",
        limitedResources: [
          {
            resource: "pods",
            matchScopes: [
              {
                scopeName: "PriorityClass",
                operator: "In",
                values: ["system-node-critical", "system-cluster-critical"],
              },
            ],
          },
        ],
      },
    },
  ],
};

let plane: ControlPlane;
let home: string;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "lastcall-gke-"));
  const file = join(home, "admission.json");
  writeFileSync(file, JSON.stringify(limited));
  plane = await startControlPlane({
    apiServerFlags: [`--admission-control-config-file=${file}`],
  });
  await createNodes(plane, [
    { name: "spot-a", provisioning: "spot" },
    { name: "spot-b", provisioning: "spot" },
    { name: "plain-a", provisioning: "standard" },
    { name: "plain-b", provisioning: "standard" },
  ]);
});

afterAll(async () => {
  await plane?.stop();
  rmSync(home, { recursive: true, force: true });
});

/**
 * The running pods of a namespace and their class, such as `agent on spot-a: system-node-critical`.
 * Plain nodes are not distinguished: each controller prefers one of its own, but during a rollout
 * the scheduler need not satisfy that.
 */
async function running(namespace: string): Promise<readonly string[]> {
  const { body } = await plane.request({ path: `/api/v1/namespaces/${namespace}/pods` });
  return (body.items as Pod[])
    .filter(({ status, metadata }) => status?.phase === "Running" && !metadata?.deletionTimestamp)
    .map(({ metadata, spec }) => {
      const part = metadata?.labels?.["app.kubernetes.io/component"];
      return `${part} on ${spec?.nodeName?.replace(/^plain-.$/, "plain")}: ${spec?.priorityClassName}`;
    })
    .toSorted();
}

async function expectRunning(
  namespace: string,
  classes: { readonly controller: string; readonly agent: string },
): Promise<void> {
  const wanted = [
    `agent on spot-a: ${classes.agent}`,
    `agent on spot-b: ${classes.agent}`,
    `controller on plain: ${classes.controller}`,
    `controller on plain: ${classes.controller}`,
  ];
  let found: readonly string[] = [];
  const isSo = async () => {
    found = await running(namespace);
    return found.join() === wanted.join();
  };
  const how = { what: "all pods run", timeoutMs: 120_000, signal: plane.signal };
  await waitUntil(isSo, how).catch(() => expect(found).toEqual(wanted));
}

const usual = { controller: "system-cluster-critical", agent: "system-node-critical" };

function install(namespace: string, ...flags: readonly string[]): void {
  const into = ["--namespace", namespace, "--create-namespace"];
  const { stderr, code } = helm(["upgrade", "--install", "lastcall", chart, ...into, ...flags], {
    home,
    kubeconfig: plane.kubeconfig,
  });
  expect(stderr).toBe("");
  expect(code).toBe(0);
}

describe("an API server that limits the system's priority classes", () => {
  test.each(Object.values(usual))("rejects a pod of the class %s without a quota", async (name) => {
    const path = "/api/v1/namespaces/default/pods";
    const containers = [{ name: "main", image: "registry.example/main:1" }];
    const spec = { priorityClassName: name, containers };
    const body = { apiVersion: "v1", kind: "Pod", metadata: { name: "critical" }, spec };
    const refused = await plane.request({ method: "POST", path, body });
    // A plain error instead of Forbidden, as in GKE's Events.
    expect(refused.status).toBe(500);
    expect(refused.body.message).toContain("insufficient quota to match these scopes");
  });

  test("runs the pods of kustomize's manifests", async () => {
    await mustRun(plane, ["apply", "-k", `${deploy}/base`]);
    await mustRun(plane, ["apply", "-k", `${deploy}/agent`]);
    await expectRunning("lastcall", usual);
    await mustRun(plane, ["delete", "-k", `${deploy}/agent`]);
    await mustRun(plane, ["delete", "-k", `${deploy}/base`]);
  });

  test("runs the chart's pods in another namespace", async () => {
    install("spot-tools");
    await expectRunning("spot-tools", usual);
  });

  test("runs the chart's pods with one system class for both", async () => {
    const name = "system-cluster-critical";
    install("spot-tools", "--set", `priorityClassName=${name}`);
    await expectRunning("spot-tools", { controller: name, agent: name });
  });

  test("runs the chart's pods with a custom class", async () => {
    const priorityClass = {
      ...{ apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", value: 1000 },
      metadata: { name: "mine" },
    };
    await mustRun(plane, ["apply", "-f", "-"], priorityClass);
    install("spot-tools", "--set", "priorityClassName=mine");
    await expectRunning("spot-tools", { controller: "mine", agent: "mine" });
  });
});
