import type {
  ActionDone,
  ActionProblem,
  ActionRunner,
  ActionTarget,
  ActionTask,
  PreparedTask,
} from "../contracts/action-runner.ts";
import { type Fields, fieldsOf, listOf, textListOf, textOf } from "../core/json/json-field.ts";
import type { AlertmanagerSilence, DatadogMute, MackerelStatus } from "../core/policy/action.ts";
import { formatInstant, plus } from "../core/time/time.ts";
import { LastcallError } from "../errors.ts";
import {
  addressProblem,
  firstProblem,
  identifierOf,
  jsonRequest,
  readSecret,
  type SinkOptions,
  secretProblem,
  sendForJson,
  sendOk,
} from "./action-sink.ts";
import { addressUnder, answerInvalid, faultOfAnswer } from "./http-sender.ts";

type Task = ActionTask<"alertmanagerSilence">;

/** The access to one Alertmanager. */
interface MuteExchange {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/**
 * Creates silences with the Alertmanager API v2. The comment ends with the action's key, so that a
 * repeat finds the silence, and undoing it does not depend on a recorded id. It searches only the
 * silences of the machine, because a large Alertmanager has more than can be read.
 */
export class AlertmanagerSilencer implements ActionRunner<"alertmanagerSilence"> {
  readonly #options: SinkOptions;

  constructor(options: SinkOptions) {
    this.#options = options;
  }

  async check(how: AlertmanagerSilence, signal: AbortSignal): Promise<ActionProblem | undefined> {
    const options = this.#options;
    const field = "alertmanagerSilence.secretRef";
    return firstProblem(
      addressProblem(how.url, "alertmanagerSilence.url", options),
      how.secretRef && secretProblem(how.secretRef, field, { options, signal }),
    );
  }

  async prepare({ key, how, target }: Task, signal: AbortSignal): Promise<Fields> {
    signal.throwIfAborted();
    const filter = filterOf(how.matchers, target);
    return { key, ...(filter !== undefined && { filter }) };
  }

  async apply(task: PreparedTask<"alertmanagerSilence">, signal: AbortSignal): Promise<ActionDone> {
    const exchange = await this.#exchange(task.how, signal);
    const [there] = await this.#find(task, exchange, textOf(task.undo?.filter));
    if (there !== undefined) return { detail: "the silence already exists", reference: there };
    const now = this.#options.clock.now();
    const endsAt = formatInstant(plus(now, task.how.durationMs));
    const what = "create a silence in Alertmanager";
    const answer = await this.#ask("POST", exchange, {
      what,
      path: "/silences",
      body: {
        matchers: task.how.matchers.map(matcherOf),
        ...{ startsAt: formatInstant(now), endsAt, createdBy: "lastcall" },
        comment: `${task.how.comment} ${marked(task.key)}`,
      },
    });
    const id = identifierOf(fieldsOf(answer).silenceID);
    if (id === undefined) throw answerInvalid(what, "its response names no silence");
    return { detail: `silenced until ${endsAt}`, reference: id };
  }

  async undo(task: PreparedTask<"alertmanagerSilence">, signal: AbortSignal): Promise<ActionDone> {
    const exchange = await this.#exchange(task.how, signal);
    const own = await this.#find(task, exchange, textOf(task.undo?.filter));
    // The matchers may have changed since it was created.
    const ids = own.length > 0 ? own : await this.#find(task, exchange, undefined);
    for (const id of ids) {
      const { url, headers } = exchange;
      const what = "end a silence in Alertmanager";
      const request = { what, url: apiOf(url, `/silence/${id}`), method: "DELETE", headers };
      await sendOk(request, this.#options, signal);
    }
    return { detail: ids.length === 0 ? "there was no silence" : "the silence is ended" };
  }

  async #exchange(how: AlertmanagerSilence, signal: AbortSignal): Promise<MuteExchange> {
    const { url, secretRef } = how;
    if (secretRef === undefined) return { url, headers: {}, signal };
    const token = await readSecret(secretRef, this.#options, signal);
    return { url, headers: { authorization: `Bearer ${token}` }, signal };
  }

  /** The active and pending silences of this action. */
  async #find(
    { key }: Pick<Task, "key">,
    exchange: MuteExchange,
    filter: string | undefined,
  ): Promise<readonly string[]> {
    const what = "look for a silence in Alertmanager";
    const query = filter === undefined ? undefined : new URLSearchParams({ filter });
    const answer = await this.#ask("GET", exchange, { what, path: "/silences", query });
    return listOf(answer).flatMap((one) => {
      const { id, comment, status } = fieldsOf(one);
      const isOurs = textOf(comment)?.endsWith(marked(key)) === true;
      const isOver = fieldsOf(status).state === "expired";
      return isOurs && !isOver ? (identifierOf(id) ?? []) : [];
    });
  }

  async #ask(
    method: "GET" | "POST",
    { url, headers, signal }: MuteExchange,
    about: {
      readonly what: string;
      readonly path: string;
      readonly query?: URLSearchParams | undefined;
      readonly body?: unknown;
    },
  ): Promise<unknown> {
    const { what, path, query } = about;
    const body = about.body === undefined ? {} : jsonRequest(about.body);
    const all = { ...body.headers, ...headers };
    const request = { ...body, what, url: apiOf(url, path, query), method, headers: all };
    return sendForJson(request, this.#options, signal);
  }
}

