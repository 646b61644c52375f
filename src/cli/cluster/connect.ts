import type { KubeApi } from "../../contracts/kube-api.ts";
import type { KubeAccess } from "../../kube/access/kube-access.ts";
import type { CommandIo } from "../command-line/command.ts";
import { version } from "../commands/version.ts";

export interface Connection {
  readonly api: KubeApi;
  /** The same access, for those who talk to something else than the API server with it. */
  readonly access: KubeAccess;
  /** The namespace of the context, or of this pod; `lastcall` where neither names one. */
  readonly namespace: string;
  close(): void;
}

/** Finds the cluster as kubectl does. Throws KUBECONFIG_INVALID. */
export async function connect(
  options: {
    readonly kubeconfig?: string | undefined;
    readonly context?: string | undefined;
    /** For a process that watches for good. */
    readonly probesConnections?: boolean | undefined;
    /** Called while more is asked for than the API server is asked at once. */
    readonly onRush?: (() => void) | undefined;
    /** Ends each request without a signal of its own: for work that may stop anywhere. */
    readonly signal?: AbortSignal | undefined;
  },
  io: Pick<CommandIo, "env" | "clock">,
): Promise<Connection> {
  const { loadKubeAccess } = await import("../../kube/access/load-kube-access.ts");
  const { HttpKubeApi } = await import("../../kube/http/http-api.ts");
  const { kubeconfig, context, probesConnections, onRush, signal } = options;
  const access = await loadKubeAccess({ kubeconfig, context, env: io.env });
  const userAgent = `lastcall/${version}`;
  const { clock } = io;
  const api = new HttpKubeApi({ access, clock, userAgent, probesConnections, onRush });
  return {
    api: signal === undefined ? api : endedBy(api, signal),
    access,
    namespace: io.env.POD_NAMESPACE ?? access.namespace ?? "lastcall",
    close: () => api.close(),
  };
}

function endedBy(api: KubeApi, signal: AbortSignal): KubeApi {
  return {
    send: (request) => api.send({ ...request, signal: request.signal ?? signal }),
    watch: (request) => api.watch(request),
  };
}
