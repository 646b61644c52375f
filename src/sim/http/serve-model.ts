import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { KubeAnswer, KubeMethod, PatchType } from "../../contracts/kube-api.ts";
import { formatInstant } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import {
  ApiRefusal,
  badRequest,
  methodNotAllowed,
  noUsers,
  unsupportedMediaType,
} from "../api/api-refusal.ts";
import { openApi, openApiV2 } from "../api/discovery.ts";
import type { ModelApi } from "../api/model-api.ts";
import { parseResourcePath, type ResourceType } from "../api/resource-registry.ts";
import { patchTypes } from "../api/write/patch.ts";
import { readProtobufObject } from "./protobuf-object.ts";
import { tableEvent, tableOf, wantsTable } from "./table.ts";

interface ModelServerOptions {
  readonly api: ModelApi;
  /** Default 0: any free port. */
  readonly port?: number;
  /** How many times faster than the wall clock its time runs: sent with its version, for boards. */
  readonly rate?: () => number;
}

export interface ModelServer {
  /** Such as `http://127.0.0.1:40123`. */
  readonly url: string;
  /** The kubeconfig for kubectl. */
  readonly kubeconfig: string;
  readonly close: () => Promise<void>;
}

/**
 * Serves a model cluster on loopback, so that the real kubectl can work on it. It authenticates
 * nobody; requests that a browser sends for a web page are refused. Throws `LastcallError`
 * PORT_TAKEN.
 */
export async function serveModel(options: ModelServerOptions): Promise<ModelServer> {
  const { api, port = 0, rate } = options;
  const server = createServer((request, response) => {
    if (rate !== undefined && request.url === "/version") writeVersion(api, { response, rate });
    else void answerRequest(api, { request, response });
  });
  await listen(server, port);
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url, kubeconfig: kubeconfigOf(url), close };
}

interface VersionAnswer {
  readonly response: ServerResponse;
  readonly rate: () => number;
}

/** As any API server sends it, with the model's time. */
function writeVersion(api: ModelApi, { response, rate }: VersionAnswer): void {
  const { status, body } = api.handle({ method: "GET", path: "/version" });
  const modelClock = { at: formatInstant(api.context.clock.now()), rate: rate() };
  write(response, { status, body: { ...(body as object), modelClock } });
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause) => {
      const message = `Cannot serve the model cluster: port ${port} is taken, expected a free port`;
      reject(new LastcallError("PORT_TAKEN", message, { cause }));
    });
    server.listen(port, "127.0.0.1", () => resolve());
  });
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

async function answerRequest(api: ModelApi, exchange: Exchange): Promise<void> {
  const { response } = exchange;
  try {
    await dispatch(api, exchange);
  } catch (thrown) {
    if (thrown instanceof ApiRefusal && !response.headersSent) write(response, thrown.toAnswer());
    else response.destroy();
  }
}

async function dispatch(api: ModelApi, { request, response }: Exchange): Promise<void> {
  checkOrigin(request);
  const user = request.headers["impersonate-user"];
  if (user !== undefined) throw noUsers(String(user));
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://127.0.0.1");
  const query = Object.fromEntries(searchParams);
  if (pathname === "/openapi/v2") {
    response.writeHead(200, { "content-type": openApiV2.contentType }).end(openApiV2.body);
    return;
  }
  const document = openApi(api.context.registry, pathname);
  if (document) {
    write(response, { status: 200, body: document });
    return;
  }
  if (request.method === "GET" && isTrue(query.watch)) {
    await streamWatch(api, { request, response, path: pathname, query });
    return;
  }
  const method = methodOf(request);
  const body = await readBody(request);
  const patchType = method === "PATCH" ? patchTypeOf(request) : undefined;
  const answer = await api.send({ method, path: pathname, query, body, patchType });
  const type = typeOf(api, pathname);
  const asTable = method === "GET" && answer.status === 200 && type !== undefined;
  if (asTable && wantsTable(request.headers.accept)) {
    const nowAt = api.context.clock.now();
    write(response, { ...answer, body: tableOf(answer.body, { type, nowAt }) });
  } else write(response, answer);
}

