import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import {
  type HttpStream,
  type KeyPair,
  mostUnreadBytes,
  type RouteAnswer,
  type Routes,
} from "../contracts/http-route.ts";
import { LastcallError, messageOf } from "../errors.ts";

/** More than scrapers, probes and listeners need: a client that opens more is not one of them. */
const mostConnections = 256;

/**
 * Serves the paths of `routes` by GET and HEAD; anything else is 404. `address` is `:9101` (every
 * interface) or `127.0.0.1:0` (a free port). Throws PORT_TAKEN and USAGE.
 */
export async function serve(
  address: string,
  routes: Routes,
  pair?: KeyPair,
): Promise<{ readonly port: number; close(): Promise<void> }> {
  const { host, port } = parseAddress(address);
  const answer: RequestListener = (request, response) => {
    const path = (request.url ?? "/").split("?")[0] ?? "/";
    const route = request.method === "GET" || request.method === "HEAD" ? routes[path] : undefined;
    const asked = { accept: request.headers.accept ?? "" };
    const found = route === undefined ? { status: 404, text: "not found\n" } : route(asked);
    Promise.resolve(found)
      .catch((error: unknown) => ({ status: 500, type: undefined, text: `${messageOf(error)}\n` }))
      .then((found: RouteAnswer | HttpStream) => {
        if ("open" in found) stream(response, found, request.method);
        else send(response, found);
      })
      .catch(() => response.destroy());
  };
  const server = pair === undefined ? createServer(answer) : createTlsServer(pair, answer);
  server.maxConnections = mostConnections;
  await listen(server, { host, port, address });
  const bound = server.address();
  return {
    port: typeof bound === "object" && bound !== null ? bound.port : port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function send(response: ServerResponse, { status, type, text }: RouteAnswer): void {
  response.writeHead(status, { "content-type": type ?? "text/plain; charset=utf-8" });
  response.end(text);
}

/** A HEAD request gets only the headers: the stream's response would never end. */
function stream(response: ServerResponse, { type, open }: HttpStream, method?: string): void {
  response.writeHead(200, { "content-type": type, "cache-control": "no-store" });
  if (method === "HEAD") return void response.end();
  response.flushHeaders();
  const leave = open({
    send: (text) => {
      if (response.writableLength > mostUnreadBytes) response.destroy();
      else response.write(text);
    },
  });
  response.once("close", leave);
}

export function parseAddress(address: string): { host: string | undefined; port: number } {
  const match = /^(.*):(\d{1,5})$/.exec(address);
  const port = Number(match?.[2]);
  if (match === null || port > 65_535) {
    throw new LastcallError(
      "USAGE",
      `Cannot listen on ${JSON.stringify(address)}: it is not an address, expected HOST:PORT or :PORT`,
    );
  }
  const host = match[1] as string;
  return { host: host === "" ? undefined : host.replace(/^\[(.*)\]$/, "$1"), port };
}

export function listen(
  server: Server,
  where: { readonly host: string | undefined; readonly port: number; readonly address: string },
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const taken = error.code === "EADDRINUSE" ? "another program uses it" : messageOf(error);
      reject(
        new LastcallError(
          "PORT_TAKEN",
          `Cannot listen on ${where.address}: ${taken}, expected a free address`,
        ),
      );
    });
    server.listen(
      { port: where.port, ...(where.host === undefined ? {} : { host: where.host }) },
      resolve,
    );
  });
}
