/** By default a kubelet reports fifty images (nodeStatusMaxImages), with two names each. */
export function nodeImages(): readonly object[] {
  return Array.from({ length: 50 }, (_, at) => {
    const image = `registry.example/team-${at % 7}/application-${at}`;
    const digest = String(at).padStart(64, "0123456789abcdef");
    return { names: [`${image}@sha256:${digest}`, `${image}:1.${at}.0`], sizeBytes: 1e8 + at };
  });
}

/** Annotations that GKE, a storage driver and a network plugin set on a node. */
export function nodeAnnotations(name: string): Readonly<Record<string, string>> {
  return {
    "container.googleapis.com/instance_id": String(
      7_000_000_000_000_000_000n + BigInt(name.length),
    ),
    "csi.volume.kubernetes.io/nodeid": `{"pd.csi.storage.gke.io":"projects/p/zones/z/instances/${name}"}`,
    "networking.gke.io/last-reported-config-hash": "0011223344556677",
    "node.alpha.kubernetes.io/ttl": "0",
    "node.gke.io/last-applied-node-labels": "cloud.google.com/gke-boot-disk=pd-balanced,".repeat(
      12,
    ),
    "volumes.kubernetes.io/controller-managed-attach-detach": "true",
  };
}

/**
 * A pod as an application's controller creates it, but without an owner, which would recreate it.
 */
export function podObject(name: string, nodeName: string): object {
  const app = `app-${name.replace(/.*-/, "")}`;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace: "default",
      labels: { "app.kubernetes.io/name": app, "pod-template-hash": "5d9c7b6f54" },
    },
    spec: {
      nodeName,
      terminationGracePeriodSeconds: 30,
      enableServiceLinks: false,
      automountServiceAccountToken: false,
      containers: [
        {
          name: "main",
          image: `registry.example/${app}:1.2.3`,
          resources: { requests: { cpu: "10m", memory: "64Mi" } },
          env: [{ name: "LOG_LEVEL", value: "info" }],
        },
      ],
    },
  };
}
