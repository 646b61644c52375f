import type {
  ActionDone,
  ActionProblem,
  ActionRunner,
  ActionTask,
  SecretReader,
} from "../contracts/action-runner.ts";
import type { Clock } from "../contracts/clock.ts";
import { parseJson } from "../core/json/json-field.ts";
import type { ActionKind, ActionOf, SecretRef } from "../core/policy/action.ts";
import { isLastcallError, LastcallError, messageOf } from "../errors.ts";
import { answerInvalid, faultOfAnswer, type HttpAnswer } from "./http-fault.ts";
import type { ActionRequest, HttpSender } from "./http-sender.ts";

/** What every sink works with. */
export interface SinkOptions {
  readonly sender: HttpSender;
  readonly secrets: SecretReader;
  readonly clock: Clock;
}

/** The answer, where it is a success. */
export async function sendOk(
  request: ActionRequest,
  { sender }: SinkOptions,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  const answer = await sender.send(request, signal);
  if (answer.status < 200 || answer.status > 299) throw faultOfAnswer(request.what, answer);
  return answer;
}

/** The JSON of an answer, where it is a success. */
export async function sendForJson(
  request: ActionRequest,
  options: SinkOptions,
  signal: AbortSignal,
): Promise<unknown> {
  const { body } = await sendOk(request, options, signal);
  const parsed = parseJson(body);
  if (parsed === undefined) throw answerInvalid(request.what, "its answer is no JSON");
  return parsed.value;
}

export function jsonRequest(body: unknown): Pick<ActionRequest, "headers" | "body"> {
  return { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

/** A secret without the line break that editors and `echo` put behind it. */
export async function readSecret(
  ref: SecretRef,
  { secrets, sender }: SinkOptions,
  signal: AbortSignal,
): Promise<string> {
  const text = (await secrets.read(ref, signal)).trim();
  sender.conceal(text);
  // A secret goes into a header or an address: one that cannot is refused without being shown.
  if (text !== "" && /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text)) return text;
  const problem = `Cannot use the key ${ref.key} of Secret ${ref.name}: found no printable ASCII on one line`;
  throw new LastcallError("SECRET_MISSING", problem);
}

/** What is wrong with an address that stands in the policy; undefined where nothing is. */
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

/** What is wrong with a secret; one that cannot be asked for now throws. */
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

/** An address from a Secret: checked like any other, and kept out of messages. */
export async function secretAddressProblem(
  ref: SecretRef,
  field: string,
  about: { readonly options: SinkOptions; readonly signal: AbortSignal },
): Promise<ActionProblem | undefined> {
  const problem = await secretProblem(ref, field, about);
  if (problem !== undefined) return problem;
  const url = await readSecret(ref, about.options, about.signal);
  return addressProblem(url, field, about.options);
}

/** The first of these that is wrong. */
export async function firstProblem(
  ...found: readonly (ActionProblem | undefined | Promise<ActionProblem | undefined>)[]
): Promise<ActionProblem | undefined> {
  const all = await Promise.all(found);
  return all.find((one) => one !== undefined);
}

/** What one kind of message differs in. */
export interface MessageSink<Kind extends ActionKind> {
  check(how: ActionOf<Kind>, about: SinkCall): Promise<ActionProblem | undefined>;
  send(task: ActionTask<Kind>, about: SinkCall): Promise<ActionDone>;
}

export interface SinkCall {
  readonly options: SinkOptions;
  readonly signal: AbortSignal;
}

/** A sent message cannot be recalled: there is nothing to prepare, and nothing to undo. */
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
