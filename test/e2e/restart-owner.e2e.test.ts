/**
 * `onSingleReplica: RestartOwner` on a real API server: without the role of deploy/restart-owner it
 * acts like `Wait`; with it the workload is restarted, and the role allows nothing else.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Pod } from "kubernetes-types/core/v1.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ApiAnswer } from "../support/api-request.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { freePort } from "../support/free-port.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { type LastcallProcess, runLastcall, startAsPod } from "../support/lastcall-process.ts";
import { waitUntil } from "../support/wait-until.ts";
import { mustRun } from "./must-run.ts";

const deploy = join(import.meta.dirname, "../../deploy");
const apps = "/apis/apps/v1/namespaces/default";
const mark = "lastcall.dev/restarted-for";
const uid = "0b1f7a3e-7f0e-4c53-9c1a-5d1f6f2f8a11";

let plane: ControlPlane;
let folder: string;
let controller: LastcallProcess;
let token: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-restart-"));
  plane = await startControlPlane();
  await createNodes(plane, [{ name: "leaving", provisioning: "spot" }]);
  await mustRun(plane, ["apply", "-k", `${deploy}/base`]);
  for (const kind of ["Deployment", "StatefulSet"])
    await mustRun(plane, ["apply", "-f", "-"], single(kind));
  await until("both run", async () => (await podsOn("leaving")).length === 2);
  await createNodes(plane, [{ name: "staying", provisioning: "standard" }]);
  await mustRun(plane, ["apply", "-f", "-"], policy);
  token = await plane.tokenFor("lastcall", "lastcall");
  const address = async () => `127.0.0.1:${await freePort()}`;
  const ports = ["--health-address", await address(), "--metrics-address", await address()];
  const kubeconfig = plane.kubeconfigFor("controller", token);
  controller = startAsPod(["run", "--kubeconfig", kubeconfig, "-n", "lastcall", ...ports], {
    folder,
  });
});

afterAll(async () => {
  await controller?.stop();
  await plane?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const policy = {
  apiVersion: "lastcall.dev/v1alpha1",
  kind: "DeparturePolicy",
  metadata: { name: "spot" },
  spec: {
    replacement: { when: "None" },
    drain: { timeout: "15s", onTimeout: "RollBack", onSingleReplica: "RestartOwner" },
    instance: { release: "None" },
  },
};

/** A workload with one replica whose budget never allows an eviction. */
function single(kind: string): object {
  const name = kind.toLowerCase();
  const labels = { app: name };
  const containers = [{ name: "main", image: "registry.example/main:1" }];
  const spec = { terminationGracePeriodSeconds: 1, containers };
  const workload = {
    apiVersion: "apps/v1",
    kind,
    metadata: { name },
    spec: {
      ...{
        replicas: 1,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec },
      },
      ...(kind === "StatefulSet" && { serviceName: name }),
    },
  };
  const budget = {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name },
    spec: { maxUnavailable: 0, selector: { matchLabels: labels } },
  };
  return { apiVersion: "v1", kind: "List", items: [workload, budget] };
}

function until(what: string, holds: () => Promise<boolean>): Promise<boolean> {
  return waitUntil(holds, { what, timeoutMs: 60_000, signal: plane.signal });
}

/** The workloads with a running pod on the node. */
async function podsOn(node: string): Promise<readonly string[]> {
  const { body } = await plane.request({ path: "/api/v1/namespaces/default/pods" });
  return (body.items as Pod[])
    .filter(({ spec, status }) => spec?.nodeName === node && status?.phase === "Running")
    .map(({ metadata }) => metadata?.labels?.app ?? "")
    .toSorted();
}

async function marksOfWorkloads(): Promise<readonly (string | undefined)[]> {
  const paths = [`${apps}/deployments/deployment`, `${apps}/statefulsets/statefulset`];
  const answers = await Promise.all(paths.map((path) => plane.request({ path })));
  return answers.map(({ body }) => body.spec.template.metadata.annotations?.[mark]);
}

async function depart(): Promise<void> {
  const args = ["depart", "leaving", "--kubeconfig", plane.kubeconfig];
  expect(await runLastcall(args, { folder })).toMatchObject({ code: 0 });
}

async function outcomes(): Promise<readonly string[]> {
  const { body } = await plane.request({ path: "/apis/lastcall.dev/v1alpha1/departures" });
  return body.items.flatMap((one: { status?: { outcome?: string } }) => one.status?.outcome ?? []);
}

function patch(path: string, body: object): Promise<ApiAnswer> {
  const contentType = "application/merge-patch+json";
  return plane.request({
    method: "PATCH",
    path: `${apps}/${path}?dryRun=All`,
    body,
    contentType,
    token,
  });
}

