import type { KubeObject } from "../../src/contracts/kube-api.ts";
import { podBehaviour } from "../../src/sim/cluster-controllers/kubelet.ts";

export interface WebWorkload {
  readonly replicas: number;
  readonly maxUnavailable: number;
  /** Default 3. */
  readonly exitAfterSeconds?: number | "never";
  /** Default 300. */
  readonly graceSeconds?: number;
}

/**
 * A Deployment `web` with a budget; its pods take `exitAfterSeconds` of their grace period to exit.
 */
export function webWorkload(
  world: { readonly create: (path: string, body: KubeObject) => KubeObject },
  how: WebWorkload,
): void {
  const labels = { app: "web" };
  const exit = String(how.exitAfterSeconds ?? 3);
  world.create("/apis/apps/v1/namespaces/default/deployments", {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", namespace: "default" },
    spec: {
      replicas: how.replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels, annotations: { [podBehaviour.exitSeconds]: exit } },
        spec: {
          terminationGracePeriodSeconds: how.graceSeconds ?? 300,
          containers: [{ name: "web", image: "web:1" }],
        },
      },
    },
  });
  world.create("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: "web", namespace: "default" },
    spec: { maxUnavailable: how.maxUnavailable, selector: { matchLabels: labels } },
  });
}
