import { describe, expect, it } from "vitest";
import {
  slackBot,
  slackWebhook,
  teams,
  teamsConnector,
  telegram,
  undelivered,
} from "../actions/message-receivers.ts";
import { secret } from "../actions/sink-world.ts";
import { alertmanager, datadog, mackerel, silenceId } from "../actions/status-receivers.ts";
import type { ReceivedRequest, Reply } from "../support/action-server.ts";

/**
 * The receivers of actions refuse what the platforms refuse; test/support/README.md lists each
 * refusal with its source.
 */

/** A request as the receivers of actions get it. */
function received(path: string, body: unknown, other: Partial<ReceivedRequest> = {}) {
  const { pathname, searchParams } = new URL(path, "http://receiver");
  const headers = { "content-type": "application/json", ...other.headers };
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return { method: "POST", ...other, path: pathname, query: searchParams, headers, body: text };
}

const errorOf = ({ status, body }: Reply) => [status, body] as const;

describe("a receiver of messages", () => {
  const bot = "/api/chat.postMessage";
  const authorization = `Bearer ${secret}`;
  const slack = { channel: "C012", text: "a" };
  it.each([
    ["without a token", received(bot, slack), "not_authed"],
    [
      "with another token",
      received(bot, slack, { headers: { authorization: "x" } }),
      "invalid_auth",
    ],
    [
      ...([
        "that is not JSON",
        received(bot, slack, { headers: { "content-type": "a/b" } }),
      ] as const),
      "invalid_post_type",
    ],
    ["to another channel", received(bot, { ...slack, channel: "C9" }), "channel_not_found"],
    ["without text", received(bot, { ...slack, text: "" }), "no_text"],
    [
      ...([
        "of more than 40,000 characters",
        received(bot, { ...slack, text: "a".repeat(40_001) }),
      ] as const),
      "msg_too_long",
    ],
  ])("like Slack's bot refuses a message %s, with the status 200", (_, request, error) => {
    const isAuthed = error !== "not_authed" && error !== "invalid_auth";
    const headers = { ...request.headers, ...(isAuthed && { authorization }) };
    const answer = slackBot().reply({ ...request, headers });
    expect(errorOf(answer)).toEqual([200, { ok: false, error }]);
  });

  const hook = `/services/T0/B0/${secret}`;
  it.each([
    ["to another address", received("/services/T0/B0/x", { text: "a" }), 404, "no_service"],
    ["that is not JSON", received(hook, "{"), 400, "invalid_payload"],
    ["without text", received(hook, { text: "" }), 400, "no_text"],
  ])("like Slack's webhook refuses a message %s", (_, request, status, error) => {
    expect(errorOf(slackWebhook.reply(request))).toEqual([status, error]);
  });

  const telegramOf = (token: string) => `/bot${token}/sendMessage`;
  const chat = { chat_id: "-1001", text: "a" };
  it.each([
    [
      "with a token of another form",
      received(telegramOf("x"), chat),
      401,
      /invalid token specified/,
    ],
    ["with another token", received(telegramOf("123:x"), chat), 401, /^Unauthorized$/],
    [
      "to another chat",
      received(telegramOf(`123:${secret}`), { ...chat, chat_id: 1 }),
      400,
      /chat not found/,
    ],
    [
      "without text",
      received(telegramOf(`123:${secret}`), { ...chat, text: " \n" }),
      400,
      /text is empty/,
    ],
    [
      ...([
        "of more than 4096 characters",
        received(telegramOf(`123:${secret}`), { ...chat, text: "a".repeat(4097) }),
      ] as const),
      ...([400, /message is too long/] as const),
    ],
  ])("like Telegram refuses a message %s", (_, request, status, words) => {
    const [found, body] = errorOf(telegram.reply(request));
    expect([found, body]).toEqual([
      status,
      { ok: false, error_code: status, description: expect.stringMatching(words) },
    ]);
  });

  it.each([
    ["Teams", teams, 413, undefined],
    ["Teams' connector", teamsConnector, 200, undelivered(413)],
  ])("like %s refuses a message that is too long", (_, receiver, status, body) => {
    const request = received(`/?sig=${secret}`, { text: "a".repeat(28 * 1024) });
    expect(errorOf(receiver.reply(request))).toEqual([status, body]);
  });
});

