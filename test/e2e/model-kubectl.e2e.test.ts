import { execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { realClock } from "../../src/runtime/real-clock.ts";
import { type ModelServer, serveModel } from "../../src/sim/http/serve-model.ts";
import { type ModelCluster, startModelCluster } from "../../src/sim/model-cluster.ts";
import { buildControlPlane } from "../controlplane/build.ts";

const run = promisify(execFile);
/** The kubectl built with the control plane, or the one that the environment names. */
const named = process.env.LASTCALL_KUBECTL;
let binary: string;
let firstArgs: readonly string[];

let folder: string;
let cluster: ModelCluster;
let server: ModelServer;

beforeAll(async () => {
  binary = named ?? buildControlPlane().controlplane;
  firstArgs = named === undefined ? ["kubectl"] : [];
  folder = mkdtempSync(join(tmpdir(), "lastcall-kubectl-"));
  const spot = { name: "spot-b", zone: "europe-west1-b", size: 2, price: "Preemptible" } as const;
  cluster = startModelCluster({ clock: realClock, seed: 1, groups: [spot] });
  server = await serveModel({ api: cluster.api });
  writeFileSync(join(folder, "kubeconfig"), server.kubeconfig);
});

afterAll(async () => {
  cluster?.stop();
  await server?.close();
  if (folder) rmSync(folder, { recursive: true });
});

/** Returns kubectl's stdout; fails with its stderr. */
async function kubectl(...args: readonly string[]): Promise<string> {
  const env = { ...process.env, KUBECONFIG: join(folder, "kubeconfig"), HOME: folder };
  const { stdout } = await run(binary, [...firstArgs, ...args], { env, timeout: 60_000 });
  return stdout;
}

function file(name: string, objects: readonly object[]): string {
  const path = join(folder, name);
  writeFileSync(path, JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }));
  return path;
}

function firstNode(): string {
  return cluster.cloud.machines()[0]?.name ?? "";
}

function webParts(replicas: number): readonly object[] {
  const labels = { app: "web" };
  const selector = { matchLabels: labels };
  const annotations = { "model.lastcall.dev/start-seconds": "0" };
  const container = { name: "main", image: "nginx" };
  const volume = { name: "scratch", emptyDir: {} };
  const template = {
    metadata: { labels, annotations },
    spec: { containers: [container], volumes: [volume] },
  };
  return [
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "web", namespace: "default" },
      spec: { replicas, selector, template },
    },
    {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name: "web", namespace: "default" },
      spec: { maxUnavailable: 1, selector },
    },
  ];
}

function daemon(): object {
  const labels = { app: "agent" };
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name: "agent", namespace: "default" },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "main", image: "agent" }] } },
    },
  };
}

