import { join } from "node:path";
import type { Pod } from "kubernetes-types/core/v1.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type NewPlaceholder, placeholderName } from "../../src/core/drain/placeholder-plan.ts";
import { type PlaceholderPlace, placeholderObject } from "../../src/kube/cluster-capacity.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { waitUntil } from "../support/wait-until.ts";
import { mustRun } from "./must-run.ts";

const base = join(import.meta.dirname, "..", "..", "deploy", "base");
const ownPods = "/api/v1/namespaces/lastcall/pods";
const place: PlaceholderPlace = { namespace: "lastcall", image: "registry.example/pause:1" };
let plane: ControlPlane;
/** A token of the controller's own ServiceAccount. */
let token: string;

beforeAll(async () => {
  plane = await startControlPlane();
  for (const file of [
    "namespace.yaml",
    "rbac.yaml",
    "admission.yaml",
    "placeholder-priority.yaml",
  ]) {
    await mustRun(plane, ["apply", "-f", join(base, file)]);
  }
  await createNodes(plane, [{ name: "leaving" }, { name: "other", cpu: "4" }]);
  token = await plane.tokenFor("lastcall", "lastcall");
});

afterAll(() => plane?.stop());

/** An order as core creates it: never for the departing node, whatever its pod tolerates. */
function order(uid: string, requests: Readonly<Record<string, number>>): NewPlaceholder {
  const elsewhere = { key: "metadata.name", operator: "NotIn" as const, values: ["leaving"] };
  const anti = { topologyKey: "kubernetes.io/hostname", labelSelector: {}, namespaces: ["shop"] };
  return {
    name: placeholderName(uid),
    departure: { name: "leaving-3f2a", uid: "d-1" },
    forPod: { namespace: "shop", name: "web-0", uid },
    placement: {
      requests,
      nodeSelector: { "kubernetes.io/os": "linux" },
      requiredNodes: { nodeSelectorTerms: [{ matchExpressions: [], matchFields: [elsewhere] }] },
      podAffinity: [],
      podAntiAffinity: [anti],
    },
    tolerations: [{ operator: "Exists" }],
  };
}

function create(uid: string, requests: Readonly<Record<string, number>>) {
  const body = placeholderObject(order(uid, requests), place);
  return plane.request({ method: "POST", path: ownPods, body, token });
}

function untilPod(what: string, path: string, holds: (pod: Pod) => boolean): Promise<Pod> {
  return waitUntil(
    async () => {
      const { status, body } = await plane.request({ path });
      return status === 200 && holds(body) && (body as Pod);
    },
    { what, timeoutMs: 60_000, signal: plane.signal },
  );
}

describe("a placeholder on a real control plane", () => {
  test("is created with the controller's permissions and scheduled to another node", async () => {
    const { status, body } = await create("small", { cpu: 3, memory: 1024 ** 3 });
    expect([status, body.message]).toEqual([201, undefined]);
    const path = `${ownPods}/placeholder-small`;
    const pod = await untilPod("it runs", path, (one) => one.status?.phase === "Running");
    expect(pod.spec?.nodeName).toBe("other");
    expect(pod.spec).toMatchObject({ priority: -10, preemptionPolicy: "Never" });
  });

  test("may request a device, for which the API server requires a limit", async () => {
    const { status, body } = await create("device", { cpu: 0.1, "nvidia.com/gpu": 1 });
    expect([status, body.message]).toEqual([201, undefined]);
  });

  test("is preempted at once by a pod that needs its capacity", async () => {
    await mustRun(plane, ["cordon", "leaving"]);
    const body = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "real" },
      spec: {
        containers: [
          { name: "c", image: "registry.example/c:1", resources: { requests: { cpu: "3" } } },
        ],
      },
    };
    const path = "/api/v1/namespaces/default/pods";
    await plane.request({ method: "POST", path, body });
    const pod = await untilPod("it runs", `${path}/real`, (one) => one.status?.phase === "Running");
    expect(pod.spec?.nodeName).toBe("other");
    expect((await plane.request({ path: `${ownPods}/placeholder-small` })).status).toBe(404);
  });

  test("passes the restricted Pod Security Standard", async () => {
    const level = "pod-security.kubernetes.io/enforce=restricted";
    await mustRun(plane, ["label", "namespace", "lastcall", level, "--overwrite"]);
    const { status, body } = await create("secure", { cpu: 0.1 });
    expect([status, body.message]).toEqual([201, undefined]);
  });

  test("is deleted with the controller's permissions, which cover no other namespace", async () => {
    const gone = await plane.request({
      method: "DELETE",
      path: `${ownPods}/placeholder-secure`,
      token,
    });
    expect(gone.status).toBe(200);
    const path = "/api/v1/namespaces/default/pods";
    const body = placeholderObject(order("x", {}), { ...place, namespace: "default" });
    expect((await plane.request({ method: "POST", path, body, token })).status).toBe(403);
  });

  test("needs permissions to read volumes and pods, but none to change volumes", async () => {
    const paths = [
      "/apis/storage.k8s.io/v1/volumeattachments",
      "/api/v1/pods?limit=1",
      "/api/v1/persistentvolumes/none",
      "/api/v1/namespaces/shop/persistentvolumeclaims/none",
    ];
    const answers = await Promise.all(paths.map((path) => plane.request({ path, token })));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 404, 404]);
    const refused = await plane.request({
      method: "DELETE",
      path: "/apis/storage.k8s.io/v1/volumeattachments/none",
      token,
    });
    expect(refused.status).toBe(403);
  });
});
