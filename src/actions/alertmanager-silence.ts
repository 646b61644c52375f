import type {
  ActionDone,
  ActionProblem,
  ActionRunner,
  ActionTarget,
  ActionTask,
  PreparedTask,
} from "../contracts/action-runner.ts";
import { type Fields, fieldsOf, listOf, textOf } from "../core/json/json-field.ts";
import type { AlertmanagerSilence } from "../core/policy/action.ts";
import { formatInstant, plus } from "../core/time/time.ts";
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
import { answerInvalid } from "./http-fault.ts";

type Task = ActionTask<"alertmanagerSilence">;

/** The access to one Alertmanager. */
interface Exchange {
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
    if (there !== undefined) return { detail: "the silence is there already", reference: there };
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
    const id = textOf(fieldsOf(answer).silenceID);
    if (id === undefined) throw answerInvalid(what, "its answer names no silence");
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
      const request = { what, url: `${apiOf(url)}/silence/${id}`, method: "DELETE", headers };
      await sendOk(request, this.#options, signal);
    }
    return { detail: ids.length === 0 ? "there was no silence" : "the silence is ended" };
  }

  async #exchange(how: AlertmanagerSilence, signal: AbortSignal): Promise<Exchange> {
    const { url, secretRef } = how;
    if (secretRef === undefined) return { url, headers: {}, signal };
    const token = await readSecret(secretRef, this.#options, signal);
    return { url, headers: { authorization: `Bearer ${token}` }, signal };
  }

  /** The active and pending silences of this action. */
  async #find(
    { key }: Pick<Task, "key">,
    exchange: Exchange,
    filter: string | undefined,
  ): Promise<readonly string[]> {
    const what = "look for a silence in Alertmanager";
    const query = filter === undefined ? "" : `?${new URLSearchParams({ filter })}`;
    const answer = await this.#ask("GET", exchange, { what, path: `/silences${query}` });
    return listOf(answer).flatMap((one) => {
      const { id, comment, status } = fieldsOf(one);
      const isOurs = textOf(comment)?.endsWith(marked(key)) === true;
      const isOver = fieldsOf(status).state === "expired";
      return isOurs && !isOver && typeof id === "string" ? [id] : [];
    });
  }

  async #ask(
    method: "GET" | "POST",
    { url, headers, signal }: Exchange,
    about: { readonly what: string; readonly path: string; readonly body?: unknown },
  ): Promise<unknown> {
    const { what, path } = about;
    const body = about.body === undefined ? {} : jsonRequest(about.body);
    const all = { ...body.headers, ...headers };
    const request = { ...body, what, url: apiOf(url) + path, method, headers: all };
    return sendForJson(request, this.#options, signal);
  }
}

function apiOf(url: string): string {
  return `${url.replace(/\/+$/, "")}/api/v2`;
}

function marked(key: string): string {
  return `[lastcall ${key}]`;
}

/**
 * The filter for the silences of a machine: Alertmanager compares it with a matcher's value as
 * text, even if that is a pattern. Undefined if no matcher names the machine.
 */
function filterOf(matchers: readonly string[], target: ActionTarget): string | undefined {
  const names = [target.node, target.instanceId].filter((one) => one !== undefined);
  const all = matchers.map(matcherOf);
  const its = all.find(({ name, value, isEqual }) => {
    const plain = String(value).replaceAll("\\", "");
    const isAlone = all.filter((one) => one.name === name).length === 1;
    return isEqual === true && isAlone && names.some((one) => plain.includes(one));
  });
  return its && `${its.name}="${String(its.value).replace(/[\\"]/g, "\\$&")}"`;
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
