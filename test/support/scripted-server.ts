import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";

export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
  /** The number of the connection, from 1. */
  readonly connection: number;
}

export type Script = (
  request: SeenRequest,
  response: ServerResponse,
  /** The number of the request, from 1. */
  turn: number,
) => void | Promise<void>;

/** A server on loopback that responds as a test specifies. */
export class ScriptedServer {
  readonly seen: SeenRequest[] = [];
  readonly sockets = new Set<Socket>();
  /** The largest number of connections that were open at once. */
  mostSockets = 0;
  #connections = 0;
  readonly #ids = new WeakMap<Socket, number>();
  readonly #script: Script;
  readonly #tls: { key: string; cert: string } | undefined;
  #server: Server | undefined;
  #port = 0;

  constructor(script: Script, tls?: { key: string; cert: string }) {
    this.#script = script;
    this.#tls = tls;
  }

  get url(): string {
    return `${this.#tls ? "https" : "http"}://127.0.0.1:${this.#port}`;
  }

  /** Listens; after `stop`, on the same port again. */
  async start(): Promise<this> {
    const listener = (request: IncomingMessage, response: ServerResponse) =>
      void this.#handle(request, response);
    const server = this.#tls ? createTlsServer(this.#tls, listener) : createServer(listener);
    // Only the client closes idle sockets, so that a test controls which socket goes stale.
    server.keepAliveTimeout = 0;
    server.on(this.#tls ? "secureConnection" : "connection", (socket) => this.#connected(socket));
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.#port, "127.0.0.1", resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
    return this;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  }

  #connected(socket: Socket): void {
    this.#connections += 1;
    this.#ids.set(socket, this.#connections);
    this.sockets.add(socket);
    this.mostSockets = Math.max(this.mostSockets, this.sockets.size);
    socket.on("close", () => this.sockets.delete(socket));
    socket.on("error", () => {});
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const seen: SeenRequest = {
      method: request.method ?? "",
      url: request.url ?? "",
      headers: request.headers,
      body: Buffer.concat(chunks).toString("utf8"),
      connection: this.#ids.get(request.socket) ?? 0,
    };
    this.seen.push(seen);
    await this.#script(seen, response, this.seen.length);
  }
}

export function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
