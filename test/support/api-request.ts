import { type Agent, request } from "node:https";

export interface ApiTarget {
  readonly url: string;
  readonly ca: string;
  readonly agent: Agent;
}

export interface ApiRequest {
  readonly method?: string;
  readonly path: string;
  readonly token: string;
  readonly body?: unknown;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ApiAnswer {
  readonly status: number;
  /** The parsed JSON, or the text if it is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads any Kubernetes object from here.
  readonly body: any;
}

/** A single request of a test: any status is a normal result, and there are no retries. */
export function apiRequest(target: ApiTarget, call: ApiRequest): Promise<ApiAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<ApiAnswer>();
  const payload = call.body === undefined ? undefined : JSON.stringify(call.body);
  const outgoing = request(
    new URL(call.path, target.url),
    {
      method: call.method ?? "GET",
      ca: target.ca,
      agent: target.agent,
      headers: {
        accept: "application/json",
        authorization: `Bearer ${call.token}`,
        ...(payload !== undefined && { "content-type": call.contentType ?? "application/json" }),
        ...call.headers,
      },
    },
    (incoming) => {
      incoming.setEncoding("utf8");
      let text = "";
      incoming.on("data", (chunk: string) => {
        text += chunk;
      });
      incoming.on("error", reject);
      incoming.on("end", () => resolve({ status: incoming.statusCode ?? 0, body: parse(text) }));
    },
  );
  outgoing.on("error", reject);
  outgoing.end(payload);
  return promise;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
