import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ChildPart } from "../support/child-part.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { writeKubeconfig } from "../support/control-plane-files.ts";
import {
  apiServerUser,
  kubeletAuthority,
  kubeletClientFlags,
  kubeletNodeStatus,
  startKubelet,
} from "../support/kubelet.ts";
import { nodeObject } from "../support/kwok-fleet.ts";
import { type ProcessEnd, runLastcall } from "../support/lastcall-process.ts";
import { mustRun } from "./must-run.ts";

let plane: ControlPlane;
let kubelet: ChildPart;
let folder: string;
const death = new AbortController();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-kubelet-"));
  plane = await startControlPlane({
    ...{ withControllerManager: false, withScheduler: false, withKwok: false },
    apiServerFlags: kubeletClientFlags,
  });
  await mustRun(plane, ["apply", "-f", "-"], { apiVersion: "v1", kind: "List", items: objects() });
  kubelet = await startKubelet({
    ...{ plane, folder, name: "spot-1" },
    // Unlike the defaults of any platform.
    configuration: {
      shutdownGracePeriodByPodPriority: [
        { priority: 0, shutdownGracePeriodSeconds: 41 },
        { priority: 10_000, shutdownGracePeriodSeconds: 7 },
      ],
    },
    onDeath: (error) => death.abort(error),
  });
});

afterAll(async () => {
  await kubelet?.kill();
  await plane?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** One Spot node, one workload, and three users with different permissions for nodes. */
function objects(): readonly object[] {
  const node = nodeObject({ name: "spot-1", provisioning: "spot" });
  const rights = { reader: [], "configz-reader": ["nodes/configz"], "proxy-user": ["nodes/proxy"] };
  return [
    { ...node, status: { ...node.status, ...kubeletNodeStatus() } },
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "web", namespace: "default" },
      spec: {
        replicas: 2,
        selector: { matchLabels: { app: "web" } },
        template: {
          metadata: { labels: { app: "web" } },
          spec: {
            terminationGracePeriodSeconds: 60,
            containers: [{ name: "main", image: "main:1" }],
          },
        },
      },
    },
    // List permissions for everything; "nodes" does not include the subresources of nodes.
    clusterRole("lister", [{ apiGroups: ["*"], resources: ["*"], verbs: ["list"] }]),
    ...Object.entries(rights).flatMap(([name, resources]) => [
      { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace: "default" } },
      clusterRole(name, [{ apiGroups: [""], resources, verbs: ["get"] }]),
      ...["lister", ...(resources.length > 0 ? [name] : [])].map((role) =>
        binding(role, { kind: "ServiceAccount", name, namespace: "default" }),
      ),
    ]),
    binding("system:kubelet-api-admin", { kind: "User", name: apiServerUser }),
  ];
}

function clusterRole(name: string, rules: readonly object[]): object {
  const kept = rules.filter((rule) => (rule as { resources: unknown[] }).resources.length > 0);
  const apiVersion = "rbac.authorization.k8s.io/v1";
  return { apiVersion, kind: "ClusterRole", metadata: { name }, rules: kept };
}

interface Subject {
  readonly kind: "ServiceAccount" | "User";
  readonly name: string;
  readonly namespace?: string;
}

function binding(role: string, subject: Subject): object {
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: `${role}-${subject.name}`.replaceAll(" ", "-") },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
    subjects: [subject],
  };
}

/**
 * The kubeconfig's CA file has the API server's certificate and, if trusted, the kubelet's CA.
 */
async function auditAs(
  user: string,
  flags: readonly string[],
  { trusted = true }: { readonly trusted?: boolean } = {},
): Promise<ProcessEnd> {
  const authority = join(folder, `ca-${trusted}.pem`);
  const files = [plane.caFile, ...(trusted ? [kubeletAuthority] : [])];
  writeFileSync(authority, files.map((file) => readFileSync(file, "utf8")).join("\n"));
  const file = join(folder, `${user}-${trusted}.kubeconfig`);
  const token = await plane.tokenFor("default", user);
  writeKubeconfig({ file, url: plane.url, caFile: authority, token, user });
  const args = ["audit", "--kubeconfig", file, "-o", "json", "--fail-on", "never", ...flags];
  death.signal.throwIfAborted();
  return runLastcall(args, { folder });
}

describe("a real kubelet", () => {
  const groups = [
    { priority: 0, seconds: 41 },
    { priority: 10_000, seconds: 7 },
  ];
  const readPlatform = [{ name: "kubelet:0=41s,10000=7s", groups, source: "Read" }];

  test.each([
    { user: "configz-reader", way: "direct", right: "only nodes/configz" },
    { user: "proxy-user", way: "proxy", right: "nodes/proxy" },
    { user: "proxy-user", way: "direct", right: "nodes/proxy, as before Kubernetes 1.33" },
  ])("reports its shutdown budget, $way, to a user with $right", async ({ user, way }) => {
    const { code, stdout, stderr } = await auditAs(user, [`--ask-kubelets=${way}`]);

    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const { platforms, workloads } = JSON.parse(stdout);
    expect(platforms).toEqual(readPlatform);
    expect(workloads).toMatchObject([
      { name: "web", wantedGraceSeconds: 60, granted: { [readPlatform[0]?.name ?? ""]: 41 } },
    ]);
  });

  test.each([
    { user: "reader", way: "direct", says: /Forbidden \(user=.*:reader, verb=get, resource=nodes/ },
    { user: "reader", way: "proxy", says: /:reader" cannot get resource "nodes\/proxy"/ },
    { user: "configz-reader", way: "proxy", says: /cannot get resource "nodes\/proxy"/ },
  ])("rejects $user, $way, and the audit reports that", async ({ user, way, says }) => {
    const { code, stdout, stderr } = await auditAs(user, [`--ask-kubelets=${way}`]);

    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^lastcall: Cannot read \/configz of the kubelet of spot-1: .* 403 /);
    expect(stderr).toMatch(says);
  });

  test("is not read if the cluster's CA has not signed its certificate", async () => {
    const stranger = { trusted: false };
    const ended = await auditAs("configz-reader", ["--ask-kubelets=direct"], stranger);

    expect(ended.code).toBe(0);
    expect(ended.stderr).toMatch(
      /not trusted.*node spot-1 is audited with the defaults of its platform/,
    );
    expect(JSON.parse(ended.stdout).platforms).toMatchObject([{ name: "gke", source: "Default" }]);

    const flags = ["--ask-kubelets=direct", "--kubelet-insecure-tls"];
    const daring = await auditAs("configz-reader", flags, stranger);
    expect(JSON.parse(daring.stdout).platforms).toEqual(readPlatform);
  });
});
