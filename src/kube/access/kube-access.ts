import type { Agent } from "node:http";
import type { Clock } from "../../contracts/clock.ts";

/** The address of an API server, and how to authenticate to it. */
export interface KubeAccess {
  /**
   * The server's address, such as `https://10.0.0.1:6443`; it may have a path
   * (`…/k8s/clusters/c1`).
   */
  readonly server: string;
  /** The context of a kubeconfig; unset in a pod. */
  readonly context?: string | undefined;
  /** The namespace of the context or of this pod; undefined if there is none. */
  readonly namespace: string | undefined;
  /**
   * The credentials for a request that is sent now. Reads files and runs exec plugins when they are
   * due. Throws `LastcallError`: `KUBECONFIG_INVALID` for a file that cannot be read,
   * `API_UNAUTHORIZED` if a plugin or identity provider returns nothing.
   */
  credentials(): Promise<KubeCredentials>;
  /**
   * Discards what was read after the server has refused it, so that files and plugins are read
   * again.
   */
  reload(): Promise<void>;
}

export interface KubeCredentials {
  readonly headers: Readonly<Record<string, string>>;
  /** `user:password` for basic authentication. */
  readonly auth?: string | undefined;
  readonly tls: KubeTls;
  /** Set if the kubeconfig names a proxy, through which every request has to go. */
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

/** The environment variables that locate a cluster. */
export interface KubeEnvironment {
  /** A list of files, separated as in PATH. */
  readonly KUBECONFIG?: string | undefined;
  readonly HOME?: string | undefined;
  readonly USERPROFILE?: string | undefined;
  readonly KUBERNETES_SERVICE_HOST?: string | undefined;
  readonly KUBERNETES_SERVICE_PORT?: string | undefined;
}

/**
 * Long enough for a burst of a thousand requests to read the files once; short compared with the
 * hour that a bound token lives, and the minute within which its file must be read again.
 */
const keepMs = 10_000;
/** A plugin without a result after this time may never have one: another is started beside it. */
const hangsMs = 60_000;

interface Held {
  readonly credentials: Promise<KubeCredentials>;
  readonly askedMs: number;
  /** Undefined until they have arrived. */
  readMs: number | undefined;
}

/** Credentials shared by requests that are sent at the same time. */
export class CredentialCache {
  readonly #access: KubeAccess;
  readonly #clock: Clock;
  #held: Held | undefined;

  constructor(access: KubeAccess, clock: Clock) {
    this.#access = access;
    this.#clock = clock;
  }

  async get(): Promise<KubeCredentials> {
    return await this.#current().credentials;
  }

  /** Gets new credentials, once for all requests that were refused with `refused`. */
  async renew(refused: KubeCredentials): Promise<KubeCredentials> {
    const held = this.#current();
    if ((await held.credentials) === refused && this.#held === held) {
      this.#hold(this.#access.reload().then(() => this.#access.credentials()));
    }
    return await this.get();
  }

  /**
   * A plugin that hangs is never ended, so each new one is another process: requests, each with its
   * own timeout, wait for the one that runs.
   */
  #current(): Held {
    const held = this.#held;
    if (held !== undefined && !this.#isOld(held)) return held;
    return this.#hold(this.#access.credentials());
  }

  #isOld({ askedMs, readMs }: Held): boolean {
    const nowMs = this.#clock.monotonic();
    return readMs === undefined ? nowMs - askedMs >= hangsMs : nowMs - readMs >= keepMs;
  }

  /** Errors are not cached: the next request tries again. */
  #hold(credentials: Promise<KubeCredentials>): Held {
    const held: Held = { credentials, askedMs: this.#clock.monotonic(), readMs: undefined };
    this.#held = held;
    credentials.then(
      () => {
        held.readMs = this.#clock.monotonic();
      },
      () => {
        if (this.#held === held) this.#held = undefined;
      },
    );
    return held;
  }
}

/** The port on which every kubelet serves its own API. */
const kubeletPort = 10_250;

export interface KubeletAddress {
  /** The node's own address, such as `10.0.0.7`. */
  readonly address: string;
  /** Differs from 10250 in tests only. */
  readonly port?: number | undefined;
  /**
   * Verified: by the cluster's certificate authority. Unverified: whoever responds at the address
   * gets our token, so only the user may choose it.
   */
  readonly certificate: "Verified" | "Unverified";
}

/** Access to a node's own kubelet as the same user as at the API server, without any proxy. */
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