/** Neither a page of another site nor one whose name was pointed at loopback may use it. */
function checkOrigin(request: IncomingMessage): void {
  const host = (request.headers.host ?? "").replace(/:\d+$/, "");
  const isLocal = host === "127.0.0.1" || host === "localhost";
  if (isLocal && request.headers.origin === undefined) return;
  const message = "requests of web pages are forbidden";
  throw new ApiRefusal({ code: 403, reason: "Forbidden", message });
}

const methods: readonly string[] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

function methodOf(request: IncomingMessage): KubeMethod {
  const method = request.method ?? "";
  if (!methods.includes(method)) throw methodNotAllowed();
  return method as KubeMethod;
}

function patchTypeOf(request: IncomingMessage): PatchType {
  const given = (request.headers["content-type"] ?? "").split(";")[0];
  const known = patchTypes.find((one) => one === given);
  if (known === undefined) throw unsupportedMediaType(patchTypes);
  return known;
}

function typeOf(api: ModelApi, path: string): ResourceType | undefined {
  const parsed = parseResourcePath(path);
  if (!parsed || parsed.subresource !== undefined) return undefined;
  return api.context.registry.find(parsed.apiVersion, parsed.plural);
}

function isTrue(value: string | undefined): boolean {
  return value === "1" || value === "true";
}

interface WatchExchange extends Exchange {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
}

async function streamWatch(api: ModelApi, exchange: WatchExchange): Promise<void> {
  const { request, response, path } = exchange;
  const { watch: _watch, ...query } = exchange.query;
  const hungUp = new AbortController();
  response.once("close", () => hungUp.abort());
  const events = api.watch({ path, query, signal: hungUp.signal });
  const first = events.peek();
  // A version that is too old is an ERROR event in the stream; any other refusal replaces the
  // stream.
  if (first?.type === "ERROR" && first.object.code !== 410) {
    write(response, { status: Number(first.object.code ?? 500), body: first.object });
    return;
  }
  const type = wantsTable(request.headers.accept) ? typeOf(api, path) : undefined;
  response.writeHead(200, { "content-type": "application/json" });
  response.flushHeaders();
  for await (const event of events) {
    const nowAt = api.context.clock.now();
    const shown = type ? tableEvent(event, { type, nowAt }) : event;
    response.write(`${JSON.stringify(shown)}\n`);
  }
  response.end();
}

function write(response: ServerResponse, answer: KubeAnswer): void {
  const { status, body, retryAfterSeconds } = answer;
  if (retryAfterSeconds !== undefined) response.setHeader("retry-after", retryAfterSeconds);
  const isText = typeof body === "string";
  response.writeHead(status, { "content-type": isText ? "text/plain" : "application/json" });
  response.end(isText ? body : JSON.stringify(body));
}

/** The limit of the real server, too. */
const bodyMaxBytes = 3 * 1024 * 1024;

/** Some commands of kubectl, such as `create namespace`, send it; files are sent as JSON. */
const protobuf = "application/vnd.kubernetes.protobuf";

/**
 * Reads a request's body, JSON or the protobuf that kubectl sends; undefined if there is none.
 * Throws `ApiRefusal` (400, 413, 415).
 */
async function readBody(request: IncomingMessage): Promise<unknown> {
  const bytes = await readBytes(request);
  if (request.headers["content-type"]?.startsWith(protobuf)) return fromProtobuf(bytes);
  if (bytes.length === 0) return undefined;
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    throw badRequest(
      "the object provided is unrecognized: it is not JSON, which the model requires",
    );
  }
}

/** kubectl does not retry with JSON on its own, so the refusal says how to. */
function fromProtobuf(bytes: Uint8Array): object {
  const object = readProtobufObject(bytes);
  if (object !== undefined) return object;
  const message =
    "the model cluster accepts this object only as JSON, which kubectl sends for a file: add --dry-run=client -o yaml, and pipe that into kubectl apply -f -";
  throw new ApiRefusal({ code: 415, reason: "UnsupportedMediaType", message, details: {} });
}

async function readBytes(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > bodyMaxBytes) {
      const message = "the request body is larger than 3 MiB";
      throw new ApiRefusal({ code: 413, reason: "RequestEntityTooLarge", message });
    }
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** A kubeconfig for the model cluster at `url`, as JSON, which is also YAML. */
function kubeconfigOf(url: string): string {
  const name = "lastcall-model";
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server: url } }],
    users: [{ name, user: {} }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: "default" } }],
    "current-context": name,
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}
