import { fieldsOf, parseJson, textOf } from "../../src/core/json/json-field.ts";
import type { ReceivedRequest, Reply } from "../support/action-server.ts";
import { type Receiver, secret, secretRef } from "./sink-world.ts";

/**
 * The receivers of messages, with what each refuses: test/support/README.md names the sources.
 */

export const message = "n1 leaves\n12:00 cordoned";

/** The fields of a body that is sent as JSON; undefined for anything else. */
export function jsonFields({ headers, body }: ReceivedRequest) {
  const isJson = /^application\/json\b/.test(String(headers["content-type"]));
  const parsed = isJson ? parseJson(body) : undefined;
  return parsed && fieldsOf(parsed.value);
}

export function slackBot(error?: string): Receiver<"slack"> {
  let count = 0;
  const refusal = (request: ReceivedRequest): string | undefined => {
    if (request.headers.authorization === undefined) return "not_authed";
    if (request.headers.authorization !== `Bearer ${secret}`) return "invalid_auth";
    const fields = jsonFields(request);
    if (fields === undefined) return "invalid_post_type";
    if (fields.channel !== "C012") return "channel_not_found";
    const text = textOf(fields.text) ?? "";
    if (text === "") return "no_text";
    return text.length > 40_000 ? "msg_too_long" : error;
  };
  return {
    sort: "Message",
    how: (url) => ({ kind: "slack", url: `${url}/api`, channel: "C012", message, secretRef }),
    reply: (request) => {
      if (request.path !== "/api/chat.postMessage") return { status: 404, body: "no" };
      const fault = refusal(request);
      if (fault !== undefined) return { status: 200, body: { ok: false, error: fault } };
      count += 1;
      return { status: 200, body: { ok: true, channel: "C012", ts: `1700000000.00000${count}` } };
    },
  };
}

export const slackWebhook: Receiver<"slack"> = {
  sort: "Message",
  how: () => ({ kind: "slack", message, secretRef }),
  secret: (url) => `${url}/services/T0/B0/${secret}`,
  reply: (request) => {
    if (request.path !== `/services/T0/B0/${secret}`) return { status: 404, body: "no_service" };
    const fields = jsonFields(request);
    if (fields === undefined) return { status: 400, body: "invalid_payload" };
    const text = textOf(fields.text) ?? "";
    return text === "" ? { status: 400, body: "no_text" } : { status: 200, body: "ok" };
  },
};

const mostCardBytes = 28 * 1024;

/** A webhook of a workflow. */
export const teams: Receiver<"teams"> = {
  sort: "Message",
  how: () => ({ kind: "teams", title: "n1 SpotInterruption", message, secretRef }),
  secret: (url) => `${url}/workflows/${secret}/triggers/manual/paths/invoke?sig=${secret}`,
  reply: (request) => {
    if (request.query.get("sig") !== secret) return { status: 401 };
    if (jsonFields(request) === undefined) return { status: 400 };
    return Buffer.byteLength(request.body) > mostCardBytes ? { status: 413 } : { status: 202 };
  },
};

/** The size from which connectors refused cards, although 28 KB are documented. */
const mostConnectorBytes = 20_827;

/** A webhook of a connector, whose status is 200 even for a message that it did not deliver. */
export const teamsConnector: Receiver<"teams"> = {
  ...teams,
  reply: (request) => {
    const status = Buffer.byteLength(request.body) > mostConnectorBytes ? 413 : undefined;
    return { status: 200, body: status === undefined ? "1" : undelivered(status) };
  },
};

export function undelivered(status: number): string {
  return `Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error ${status}`;
}

export const telegram: Receiver<"telegram"> = {
  sort: "Message",
  how: (url) => ({ kind: "telegram", url, chatId: "-1001", message, secretRef }),
  secret: () => `123:${secret}`,
  reply: (request) => {
    const [, token, method] = /^\/bot([^/]*)\/(.*)$/.exec(request.path) ?? [];
    if (token === undefined) return telegramRefusal(404, "Not Found");
    if (!/^[1-9]\d*:/.test(token) || token.length > 80) {
      return telegramRefusal(401, "Unauthorized: invalid token specified");
    }
    if (token !== `123:${secret}`) return telegramRefusal(401, "Unauthorized");
    if (method !== "sendMessage") return telegramRefusal(404, "Not Found: method not found");
    const fields = jsonFields(request) ?? {};
    const length = textOf(fields.text)?.trim().length ?? 0;
    if (length === 0) return telegramRefusal(400, "Bad Request: message text is empty");
    if (length > 4096) return telegramRefusal(400, "Bad Request: message is too long");
    if (fields.chat_id !== "-1001") return telegramRefusal(400, "Bad Request: chat not found");
    return { status: 200, body: { ok: true, result: { message_id: 42 } } };
  },
};

function telegramRefusal(status: number, description: string): Reply {
  return { status, body: { ok: false, error_code: status, description } };
}

export const cloudEvents: Receiver<"cloudEvents"> = {
  sort: "Message",
  how: (url) => ({
    kind: "cloudEvents",
    ...{ url: `${url}/hook`, type: "dev.lastcall.departure", message, secretRef },
    data: { node: "n1", cause: "SpotInterruption" },
  }),
  reply: () => ({ status: 204, body: "" }),
};

/** How each receiver answers a sender that is too fast. */
export const tooFast = {
  slack: {
    ...{ status: 429, headers: { "retry-after": "30" } },
    body: { ok: false, error: "ratelimited" },
  },
  telegram: {
    ...telegramRefusal(429, "Too Many Requests: retry after 30"),
    headers: { "retry-after": "30" },
  },
  teams: { status: 429, headers: { "retry-after": "30" } },
  teamsConnector: { status: 200, body: undelivered(429) },
  datadog: {
    ...{ status: 429, body: { errors: ["Too many requests"] } },
    headers: { "x-ratelimit-period": "60", "x-ratelimit-reset": "30" },
  },
} as const satisfies Readonly<Record<string, Reply>>;
