import { LastcallError, messageOf } from "../errors.ts";

interface StatusAnswer {
  readonly status: number;
  readonly type?: string | undefined;
  readonly text: string;
}

type StatusRoutes = Readonly<Record<string, () => StatusAnswer | Promise<StatusAnswer>>>;

type Serve = (
  address: string,
  routes: StatusRoutes,
) => Promise<{ readonly port: number; close(): Promise<void> }>;

/** What is used of Bun's own server. */
interface BunRuntime {
  serve(options: {
    readonly port: number;
    readonly hostname?: string;
    readonly fetch: (request: Request) => Promise<Response>;
  }): { readonly port: number; stop(now: boolean): Promise<void> };
}

/**
 * Bun's own HTTP server where Bun runs us, in the form of `serve` in `src/server`; undefined on Node.
 * On Bun, node:http alone holds 10 MiB, a third of what the agent may have, its own server 2.
 */
export function bunServe(): Serve | undefined {
  const bun = (globalThis as { readonly Bun?: BunRuntime }).Bun;
  return bun === undefined
    ? undefined
    : async (address, routes) => listen(bun, { address, routes });
}

function listen(
  bun: BunRuntime,
  { address, routes }: { readonly address: string; readonly routes: StatusRoutes },
): Awaited<ReturnType<Serve>> {
  const [, host = "", port = "0"] = /^(.*):(\d{1,5})$/.exec(address) ?? [];
  const hostname = host.replace(/^\[(.*)\]$/, "$1");
  try {
    const server = bun.serve({
      port: Number(port),
      ...(hostname === "" ? {} : { hostname }),
      fetch: async (request) => answer(request, routes),
    });
    return { port: server.port, close: () => server.stop(true) };
  } catch (error) {
    throw new LastcallError(
      "PORT_TAKEN",
      `Cannot listen on ${address}: ${messageOf(error)}, a free address is wanted`,
      { cause: error },
    );
  }
}

async function answer(request: Request, routes: StatusRoutes): Promise<Response> {
  const route = request.method === "GET" ? routes[new URL(request.url).pathname] : undefined;
  const { status, text, type } =
    route === undefined ? { status: 404, text: "not found\n" } : await route();
  return new Response(text, {
    status,
    headers: { "content-type": type ?? "text/plain; charset=utf-8" },
  });
}