describe("a receiver that keeps the state of a host", () => {
  const keys = { headers: { "dd-api-key": secret, "dd-application-key": secret } };
  const mute = "/api/v1/host/n1/mute";
  it.each([
    ["without keys", received(mute, {}), 403],
    ["to mute a muted host", received(mute, {}, keys), 400],
    ["until a time that is not in whole seconds", received(mute, { end: 1.5 }, keys), 400],
    [
      "for more than 1000 hosts",
      received("/api/v1/hosts?count=1001", "", { ...keys, method: "GET" }),
      400,
    ],
  ])("like Datadog refuses a request %s", (_, request, status) => {
    const host = { name: "n1", aliases: [], is_muted: true };
    expect(datadog(host).receiver.reply(request).status).toBe(status);
  });

  const key = { headers: { "x-api-key": secret } };
  const change = (id: string) => `/api/v0/hosts/${id}/status`;
  it.each([
    ["without a key", received(change("3yAYEDLXKL5"), { status: "standby" }), 403],
    ["for an unknown host", received(change("x"), { status: "standby" }, key), 404],
    ["for an unknown status", received(change("3yAYEDLXKL5"), { status: "gone" }, key), 400],
    ["that is not JSON", received(change("3yAYEDLXKL5"), "standby", key), 400],
  ])("like Mackerel refuses a request %s", (_, request, status) => {
    expect(mackerel().receiver.reply(request).status).toBe(status);
  });

  it("like Mackerel lists only working and standby hosts unless asked for others", () => {
    const { receiver } = mackerel({ id: "3yAYEDLXKL5", name: "n1", status: "maintenance" });
    const list = (query: string) =>
      receiver.reply(received(`/api/v0/hosts?name=n1${query}`, "", { ...key, method: "GET" })).body;
    expect(list("")).toEqual({ hosts: [] });
    expect(list("&status=maintenance")).toMatchObject({ hosts: [{ name: "n1" }] });
  });
});

describe("Alertmanager", () => {
  const api = "/prefix/api/v2";
  const matcher = { name: "instance", value: "n1:.*", isRegex: true, isEqual: true };
  const silence = {
    ...{ matchers: [matcher], createdBy: "me", comment: "c" },
    ...{ startsAt: "2026-11-24T12:00:00.000Z", endsAt: "2026-11-24T13:00:00.000Z" },
  };
  const past = { startsAt: "2026-11-24T10:00:00.000Z", endsAt: "2026-11-24T11:00:00.000Z" };
  it.each([
    ["without a comment", { comment: undefined }, 422],
    ["without matchers", { matchers: [] }, 422],
    ["whose matchers all match the empty string", { matchers: [{ ...matcher, value: ".*" }] }, 400],
    ["that ends when it starts", { endsAt: silence.startsAt }, 400],
    ["that has ended", past, 400],
  ])("refuses a silence %s", (_, other, status) => {
    const create = (fields: object) =>
      alertmanager().reply(received(`${api}/silences`, { ...silence, ...fields })).status;
    expect([create({}), create(other)]).toEqual([200, status]);
  });

  it("refuses to end a silence whose id is not a UUID, or that there is none of", () => {
    const end = (id: string) =>
      alertmanager().reply(received(`${api}/silence/${id}`, "", { method: "DELETE" })).status;
    expect([end("silence-1"), end(silenceId(7)), end(silenceId(0))]).toEqual([422, 404, 200]);
  });

  it("finds a silence by its own matcher only, without applying a pattern", () => {
    const receiver = alertmanager();
    receiver.reply(received(`${api}/silences`, silence));
    const found = (filter: string) => {
      const path = `${api}/silences?${new URLSearchParams({ filter })}`;
      const { body } = receiver.reply(received(path, "", { method: "GET" }));
      return (body as readonly unknown[]).length;
    };
    const filters = ['instance=~"n1:.*"', 'instance="n1:.*"', 'instance="n1:9100"'];
    expect(filters.map(found)).toEqual([1, 0, 0]);
  });
});
