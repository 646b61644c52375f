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

/** How a request to one Alertmanager is made. */
interface Exchange {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/**
 * A silence by the Alertmanager API v2. Its comment ends with the key of the action, by which it is
 * found again: a repeat keeps it, and undoing it needs no id that nobody has written down. It is
 * looked for among the silences of its machine: a large Alertmanager has more than are read.
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
    // Its matchers may have been others when it was created.
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

  /** The silences of this action that have not ended. */
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
 * By which Alertmanager gives the silences of a machine: a matcher's value as its text, whether it
 * is a pattern or not. Undefined where no matcher names the machine.
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

/** What Alertmanager reads as one character; any other backslash stands for itself. */
const escapes = /\\([n"\\])/g;

/** `instance=~"n1:.*"` as the API has it. */
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
