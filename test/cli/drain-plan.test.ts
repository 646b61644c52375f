import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CommandIo } from "../../src/cli/command-line/command.ts";
import { runCommandLine } from "../../src/cli/command-line/command-line.ts";
import type { KubeObject } from "../../src/contracts/kube-api.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import type { DrainPlanReport } from "../../src/core/drain-plan/drain-plan-report.ts";
import { seconds } from "../../src/core/time/time.ts";
import { processIo } from "../../src/runtime/process-io.ts";
import { type ModelServer, serveModel } from "../../src/sim/http/serve-model.ts";
import { capacityStory, workload } from "../controller/capacity-story.ts";
import type { ModelWorld } from "../support/model-world.ts";

const resources = {
  Node: "/api/v1/nodes",
  Pod: "/api/v1/pods",
  PodDisruptionBudget: "/apis/policy/v1/poddisruptionbudgets",
  DeparturePolicy: "/apis/lastcall.dev/v1alpha1/departurepolicies",
  Namespace: "/api/v1/namespaces",
  PersistentVolume: "/api/v1/persistentvolumes",
};
let world: ModelWorld;
let server: ModelServer;
let folder: string;

/**
 * Three nodes with four cores; `web` fills two of them, and a budget protects the one pod of `db`.
 */
beforeEach(async () => {
  world = capacityStory({ nodes: ["n0", "n1", "n2"] });
  workload(world, "web", { replicas: 4, cpu: "2" });
  await world.pass(seconds(30));
  workload(world, "db", { replicas: 1, cpu: "1", maxUnavailable: 0 });
  await world.pass(seconds(30));
  server = await serveModel({ api: world.api });
  folder = await mkdtemp(join(tmpdir(), "lastcall-drain-plan-"));
  await writeFile(join(folder, "kubeconfig"), server.kubeconfig);
});

afterEach(async () => {
  await server.close();
  await rm(folder, { recursive: true });
});

/** The output of `kubectl get … -o json`. */
function listed(change: (object: KubeObject) => KubeObject = (one) => one): string {
  const items = Object.entries(resources).flatMap(([kind, path]) =>
    world.list(path).map((object) => change({ ...object, kind })),
  );
  return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}

async function planOf(
  node: string,
  files: Readonly<Record<string, string>> = {},
  flags: readonly string[] = [],
): Promise<DrainPlanReport> {
  return JSON.parse(await printed(node, files, ["-o", "json", ...flags])) as DrainPlanReport;
}

async function printed(
  node: string,
  files: Readonly<Record<string, string>>,
  flags: readonly string[],
): Promise<string> {
  const from: string[] = [];
  for (const [file, text] of Object.entries(files)) {
    await writeFile(join(folder, file), text);
    from.push("--from", join(folder, file));
  }
  let [stdout, stderr] = ["", ""];
  const io: Partial<CommandIo> = {
    out: (text) => {
      stdout += text;
    },
    err: (text) => {
      stderr += text;
    },
    files: processIo().files,
    env: { KUBECONFIG: join(folder, "kubeconfig") },
    ...{ isTerminal: false, colour: false, columns: 80 },
    ...{ clock: world.clock, rng: seededRng(1), signal: new AbortController().signal },
  };
  const args = ["drain-plan", node, ...from, ...flags];
  const exit = await runCommandLine(args, io as CommandIo);
  expect({ exit, stderr }).toEqual({ exit: 0, stderr: "" });
  return stdout;
}

const nodeOfWeb = () =>
  ["n0", "n1", "n2"].find((name) => {
    const names = world.podsOn(name).map((pod) => pod.metadata?.name ?? "");
    return names.length === 2 && names.every((one) => one.startsWith("web"));
  }) ?? "";