describe("the real kubectl on the model cluster", () => {
  it("lists nodes in columns, wide, and as an object", async () => {
    const header = (text: string): readonly string[] => text.split("\n")[0]?.split(/\s{2,}/) ?? [];
    expect(header(await kubectl("get", "nodes")).map((one) => one.trim())).toEqual([
      "NAME",
      "STATUS",
      "ROLES",
      "AGE",
      "VERSION",
    ]);
    expect(await kubectl("get", "nodes", "-o", "wide")).toContain("CONTAINER-RUNTIME");
    const list = JSON.parse(await kubectl("get", "nodes", "-o", "json"));
    expect(list.items).toHaveLength(2);
    expect(await kubectl("get", "node", firstNode(), "-o", "yaml")).toContain("kind: Node");
  });

  it("applies a file, the same file again, and a changed one", async () => {
    const path = file("web.json", webParts(2));
    expect(await kubectl("apply", "-f", path)).toContain("deployment.apps/web created");
    expect(await kubectl("apply", "-f", path)).toContain("deployment.apps/web unchanged");
    const more = file("web.json", webParts(3));
    expect(await kubectl("apply", "-f", more)).toContain("deployment.apps/web configured");
    await kubectl("rollout", "status", "deployment/web", "--timeout=30s");
    expect(await kubectl("get", "deployment", "web")).toMatch(/web\s+3\/3\s+3\s+3/);
    expect(await kubectl("get", "replicasets,poddisruptionbudgets")).toContain("MAX UNAVAILABLE");
  });

  it("supports server-side apply", async () => {
    const path = file("server-side.json", webParts(3));
    expect(await kubectl("apply", "--server-side", "--force-conflicts", "-f", path)).toContain(
      "serverside-applied",
    );
  });

  it("creates from a file, labels, annotates and taints", async () => {
    const path = file("agent.json", [daemon()]);
    expect(await kubectl("create", "-f", path)).toContain("daemonset.apps/agent created");
    expect(await kubectl("label", "node", firstNode(), "tier=a")).toContain("labeled");
    expect(await kubectl("annotate", "node", firstNode(), "note=b")).toContain("annotated");
    expect(await kubectl("taint", "node", firstNode(), "k=v:NoSchedule")).toContain("tainted");
    expect(await kubectl("taint", "node", firstNode(), "k-")).toContain("untainted");
  });

  it("describes a node, a pod and a budget", async () => {
    expect(await kubectl("describe", "node", firstNode())).toContain("Non-terminated Pods:");
    expect(await kubectl("describe", "pods", "-l", "app=web")).toContain("Controlled By:");
    expect(await kubectl("describe", "pdb", "web")).toContain("Max unavailable:  1");
  });

  it("drains a node against a budget, and uncordons it", async () => {
    const name = firstNode();
    const flags = ["--ignore-daemonsets", "--delete-emptydir-data", "--timeout=50s"];
    expect(await kubectl("drain", name, ...flags)).toContain(`node/${name} drained`);
    expect(await kubectl("get", "node", name)).toContain("Ready,SchedulingDisabled");
    const left = await kubectl(
      "get",
      "pods",
      "-o",
      "name",
      "--field-selector",
      `spec.nodeName=${name}`,
    );
    expect(left.trim().split("\n")).toEqual([expect.stringContaining("pod/agent-")]);
    expect(await kubectl("uncordon", name)).toContain("uncordoned");
  }, 60_000);

  it("watches, and prints a line per change", async () => {
    const env = { ...process.env, KUBECONFIG: join(folder, "kubeconfig"), HOME: folder };
    const watching = spawn(binary, [...firstArgs, "get", "nodes", "-w"], { env });
    const lines = createInterface({ input: watching.stdout })[Symbol.asyncIterator]();
    const seen: string[] = [];
    const until = async (text: string): Promise<void> => {
      while (!seen.at(-1)?.includes(text)) seen.push(String((await lines.next()).value));
    };
    await until(cluster.cloud.machines().at(-1)?.name ?? "");
    await kubectl("cordon", firstNode());
    await until("SchedulingDisabled");
    await kubectl("uncordon", firstNode());
    watching.kill();
    expect(seen[0]).toMatch(/^NAME\s+STATUS\s+ROLES\s+AGE\s+VERSION/);
    expect(seen.at(-1)).toContain(firstNode());
  }, 30_000);

  it("scales, and deletes from a file", async () => {
    expect(await kubectl("scale", "deployment", "web", "--replicas=1")).toContain("scaled");
    const path = file("web.json", webParts(3));
    expect(await kubectl("delete", "-f", path)).toContain('deployment.apps "web" deleted');
    await kubectl("wait", "--for=delete", "pod", "-l", "app=web", "--timeout=40s");
    expect(await kubectl("get", "pods", "-l", "app=web", "-o", "name")).toBe("");
  }, 60_000);

  it("applies a CRD, and prints its objects with the columns of the CRD", async () => {
    const path = file("crd.json", [leavings()]);
    expect(await kubectl("apply", "-f", path)).toContain("created");
    await kubectl("wait", "--for=condition=Established", "crd/leavings.x.dev", "--timeout=10s");
    const one = {
      apiVersion: "x.dev/v1",
      kind: "Leaving",
      metadata: { name: "n1" },
      spec: { node: "n1" },
    };
    expect(await kubectl("apply", "-f", file("one.json", [one]))).toContain("created");
    expect(await kubectl("get", "leavings")).toMatch(/NAME\s+NODE\s+AGE\nn1\s+n1\s+\d+s/);
    const wrong = file("wrong.json", [{ ...one, spec: { nodes: "n1" } }]);
    await expect(kubectl("apply", "-f", wrong)).rejects.toMatchObject({
      stderr: expect.stringContaining('unknown field "spec.nodes"'),
    });
  });

  it("reads Events", async () => {
    const path = file("event.json", [
      {
        apiVersion: "v1",
        kind: "Event",
        metadata: { name: "n.1", namespace: "default" },
        involvedObject: { kind: "Node", name: firstNode() },
        reason: "DepartureScheduled",
        message: "leaves soon",
        type: "Normal",
      },
    ]);
    await kubectl("create", "-f", path);
    expect(await kubectl("get", "events")).toContain("DepartureScheduled");
  });
});

function leavings(): object {
  const spec = { type: "object", properties: { node: { type: "string" } } };
  const openAPIV3Schema = { type: "object", properties: { spec } };
  const columns = [
    { name: "Node", type: "string", jsonPath: ".spec.node" },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
  ];
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "leavings.x.dev" },
    spec: {
      group: "x.dev",
      scope: "Cluster",
      names: { kind: "Leaving", plural: "leavings", listKind: "LeavingList", singular: "leaving" },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema },
          additionalPrinterColumns: columns,
        },
      ],
    },
  };
}
