import { createHmac } from "node:crypto";
import { bytesOf, fitText } from "../core/action/fit-text.ts";
import { formatInstant, type Instant } from "../core/time/time.ts";
import {
  addressProblem,
  firstProblem,
  type MessageSink,
  readSecret,
  secretProblem,
  sendOk,
} from "./action-sink.ts";

/** Whoever hands an event on has to take so much of one, by the specification of CloudEvents. */
const mostEventBytes = 64 * 1024;

/**
 * A CloudEvent in the structured mode (`application/cloudevents+json`), signed as Standard Webhooks
 * has it: https://www.standardwebhooks.com. Its id is the same at each attempt.
 */
export const cloudEventsSink: MessageSink<"cloudEvents"> = {
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

/** The headers by which a receiver tells that a request is ours and fresh. */
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
