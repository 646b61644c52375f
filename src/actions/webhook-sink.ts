import { createHmac } from "node:crypto";
import { bytesOf, fitText } from "../core/action/template.ts";
import { formatInstant, type Instant } from "../core/time/time.ts";
import {
  addressProblem,
  firstProblem,
  type MessageSink,
  readSecret,
  secretProblem,
  sendOk,
} from "./action-sink.ts";

/** The size that every intermediary has to accept, by the CloudEvents specification. */
const mostEventBytes = 64 * 1024;

/**
 * Sends a CloudEvent in structured mode (`application/cloudevents+json`), signed by Standard
 * Webhooks (https://www.standardwebhooks.com). Its id is the same for every attempt.
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
