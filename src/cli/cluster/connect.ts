import type { KubeApi } from "../../contracts/kube-api.ts";
import type { KubeAccess } from "../../kube/access/kube-access.ts";
import type { CommandIo } from "../command-line/command-io.ts";
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
  },
  io: Pick<CommandIo, "env" | "clock">,
): Promise<Connection> {
  const { loadKubeAccess } = await import("../../kube/access/load-kube-access.ts");
  const { HttpKubeApi } = await import("../../kube/http/http-api.ts");
  const { kubeconfig, context, probesConnections, onRush } = options;
  const access = await loadKubeAccess({ kubeconfig, context, env: io.env });
  const userAgent = `lastcall/${version}`;
  const { clock } = io;
  const api = new HttpKubeApi({ access, clock, userAgent, probesConnections, onRush });
  return {
    api,
    access,
    namespace: io.env.POD_NAMESPACE ?? access.namespace ?? "lastcall",
    close: () => api.close(),
  };
}
