import { createServer, type Server } from "node:http";
import { LastcallError, messageOf } from "../errors.ts";

export interface HttpAnswer {
  readonly status: number;
  readonly type?: string | undefined;
  readonly text: string;
}

export type Routes = Readonly<Record<string, () => HttpAnswer | Promise<HttpAnswer>>>;

/**
 * Serves the few paths of `routes` by GET; anything else is 404. `address` is `:9101` (every
 * interface) or `127.0.0.1:0` (a free port). Throws PORT_TAKEN and USAGE.
 */
export async function serve(
  address: string,
  routes: Routes,
): Promise<{ readonly port: number; close(): Promise<void> }> {
  const { host, port } = parseAddress(address);
  const server = createServer((request, response) => {
    const path = (request.url ?? "/").split("?")[0] ?? "/";
    const route = request.method === "GET" || request.method === "HEAD" ? routes[path] : undefined;
    const answer = route === undefined ? { status: 404, text: "not found\n" } : route();
    Promise.resolve(answer)
      .catch((error: unknown) => ({ status: 500, type: undefined, text: `${messageOf(error)}\n` }))
      .then(({ status, text, ...rest }: HttpAnswer) => {
        response.writeHead(status, { "content-type": rest.type ?? "text/plain; charset=utf-8" });
        response.end(text);
      })
      .catch(() => response.destroy());
  });
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

function parseAddress(address: string): { host: string | undefined; port: number } {
  const match = /^(.*):(\d{1,5})$/.exec(address);
  const port = Number(match?.[2]);
  if (match === null || port > 65_535) {
    throw new LastcallError(
      "USAGE",
      `Cannot listen on ${JSON.stringify(address)}: it is no address, HOST:PORT or :PORT is wanted`,
    );
  }
  const host = match[1] as string;
  return { host: host === "" ? undefined : host.replace(/^\[(.*)\]$/, "$1"), port };
}

function listen(
  server: Server,
  where: { readonly host: string | undefined; readonly port: number; readonly address: string },
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const taken = error.code === "EADDRINUSE" ? "another program has it" : messageOf(error);
      reject(
        new LastcallError(
          "PORT_TAKEN",
          `Cannot listen on ${where.address}: ${taken}, a free address is wanted`,
        ),
      );
    });
    server.listen(
      { port: where.port, ...(where.host === undefined ? {} : { host: where.host }) },
      resolve,
    );
  });
}
