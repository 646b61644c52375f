import http from "node:http";
import https from "node:https";
import { createSecureContext, type SecureContext } from "node:tls";
import type { KubeCredentials, KubeTls } from "../access/kube-access.ts";

/**
 * Idle sockets are closed before a load balancer (60 s on most clouds) closes them.
 */
const idleMs = 50_000;

/** The connection options for `http.request`. */
export interface SocketRoute {
  readonly agent: http.Agent | false;
  readonly tls: { secureContext: SecureContext; servername?: string; rejectUnauthorized?: boolean };
}

/** `Fresh`: a new socket for the retry of a request that failed on a kept-alive one. */
export type SocketUse = "Request" | "Watch" | "Fresh" | "Probe";

/**
 * The sockets to one server. Requests share a bounded keep-alive pool; each watch has its own
 * socket, so that watches never block requests.
 */
export class SocketPool {
  readonly #server: URL;
  readonly #maxSockets: number;
  #made: { readonly tls: KubeTls; readonly route: SocketRoute } | undefined;
  readonly #unpooled: http.Agent;
  /** One socket for probes only, so that it is as old as the watches. */
  readonly #probing: http.Agent;

  constructor(server: URL, maxSockets: number) {
    this.#server = server;
    this.#maxSockets = maxSockets;
    this.#unpooled = this.#newAgent({ keepAlive: false });
    this.#probing = this.#newAgent({ keepAlive: true, maxSockets: 1 });
  }

  route(credentials: KubeCredentials, use: SocketUse): SocketRoute {
    const { tls, agent } = this.#routeFor(credentials.tls);
    if (credentials.proxyAgent !== undefined) return { tls, agent: credentials.proxyAgent };
    if (use === "Request") return { tls, agent };
    return { tls, agent: use === "Probe" ? this.#probing : this.#unpooled };
  }

  /**
   * Closes the idle sockets, because the cause of one dead socket may affect all of them.
   */
  dropIdle(): void {
    const agent = this.#made?.route.agent;
    if (!agent) return;
    for (const sockets of Object.values(agent.freeSockets)) {
      for (const socket of sockets ?? []) socket.destroy();
    }
  }

  /** Closes every socket, including those in use. */
  close(): void {
    this.#unpooled.destroy();
    this.#probing.destroy();
    if (this.#made?.route.agent) this.#made.route.agent.destroy();
    this.#made = undefined;
  }

  /** Creates a new pool when a certificate changes; old sockets finish and time out. */
  #routeFor(tls: KubeTls): SocketRoute {
    if (this.#made === undefined || !sameTls(this.#made.tls, tls)) {
      const agent = this.#newAgent({
        keepAlive: true,
        maxSockets: this.#maxSockets,
        maxFreeSockets: this.#maxSockets,
        timeout: idleMs,
      });
      this.#made = { tls, route: { agent, tls: tlsOptions(tls) } };
    }
    return this.#made.route;
  }

  #newAgent(options: http.AgentOptions): http.Agent {
    return this.#server.protocol === "https:" ? new https.Agent(options) : new http.Agent(options);
  }
}

/** Parses the certificates once instead of for every socket. */
function tlsOptions(tls: KubeTls): SocketRoute["tls"] {
  const { ca, cert, key, servername, rejectUnauthorized } = tls;
  return {
    secureContext: createSecureContext({
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    }),
    ...(servername === undefined ? {} : { servername }),
    ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
  };
}

function sameTls(a: KubeTls, b: KubeTls): boolean {
  return (
    sameBytes(a.ca, b.ca) &&
    sameBytes(a.cert, b.cert) &&
    sameBytes(a.key, b.key) &&
    a.servername === b.servername &&
    a.rejectUnauthorized === b.rejectUnauthorized
  );
}

function sameBytes(a: string | Buffer | undefined, b: string | Buffer | undefined): boolean {
  if (a === b) return true;
  return a !== undefined && b !== undefined && Buffer.from(a).equals(Buffer.from(b));
}
