import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CommandIo } from "../../src/cli/command-line/command.ts";
import { runCommandLine } from "../../src/cli/command-line/command-line.ts";
import type { KubeObject, KubeRequest } from "../../src/contracts/kube-api.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { formatInstant } from "../../src/core/time/time.ts";
import type { DoctorReport } from "../../src/doctor/report.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import { type ModelServer, serveModel } from "../../src/sim/http/serve-model.ts";
import { type ComputeServer, startComputeServer } from "../support/compute-server.ts";
import { dawn, ModelWorld, policies, spotPolicy } from "../support/model-world.ts";

let world: ModelWorld;
let server: ModelServer;
let folder: string;
let requests: string[];
let compute: ComputeServer;

/** What an installed controller leaves in the cluster while one of its replicas leads. */
function install(): void {
  world.create("/api/v1/namespaces", named("v1", "Namespace", "lastcall"));
  const labels = {
    "app.kubernetes.io/name": "lastcall",
    "app.kubernetes.io/component": "controller",
  };
  const container = { name: "controller", image: "lastcall:0.1.0", args: ["run"] };
  world.create("/apis/apps/v1/namespaces/lastcall/deployments", {
    ...{ apiVersion: "apps/v1", kind: "Deployment" },
    metadata: { name: "lastcall", namespace: "lastcall", labels },
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { serviceAccountName: "lastcall", containers: [container] },
      },
    },
  });
  world.create("/apis/coordination.k8s.io/v1/namespaces/lastcall/leases", {
    ...{ apiVersion: "coordination.k8s.io/v1", kind: "Lease" },
    metadata: { name: "lastcall", namespace: "lastcall" },
    spec: {
      ...{ holderIdentity: "c-1", leaseDurationSeconds: 40 },
      renewTime: formatInstant(realClock.now()).replace("Z", "000Z"),
    },
  });
}

function named(apiVersion: string, kind: string, name: string): KubeObject {
  return { apiVersion, kind, metadata: { name } };
}

beforeEach(async () => {
  world = new ModelWorld();
  requests = [];
  for (const name of ["n0", "n1"]) world.addNode(name, "a");
  install();
  spotPolicy(world, {});
  compute = await startComputeServer({ clock: realClock, project: { id: "demo", number: "1" } });
  const { model } = compute;
  const group = model.addGroup({ scope: "zones", location: "a", name: "spot" });
  for (const name of ["n0", "n1"]) model.addMachine({ name, zone: "a", group });
  for (const way of ["send", "handle"] as const) {
    const answer = world.api[way].bind(world.api) as (request: KubeRequest) => never;
    world.api[way] = (request: KubeRequest) => {
      requests.push(`${request.method} ${request.path}`);
      return answer(request);
    };
  }
  server = await serveModel({ api: world.api });
  folder = await mkdtemp(join(tmpdir(), "lastcall-doctor-"));
  await writeFile(join(folder, "kubeconfig"), server.kubeconfig);
});

afterEach(async () => {
  await server.close();
  await compute.close();
  await rm(folder, { recursive: true });
});

async function doctor(...args: readonly string[]) {
  let [stdout, stderr] = ["", ""];
  const io: Partial<CommandIo> = {
    out: (text) => {
      stdout += text;
    },
    err: (text) => {
      stderr += text;
    },
    env: { KUBECONFIG: join(folder, "kubeconfig"), LASTCALL_GCP_ENDPOINT: compute.endpoint },
    ...{ isTerminal: false, colour: false, columns: 80, fetch },
    ...{ clock: realClock, rng: seededRng(1), signal: new AbortController().signal },
  };
  const exit = await runCommandLine(["doctor", ...args], io as CommandIo);
  return { exit, stdout, stderr };
}

async function checks(...args: readonly string[]) {
  const { exit, stdout } = await doctor("-o", "json", ...args);
  const report = JSON.parse(stdout) as DoctorReport;
  return { exit, report, of: new Map(report.checks.map((check) => [check.id, check])) };
}

