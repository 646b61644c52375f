import type { EarlierAction } from "../contracts/action-runner.ts";
import { bytesOf, fitText } from "../core/action/template.ts";
import { excerpt, fieldsOf, textOf } from "../core/json/json-field.ts";
import type { SecretRef } from "../core/policy/action.ts";
import { type ErrorCode, LastcallError } from "../errors.ts";
import {
  addressProblem,
  firstProblem,
  jsonRequest,
  type MessageSink,
  readSecret,
  type SinkCall,
  secretAddressProblem,
  secretProblem,
  sendForJson,
  sendOk,
} from "./action-sink.ts";
import { answerInvalid } from "./http-fault.ts";

const slackApi = "https://slack.com/api";
/** The limit of the field `text` in characters; Slack truncates or rejects longer texts. */
const longestSlack = 40_000;

/**
 * Slack: an incoming webhook, or with a channel the bot method chat.postMessage. Only the latter
 * returns the id of the message, which later messages reply to.
 */
export const slackSink: MessageSink<"slack"> = {
  check: async ({ channel, url, secretRef }, about) => {
    const api = url ?? (channel === undefined ? undefined : slackApi);
    const ofSecret = channel === undefined ? secretAddressProblem : secretProblem;
    return firstProblem(
      api === undefined ? undefined : addressProblem(api, "slack.url", about.options),
      secretRef && ofSecret(secretRef, "slack.secretRef", about),
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
    url: `${(url ?? slackApi).replace(/\/+$/, "")}/chat.postMessage`,
    ...{ method: "POST", body, headers: { ...headers, authorization: `Bearer ${token}` } },
  };
  const answer = fieldsOf(await sendForJson(request, options, signal));
  const ts = textOf(answer.ts);
  if (answer.ok === true && ts !== undefined) return ts;
  throw slackFault(textOf(answer.error));
}

/** Slack responds with 200 even to errors: https://api.slack.com/methods/chat.postMessage. */
function slackFault(error: string | undefined): LastcallError {
  if (error === undefined) return answerInvalid("send to Slack", "its answer names no message");
  return new LastcallError(slackCode(error), `Cannot send to Slack: found ${excerpt(error)}`);
}

function slackCode(error: string): ErrorCode {
  if (error === "ratelimited" || error === "rate_limited") return "ACTION_RATE_LIMITED";
  if (/^(internal_error|fatal_error|service_unavailable|request_timeout)$/.test(error)) {
    return "ACTION_UNREACHABLE";
  }
  if (/auth|token|scope|account_inactive|access|not_allowed|restricted/.test(error)) {
    return "ACTION_RIGHT_MISSING";
  }
  return /not_found|not_in_channel|is_archived/.test(error)
    ? "ACTION_TARGET_UNKNOWN"
    : "ACTION_REFUSED";
}

/** Teams accepts messages up to 28 KB. */
const mostCardBytes = 28_000;

/** A card for a Teams workflow, which responds with 202. */
export const teamsSink: MessageSink<"teams"> = {
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
    await sendOk(request, about.options, about.signal);
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
export const telegramSink: MessageSink<"telegram"> = {
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
      url: `${how.url.replace(/\/+$/, "")}/bot${encodeURIComponent(token).replaceAll("%3A", ":")}/sendMessage`,
      method: "POST",
      ...jsonRequest({
        ...{ chat_id: how.chatId, text },
        ...(thread !== undefined && { reply_parameters: answering }),
      }),
    };
    const { result } = fieldsOf(await sendForJson(request, options, signal));
    const id = fieldsOf(result).message_id;
    if (typeof id !== "number") throw answerInvalid(request.what, "its answer names no message");
    const detail = thread === undefined ? "sent" : "sent as an answer to the first";
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
