import { readFile } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { join } from "node:path";
import { LastcallError, messageOf } from "../errors.ts";
import type { KubeAccess, KubeCredentials, KubeEnvironment } from "./kube-access.ts";

/** The API server's address as the kubelet tells it to every pod; undefined outside a cluster. */
export function inClusterServer(env: KubeEnvironment): string | undefined {
  const host = env.KUBERNETES_SERVICE_HOST;
  const port = env.KUBERNETES_SERVICE_PORT;
  if (!host || !port) return undefined;
  return `https://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/**
 * The pod's own service account. The token is bound and the kubelet replaces it about every hour,
 * so both files are read again for every `credentials()`; nothing is kept here.
 */
export async function inClusterAccess(from: { server: string; dir: string }): Promise<KubeAccess> {
  const namespace = await readFile(join(from.dir, "namespace"), "utf8").catch(() => "");
  return {
    server: from.server,
    namespace: namespace.trim() || undefined,
    credentials: () => readAccount(from.dir),
    reload: async () => {},
  };
}

async function readAccount(dir: string): Promise<KubeCredentials> {
  const token = await readOrExplain(join(dir, "token"));
  const ca = await readOrExplain(join(dir, "ca.crt"));
  return { headers: { authorization: `Bearer ${token.trim()}` }, tls: { ca } };
}

async function readOrExplain(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new LastcallError(
      "KUBECONFIG_INVALID",
      `Cannot read the service account's ${file}: ${messageOf(error)}, expected a readable file`,
      { cause: error },
    );
  }
}
