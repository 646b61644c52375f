import type {
  ActionDone,
  ActionProblem,
  ActionRunner,
  ActionTask,
  PreparedTask,
} from "../contracts/action-runner.ts";
import { type Fields, fieldsOf, listOf, textOf } from "../core/json/json-field.ts";
import type { MackerelStatus } from "../core/policy/action.ts";
import { LastcallError } from "../errors.ts";
import {
  addressProblem,
  firstProblem,
  jsonRequest,
  readSecret,
  type SinkOptions,
  secretProblem,
  sendForJson,
} from "./action-sink.ts";
import { faultOfAnswer } from "./http-fault.ts";

/** Sets a host's status with the Mackerel API v0 (`/api/v0/hosts/{id}/status`). */
export class MackerelStatusSetter implements ActionRunner<"mackerelStatus"> {
  readonly #options: SinkOptions;

  constructor(options: SinkOptions) {
    this.#options = options;
  }

  async check(how: MackerelStatus, signal: AbortSignal): Promise<ActionProblem | undefined> {
    const about = { options: this.#options, signal };
    return firstProblem(
      addressProblem(how.url, "mackerelStatus.url", this.#options),
      secretProblem(how.secretRef, "mackerelStatus.secretRef", about),
    );
  }

  /** Finds the host by name, or by the custom identifier of its agent or cloud integration. */
  async prepare({ how }: ActionTask<"mackerelStatus">, signal: AbortSignal): Promise<Fields> {
    for (const field of ["name", "customIdentifier"] as const) {
      const host = await this.#findHost(how, { field, signal });
      if (host !== undefined) return host;
    }
    throw new LastcallError(
      "ACTION_TARGET_UNKNOWN",
      `Cannot set the status of ${how.host} in Mackerel: there is no such host, correct mackerelStatus.host`,
    );
  }

  async #findHost(
    how: MackerelStatus,
    by: { readonly field: "name" | "customIdentifier"; readonly signal: AbortSignal },
  ): Promise<Fields | undefined> {
    const query = new URLSearchParams({ [by.field]: how.host });
    for (const status of ["working", "standby", "maintenance", "poweroff"]) {
      query.append("status", status);
    }
    const request = {
      what: "look for the host in Mackerel",
      ...{ url: `${how.url.replace(/\/+$/, "")}/api/v0/hosts?${query}`, method: "GET" },
      headers: await this.#key(how, by.signal),
    };
    const answer = fieldsOf(await sendForJson(request, this.#options, by.signal));
    const { id, status } = fieldsOf(listOf(answer.hosts)[0]);
    if (textOf(id) === undefined || textOf(status) === undefined) return undefined;
    return { hostId: id, status };
  }

  async apply(task: PreparedTask<"mackerelStatus">, signal: AbortSignal): Promise<ActionDone> {
    const { how } = task;
    await this.#set(task, { status: how.status, signal });
    return { detail: `${how.status}, was ${String(task.undo?.status)}` };
  }

  async undo(task: PreparedTask<"mackerelStatus">, signal: AbortSignal): Promise<ActionDone> {
    const status = String(task.undo?.status);
    await this.#set(task, { status, signal });
    return { detail: `${status} again` };
  }

  async #set(
    { how, undo }: PreparedTask<"mackerelStatus">,
    to: { readonly status: string; readonly signal: AbortSignal },
  ): Promise<void> {
    const { status, signal } = to;
    const id = encodeURIComponent(String(undo?.hostId));
    const { headers, body } = jsonRequest({ status });
    const request = {
      what: "set the status of the host in Mackerel",
      url: `${how.url.replace(/\/+$/, "")}/api/v0/hosts/${id}/status`,
      ...{ method: "POST", body, headers: { ...headers, ...(await this.#key(how, signal)) } },
    };
    const answer = await this.#options.sender.send(request, signal);
    const isRetired = answer.status === 404 && status === String(undo?.status);
    if (answer.status > 299 && !isRetired) throw faultOfAnswer(request.what, answer);
  }

  async #key(how: MackerelStatus, signal: AbortSignal): Promise<Record<string, string>> {
    return { "x-api-key": await readSecret(how.secretRef, this.#options, signal) };
  }
}
