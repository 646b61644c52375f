import { access, readFile } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { delimiter, join } from "node:path";
import { LastcallError, messageOf } from "../../errors.ts";
import type { KubeAccess, KubeCredentials, KubeEnvironment } from "./kube-access.ts";

/** Where to look for a cluster. The environment is passed in, never read here. */
export interface KubeAccessSource {
  /** `--kubeconfig`: only this file. */
  readonly kubeconfig?: string | undefined;
  /** `--context`: this context instead of the current one; it excludes the in-cluster account. */
  readonly context?: string | undefined;
  readonly env: KubeEnvironment;
  /** Where the kubelet puts the pod's token, CA and namespace. */
  readonly serviceAccountDir?: string | undefined;
}

const defaultServiceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * Finds the cluster by the given file, the files of KUBECONFIG, the pod's own service account, or
 * `~/.kube/config`, in the order of controller-runtime's `config.GetConfig`. There is no fallback
 * to localhost: if nothing is found, it throws.
 *
 * Inside a cluster @kubernetes/client-node is never loaded (it takes 30 MiB of the controller's
 * 100), because a service account is just two files. The package handles everything else: exec
 * plugins and OIDC.
 *
 * Throws `LastcallError` `KUBECONFIG_INVALID`: one sentence with the file and the field.
 */
export async function loadKubeAccess(source: KubeAccessSource): Promise<KubeAccess> {
  if (source.kubeconfig !== undefined && source.kubeconfig !== "") {
    return await fromFiles([source.kubeconfig], source.context);
  }
  const listed = (source.env.KUBECONFIG ?? "").split(delimiter).filter((file) => file !== "");
  if (listed.length > 0) return await fromFiles(await existing(listed), source.context);
  const dir = source.serviceAccountDir ?? defaultServiceAccountDir;
  const server = inClusterServer(source.env);
  if (server !== undefined && source.context === undefined && (await exists(join(dir, "token")))) {
    return await inClusterAccess({ server, dir });
  }
  return await fromHome(source);
}

async function fromHome(source: KubeAccessSource): Promise<KubeAccess> {
  const home = source.env.HOME || source.env.USERPROFILE;
  const file = home ? join(home, ".kube", "config") : undefined;
  if (file !== undefined && (await exists(file))) return await fromFiles([file], source.context);
  const looked = file === undefined ? "no home directory" : `no file ${file}`;
  throw new LastcallError(
    "KUBECONFIG_INVALID",
    `Cannot find a cluster: there is no --kubeconfig, no KUBECONFIG, no service account and ${looked}, set one of them`,
  );
}

/**
 * As in kubectl, missing files of the KUBECONFIG list are skipped, unless all of them are missing.
 */
async function existing(files: readonly string[]): Promise<readonly string[]> {
  const found: string[] = [];
  for (const file of files) if (await exists(file)) found.push(file);
  if (found.length > 0) return found;
  throw new LastcallError(
    "KUBECONFIG_INVALID",
    `Cannot find a cluster: KUBECONFIG names ${files.join(", ")}, which does not exist, expected at least one existing file`,
  );
}

async function exists(file: string): Promise<boolean> {
  return await access(file).then(
    () => true,
    () => false,
  );
}

async function fromFiles(files: readonly string[], context?: string): Promise<KubeAccess> {
  const { kubeconfigAccess } = await import("./kubeconfig-access.ts");
  return await kubeconfigAccess({ files, context });
}

/** The API server's address, which the kubelet sets in every pod; undefined outside a cluster. */
export function inClusterServer(env: KubeEnvironment): string | undefined {
  const host = env.KUBERNETES_SERVICE_HOST;
  const port = env.KUBERNETES_SERVICE_PORT;
  if (!host || !port) return undefined;
  return `https://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/**
 * The pod's own service account. The token is bound and the kubelet replaces it about every hour,
 * so token and CA are read again for every `credentials()`; nothing is cached here.
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
