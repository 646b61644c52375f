/**
 * The killer's helmfile.yaml with only the chart's line changed, as docs/migrate.md shows it, and
 * the unchanged values of the article, with the real Helmfile and Helm on a real control plane.
 */
import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { Deployment } from "kubernetes-types/apps/v1.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { root } from "../../tools/source-tree.ts";
import { buildHelm, buildHelmfile } from "../controlplane/build.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import {
  chart,
  type HelmResult,
  helm,
  type Manifest,
  manifestsIn,
  oldest,
} from "../support/helm.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { waitUntil } from "../support/wait-until.ts";

const data = join(import.meta.dirname, "../data/estafette");
const values = join(data, "article-values.yaml");
const name = "gke-preemptible-killer";
const namespace = "gke-vm-killer";
const old = readFileSync(join(data, "article-helmfile.yaml"), "utf8");
const page = readFileSync(join(root, "docs/migrate.md"), "utf8");
/** The only changed line, as the page shows it. */
const line = /^ {4}chart: (\S+) +# was: (\S+)$/m.exec(page) ?? [];
/** Helmfile would fetch the index of the killer's repository, which is not reachable here. */
const offline = "--skip-refresh";
/** The version of Kubernetes, because `template` does not ask a cluster. */
const version = ["--kube-version", oldest];

type Objects = ReadonlyMap<string, Manifest>;

let plane: ControlPlane;
/** Contains helmfile.yaml, values.yaml and a checkout's deploy/. */
let folder: string;
let bySync: Objects;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-helmfile-"));
  mkdirSync(join(folder, "bin"));
  // The first build takes longer than a test may.
  buildHelmfile();
  symlinkSync(buildHelm(), join(folder, "bin/helm"));
  symlinkSync(join(root, "deploy"), join(folder, "deploy"));
  copyFileSync(values, join(folder, "values.yaml"));
  const [, chartNow = "", chartBefore = ""] = line;
  writeFileSync(
    join(folder, "helmfile.yaml"),
    old.replace(`chart: ${chartBefore}\n`, `chart: ${chartNow}\n`),
  );
  plane = await startControlPlane();
  // As in the article, the cluster has preemptible nodes only.
  await createNodes(plane, [{ name: "preemptible-1" }, { name: "preemptible-2" }]);
});

