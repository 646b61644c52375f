import type {
  ActionDone,
  ActionProblem,
  ActionRunner,
  ActionTask,
  PreparedTask,
} from "../contracts/action-runner.ts";
import type { Fields } from "../core/json/json-field.ts";
import type { HttpCall, HttpRequestSpec } from "../core/policy/action.ts";
import {
  addressProblem,
  firstProblem,
  readSecret,
  type SinkOptions,
  secretProblem,
  sendOk,
} from "./action-sink.ts";

/** Sends a request to any HTTP API, and optionally one that undoes it. */
export class HttpCaller implements ActionRunner<"http"> {
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
    return this.#send(task, task.how, signal);
  }

  async undo(task: PreparedTask<"http">, signal: AbortSignal): Promise<ActionDone> {
    const { how } = task;
    if (how.undo === undefined) return { detail: "the policy has nothing to undo it any more" };
    return this.#send(task, how.undo, signal);
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