function apiOf(url: string, path: string, query?: URLSearchParams): string {
  return addressUnder(url, `/api/v2${path}`, query);
}

function marked(key: string): string {
  return `[lastcall ${key}]`;
}

/**
 * The filter for the silences of a machine: since version 0.22, Alertmanager finds silences with
 * the same matcher, by its label, its kind and the text of its value, even if that is a pattern
 * (https://github.com/prometheus/alertmanager/pull/2443). Undefined if none names the machine.
 */
function filterOf(matchers: readonly string[], target: ActionTarget): string | undefined {
  const names = [target.node, target.instanceId].filter((one) => one !== undefined);
  const its = matchers.map(matcherOf).find(({ value, isEqual }) => {
    const plain = String(value).replaceAll("\\", "");
    return isEqual === true && names.some((one) => plain.includes(one));
  });
  const operator = its?.isRegex === true ? "=~" : "=";
  return its && `${its.name}${operator}"${String(its.value).replace(/[\\"]/g, "\\$&")}"`;
}

const matcherForm = /^(?<name>\w+) *(?<operator>=~|!~|!=|=) *(?<value>.*)$/s;

/** The escape sequences of Alertmanager; any other backslash is literal. */
const escapes = /\\([n"\\])/g;

/** Converts `instance=~"n1:.*"` to the API's matcher object. */
function matcherOf(matcher: string): Fields {
  const { name, operator = "=", value = "" } = matcherForm.exec(matcher)?.groups ?? {};
  const bare = value.startsWith('"') ? value.slice(1, -1) : value;
  return {
    name,
    value: bare.replace(escapes, (_, one: string) => (one === "n" ? "\n" : one)),
    isRegex: operator.endsWith("~"),
    isEqual: !operator.startsWith("!"),
  };
}

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
      ...{ url: addressUnder(how.url, "/api/v1/hosts", query), method: "GET" },
      headers: await this.#keys(how, signal),
    };
    const answer = fieldsOf(await sendForJson(request, this.#options, signal));
    if (!Array.isArray(answer.host_list)) {
      throw answerInvalid(request.what, "its response has no host_list");
    }
    const host = listOf(answer.host_list)
      .map(fieldsOf)
      .find((one) => one.name === how.host || textListOf(one.aliases).includes(how.host));
    if (host === undefined) {
      throw new LastcallError(
        "ACTION_TARGET_UNKNOWN",
        `Cannot mute ${how.host} in Datadog: there is no such host, correct datadogMute.host`,
      );
    }
    return { host: identifierOf(host.name) ?? how.host, wasMuted: host.is_muted === true };
  }

  async apply(
    { how, undo, departure }: PreparedTask<"datadogMute">,
    signal: AbortSignal,
  ): Promise<ActionDone> {
    if (undo?.wasMuted === true) return { detail: "the host was already muted" };
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
      url: addressUnder(how.url, `/api/v1/host/${host}/${act}`),
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
      ...{ url: addressUnder(how.url, "/api/v0/hosts", query), method: "GET" },
      headers: await this.#key(how, by.signal),
    };
    const answer = fieldsOf(await sendForJson(request, this.#options, by.signal));
    if (!Array.isArray(answer.hosts)) {
      throw answerInvalid(request.what, "its response has no hosts");
    }
    const host = fieldsOf(listOf(answer.hosts)[0]);
    const [hostId, status] = [identifierOf(host.id), identifierOf(host.status)];
    return hostId === undefined || status === undefined ? undefined : { hostId, status };
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
      url: addressUnder(how.url, `/api/v0/hosts/${id}/status`),
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
