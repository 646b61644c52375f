import type { KubeApi } from "../../contracts/kube-api.ts";
import type { KubeAccess } from "../../kube/access/kube-access.ts";
import type { CommandIo } from "../command-line/command.ts";
import { version } from "../commands/version.ts";

export interface Connection {
  readonly api: KubeApi;
  /** The same access, for callers that contact something other than the API server. */
  readonly access: KubeAccess;
  /** The namespace of the context, or of this pod; `lastcall` if neither has one. */
  readonly namespace: string;
  close(): void;
}

/** Finds the cluster as kubectl does. Throws KUBECONFIG_INVALID. */
export async function connect(
  options: {
    readonly kubeconfig?: string | undefined;
    readonly context?: string | undefined;
    /** For a process that watches for as long as it runs. */
    readonly probesConnections?: boolean | undefined;
    /** Called while requests wait because too many are in flight. */
    readonly onRush?: (() => void) | undefined;
    /** Aborts each request that has no signal of its own, for work that may stop at any point. */
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
