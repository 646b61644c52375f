import type {
  ActionDone,
  ActionProblem,
  ActionRunner,
  ActionTask,
  SecretReader,
} from "../contracts/action-runner.ts";
import type { Clock } from "../contracts/clock.ts";
import { parseJson, textOf } from "../core/json/json-field.ts";
import type { ActionKind, ActionOf, SecretRef } from "../core/policy/action.ts";
import { isLastcallError, LastcallError, messageOf } from "../errors.ts";
import {
  type ActionRequest,
  answerInvalid,
  faultOfAnswer,
  type HttpAnswer,
  type HttpSender,
} from "./http-sender.ts";

/** The dependencies of every sink. */
export interface SinkOptions {
  readonly sender: HttpSender;
  readonly secrets: SecretReader;
  readonly clock: Clock;
}

/** Sends a request and returns a successful response. Throws otherwise. */
export async function sendOk(
  request: ActionRequest,
  { sender }: Pick<SinkOptions, "sender">,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  const answer = await sender.send(request, signal);
  if (answer.status < 200 || answer.status > 299) throw faultOfAnswer(request.what, answer);
  return answer;
}

/** Sends a request and returns the JSON of a successful response. Throws otherwise. */
export async function sendForJson(
  request: ActionRequest,
  options: Pick<SinkOptions, "sender">,
  signal: AbortSignal,
): Promise<unknown> {
  const { body } = await sendOk(request, options, signal);
  const parsed = parseJson(body);
  if (parsed === undefined) throw answerInvalid(request.what, "its response is not JSON");
  return parsed.value;
}

/**
 * An identifier in a receiver's response, the only text that is kept of it: the status of a
 * departure shows it. Undefined for anything that does not look like one.
 */
export function identifierOf(value: unknown): string | undefined {
  const text = textOf(value);
  return text !== undefined && /^[A-Za-z0-9._:-]{1,253}$/.test(text) ? text : undefined;
}

export function jsonRequest(body: unknown): Pick<ActionRequest, "headers" | "body"> {
  return { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

/** Reads a secret without the trailing line break that editors and `echo` add. */
export async function readSecret(
  ref: SecretRef,
  { secrets }: SinkOptions,
  signal: AbortSignal,
): Promise<string> {
  const text = (await secrets.read(ref, signal)).trim();
  // A secret becomes part of a header or an address: an unsuitable one is rejected, not shown.
  if (text !== "" && /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text)) return text;
  const problem = `Cannot use the key ${ref.key} of Secret ${ref.name}: found another value, expected one line of printable ASCII`;
  throw new LastcallError("SECRET_MISSING", problem);
}

/** The problem with an address in the policy; undefined if it is valid. */
export function addressProblem(
  url: string,
  field: string,
  { sender }: SinkOptions,
): ActionProblem | undefined {
  const found = sender.problemOf(url);
  if (found === undefined) return undefined;
  const wanted = "a host that --action-hosts names";
  return { code: "ACTION_HOST_FORBIDDEN", field, found, wanted };
}

/** The problem with a secret. Throws if it cannot be looked up now. */
export async function secretProblem(
  ref: SecretRef,
  field: string,
  about: { readonly options: SinkOptions; readonly signal: AbortSignal },
): Promise<ActionProblem | undefined> {
  try {
    await readSecret(ref, about.options, about.signal);
    return undefined;
  } catch (error) {
    if (!isLastcallError(error) || error.retryable) throw error;
    const found = `Secret ${ref.name}, key ${ref.key} (${messageOf(error)})`;
    return { code: error.code, field, found, wanted: "a Secret that Lastcall may read" };
  }
}

/** The problem with an address from a Secret, which must not appear in messages. */
export async function secretAddressProblem(
  ref: SecretRef,
  field: string,
  about: { readonly options: SinkOptions; readonly signal: AbortSignal },
  wanted = "the address of a webhook",
): Promise<ActionProblem | undefined> {
  const problem = await secretProblem(ref, field, about);
  if (problem !== undefined) return problem;
  const url = await readSecret(ref, about.options, about.signal);
  if (/^https?:/i.test(url)) return addressProblem(url, field, about.options);
  const found = `Secret ${ref.name}, key ${ref.key}: no http or https address`;
  return { code: "SECRET_MISSING", field, found, wanted };
}

/** The first of several problems. */
export async function firstProblem(
  ...found: readonly (ActionProblem | undefined | Promise<ActionProblem | undefined>)[]
): Promise<ActionProblem | undefined> {
  const all = await Promise.all(found);
  return all.find((one) => one !== undefined);
}

/** The parts that differ between kinds of messages. */
export interface MessageSink<Kind extends ActionKind> {
  check(how: ActionOf<Kind>, about: SinkCall): Promise<ActionProblem | undefined>;
  send(task: ActionTask<Kind>, about: SinkCall): Promise<ActionDone>;
}

export interface SinkCall {
  readonly options: SinkOptions;
  readonly signal: AbortSignal;
}

/** The runner for messages, which have nothing to prepare and cannot be undone. */
export function messageRunner<Kind extends ActionKind>(
  sink: MessageSink<Kind>,
  options: SinkOptions,
): ActionRunner<Kind> {
  return {
    check: (how, signal) => sink.check(how, { options, signal }),
    prepare: async (_, signal) => {
      signal.throwIfAborted();
      return undefined;
    },
    apply: async (task, signal) => {
      signal.throwIfAborted();
      return sink.send(task, { options, signal });
    },
    undo: async () => ({ detail: "a message stays" }),
  };
}
