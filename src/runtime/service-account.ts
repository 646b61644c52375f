import { readFile } from "node:fs/promises";
import { LastcallError, messageOf } from "../errors.ts";

const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount";
const bootIdFile = "/proc/sys/kernel/random/boot_id";

/** The API server's address, which the kubelet sets in every pod; undefined outside a cluster. */
export function apiServerOf(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const host = env.KUBERNETES_SERVICE_HOST;
  const port = env.KUBERNETES_SERVICE_PORT;
  if (!host || !port) return undefined;
  return `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/**
 * Reads the pod's own token. Not cached, because the kubelet replaces it about every hour. Throws
 * KUBECONFIG_INVALID.
 */
export async function readAccountToken(folder: string = accountFolder): Promise<string> {
  const path = `${folder}/token`;
  try {
    const token = (await readFile(path, "utf8")).trim();
    if (token !== "") return token;
  } catch (error) {
    throw unreadable(path, messageOf(error));
  }
  throw unreadable(path, "it is empty");
}

/** The machine's boot id, which the kubelet reports as `status.nodeInfo.bootID`; Linux only. */
export async function readBootId(path: string = bootIdFile): Promise<string | undefined> {
  const text = await readFile(path, "utf8").catch(() => "");
  return text.trim() || undefined;
}

function unreadable(path: string, found: string): LastcallError {
  return new LastcallError(
    "KUBECONFIG_INVALID",
    `Cannot read the service account's ${path}: ${found}, expected a token`,
    { retryable: true },
  );
}
