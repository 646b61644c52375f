import { createHmac } from "node:crypto";
import type {
  ActionDone,
  ActionProblem,
  ActionRunner,
  ActionTask,
  EarlierAction,
  PreparedTask,
} from "../contracts/action-runner.ts";
import { bytesOf, fitText } from "../core/action/template.ts";
import { type Fields, fieldsOf, textOf } from "../core/json/json-field.ts";
import type { ActionKind, HttpCall, HttpRequestSpec, SecretRef } from "../core/policy/action.ts";
import { formatInstant, type Instant } from "../core/time/time.ts";
import { type ErrorCode, LastcallError } from "../errors.ts";
import {
  addressProblem,
  firstProblem,
  identifierOf,
  jsonRequest,
  type MessageSink,
  messageRunner,
  readSecret,
  type SinkCall,
  type SinkOptions,
  secretAddressProblem,
  secretProblem,
  sendForJson,
  sendOk,
} from "./action-sink.ts";
import { addressUnder, answerInvalid, faultOfAnswer } from "./http-sender.ts";
import { AlertmanagerSilencer, DatadogMuter, MackerelStatusSetter } from "./mutes.ts";

/** The runner of a kind with an HTTP receiver; undefined for other kinds. */
export function sinkRunner(kind: ActionKind, options: SinkOptions): ActionRunner | undefined {
  switch (kind) {
    case "alertmanagerSilence":
      return new AlertmanagerSilencer(options) as ActionRunner;
    case "datadogMute":
      return new DatadogMuter(options) as ActionRunner;
    case "mackerelStatus":
      return new MackerelStatusSetter(options) as ActionRunner;
    case "slack":
      return messageRunner(slackSink, options) as ActionRunner;
    case "teams":
      return messageRunner(teamsSink, options) as ActionRunner;
    case "telegram":
      return messageRunner(telegramSink, options) as ActionRunner;
    case "cloudEvents":
      return messageRunner(cloudEventsSink, options) as ActionRunner;
    case "http":
      return new HttpCaller(options) as ActionRunner;
    default:
      return undefined;
  }
}

const slackApi = "https://slack.com/api";
const webhookOrChannel =
  "the address of an incoming webhook, or for a bot's token the field slack.channel, too";
/** The limit of the field `text` in characters; Slack truncates or rejects longer texts. */
const longestSlack = 40_000;

/**
 * Slack: an incoming webhook, or with a channel the bot method chat.postMessage. Only the latter
 * returns the id of the message, which later messages reply to.
 */
const slackSink: MessageSink<"slack"> = {
  check: async ({ channel, url, secretRef }, about) => {
    const api = url ?? (channel === undefined ? undefined : slackApi);
    const ofSecret = (ref: SecretRef, field: string) =>
      channel === undefined
        ? secretAddressProblem(ref, field, about, webhookOrChannel)
        : secretProblem(ref, field, about);
    return firstProblem(
      api === undefined ? undefined : addressProblem(api, "slack.url", about.options),
      secretRef && ofSecret(secretRef, "slack.secretRef"),
    );
  },

  send: async (task, about) => {
    const { channel } = task.how;
    const message = fitText(task.how.message, ({ length }) => length <= longestSlack);
    if (channel === undefined) {
      const url = await webhookOf(task.how, about);
      const request = { what: "send to Slack", url, method: "POST" };
      await sendOk({ ...request, ...jsonRequest({ text: message }) }, about.options, about.signal);
      return { detail: "sent" };
    }
    const thread = threadOf(task.earlier, "slack", `${channel}/`);
    const answer = await postMessage(task.how, { channel, message, thread }, about);
    const isAnswer = thread !== undefined;
    return { detail: isAnswer ? "sent to its thread" : "sent", reference: `${channel}/${answer}` };
  },
};

async function postMessage(
  {
    url,
    secretRef,
  }: { readonly url?: string | undefined; readonly secretRef?: SecretRef | undefined },
  what: { readonly channel: string; readonly message: string; readonly thread: string | undefined },
  { options, signal }: SinkCall,
): Promise<string> {
  const { channel, message, thread } = what;
  const token = secretRef && (await readSecret(secretRef, options, signal));
  const { headers, body } = jsonRequest({
    ...{ channel, text: message },
    ...(thread !== undefined && { thread_ts: thread }),
  });
  const request = {
    what: "send to Slack",
    url: addressUnder(url ?? slackApi, "/chat.postMessage"),
    ...{ method: "POST", body, headers: { ...headers, authorization: `Bearer ${token}` } },
  };
  const answer = fieldsOf(await sendForJson(request, options, signal));
  const ts = identifierOf(answer.ts);
  if (answer.ok === true && ts !== undefined) return ts;
  throw slackFault(textOf(answer.error));
}

/**
 * Slack responds with 200 even to errors. Only the documented ones are quoted, since the policy
 * names the receiver. Source: https://api.slack.com/methods/chat.postMessage, "Errors".
 */
