import type {
  ActionDone,
  ActionProblem,
  ActionRunner,
  ActionTask,
  PreparedTask,
} from "../contracts/action-runner.ts";
import { type Fields, fieldsOf, listOf, textListOf } from "../core/json/json-field.ts";
import type { DatadogMute } from "../core/policy/action.ts";
import { formatInstant, plus } from "../core/time/time.ts";
import { LastcallError } from "../errors.ts";
import {
  addressProblem,
  firstProblem,
  jsonRequest,
  readSecret,
  type SinkOptions,
  secretProblem,
  sendForJson,
  sendOk,
} from "./action-sink.ts";
import { faultOfAnswer } from "./http-fault.ts";

/**
 * Mutes a host with Datadog's API v1 (`/api/v1/host/{host}/mute`). A host that somebody else has
 * muted before is not unmuted.
 */
export class DatadogMuter implements ActionRunner<"datadogMute"> {
  readonly #options: SinkOptions;

  constructor(options: SinkOptions) {
    this.#options = options;
  }

  async check(how: DatadogMute, signal: AbortSignal): Promise<ActionProblem | undefined> {
    const about = { options: this.#options, signal };
    return firstProblem(
      addressProblem(how.url, "datadogMute.url", this.#options),
      secretProblem(how.apiKey, "datadogMute.apiKey.secretRef", about),
      secretProblem(how.applicationKey, "datadogMute.applicationKey.secretRef", about),
    );
  }

  async prepare({ how }: ActionTask<"datadogMute">, signal: AbortSignal): Promise<Fields> {
    const query = new URLSearchParams({ filter: `host:${how.host}`, count: "100" });
    const request = {
      what: "look for the host in Datadog",
      ...{ url: `${how.url.replace(/\/+$/, "")}/api/v1/hosts?${query}`, method: "GET" },
      headers: await this.#keys(how, signal),
    };
    const answer = fieldsOf(await sendForJson(request, this.#options, signal));
    const host = listOf(answer.host_list)
      .map(fieldsOf)
      .find((one) => one.name === how.host || textListOf(one.aliases).includes(how.host));
    if (host === undefined) {
      throw new LastcallError(
        "ACTION_TARGET_UNKNOWN",
        `Cannot mute ${how.host} in Datadog: there is no such host, correct datadogMute.host`,
      );
    }
    return { host: String(host.name ?? how.host), wasMuted: host.is_muted === true };
  }

  async apply(
    { how, undo, departure }: PreparedTask<"datadogMute">,
    signal: AbortSignal,
  ): Promise<ActionDone> {
    if (undo?.wasMuted === true) return { detail: "the host was muted already" };
    const endsAt = plus(this.#options.clock.now(), how.durationMs);
    const body = { end: Math.floor(endsAt / 1000), message: `lastcall ${departure}` };
    // Idempotent: repeats what an earlier leader may have done.
    await this.#change("mute", { how, undo, body: { ...body, override: true } }, signal);
    return { detail: `muted until ${formatInstant(endsAt)}` };
  }

  async undo({ how, undo }: PreparedTask<"datadogMute">, signal: AbortSignal): Promise<ActionDone> {
    if (undo?.wasMuted === true) return { detail: "the host had been muted before" };
    await this.#change("unmute", { how, undo, body: {} }, signal);
    return { detail: "the host is unmuted" };
  }

  async #change(
    act: "mute" | "unmute",
    about: { readonly how: DatadogMute; readonly undo: Fields | undefined; readonly body: object },
    signal: AbortSignal,
  ): Promise<void> {
    const { how, undo } = about;
    const host = encodeURIComponent(String(undo?.host ?? how.host));
    const { headers, body } = jsonRequest(about.body);
    const request = {
      what: `${act} the host in Datadog`,
      url: `${how.url.replace(/\/+$/, "")}/api/v1/host/${host}/${act}`,
      method: "POST",
      ...{ body, headers: { ...headers, ...(await this.#keys(how, signal)) } },
    };
    if (act === "mute") {
      await sendOk(request, this.#options, signal);
      return;
    }
    const answer = await this.#options.sender.send(request, signal);
    // A host that is gone, or was never muted because the process crashed, needs no change.
    const isUnmuted =
      answer.status === 404 || (answer.status === 400 && notMuted.test(answer.body));
    if (!isUnmuted && answer.status > 299) throw faultOfAnswer(request.what, answer);
  }

  async #keys(how: DatadogMute, signal: AbortSignal): Promise<Record<string, string>> {
    const [apiKey, applicationKey] = await Promise.all([
      readSecret(how.apiKey, this.#options, signal),
      readSecret(how.applicationKey, this.#options, signal),
    ]);
    return { "dd-api-key": apiKey, "dd-application-key": applicationKey };
  }
}

const notMuted = /not (currently )?muted|already unmuted/i;