afterAll(async () => {
  await plane?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs the real Helmfile in that folder, with Helm on the PATH and without a network. */
function helmfile(...args: readonly string[]): HelmResult {
  const { stdout, stderr, status } = spawnSync(buildHelmfile(), args, {
    cwd: folder,
    env: {
      PATH: [join(folder, "bin"), process.env.PATH].join(delimiter),
      HOME: folder,
      KUBECONFIG: plane.kubeconfig,
      HTTPS_PROXY: "http://127.0.0.1:1",
    },
    encoding: "utf8",
    maxBuffer: 16 * 1024 * 1024,
  });
  return { stdout, stderr, code: status ?? 1 };
}

async function deployment(): Promise<Deployment> {
  const path = `/apis/apps/v1/namespaces/${namespace}/deployments/lastcall`;
  return (await plane.request({ path })).body;
}

async function untilAvailable(): Promise<void> {
  const isAvailable = async () => ((await deployment()).status?.availableReplicas ?? 0) > 0;
  await waitUntil(isAvailable, { what: "the Deployment is available", timeoutMs: 60_000 });
}

function rendered(...flags: readonly string[]): Objects {
  const chosen = ["--namespace", namespace, "--values", values, ...version, ...flags];
  const args = ["template", name, chart, ...chosen];
  const { stdout, stderr, code } = helm(args, { home: folder });
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  return manifestsIn(stdout);
}

/** The given objects, as far as the API server has them. */
async function installed(wanted: Objects): Promise<Objects> {
  const items = [...wanted.values()];
  const input = JSON.stringify({ apiVersion: "v1", kind: "List", items });
  const args = ["get", "-f", "-", "-n", namespace, "--ignore-not-found", "-o", "json"];
  const { stdout, stderr, code } = await plane.kubectl(args, { input });
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  return manifestsIn(stdout);
}

/** Objects without the fields that the API server and the controllers set. */
function madeOf(objects: Objects): unknown {
  const own = ["uid", "resourceVersion", "creationTimestamp", "managedFields", "status"];
  const copy = JSON.stringify([...objects], (key, value) =>
    own.includes(key) ? undefined : value,
  );
  return new Map(JSON.parse(copy));
}

test("the page shows the killer's helmfile.yaml with only the chart's line changed", () => {
  const block = /```yaml\n(repositories:[\s\S]*?)```/.exec(page)?.[1] ?? "";
  const [release] = parse(old).releases;
  const [, chartNow, chartBefore] = line;
  expect(chartBefore).toBe(release.chart);
  expect(parse(block)).toEqual({ ...parse(old), releases: [{ ...release, chart: chartNow }] });
});

describe("helmfile with that file and the article's values", () => {
  test("template renders the same as helm template", () => {
    const { stdout, stderr, code } = helmfile("template", "--include-crds", ...version, offline);
    expect(code, stderr).toBe(0);
    expect(manifestsIn(stdout)).toEqual(rendered("--include-crds"));
  });

  test("sync installs every object, and the Deployment becomes available", async () => {
    const wanted = rendered();
    const { stderr, code } = helmfile("sync", offline);
    expect(code, stderr).toBe(0);
    await untilAvailable();
    bySync = await installed(wanted);
    expect([...bySync.keys()].toSorted()).toEqual([...wanted.keys()].toSorted());
    expect(bySync.get(`ServiceAccount ${namespace}/${name}`)?.metadata).toMatchObject({
      annotations: {
        "meta.helm.sh/release-name": name,
        "iam.gke.io/gcp-service-account": "preemptible-killer@my-project-1.iam.gserviceaccount.com",
      },
    });
  });

  test("a second sync does not change the Deployment", async () => {
    const { metadata: before } = await deployment();
    expect(helmfile("sync", offline).code).toBe(0);
    const { metadata: after } = await deployment();
    expect([after?.uid, after?.generation]).toEqual([before?.uid, before?.generation]);
  });

  test("sync with an unreachable repository fails with its address", () => {
    const { stdout, stderr, code } = helmfile("sync");
    expect(code).toBe(1);
    expect(`${stdout}${stderr}`).toContain("https://helm.estafette.io");
  });

  test.each(["diff", "apply"])("%s needs the plugin helm-diff", (command) => {
    const { stdout, stderr, code } = helmfile(command, offline);
    expect(code).not.toBe(0);
    expect(`${stdout}${stderr}`).toContain('unknown command "diff" for "helm"');
  });

  test("destroy removes everything except the CRDs", async () => {
    const all = rendered("--include-crds");
    const isDefinition = (key: string) => key.startsWith("CustomResourceDefinition ");
    const { stderr, code } = helmfile("destroy", offline);
    expect(code, stderr).toBe(0);
    const isGone = async () => [...(await installed(all)).keys()].every(isDefinition);
    await waitUntil(isGone, { what: "nothing else is left", timeoutMs: 60_000 });
    const definitions = [...all.keys()].filter(isDefinition);
    expect([...(await installed(all)).keys()].toSorted()).toEqual(definitions.toSorted());
  });

  test("helm install installs the same objects as sync", async () => {
    const args = ["install", name, chart, "--namespace", namespace, "--values", values];
    const { code, stderr } = helm(args, { home: folder, kubeconfig: plane.kubeconfig });
    expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
    await untilAvailable();
    const byHelm = await installed(rendered());
    expect(bySync.size).toBeGreaterThan(0);
    expect(madeOf(bySync)).toEqual(madeOf(byHelm));
  });
});
