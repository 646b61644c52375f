import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect as connectTls, type TLSSocket } from "node:tls";
import type { SocketRoute } from "./socket-pool.ts";

/**
 * A connection on which nothing is sent but PING frames of HTTP/2: the server answers them itself, without
 * a request that it would have to authorize, audit or count.
 */
export class PingSession {
  readonly #server: URL;
  #session: ClientHttp2Session | undefined;
  /** Once the server has said that it is not: a proxy in between, perhaps. */
  #isSpoken = true;

  constructor(server: URL) {
    this.#server = server;
    this.#isSpoken = server.protocol === "https:";
  }

  /** False where the server does not speak HTTP/2; rejects where it cannot be reached. */
  async ping(tls: SocketRoute["tls"], signal: AbortSignal): Promise<boolean> {
    if (!this.#isSpoken) return false;
    const session = this.#usable() ?? (await this.#open(tls, signal));
    this.#session = session;
    if (session === undefined) return false;
    await pinged(session, signal);
    return true;
  }

  close(): void {
    this.#session?.destroy();
  }

  /** One that was given up, or that the server is about to close, is none. */
  #usable(): ClientHttp2Session | undefined {
    return this.#session?.destroyed || this.#session?.closed ? undefined : this.#session;
  }

  async #open(
    tls: SocketRoute["tls"],
    signal: AbortSignal,
  ): Promise<ClientHttp2Session | undefined> {
    const socket = await secureSocket(this.#server, tls, signal);
    if (socket.alpnProtocol !== "h2") {
      this.#isSpoken = false;
      socket.destroy();
      return undefined;
    }
    const session = connectHttp2(this.#server, { createConnection: () => socket });
    // What breaks it is told by the ping that it breaks, and the next one gets a new session.
    session.on("error", () => {});
    return session;
  }
}

function secureSocket(
  server: URL,
  tls: SocketRoute["tls"],
  signal: AbortSignal,
): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const host = server.hostname.replace(/^\[|\]$/g, "");
    const port = Number(server.port || 443);
    const ALPNProtocols = ["h2", "http/1.1"];
    const socket = connectTls({ host, port, ALPNProtocols, ...tls });
    const abort = () => socket.destroy(new Error("The probe has been given up"));
    signal.addEventListener("abort", abort, { once: true });
    socket.once("error", reject);
    socket.once("close", () => reject(new Error("The connection was closed")));
    socket.once("secureConnect", () => {
      signal.removeEventListener("abort", abort);
      resolve(socket);
    });
  });
}

/** Given up, it takes its session along: the next ping needs another. */
function pinged(session: ClientHttp2Session, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      session.destroy();
      reject(new Error("The ping has been given up"));
    };
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    const answered = (error: Error | null) => {
      signal.removeEventListener("abort", abort);
      if (error === null) resolve();
      else reject(error);
    };
    if (session.destroyed || !session.ping(answered)) answered(new Error("No ping can be sent"));
  });
}