describe("lastcall drain-plan", () => {
  it("prints the same plan for a live cluster and for its objects in files", async () => {
    const live = await planOf(nodeOfWeb());
    expect(live.warnings.map(({ reason }) => reason)).toEqual(["NoCapacityElsewhere"]);
    expect(live).toEqual(await planOf(nodeOfWeb(), { "all.json": listed() }));
  });

  it("counts no node of another operating system as capacity", async () => {
    const node = nodeOfWeb();
    const windows = world.get("/api/v1/nodes/n0") as KubeObject;
    const roomy = { cpu: "64", memory: "256Gi", pods: "110" };
    world.create("/api/v1/nodes", {
      metadata: { name: "win-1", labels: { "kubernetes.io/os": "windows" } },
      spec: {},
      status: { ...(windows.status as object), allocatable: roomy, capacity: roomy },
    });
    const { warnings } = await planOf(node);
    expect(warnings.map(({ reason }) => reason)).toEqual(["NoCapacityElsewhere"]);
    expect(warnings[0]?.explain).toMatch(/ 0 of 2 nodes: /);
  });

  it("says whose volume is on the machine and lost with it, live and from files", async () => {
    const name = nodeOfWeb();
    const claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    const claim = (claimName: string, volumeName: string) =>
      world.create(claims, { metadata: { name: claimName }, spec: { volumeName } });
    const volume = (volumeName: string, claimName: string, spec: object) =>
      world.create("/api/v1/persistentvolumes", {
        metadata: { name: volumeName },
        spec: { claimRef: { namespace: "default", name: claimName }, ...spec },
      });
    claim("data-es-0", "pv-es-0");
    volume("pv-es-0", "data-es-0", { hostPath: { path: "/opt/pv-es-0" } });
    claim("logs-es-0", "pv-logs");
    volume("pv-logs", "logs-es-0", { nfs: { server: "files", path: "/logs" } });
    const volumes = ["data-es-0", "logs-es-0"].map((claimName) => ({
      name: claimName,
      persistentVolumeClaim: { claimName },
    }));
    const controller = { kind: "StatefulSet", name: "es", uid: "es", apiVersion: "apps/v1" };
    world.create("/api/v1/namespaces/default/pods", {
      metadata: { name: "es-0", ownerReferences: [{ ...controller, controller: true }] },
      spec: { nodeName: name, volumes, containers: [{ name: "es", image: "es" }] },
      status: { phase: "Running" },
    });
    const live = await planOf(name);
    expect(live.pods.find((pod) => pod.name === "es-0")).toMatchObject({
      reason: "LocalVolume",
      explain: expect.stringContaining(
        "its volume data-es-0 is on this machine, and its data is destroyed with it",
      ),
    });
    expect(live).toEqual(await planOf(name, { "all.json": listed() }));
  });

  it("counts an object that is in two files once, as in the last file", async () => {
    const older = listed((one) => ({ ...one, status: {} }));
    const twice = await planOf(nodeOfWeb(), { "old.json": older, "new.json": listed() });
    expect(twice).toEqual(await planOf(nodeOfWeb(), { "all.json": listed() }));
  });

  it.each<[string, string, readonly string[]]>([
    ["Wait", "with its namespace in a planned drain", []],
    [
      "Delete",
      "without the eviction API, which would refuse it, under a notice",
      ["--notice", "120s"],
    ],
  ])(
    "gives a pod of a terminating namespace the action %s: it goes %s",
    async (action, _, flags) => {
      const ending = { status: { phase: "Terminating" } };
      const isDefault = (one: KubeObject) =>
        one.kind === "Namespace" && one.metadata?.name === "default";
      const files = { "all.json": listed((one) => (isDefault(one) ? { ...one, ...ending } : one)) };
      const { pods } = await planOf(nodeOfWeb(), files, flags);
      expect(pods.map((one) => [one.action, one.reason])).toEqual([
        [action, "NamespaceTerminating"],
        [action, "NamespaceTerminating"],
      ]);
    },
  );

  it("evicts a pod whose DaemonSet no longer exists, from a cluster and from files", async () => {
    const owner = {
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      name: "logs",
      uid: "u",
      controller: true,
    };
    world.addNode("n3", "a");
    world.create("/api/v1/namespaces/default/pods", {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "logs-x", namespace: "default", ownerReferences: [owner] },
      spec: { nodeName: "n3", containers: [{ name: "c", image: "c:1" }] },
    });
    const evicted = [{ name: "logs-x", action: "Evict", reason: "DaemonSetGone" }];
    const live = await planOf("n3");
    expect(live.pods).toMatchObject(evicted);
    expect(live.warnings).toMatchObject([
      {
        reason: "DaemonSetGone",
        explain: "is evicted and not recreated, because its DaemonSet logs no longer exists",
      },
    ]);
    const list = (...items: readonly object[]) =>
      JSON.stringify({ apiVersion: "apps/v1", kind: "DaemonSetList", items });
    const other = { metadata: { name: "other", namespace: "default" } };
    const own = { metadata: { name: "logs", namespace: "default" } };
    const inFiles = async (sets: string | undefined) =>
      planOf("n3", { "all.json": listed(), ...(sets === undefined ? {} : { "ds.json": sets }) });
    expect((await inFiles(list())).pods).toMatchObject(evicted);
    expect((await inFiles(list(other))).pods).toMatchObject(evicted);
    const left = { pods: [], skipped: [{ name: "logs-x", reason: "DaemonSet" }] };
    expect(await inFiles(list(own))).toMatchObject(left);
    // Files with only nodes and pods do not show that there is no DaemonSet.
    expect(await inFiles(undefined)).toMatchObject(left);
    // Nor do files with DaemonSets of another API group.
    const foreign = { apiVersion: "apps.kruise.io/v1alpha1", kind: "DaemonSet", ...other };
    expect(await inFiles(JSON.stringify(foreign))).toMatchObject(left);
    const namesake = { ...foreign, ...own };
    const both = JSON.stringify({ apiVersion: "v1", kind: "List", items: [namesake] });
    const files = { "all.json": listed(), "ds.json": list(other), "kruise.json": both };
    expect((await planOf("n3", files)).pods).toMatchObject(evicted);
  });

  it("tells handwritten pods without a uid apart", async () => {
    const withoutUid = (one: KubeObject) => ({ ...one, metadata: { ...one.metadata, uid: "" } });
    for (const node of ["n0", "n1", "n2"]) {
      const { pods, ...rest } = await planOf(node, { "all.json": listed() });
      const nameless = await planOf(node, { "all.json": listed(withoutUid) });
      const uids = pods.map(({ namespace, name }) => `${namespace}/${name}`);
      const renamed = pods.map((one, at) => ({ ...one, uid: uids[at] }));
      expect(nameless).toEqual({ ...rest, pods: renamed });
    }
  });

  it("prints a row for each pod and a sentence for each warning", async () => {
    const node = nodeOfWeb();
    const [heads = "", ...rest] = (await printed(node, {}, [])).split("\n");
    expect(heads.split(/ {2,}/)).toEqual([
      ...["NAMESPACE", "POD", "ACTION", "TIER", "START", "GRACE", "BUDGET", "WHY"],
    ]);
    const names = world.podsOn(node).map((pod) => pod.metadata?.name ?? "");
    const rows = rest.filter((line) => line.startsWith("default  "));
    expect(rows.map((row) => row.split(/ {2,}/).slice(1, 3))).toEqual(
      names.toSorted().map((name) => [name, "Evict"]),
    );
    const { warnings } = await planOf(node);
    for (const { namespace, name, explain } of warnings) {
      expect(rest).toContain(`${namespace}/${name} ${explain}.`);
    }
  });

  it("shows under a notice when a pod is deleted past its budget, for that pod only", async () => {
    const tables = await Promise.all(
      ["n0", "n1", "n2"].map((node) => printed(node, {}, ["--notice", "120s"])),
    );
    const rows = tables.flatMap((table) => table.split("\n")).map((row) => row.split(/ {3,}/));
    const columnsOf = (pods: string) => rows.filter((cells) => cells[1]?.startsWith(pods));
    expect(columnsOf("POD")[0]?.slice(5, 8)).toEqual(["GRACE", "FORCE", "BUDGET"]);
    expect(columnsOf("db")[0]?.slice(6, 8)).toEqual(["58s", "default/db"]);
    for (const cells of columnsOf("web")) expect(cells).toHaveLength(7);
  });

  it("says that there are no pods to evict", async () => {
    world.addNode("n3", "a");
    expect(await printed("n3", {}, [])).toMatch(/^No pods to evict\.\n/);
  });
});
