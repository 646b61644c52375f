import { execFileSync } from "node:child_process";
import type { Node } from "kubernetes-types/core/v1.js";
import { buildKarpenter } from "../controlplane/build.ts";
import type { ControlPlane } from "../support/control-plane.ts";
import { kubeletLabel } from "../support/control-plane-commands.ts";
import { freePort } from "../support/free-port.ts";
import { isHealthy } from "../support/probe.ts";
import { waitUntil } from "../support/wait-until.ts";
import { generationLabel } from "./cloud.ts";
import type { GrowingCloud } from "./fleet-cloud.ts";
import {
  type Change,
  type History,
  isReady,
  keyOf,
  type MachineEnd,
  nameOf,
  type Release,
} from "./history.ts";
import { mustRun } from "./must-run.ts";
import { workload } from "./workload.ts";

const account = "karpenter";
const namespace = "kube-system";
const startMs = 120_000;

export const karpenterUser = `system:serviceaccount:${namespace}:${account}`;
export const nodePool = "spot";
const nodesPath = "/api/v1/nodes";

/**
 * Karpenter itself, with its kwok provider: its machines are Nodes, and the kubelets are simulated.
 * Seven pods of 1 GiB fill a machine of the only instance type, so sixty pods need nine machines.
 */
export class KarpenterFleet implements GrowingCloud {
  readonly watched = ["NodeClaim"] as const;
  readonly #plane: ControlPlane;

  static async start(plane: ControlPlane): Promise<KarpenterFleet> {
    const command = buildKarpenter();
    const definitions = execFileSync(command, ["crds"], { encoding: "utf8" });
    // A CRD may be too long for the annotation of a client-side apply.
    await mustRun(plane, ["apply", "--server-side", "-f", "-"], JSON.parse(definitions));
    await mustRun(plane, ["apply", "-f", "-"], installation);
    await startProgram(plane, command);
    const made = async () =>
      (await plane.kubectl(["apply", "-f", "-"], { input: JSON.stringify(pool) })).code === 0;
    await waitUntil(made, { what: "NodePools are served", timeoutMs: startMs });
    return new KarpenterFleet(plane);
  }

  private constructor(plane: ControlPlane) {
    this.#plane = plane;
  }

  async grow(): Promise<readonly Node[]> {
    // A machine may get pods of only one Deployment, because pods wait for nodes: with the budgets'
    // own limits, its drain would take longer than the others.
    const wish = { memory: "1Gi", budget: { maxUnavailable: "34%" } };
    await mustRun(this.#plane, ["apply", "-f", "-"], workload(wish));
    const nodes = await waitUntil(() => this.#nodesForAll(), {
      what: "Karpenter's nodes have all pods",
      timeoutMs: startMs,
      signal: this.#plane.signal,
      intervalMs: 250,
    });
    await mustRun(this.#plane, ["label", "nodes", "--all", `${generationLabel}=1`]);
    return nodes;
  }

  async #nodesForAll(): Promise<readonly Node[] | false> {
    const [pods, { body }] = await Promise.all([
      this.#plane.request({ path: "/api/v1/namespaces/default/pods" }),
      this.#plane.request({ path: nodesPath }),
    ]);
    const all = pods.body.items.length > 0 && pods.body.items.every(isReady);
    return all && body.items.every(isReady) && body.items;
  }

  machinesOf({ changes, audit }: Pick<History, "changes" | "audit">) {
    return { releases: releasesOf(changes), machineEnds: endsOf({ changes, audit }) };
  }
}

/** The deletion of a NodeClaim counts as the release of its machine. */
function releasesOf(changes: readonly Change[]): readonly Release[] {
  const pods = new Map<string, Extract<Change, { kind: "Pod" }>["object"]>();
  const releases = new Map<string, Release>();
  for (const { kind, type, object } of changes) {
    if (kind === "Pod" && type === "Gone") pods.delete(keyOf(object));
    else if (kind === "Pod") pods.set(keyOf(object), object);
    if (kind !== "NodeClaim" || releases.has(keyOf(object))) continue;
    const deletedAt = object.metadata?.deletionTimestamp;
    if (deletedAt === undefined) continue;
    const machine = object.status?.nodeName ?? `no node, of the NodeClaim ${nameOf(object)}`;
    const podsThen = [...pods.values()].filter(({ spec }) => spec?.nodeName === machine);
    releases.set(keyOf(object), { machine, at: Date.parse(deletedAt), podsThen });
  }
  return [...releases.values()];
}

/** With the kwok provider a machine exists as long as its Node, which a finalizer holds. */
function endsOf({ changes, audit }: Pick<History, "changes" | "audit">): readonly MachineEnd[] {
  const gone = changes.flatMap(({ kind, type, object }) =>
    kind === "Node" && type === "Gone" ? nameOf(object) : [],
  );
  return gone.map((machine) => {
    const last = audit.findLast(
      ({ user, resource, name, code }) =>
        user === karpenterUser && resource === "nodes" && name === machine && code < 300,
    );
    return { machine, at: (last?.answeredAtUs ?? Number.NaN) / 1000 };
  });
}

async function startProgram(plane: ControlPlane, command: string): Promise<void> {
  const health = await freePort();
  plane.launch({
    name: "karpenter",
    command,
    args: [],
    env: {
      KUBECONFIG: plane.kubeconfigFor(account, await plane.tokenFor(namespace, account)),
      SYSTEM_NAMESPACE: namespace,
      DISABLE_LEADER_ELECTION: "true",
      METRICS_PORT: String(await freePort()),
      HEALTH_PROBE_PORT: String(health),
    },
  });
  await waitUntil(() => isHealthy(`http://127.0.0.1:${health}/healthz`), {
    what: "Karpenter is healthy",
    timeoutMs: startMs,
    signal: plane.signal,
  });
}

/** Karpenter's permissions are not what this tests. */
const installation = {
  apiVersion: "v1",
  kind: "List",
  items: [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: account, namespace } },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: account },
      roleRef: {
        apiGroup: "rbac.authorization.k8s.io",
        kind: "ClusterRole",
        name: "cluster-admin",
      },
      subjects: [{ kind: "ServiceAccount", name: account, namespace }],
    },
  ],
};

/** It creates nodes, and removes none on its own. */
const pool = {
  apiVersion: "v1",
  kind: "List",
  items: [
    {
      apiVersion: "karpenter.kwok.sh/v1alpha1",
      kind: "KWOKNodeClass",
      metadata: { name: nodePool },
    },
    {
      apiVersion: "karpenter.sh/v1",
      kind: "NodePool",
      metadata: { name: nodePool },
      spec: {
        disruption: { consolidationPolicy: "WhenEmpty", consolidateAfter: "Never" },
        template: {
          metadata: { labels: { [kubeletLabel.key]: kubeletLabel.value } },
          spec: {
            expireAfter: "Never",
            nodeClassRef: { group: "karpenter.kwok.sh", kind: "KWOKNodeClass", name: nodePool },
            requirements: [
              { key: "karpenter.sh/capacity-type", operator: "In", values: ["spot"] },
              // Four cores and 8 GiB, of which 10 MiB are reserved for the kubelet.
              {
                key: "node.kubernetes.io/instance-type",
                operator: "In",
                values: ["c-4x-amd64-linux"],
              },
            ],
          },
        },
      },
    },
  ],
};
