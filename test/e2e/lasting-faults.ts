import type { Pod } from "kubernetes-types/core/v1.js";
import type { ControlPlane } from "../support/control-plane.ts";
import { kubeletLabel } from "../support/control-plane-commands.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { waitUntil } from "../support/wait-until.ts";
import { mustRun } from "./must-run.ts";

/** One Deployment with one pod on each of the nodes. Returns the apps' names. */
export async function occupy(
  plane: ControlPlane,
  nodes: readonly string[],
  { graceSeconds, exitAfter }: { readonly graceSeconds: number; readonly exitAfter: string },
): Promise<readonly string[]> {
  const apps = nodes.map((node) => `app-${node}`);
  const items = nodes.map((node) => {
    const labels = { app: `app-${node}` };
    const annotations = { "e2e.lastcall.dev/exit-after": exitAfter };
    const spec = {
      terminationGracePeriodSeconds: graceSeconds,
      containers: [{ name: "main", image: "registry.example/main:1" }],
      nodeSelector: { "kubernetes.io/hostname": node },
    };
    return {
      ...{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: labels.app } },
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: { metadata: { labels, annotations }, spec },
      },
    };
  });
  await mustRun(plane, ["apply", "-f", "-"], { apiVersion: "v1", kind: "List", items });
  await until(plane, "the pods run", async () => {
    const { body } = await plane.request({ path: "/api/v1/namespaces/default/pods" });
    const running = (body.items as readonly Pod[]).filter(
      ({ metadata, status }) =>
        status?.phase === "Running" && apps.includes(metadata?.labels?.app ?? ""),
    );
    return running.length === apps.length;
  });
  return apps;
}

const refusal = (scene: string): string => `no-cordon-${scene}`;

/** The API server itself refuses every cordon in a scene. */
export async function refuseCordons(plane: ControlPlane, scene: string): Promise<void> {
  const inScene = `has(object.metadata.labels.scene) && object.metadata.labels.scene == "${scene}"`;
  await deny(plane, {
    name: refusal(scene),
    rules: [{ apiGroups: [""], operations: ["UPDATE"], resources: ["nodes"] }],
    expression: `!(${inScene} && has(object.spec.unschedulable))`,
    message: `no cordon in scene ${scene}`,
  });
  // A policy takes effect some time after it was written.
  await createNodes(plane, [{ name: `probe-${scene}`, labels: { scene, probe: "yes" } }]);
  await until(plane, "cordons are refused", async () => {
    const { code } = await cordonProbe(plane, scene);
    return code !== 0;
  });
}

/** The API server refuses to evict or delete the pods that `occupy` has made in a scene. */
export async function refusePods(plane: ControlPlane, scene: string): Promise<void> {
  const apiGroups = [""];
  await deny(plane, {
    name: `no-removal-${scene}`,
    rules: [
      { apiGroups, operations: ["CREATE"], resources: ["pods/eviction"] },
      { apiGroups, operations: ["DELETE"], resources: ["pods"] },
    ],
    expression: `!request.name.startsWith("app-${scene}-")`,
    message: `no pod leaves scene ${scene}`,
  });
  await until(plane, "deletions are refused", async () => {
    const { body } = await plane.request({ path: "/api/v1/namespaces/default/pods" });
    const pods = (body.items as readonly Pod[]).map(({ metadata }) => metadata?.name ?? "");
    const name = pods.find((one) => one.startsWith(`app-${scene}-`)) ?? "";
    const { code } = await plane.kubectl(["delete", "pod", name, "--dry-run=server"]);
    return code !== 0;
  });
}

interface Denial {
  readonly name: string;
  readonly rules: readonly object[];
  readonly expression: string;
  readonly message: string;
}

async function deny(
  plane: ControlPlane,
  { name, rules, expression, message }: Denial,
): Promise<void> {
  const kind = "ValidatingAdmissionPolicy";
  const apiVersion = "admissionregistration.k8s.io/v1";
  const resourceRules = rules.map((rule) => ({ ...rule, apiVersions: ["v1"] }));
  const items = [
    {
      ...{ apiVersion, kind, metadata: { name } },
      spec: { matchConstraints: { resourceRules }, validations: [{ expression, message }] },
    },
    {
      ...{ apiVersion, kind: `${kind}Binding`, metadata: { name } },
      spec: { policyName: name, validationActions: ["Deny"] },
    },
  ];
  await mustRun(plane, ["apply", "-f", "-"], { apiVersion: "v1", kind: "List", items });
}

/** `kubectl cordon` exits with 0 even if it is refused. */
function cordonProbe(plane: ControlPlane, scene: string) {
  const patch = JSON.stringify({ spec: { unschedulable: true } });
  return plane.kubectl(["patch", "node", `probe-${scene}`, "--dry-run=server", "-p", patch]);
}

export async function allowCordons(plane: ControlPlane, scene: string): Promise<void> {
  const kinds = "validatingadmissionpolicy,validatingadmissionpolicybinding";
  await mustRun(plane, ["delete", kinds, refusal(scene)]);
  await until(plane, "cordons are possible", async () => {
    const { code } = await cordonProbe(plane, scene);
    return code === 0;
  });
}

/** The kubelets stop, and the node-lifecycle controller says what it says then. */
export async function silence(plane: ControlPlane, nodes: readonly string[]): Promise<void> {
  await setReady(plane, nodes, {
    status: "Unknown",
    message: "Kubelet stopped posting node status.",
  });
}

export async function setReady(
  plane: ControlPlane,
  nodes: readonly string[],
  to: { readonly status: string; readonly message: string },
): Promise<void> {
  for (const name of nodes) {
    await mustRun(plane, ["label", "node", name, `${kubeletLabel.key}=none`, "--overwrite"]);
    const at = new Date().toISOString();
    const reason = to.status === "Unknown" ? "NodeStatusUnknown" : "KubeletNotReady";
    const ready = { type: "Ready", reason, lastTransitionTime: at, lastHeartbeatTime: at, ...to };
    await plane.request({
      ...{ method: "PATCH", contentType: "application/strategic-merge-patch+json" },
      path: `/api/v1/nodes/${name}/status`,
      body: { status: { conditions: [ready] } },
    });
  }
}

function until(
  { signal }: ControlPlane,
  what: string,
  holds: () => Promise<boolean>,
): Promise<boolean> {
  return waitUntil(holds, { what, timeoutMs: 60_000, signal, intervalMs: 50 });
}
