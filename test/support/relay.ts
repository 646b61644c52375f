import {
  createServer,
  type IncomingMessage,
  request as requestPlain,
  type Server,
  type ServerResponse,
} from "node:http";
import { request as requestTls } from "node:https";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

export interface RelayCall {
  readonly method: string;
  /** Includes the query. */
  readonly path: string;
  readonly body: string;
}

/** A response that does not come from the target. */
export interface RelayAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/**
 * `Drop`: the caller loses its connection, and the target never receives the call. `Swallow`:
 * neither side hears of it again.
 */
export type RelayVerdict = "Pass" | "Drop" | "Swallow" | RelayAnswer;

export interface RelayOptions {
  /** The server to which calls are forwarded, such as `https://127.0.0.1:6443`. */
  readonly target: string;
  /** The target's authority if it uses TLS; read for each call. */
  readonly ca?: () => string;
  /** Called before a call is forwarded; it may take a while. */
  readonly before?: (call: RelayCall) => Promise<RelayVerdict>;
  /**
   * Called when the target has responded, before the caller gets the response. If it throws, the
   * caller gets none.
   */
  readonly after?: (call: RelayCall) => Promise<void>;
  /** Whether to withhold the rest of the target's response to a call, like a watch that stalls. */
  readonly withholds?: (call: RelayCall) => boolean;
}

export interface Relay {
  readonly url: string;
  /**
   * Whether a caller still has an open connection, and so may have sent more than was forwarded.
   */
  isInUse(): Promise<boolean>;
  close(): Promise<void>;
}

/** A plain HTTP server on loopback that forwards every call, so that a test can intervene. */
export async function startRelay(options: RelayOptions): Promise<Relay> {
  const server = createServer((incoming, outgoing) => {
    void hand(options, incoming, outgoing).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    isInUse: () => isInUse(server),
    close: () => close(server),
  };
}

async function hand(
  options: RelayOptions,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const body = await buffer(incoming);
  const call = {
    method: incoming.method ?? "GET",
    path: incoming.url ?? "/",
    body: body.toString("utf8"),
  };
  const verdict = (await options.before?.(call)) ?? "Pass";
  if (verdict === "Swallow") return;
  if (verdict === "Drop") return void outgoing.destroy();
  if (verdict !== "Pass") return answerWith(verdict, outgoing);
  const answer = await ask(options, incoming, body);
  // If the caller disconnects, its watch ends, too.
  outgoing.on("close", () => answer.destroy());
  await options.after?.(call);
  outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
  answer.on("error", () => outgoing.destroy());
  answer.on("aborted", () => outgoing.destroy());
  const { withholds } = options;
  if (withholds === undefined) answer.pipe(outgoing);
  else {
    answer.on("data", (chunk: Buffer) => withholds(call) || outgoing.write(chunk));
    answer.on("end", () => withholds(call) || outgoing.end());
  }
  outgoing.flushHeaders();
}

function answerWith({ status, headers, body }: RelayAnswer, outgoing: ServerResponse): void {
  outgoing.writeHead(status, { "content-type": "application/json", ...headers });
  outgoing.end(JSON.stringify(body));
}

function ask(
  { target, ca }: RelayOptions,
  incoming: IncomingMessage,
  body: Buffer,
): Promise<IncomingMessage> {
  const url = new URL(incoming.url ?? "/", target);
  const { connection: _, host: __, ...headers } = incoming.headers;
  return new Promise((resolve, reject) => {
    const options = { method: incoming.method, headers };
    const asked =
      url.protocol === "https:"
        ? requestTls(url, { ...options, ca: ca?.() }, resolve)
        : requestPlain(url, options, resolve);
    asked.on("error", reject);
    asked.end(body);
  });
}

function isInUse(server: Server): Promise<boolean> {
  return new Promise((resolve, reject) => {
    server.getConnections((error, count) => (error ? reject(error) : resolve(count > 0)));
  });
}

function close(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}