function slackFault(error: string | undefined): LastcallError {
  if (error === undefined) return answerInvalid("send to Slack", "its response names no message");
  const known = slackErrors.find(([, names]) => names.includes(error));
  if (known === undefined) {
    return new LastcallError("ACTION_REFUSED", "Cannot send to Slack: found another error");
  }
  return new LastcallError(known[0], `Cannot send to Slack: found ${error}`);
}

const slackErrors: readonly (readonly [ErrorCode, readonly string[]])[] = [
  ["ACTION_RATE_LIMITED", ["ratelimited", "rate_limited", "message_limit_exceeded"]],
  [
    "ACTION_UNREACHABLE",
    ["internal_error", "fatal_error", "service_unavailable", "request_timeout"],
  ],
  [
    "ACTION_RIGHT_MISSING",
    [
      ...["access_denied", "account_inactive", "ekm_access_denied", "invalid_auth"],
      ...["missing_scope", "no_permission", "not_allowed_token_type", "not_authed"],
      ...["org_login_required", "restricted_action", "team_access_not_granted"],
      ...["token_expired", "token_revoked", "two_factor_setup_required"],
    ],
  ],
  ["ACTION_TARGET_UNKNOWN", ["channel_not_found", "is_archived", "not_in_channel"]],
  ["ACTION_REFUSED", ["invalid_arguments", "msg_too_long", "no_text"]],
];

/**
 * Teams accepts messages up to 28 KB by its documentation, but refuses some from 20,811 characters
 * on (https://github.com/atc0005/go-teams-notify/issues/59).
 */
const mostCardBytes = 20_000;

/** The response of a connector that did not deliver a message: its own status is 200. */
const notDelivered = /returned HTTP error (\d{3})/;

/** A card for a Teams workflow, which responds with 202, or for a connector, the older webhook. */
const teamsSink: MessageSink<"teams"> = {
  check: async ({ url, secretRef }, about) =>
    firstProblem(
      url === undefined ? undefined : addressProblem(url, "teams.url", about.options),
      secretRef && secretAddressProblem(secretRef, "teams.secretRef", about),
    ),

  send: async ({ how }, about) => {
    const url = await webhookOf(how, about);
    const card = (message: string) => cardOf({ title: how.title, message });
    const fits = (message: string) => bytesOf(JSON.stringify(card(message))) <= mostCardBytes;
    const message = fitText(how.message, fits);
    const request = { what: "send to Teams", url, method: "POST", ...jsonRequest(card(message)) };
    const { body } = await sendOk(request, about.options, about.signal);
    const status = notDelivered.exec(body)?.[1];
    if (status !== undefined) throw faultOfAnswer(request.what, { status: Number(status), body });
    return { detail: "sent" };
  },
};

function cardOf({ title, message }: { readonly title: string; readonly message: string }): object {
  // A text block shows a single line break as a space.
  const text = message.replaceAll("\n", "\n\n");
  const body = [
    { type: "TextBlock", text: title, weight: "Bolder", size: "Medium", wrap: true },
    { type: "TextBlock", text, wrap: true },
  ];
  const $schema = "http://adaptivecards.io/schemas/adaptive-card.json";
  const content = { $schema, type: "AdaptiveCard", version: "1.4", body };
  const contentType = "application/vnd.microsoft.card.adaptive";
  return { type: "message", attachments: [{ contentType, content }] };
}

/** The limit of a message in UTF-16 code units. */
const longestTelegram = 4096;

/** Telegram's Bot API, whose address contains the token. */
const telegramSink: MessageSink<"telegram"> = {
  check: async ({ url, secretRef }, about) =>
    firstProblem(
      addressProblem(url, "telegram.url", about.options),
      secretProblem(secretRef, "telegram.secretRef", about),
    ),

  send: async ({ how, earlier }, { options, signal }) => {
    const token = await readSecret(how.secretRef, options, signal);
    const thread = threadOf(earlier, "telegram", `${how.chatId}/`);
    const text = fitText(how.message, ({ length }) => length <= longestTelegram);
    const answering = { message_id: Number(thread), allow_sending_without_reply: true };
    const request = {
      what: "send to Telegram",
      url: addressUnder(
        how.url,
        `/bot${encodeURIComponent(token).replaceAll("%3A", ":")}/sendMessage`,
      ),
      method: "POST",
      ...jsonRequest({
        ...{ chat_id: how.chatId, text },
        ...(thread !== undefined && { reply_parameters: answering }),
      }),
    };
    const { result } = fieldsOf(await sendForJson(request, options, signal));
    const id = fieldsOf(result).message_id;
    if (typeof id !== "number") throw answerInvalid(request.what, "its response names no message");
    const detail = thread === undefined ? "sent" : "sent as a reply to the first";
    return { detail, reference: `${how.chatId}/${id}` };
  },
};

async function webhookOf(
  {
    url,
    secretRef,
  }: { readonly url?: string | undefined; readonly secretRef?: SecretRef | undefined },
  { options, signal }: SinkCall,
): Promise<string> {
  return secretRef === undefined ? (url ?? "") : readSecret(secretRef, options, signal);
}

