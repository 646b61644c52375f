import {
  type HttpStream,
  type KeyPair,
  mostUnreadBytes,
  type Routes,
  type Serve,
} from "../contracts/http-route.ts";
import { LastcallError, messageOf } from "../errors.ts";

/** The part of Bun's own server that is used. */
interface BunRuntime {
  serve(options: {
    readonly port: number;
    readonly hostname?: string;
    readonly tls?: KeyPair;
    /** Longer than the keep-alive interval of an idle stream. */
    readonly idleTimeout: number;
    readonly fetch: (request: Request) => Promise<Response>;
  }): { readonly port: number; stop(now: boolean): Promise<void> };
}

/**
 * Bun's own HTTP server if Bun runs this process, with the interface of `serve` in `src/server`;
 * undefined on Node. On Bun, node:http alone takes 10 MiB, a third of the agent's memory budget;
 * Bun's own server takes 2.
 */
export function bunServe(): Serve | undefined {
  const bun = (globalThis as { readonly Bun?: BunRuntime }).Bun;
  return bun === undefined
    ? undefined
    : async (address, routes, pair) => listen(bun, { address, routes, pair });
}

function listen(
  bun: BunRuntime,
  {
    address,
    routes,
    pair,
  }: {
    readonly address: string;
    readonly routes: Routes;
    readonly pair: KeyPair | undefined;
  },
): Awaited<ReturnType<Serve>> {
  const [, host = "", port = "0"] = /^(.*):(\d{1,5})$/.exec(address) ?? [];
  const hostname = host.replace(/^\[(.*)\]$/, "$1");
  try {
    const server = bun.serve({
      port: Number(port),
      ...(hostname === "" ? {} : { hostname }),
      ...(pair === undefined ? {} : { tls: pair }),
      idleTimeout: 60,
      fetch: async (request) => answer(request, routes),
    });
    return { port: server.port, close: () => server.stop(true) };
  } catch (error) {
    throw new LastcallError(
      "PORT_TAKEN",
      `Cannot listen on ${address}: ${messageOf(error)}, expected a free address`,
      { cause: error },
    );
  }
}

async function answer(request: Request, routes: Routes): Promise<Response> {
  const route = request.method === "GET" ? routes[new URL(request.url).pathname] : undefined;
  const found =
    route === undefined
      ? { status: 404, text: "not found\n" }
      : await route({ accept: request.headers.get("accept") ?? "" });
  if ("open" in found) return streamed(found);
  const { status, text, type } = found;
  return new Response(text, {
    status,
    headers: { "content-type": type ?? "text/plain; charset=utf-8" },
  });
}

function streamed({ type, open }: HttpStream): Response {
  const encoder = new TextEncoder();
  let leave = (): void => {};
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        leave = open({
          send: (text) => {
            if ((controller.desiredSize ?? 0) > 0) return controller.enqueue(encoder.encode(text));
            leave();
            controller.error(new Error("the client does not read"));
          },
        });
      },
      cancel: () => leave(),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: mostUnreadBytes }),
  );
  return new Response(body, { headers: { "content-type": type, "cache-control": "no-store" } });
}