describe("lastcall doctor", () => {
  it("sends nothing but reads and access reviews", async () => {
    const { report } = await checks();
    expect(report).toMatchObject({ apiVersion: "lastcall.dev/v1alpha1", kind: "DoctorReport" });
    const writes = requests.filter((request) => !request.startsWith("GET "));
    const reviews = "POST /apis/authorization.k8s.io/v1";
    expect(new Set(writes)).toEqual(
      new Set([`${reviews}/subjectaccessreviews`, `${reviews}/selfsubjectaccessreviews`]),
    );
  });

  it("skips what only a dry run would show if it may not act as Lastcall's accounts", async () => {
    const { of } = await checks();
    const message =
      /^not tried in a dry run: the caller may not act as lastcall\/lastcall .*; grant impersonate on/;
    expect(of.get("admission")).toMatchObject({
      status: "Skip",
      message: expect.stringMatching(message),
    });
    expect(of.get("priority-quota")?.status).toBe("Skip");
  });

  it("says only that the namespace does not exist, and where the controller is", async () => {
    const { report, of } = await checks("-n", "lastcal");
    expect(of.get("namespace")).toEqual({
      ...{ id: "namespace", status: "Fail", fix: "use -n lastcall" },
      message: "the namespace lastcal does not exist",
    });
    const failed = report.checks.filter(({ status }) => status === "Fail");
    expect(failed.map(({ id }) => id)).toEqual(["namespace"]);
    const skipped = { status: "Skip", message: "the namespace lastcal does not exist" };
    for (const id of ["controller", "rights", "lease", "agents"])
      expect(of.get(id)).toMatchObject(skipped);
  });

  it("finds the controller, its Lease and its policy", async () => {
    const { of } = await checks();
    const passed = [
      "api",
      "crds",
      "crd-version",
      "rights",
      "lease",
      "clock",
      "policies",
      "budgets",
    ];
    for (const id of passed) expect(of.get(id)).toMatchObject({ id, status: "Pass", fix: null });
    expect(of.get("lease")?.message).toMatch(/^c-1 leads, its Lease was renewed \d s ago$/);
  });

  it("uses the cluster's own time if it has one, such as the demo's", async () => {
    await server.close();
    server = await serveModel({ api: world.api, rate: () => 0 });
    await writeFile(join(folder, "kubeconfig"), server.kubeconfig);
    const spec = { renewTime: formatInstant(dawn).replace("Z", "000Z") };
    world.api.handle({
      ...{
        method: "PATCH",
        path: "/apis/coordination.k8s.io/v1/namespaces/lastcall/leases/lastcall",
      },
      ...{ patchType: "application/merge-patch+json", body: { spec } },
    });
    const { of } = await checks();
    expect(of.get("lease")?.message).toBe("c-1 leads, its Lease was renewed 0 s ago");
    expect(of.get("clock")?.status).toBe("Pass");
  });

  it("looks up machines, and checks whether they could be released", async () => {
    const { of } = await checks();
    const cloud = ["cloud-identity", "cloud-permissions", "machines", "launch-times", "release"];
    for (const id of cloud) expect(of.get(id)).toMatchObject({ id, status: "Pass" });
    expect(of.get("machines")?.message).toBe(
      "2 nodes looked up, the machine of each was found: n0, n1",
    );
  });

  it("fails on a missing permission, and names it", async () => {
    compute.deny("compute.instanceGroupManagers.update");
    const { exit, of } = await checks();
    expect(exit).toBe(3);
    for (const id of ["cloud-permissions", "release"]) {
      expect(of.get(id)?.status).toBe("Fail");
      expect(of.get(id)?.message).toContain("compute.instanceGroupManagers.update");
    }
  });

  it("fails on a node whose machine the cloud does not know", async () => {
    world.addNode("n2", "b");
    expect((await checks()).of.get("machines")).toMatchObject({
      ...{ status: "Fail", message: "the cloud has no machine for n2" },
    });
  });

  it("fails on a missing CRD, with exit code 3 and the fix", async () => {
    const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    world.api.handle({ method: "DELETE", path: `${path}/departures.lastcall.dev` });
    const { exit, of } = await checks();
    expect(exit).toBe(3);
    expect(of.get("crds")).toEqual({
      ...{ id: "crds", status: "Fail", fix: "lastcall setup crds --apply" },
      message: "departures.lastcall.dev is not installed",
    });
  });

  it("warns of a tie between policies, which fails with --fail-on warn", async () => {
    world.create(policies, {
      ...named("lastcall.dev/v1alpha1", "DeparturePolicy", "also"),
      spec: {},
    });
    expect((await checks()).of.get("policy-ties")).toMatchObject({
      status: "Warn",
      message: "also, spot have the same weight and select n0: the first by name applies",
    });
    expect((await checks("--fail-on", "warn")).exit).toBe(3);
  });

  it("skips the checks whose request was forbidden, and runs all others", async () => {
    const before = (await checks()).report.checks.length;
    world.api.failNext({
      match: { method: "GET", path: "/apis/policy/v1/poddisruptionbudgets" },
      answer: { status: 403, body: { kind: "Status", message: "not for you" } },
      times: 2,
    });
    const { report, of } = await checks();
    expect(report.checks).toHaveLength(before);
    expect(of.get("reader")?.status).toBe("Warn");
    const refused = { status: "Skip", message: expect.stringContaining("not for you") };
    for (const id of ["budgets", "grace"]) expect(of.get(id)).toMatchObject(refused);
    expect(of.get("crds")?.status).toBe("Pass");
  });

  it("fails only the api check if the API server does not respond, and skips others", async () => {
    await server.close();
    const { exit, report } = await checks();
    expect(exit).toBe(3);
    expect(report.checks.filter(({ status }) => status === "Fail").map(({ id }) => id)).toEqual([
      "api",
    ]);
    expect(report.summary.Skip).toBe(report.checks.length - 1);
  }, 30_000);

  it("names Failed pods left behind by an ended machine, and no others", async () => {
    const ended = {
      gone: { phase: "Failed", reason: "Terminated" },
      evicted: { phase: "Failed", reason: "Evicted" },
      job: { phase: "Succeeded" },
    };
    for (const [name, status] of Object.entries(ended)) {
      world.create("/api/v1/namespaces/default/pods", {
        ...{ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default" } },
        spec: { nodeName: "n0", containers: [{ name: "main", image: "main:1" }] },
      });
      world.api.handle({
        ...{ method: "PATCH", path: `/api/v1/namespaces/default/pods/${name}/status` },
        ...{ patchType: "application/merge-patch+json", body: { status } },
      });
    }
    const { of } = await checks();
    expect(of.get("left-pods")).toMatchObject({
      status: "Warn",
      message: "1 pod left from machines that ended: default/gone",
    });
  });

  it("names the claims whose volumes are on a Spot node's disk, and no others", async () => {
    const key = "kubernetes.io/hostname";
    world.patchNode("n0", { metadata: { labels: { [key]: "n0" } } });
    const volume = (name: string, host: string, spec: object) =>
      world.create("/api/v1/persistentvolumes", {
        metadata: { name },
        spec: {
          ...{ claimRef: { namespace: "shop", name: `data-${name}` }, ...spec },
          nodeAffinity: {
            required: {
              nodeSelectorTerms: [{ matchExpressions: [{ key, operator: "In", values: [host] }] }],
            },
          },
        },
      });
    volume("es-0", "n0", { local: { path: "/mnt/disks/ssd0" } });
    volume("es-1", "elsewhere", { hostPath: { path: "/opt/es-1" } });
    const { of } = await checks();
    expect(of.get("local-volumes")).toMatchObject({
      status: "Warn",
      message: "1 volume will be destroyed with the machine: shop/data-es-0 on n0",
    });
  });

  it("fits its table into 80 columns, without colours if they are off", async () => {
    const { stdout } = await doctor();
    const lines = stdout.split("\n");
    expect(lines[0]).toMatch(/^PASS {2}api +Kubernetes v\S+ responds$/);
    expect(lines.at(-2)).toMatch(/^\d+ passed, \d+ warned, \d+ failed, \d+ skipped$/);
    const long = lines.filter((line) => line.length > 80 && line.trim().includes(" "));
    expect(long.filter((line) => !/^ *\S{50,}$/.test(line))).toEqual([]);
    expect(stdout).not.toContain("\u001b");
  });
});