function template(fields: object): object {
  return { spec: { template: fields } };
}

describe("a single replica with onSingleReplica RestartOwner", () => {
  test("waits for its budget if the permission is missing, which the log names", async () => {
    await depart();
    await until("the departure has ended", async () => (await outcomes()).length === 1);
    expect(await outcomes()).toEqual(["RolledBack"]);
    expect(await podsOn("leaving")).toEqual(["deployment", "statefulset"]);
    expect(await marksOfWorkloads()).toEqual([undefined, undefined]);
    const said = controller
      .log()
      .split("\n")
      .filter((line) => line.includes("restart-refused"));
    expect(said).toHaveLength(2);
    for (const line of said) {
      expect(line).toContain('"code":"RIGHT_MISSING"');
      expect(line).toContain("deploy/restart-owner");
    }
  });

  test("starts on another node with the permission", async () => {
    await mustRun(plane, ["apply", "-k", `${deploy}/restart-owner`]);
    const image = { spec: { containers: [{ name: "main", image: "evil:1" }] } };
    await until("role and policy are in force", async () => {
      const allowed = await patch(
        "statefulsets/statefulset",
        template({ metadata: { annotations: { [mark]: uid } } }),
      );
      const refused = await patch("deployments/deployment", template(image));
      return allowed.status === 200 && refused.status === 403;
    });
    await depart();
    await until("both run elsewhere", async () => (await podsOn("staying")).length === 2);
    await until("none is left", async () => (await podsOn("leaving")).length === 0);
    expect(await marksOfWorkloads()).toEqual([expect.any(String), expect.any(String)]);
  });
});

describe("the permission to restart owners", () => {
  const kinds = ["deployments/deployment", "statefulsets/statefulset"] as const;
  const annotated = (annotations: object) => template({ metadata: { annotations } });

  test.each(kinds)("allows the one annotation in the pod template of %s", async (path) => {
    expect((await patch(path, annotated({ [mark]: uid }))).status).toBe(200);
  });

  test.each(
    kinds.flatMap((path) =>
      (
        [
          [
            "another image",
            template({ spec: { containers: [{ name: "main", image: "evil:1" }] } }),
          ],
          ["another account", template({ spec: { serviceAccountName: "admin" } })],
          ["the network of the host", template({ spec: { hostNetwork: true } })],
          ["another annotation", annotated({ [mark]: uid, other: "x" })],
          ["a restart of kubectl's", annotated({ "kubectl.kubernetes.io/restartedAt": "now" })],
          ["the annotation with any text", annotated({ [mark]: "x".repeat(36) })],
          ["the annotation away", annotated({ [mark]: null })],
          ["a label of the pods", template({ metadata: { labels: { a: "b" } } })],
          ["the number of replicas", { spec: { replicas: 9 } }],
          ["how long it takes to be ready", { spec: { minReadySeconds: 9 } }],
          ["a label", { metadata: { labels: { a: "b" } } }],
          ["an annotation of its own", { metadata: { annotations: { a: "b" } } }],
          ["a finalizer", { metadata: { finalizers: ["a.b/c"] } }],
          [
            "a second change beside it",
            { metadata: { labels: { a: "b" } }, ...annotated({ [mark]: uid }) },
          ],
        ] as const
      ).map(([what, body]) => [path, what, body] as const),
    ),
  )("of %s does not allow %s", async (path, _, body) => {
    const refused = await patch(path, body);
    expect(refused.status).toBe(403);
    expect(refused.body.message).toMatch(/the controller may change only|must be the uid of a pod/);
  });

  test.each([
    ["PATCH", `${apps}/deployments/deployment/scale`],
    ["PATCH", `${apps}/replicasets/none`],
    ["PATCH", `${apps}/daemonsets/none`],
    ["DELETE", `${apps}/deployments/deployment`],
    ["POST", `${apps}/deployments`],
    ["PUT", `${apps}/deployments/deployment`],
  ])("does not allow %s %s", async (method, path) => {
    const contentType = method === "PATCH" ? "application/merge-patch+json" : "application/json";
    const object = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "deployment" } };
    const body = method === "DELETE" ? undefined : object;
    const refused = await plane.request({
      method,
      path,
      contentType,
      token,
      ...(body && { body }),
    });
    expect(refused.status).toBe(403);
  });

  test("is limited by an admission policy without type-checking warnings", async () => {
    const policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    const path = `${policies}/lastcall-restart-owner`;
    let status: { typeChecking?: object } | undefined;
    await until("the policy is checked", async () => {
      status = (await plane.request({ path })).body.status;
      return status !== undefined;
    });
    expect(status?.typeChecking).toEqual({});
  });
});
