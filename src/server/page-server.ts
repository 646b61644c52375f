import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from "node:http";
import { constants, createGzip, type Gzip, gzipSync } from "node:zlib";
import type {
  PageAnswer,
  PageFile,
  PageRoutes,
  PageServer,
  PageServerOptions,
  PageStream,
  PageText,
} from "../contracts/http-route.ts";
import { isLastcallError, LastcallError, messageOf } from "../errors.ts";
import { listen } from "./http-server.ts";
import { PageGuard } from "./page-guard.ts";

/** Enough for the tabs of one person. */
const mostConnections = 64;
/** An act takes a few hundred bytes. */
const mostBodyBytes = 65_536;
/** How many ports are tried after the first one if that is taken. */
const portsTried = 20;

const safety: OutgoingHttpHeaders = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

/**
 * Serves a page and its data on loopback, only to the browser that presented the token
 * (`page-guard.ts`). Nothing is loaded from anywhere else. Throws PORT_TAKEN, and USAGE for an
 * address that is not a loopback one.
 */
export async function servePage(options: PageServerOptions): Promise<PageServer> {
  const { host, first } = loopbackOf(options.address);
  const files = new Map([...options.files].map(([path, file]) => [path, withGzip(file)]));
  let guard: PageGuard | undefined;
  const server = createServer((request, response) => {
    if (guard === undefined) response.destroy();
    else {
      const exchange = { request, response, guard, routes: options.routes, files };
      answer(exchange).catch((error: unknown) => fail(response, error));
    }
  });
  server.maxConnections = mostConnections;
  const port = await listenNear(server, { host, first });
  const own = new PageGuard({ port, entry: options.entry, now: options.now });
  guard = own;
  return {
    url: () => `http://${host}:${port}${own.entrance()}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/**
 * A loopback address for the page: `127.0.0.1:8087`, `localhost:8087` or `[::1]:8087`. Throws
 * USAGE.
 */
export function loopbackOf(address: string): { readonly host: string; readonly first: number } {
  const [, host = "", digits = ""] = /^(.*):(\d{1,5})$/.exec(address) ?? [];
  const isLoopback = ["127.0.0.1", "localhost", "[::1]"].includes(host);
  if (isLoopback && Number(digits) <= 65_535) return { host, first: Number(digits) };
  const isAddress = digits !== "" && Number(digits) <= 65_535;
  const problem = isAddress
    ? "it acts with your rights on the cluster, so nobody else may reach it"
    : "that is not an address";
  throw new LastcallError(
    "USAGE",
    `Cannot serve the board on ${JSON.stringify(address)}: ${problem}, expected a loopback address such as 127.0.0.1:8087`,
  );
}

async function listenNear(
  server: ReturnType<typeof createServer>,
  { host, first }: { readonly host: string; readonly first: number },
): Promise<number> {
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  for (let port = first; ; port += 1) {
    try {
      await listen(server, { host: bare, port, address: `${host}:${port}` });
      const bound = server.address();
      return typeof bound === "object" && bound !== null ? bound.port : port;
    } catch (error) {
      const isLast = port >= first + portsTried || port >= 65_535;
      if (!isLastcallError(error) || error.code !== "PORT_TAKEN" || first === 0 || isLast)
        throw error;
    }
  }
}

interface PageExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly guard: PageGuard;
  readonly routes: PageRoutes;
  readonly files: ReadonlyMap<string, ServedFile>;
}

async function answer(exchange: PageExchange): Promise<void> {
  const { request, response, guard, routes, files } = exchange;
  const { method = "GET", headers } = request;
  const address = URL.parse(request.url ?? "/", "http://board");
  if (address === null) {
    return sendJson(exchange, { status: 400, json: { problem: "The address cannot be read" } });
  }
  const { pathname, searchParams } = address;
  const token = searchParams.get("token");
  const admission = guard.admit({ method, headers, token, pathname });
  if (admission.kind === "Refused") {
    return refuse(exchange, { ...admission, isPage: pathname.endsWith("/") });
  }
  const { setCookie, path, stands } = admission;
  const more = setCookie === undefined ? {} : { "set-cookie": setCookie };
  const file = files.get(path);
  const isFile = method === "GET" || method === "HEAD";
  if (isFile && file !== undefined) return sendFile(exchange, file, more);
  // HEAD is for files only: for a stream it would never complete.
  const known = method === "GET" ? routes.get : method === "POST" ? routes.post : undefined;
  const route = known?.[path];
  if (route === undefined) {
    const problem = `There is nothing at ${method} ${path}`;
    return sendJson(exchange, { status: known === undefined ? 405 : 404, json: { problem } });
  }
  const body = method === "POST" ? await readJson(request) : undefined;
  if (body !== undefined && "problem" in body)
    return sendJson(exchange, { status: 400, json: body });
  const lastEventId = headers["last-event-id"];
  const found = await route({
    query: searchParams,
    lastEventId: typeof lastEventId === "string" ? lastEventId : undefined,
    body: body?.value,
  });
  if ("open" in found) {
    sendStream(found, { response, headers: safety, isPacked: takesGzip(request), stands });
  } else sendJson(exchange, found);
  response.once("error", () => {});
}

function refuse(
  exchange: PageExchange,
  { status, problem, isPage }: { status: number; problem: PageText; isPage: boolean },
): void {
  const { request, response } = exchange;
  const language = preferredLanguage(request.headers["accept-language"]);
  if (!isPage) {
    sendJson(exchange, { status, json: { problem: problem[language] } });
    return;
  }
  response.writeHead(status, { ...safety, "content-type": "text/html; charset=utf-8" });
  response.end(refusalPage(problem[language], language));
}

/** The first of the browser's languages that the page supports. */
function preferredLanguage(accepted = ""): "en" | "ja" {
  const found = /(?:^|,)\s*(en|ja)\b/i.exec(accepted)?.[1]?.toLowerCase();
  return found === "ja" ? "ja" : "en";
}

/** So that a refusal is never a blank page. */
function refusalPage(problem: string, language: "en" | "ja"): string {
  const text = problem.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const end = language === "ja" ? "。" : ".";
  const head = `<meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="dark light"><title>Lastcall</title>`;
  return `<!doctype html><html lang="${language}">${head}<h1>Lastcall</h1><p>${text}${end}</p></html>\n`;
}

interface ServedFile extends PageFile {
  readonly gzip: Uint8Array;
}

function withGzip(file: PageFile): ServedFile {
  return { ...file, gzip: gzipSync(file.bytes, { level: 9 }) };
}

function sendFile(exchange: PageExchange, file: ServedFile, more: OutgoingHttpHeaders): void {
  const { request, response } = exchange;
  const isPacked = takesGzip(request);
  const bytes = isPacked ? file.gzip : file.bytes;
  response.writeHead(200, {
    ...safety,
    ...more,
    "content-type": file.type,
    "content-length": bytes.byteLength,
    ...(isPacked && { "content-encoding": "gzip" }),
  });
  response.end(request.method === "HEAD" ? undefined : bytes);
}

function sendJson(
  { response }: Pick<PageExchange, "response">,
  { status, json }: PageAnswer,
): void {
  response.writeHead(status, { ...safety, "content-type": "application/json; charset=utf-8" });
  response.end(JSON.stringify(json));
}

function fail(response: ServerResponse, error: unknown): void {
  if (response.headersSent) response.destroy();
  else sendJson({ response }, { status: 502, json: { problem: messageOf(error) } });
}

function takesGzip({ headers }: IncomingMessage): boolean {
  return String(headers["accept-encoding"] ?? "").includes("gzip");
}

async function readJson(
  request: IncomingMessage,
): Promise<{ readonly value: unknown } | { readonly problem: string }> {
  const type = (request.headers["content-type"] ?? "").split(";")[0]?.trim();
  if (type !== "application/json") return { problem: "The request is not JSON" };
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > mostBodyBytes)
      return { problem: `The request is longer than ${mostBodyBytes} bytes` };
    parts.push(part);
  }
  try {
    return { value: JSON.parse(Buffer.concat(parts).toString("utf8")) };
  } catch {
    return { problem: "The request is not JSON" };
  }
}

/**
 * The most messages that may wait for a page, besides the one being sent. With thousands of nodes,
 * each is some megabytes; a page that is disconnected reconnects and gets everything in one
 * message.
 */
const mostWaiting = 4;

export interface StreamExchange {
  readonly response: ServerResponse;
  readonly headers: OutgoingHttpHeaders;
  /** Compressed while it is sent: a picture of a thousand nodes shrinks to a tenth. */
  readonly isPacked: boolean;
  /** Whether the browser may still see it. */
  readonly stands: () => boolean;
}

/** Responds with a stream until the page disconnects, stops reading or may not see it any more. */
function sendStream({ type, open }: PageStream, exchange: StreamExchange): void {
  const { response, headers, isPacked, stands } = exchange;
  response.writeHead(200, {
    ...headers,
    "content-type": type,
    ...(isPacked && { "content-encoding": "gzip" }),
  });
  response.flushHeaders();
  const gzip = isPacked ? createGzip({ level: 4 }) : undefined;
  gzip?.on("error", () => response.destroy());
  gzip?.pipe(response);
  const over = new AbortController();
  const writer = new MessageWriter({ response, gzip, signal: over.signal });
  const end = () => void (gzip ?? response).end();
  const leave = open({ send: (parts) => (stands() ? writer.add(parts) : end()) });
  response.once("close", () => {
    over.abort();
    leave();
    gzip?.destroy();
  });
}

interface MessageTarget {
  readonly response: ServerResponse;
  readonly gzip: Gzip | undefined;
  readonly signal: AbortSignal;
}

/** Writes messages one after the other, each part once the previous one has been accepted. */
class MessageWriter {
  readonly #target: MessageTarget;
  readonly #waiting: Iterable<string>[] = [];
  #isWriting = false;

  constructor(target: MessageTarget) {
    this.#target = target;
  }

  add(parts: Iterable<string>): void {
    if (this.#waiting.length >= mostWaiting) {
      this.#target.response.destroy();
      return;
    }
    this.#waiting.push(parts);
    // A failure means a broken connection, whose close event does the rest.
    if (!this.#isWriting) this.#write().catch(() => this.#target.response.destroy());
  }

  async #write(): Promise<void> {
    const { response, gzip, signal } = this.#target;
    const stream = gzip ?? response;
    this.#isWriting = true;
    for (let parts = this.#waiting.shift(); parts !== undefined; parts = this.#waiting.shift()) {
      for (const part of parts) {
        if (signal.aborted) return;
        if (!stream.write(part)) await once(stream, "drain", { signal });
      }
      gzip?.flush(constants.Z_SYNC_FLUSH);
    }
    this.#isWriting = false;
  }
}
