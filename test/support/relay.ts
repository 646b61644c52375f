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
  /** With the query. */
  readonly path: string;
  readonly body: string;
}

/** An answer that the target never gave. */
export interface RelayAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/**
 * `Drop`: the caller loses its connection, and the target never hears of the call. `Swallow`:
 * nobody hears anything more of it.
 */
export type RelayVerdict = "Pass" | "Drop" | "Swallow" | RelayAnswer;

export interface RelayOptions {
  /** Where calls go on to, such as `https://127.0.0.1:6443`. */
  readonly target: string;
  /** The target's authority, where it speaks TLS; read for each call. */
  readonly ca?: () => string;
  /** Asked before a call goes on; it may take its time. */
  readonly before?: (call: RelayCall) => Promise<RelayVerdict>;
  /**
   * Told when the target has answered, before the caller hears of it, which it does not if this
   * throws.
   */
  readonly after?: (call: RelayCall) => Promise<void>;
  /**
   * Whether what the target says from now on in answer to a call is withheld: a watch that stalls.
   */
  readonly withholds?: (call: RelayCall) => boolean;
}

export interface Relay {
  readonly url: string;
  /** Whether a caller still holds a connection, and so may have said more than was handed on. */
  isInUse(): Promise<boolean>;
  close(): Promise<void>;
}

/** A plain HTTP server on loopback that hands every call on, so that a test stands between two. */
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
  // A caller that has gone away ends its watch, too.
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
