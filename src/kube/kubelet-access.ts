import type { KubeAccess } from "./kube-access.ts";

/** The port on which every kubelet serves its own API. */
const kubeletPort = 10_250;

export interface KubeletAddress {
  /** The node's own address, such as `10.0.0.7`. */
  readonly address: string;
  /** Other than 10250 in tests only. */
  readonly port?: number | undefined;
  /**
   * Verified: by the cluster's certificate authority. Unverified: whoever answers at the address
   * gets our token, so that only the user may say so.
   */
  readonly certificate: "Verified" | "Unverified";
}

/** How to be the same user at a node's own kubelet as at the API server; past any proxy. */
export function kubeletAccess(
  access: KubeAccess,
  { address, port = kubeletPort, certificate }: KubeletAddress,
): KubeAccess {
  const host = address.includes(":") ? `[${address}]` : address;
  return {
    server: `https://${host}:${port}`,
    namespace: access.namespace,
    reload: () => access.reload(),
    credentials: async () => {
      const { headers, tls } = await access.credentials();
      const { ca, cert, key } = tls;
      return { headers, tls: { ca, cert, key, rejectUnauthorized: certificate === "Verified" } };
    },
  };
}
