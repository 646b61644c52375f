import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { parseActionHosts } from "../../src/actions/action-hosts.ts";
import type { SinkOptions } from "../../src/actions/action-sink.ts";
import { HttpSender } from "../../src/actions/http-sender.ts";
import { type Instant, instant } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { ManualClock } from "./manual-clock.ts";

export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export interface Reply {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A receiver of actions on loopback: responds as the test specifies, and records the requests. */
export interface ActionServer {
  readonly url: string;
  readonly host: string;
  readonly requests: readonly ReceivedRequest[];
  /** If set, answers every request. */
  override: ((response: ServerResponse, request: ReceivedRequest) => void) | undefined;
  close(): Promise<void>;
}

export async function startActionServer(
  reply: (request: ReceivedRequest) => Reply,
): Promise<ActionServer> {
  const requests: ReceivedRequest[] = [];
  const server = createServer((message, response) => {
    void read(message).then((request) => {
      if (own.override !== undefined) return own.override(response, request);
      requests.push(request);
      const { status, body, headers } = reply(request);
      response.writeHead(status, { "content-type": "application/json", ...headers });
      response.end(typeof body === "string" ? body : JSON.stringify(body ?? {}));
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  const own: ActionServer = {
    url: `http://127.0.0.1:${port}`,
    host: `127.0.0.1:${port}`,
    requests,
    override: undefined,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  return own;
}

async function read(message: IncomingMessage): Promise<ReceivedRequest> {
  let body = "";
  for await (const part of message) body += String(part);
  const { method = "", url = "/", headers } = message;
  const { pathname, searchParams } = new URL(url, "http://server");
  return { method, path: pathname, query: searchParams, headers, body };
}

export const sinkNow: Instant = instant(Date.UTC(2026, 10, 24, 12));

/** A sink's tools, which may connect to these hosts and read these secrets (`name/key`). */
export function sinkTools(
  hosts: string,
  secrets: Readonly<Record<string, string>> = {},
): SinkOptions {
  const resolve = async (host: string) => {
    throw new Error(`${host} is not to be resolved here`);
  };
  return {
    sender: new HttpSender({ allowed: parseActionHosts(hosts), env: {}, resolve }),
    clock: new ManualClock(sinkNow),
    secrets: {
      read: async ({ name, key }, signal) => {
        signal.throwIfAborted();
        const found = secrets[`${name}/${key}`];
        if (found !== undefined) return found;
        const problem = `Cannot read the key ${key} of Secret lastcall/${name}: there is none`;
        throw new LastcallError("SECRET_MISSING", problem);
      },
    },
  };
}
