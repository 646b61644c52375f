import type { Agent } from "node:http";

/** Where an API server is and how to be somebody to it. */
export interface KubeAccess {
  /** The server's address, such as `https://10.0.0.1:6443`; it may have a path (`…/k8s/clusters/c1`). */
  readonly server: string;
  /** The namespace of the context or of this pod; undefined where none is named. */
  readonly namespace: string | undefined;
  /**
   * What a request sent now needs. Files are read and exec plugins run as they are due; throws
   * `LastcallError` `KUBECONFIG_INVALID` for a file that cannot be read, `API_UNAUTHORIZED` for a
   * plugin or identity provider that gives nothing.
   */
  credentials(): Promise<KubeCredentials>;
  /** Forgets what was read: the server has refused it, so files and plugins are asked again. */
  reload(): Promise<void>;
}

export interface KubeCredentials {
  readonly headers: Readonly<Record<string, string>>;
  /** `user:password` for basic authentication. */
  readonly auth?: string | undefined;
  readonly tls: KubeTls;
  /** Set where the kubeconfig names a proxy: the only way through. */
  readonly proxyAgent?: Agent | undefined;
}

/** The fields of `tls.connect` that a kubeconfig can set. */
export interface KubeTls {
  readonly ca?: string | Buffer | undefined;
  readonly cert?: string | Buffer | undefined;
  readonly key?: string | Buffer | undefined;
  readonly servername?: string | undefined;
  readonly rejectUnauthorized?: boolean | undefined;
}

/** The environment variables that say where a cluster is. */
export interface KubeEnvironment {
  /** A list of files, separated as in PATH. */
  readonly KUBECONFIG?: string | undefined;
  readonly HOME?: string | undefined;
  readonly USERPROFILE?: string | undefined;
  readonly KUBERNETES_SERVICE_HOST?: string | undefined;
  readonly KUBERNETES_SERVICE_PORT?: string | undefined;
}
