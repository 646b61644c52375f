import { join } from "node:path";
import type { ApiAnswer } from "./api-request.ts";
import type { PartCommand } from "./control-plane-commands.ts";
import { writeKubeconfig } from "./control-plane-files.ts";
import {
  type ControlPlaneOptions,
  type ControlPlaneRun,
  launch,
  prepareRun,
  type RunRequest,
  request,
  startEtcd,
  startServers,
  stopRun,
  stopServers,
} from "./control-plane-run.ts";
import { type KubectlResult, runKubectl } from "./kubectl.ts";

export interface ControlPlane {
  readonly url: string;
  readonly adminToken: string;
  readonly caFile: string;
  /** The administrator's kubeconfig. */
  readonly kubeconfig: string;
  /** The log file of each part, by name. */
  readonly logs: Readonly<Record<string, string>>;
  /** Aborted if a part died on its own; the reason contains the end of its log. */
  readonly signal: AbortSignal;
  /** Runs as the administrator unless another kubeconfig is given. */
  kubectl(args: readonly string[], options?: KubectlOptions): Promise<KubectlResult>;
  /** Sends a single request, as the administrator unless another token is given. */
  request(call: RunRequest): Promise<ApiAnswer>;
  /** A token of an existing service account, from the TokenRequest API. */
  tokenFor(namespace: string, serviceAccount: string): Promise<string>;
  /** Writes a kubeconfig with the token, and returns its path. */
  kubeconfigFor(name: string, token: string): string;
  /**
   * Starts another program and returns the path of its log. If it dies, so does the control plane.
   * It ends with the other parts, and with the API server.
   */
  launch(part: PartCommand): string;
  /** Kills the API server and everything that depends on it; the data stays in etcd. */
  stopApiServer(): Promise<void>;
  /** Restarts all of it on the same ports, and waits as at the first start. */
  startApiServer(): Promise<void>;
  /** Kills everything and removes all files. */
  stop(): Promise<void>;
}

export interface KubectlOptions {
  readonly input?: string;
  readonly kubeconfig?: string;
}

/** Builds what is missing, starts all parts on loopback, and resolves when they are usable. */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const run = await prepareRun(options);
  process.once("exit", run.abandon);
  try {
    await startEtcd(run);
    await startServers(run);
  } catch (error) {
    await stopRun(run);
    throw error;
  }
  return controlPlaneOf(run);
}

function controlPlaneOf(run: ControlPlaneRun): ControlPlane {
  const { files, binaries } = run.inputs;
  const kubeconfig = files.kubeconfigOf("admin");
  return {
    url: run.url,
    adminToken: files.adminToken,
    caFile: files.caFile,
    kubeconfig,
    launch: (part) => launch(run, part).logFile,
    logs: Object.fromEntries([...run.parts.values()].map(({ name, logFile }) => [name, logFile])),
    signal: run.death.signal,
    kubectl: (args, options) =>
      runKubectl({
        command: binaries.controlplane,
        args,
        kubeconfig,
        home: files.folder,
        signal: run.death.signal,
        ...options,
      }),
    request: (call) => request(run, call),
    tokenFor: (namespace, serviceAccount) => requestToken(run, namespace, serviceAccount),
    kubeconfigFor: (name, token) => {
      const file = join(files.folder, `${name}.kubeconfig`);
      writeKubeconfig({ file, url: run.url, caFile: files.caFile, token, user: name });
      return file;
    },
    stopApiServer: () => stopServers(run),
    startApiServer: () => startServers(run),
    stop: () => stopRun(run),
  };
}

async function requestToken(run: ControlPlaneRun, namespace: string, name: string) {
  const { status, body } = await request(run, {
    method: "POST",
    path: `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`,
    body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} },
  });
  if (status === 201) return String(body.status.token);
  throw new Error(
    `Cannot get a token of ${namespace}/${name}: status ${status} ${body.message}, expected 201`,
  );
}