/** The id of the departure's first message to the same place, to reply to. */
function threadOf(
  earlier: readonly EarlierAction[],
  kind: "slack" | "telegram",
  place: string,
): string | undefined {
  const first = earlier.find((one) => one.kind === kind && one.reference.startsWith(place));
  return first?.reference.slice(place.length);
}

/** The size that every intermediary has to accept, by the CloudEvents specification. */
const mostEventBytes = 64 * 1024;

/**
 * Sends a CloudEvent in structured mode (`application/cloudevents+json`), signed by Standard
 * Webhooks (https://www.standardwebhooks.com). Its id is the same for every attempt.
 */
const cloudEventsSink: MessageSink<"cloudEvents"> = {
  check: async ({ url, secretRef }, about) =>
    firstProblem(
      addressProblem(url, "cloudEvents.url", about.options),
      secretRef && secretProblem(secretRef, "cloudEvents.secretRef", about),
    ),

  send: async ({ how, name, key, departure, target }, { options, signal }) => {
    const at = options.clock.now();
    const bodyOf = (message: string) =>
      JSON.stringify({
        ...{ specversion: "1.0", id: key, source: `/lastcall/departures/${departure}` },
        ...{ type: how.type, subject: target.node, time: formatInstant(at) },
        datacontenttype: "application/json",
        data: { ...how.data, action: name, message },
      });
    const body = bodyOf(fitText(how.message, (text) => bytesOf(bodyOf(text)) <= mostEventBytes));
    const secret = how.secretRef && (await readSecret(how.secretRef, options, signal));
    const headers = {
      "content-type": "application/cloudevents+json; charset=utf-8",
      ...(secret !== undefined && signatureOf({ id: key, at, body }, secret)),
    };
    const request = { what: "send a CloudEvent", url: how.url, method: "POST", headers, body };
    const { status } = await sendOk(request, options, signal);
    return { detail: `sent, answered with ${status}` };
  },
};

/** The headers that let a receiver verify the sender and the age of a request. */
function signatureOf(
  message: { readonly id: string; readonly at: Instant; readonly body: string },
  secret: string,
): Readonly<Record<string, string>> {
  const seconds = String(Math.floor(message.at / 1000));
  const isEncoded = secret.startsWith("whsec_");
  const key = isEncoded ? Buffer.from(secret.slice("whsec_".length), "base64") : secret;
  const signed = `${message.id}.${seconds}.${message.body}`;
  const signature = createHmac("sha256", key).update(signed).digest("base64");
  return {
    "webhook-id": message.id,
    "webhook-timestamp": seconds,
    "webhook-signature": `v1,${signature}`,
  };
}

/** Sends a request to any HTTP API, and optionally one that undoes it. */
class HttpCaller implements ActionRunner<"http"> {
  readonly #options: SinkOptions;

  constructor(options: SinkOptions) {
    this.#options = options;
  }

  async check(how: HttpCall, signal: AbortSignal): Promise<ActionProblem | undefined> {
    const about = { options: this.#options, signal };
    return firstProblem(
      addressProblem(how.url, "http.url", this.#options),
      how.undo && addressProblem(how.undo.url, "http.undo.url", this.#options),
      ...how.headers.map(
        ({ secretRef }, index) =>
          secretRef && secretProblem(secretRef, `http.headers[${index}].secretRef`, about),
      ),
    );
  }

  async prepare({ how }: ActionTask<"http">, signal: AbortSignal): Promise<Fields | undefined> {
    signal.throwIfAborted();
    return how.undo && { method: how.undo.method, url: how.undo.url };
  }

  async apply(task: PreparedTask<"http">, signal: AbortSignal): Promise<ActionDone> {
    return this.#send({ ...task, key: keyOfRun(task) }, task.how, signal);
  }

  async undo(task: PreparedTask<"http">, signal: AbortSignal): Promise<ActionDone> {
    const { how } = task;
    if (how.undo === undefined) return { detail: "the policy no longer defines how to undo it" };
    return this.#send({ ...task, key: `${keyOfRun(task)}/undo` }, how.undo, signal);
  }

  async #send(
    { how, key }: PreparedTask<"http">,
    { url, method, body }: HttpRequestSpec,
    signal: AbortSignal,
  ): Promise<ActionDone> {
    const { host } = new URL(url);
    const headers: Record<string, string> = {
      ...(body !== undefined && { "content-type": how.contentType }),
      "idempotency-key": key,
    };
    for (const { name, value, secretRef } of how.headers) {
      const secret =
        secretRef === undefined ? "" : await readSecret(secretRef, this.#options, signal);
      headers[name.toLowerCase()] = value + secret;
    }
    const what = `${method} to ${host}`;
    const request = { what: `send ${what}`, url, method, headers, body };
    const { status } = await sendOk(request, this.#options, signal);
    return { detail: `${what}, answered with ${status}` };
  }
}

/** An action that runs again after it was undone must not look like a repeat of its first run. */
function keyOfRun({ key, undo, startedAt }: PreparedTask<"http">): string {
  return undo === undefined || startedAt === undefined ? key : `${key}/${formatInstant(startedAt)}`;
}
