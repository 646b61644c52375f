import type {
  ActionDone,
  ActionRunner,
  ActionTarget,
  ActionTask,
  PreparedTask,
} from "../../contracts/action-runner.ts";
import type { Clock } from "../../contracts/clock.ts";
import { templateFacts } from "../../core/action/action-plan.ts";
import { renderAction } from "../../core/action/template.ts";
import { backoffMs, type Rng } from "../../core/chance/chance.ts";
import { instanceIdOf } from "../../core/cluster/node.ts";
import type { ActionRecord, Departure } from "../../core/departure/departure.ts";
import type { Fields } from "../../core/json/json-field.ts";
import type { Action, ActionSpec } from "../../core/policy/action.ts";
import {
  between,
  earlier,
  type Instant,
  type Millis,
  millis,
  minutes,
  plus,
  seconds,
} from "../../core/time/time.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";

/** The result of an action after all its attempts. */
export type ActionEnd =
  | { readonly kind: "Done"; readonly done: ActionDone; readonly attempts: number }
  | {
      readonly kind: "Failed";
      readonly code: string;
      readonly detail: string;
      readonly attempts: number;
    };

export interface ActionAttemptOptions {
  readonly clock: Clock;
  readonly rng: Rng;
  readonly runner: ActionRunner;
  /** No attempt starts after it. Evaluated before each, since it may move earlier. */
  readonly deadlineAt: () => Instant | undefined;
  /** What the end means, for messages. Default: the departure's deadline has passed. */
  readonly whyOver?: string | undefined;
  /** Whether the departure is being rolled back, so nothing more may be changed. Default: never. */
  readonly isRolledBack?: () => boolean;
  /** Called before and after each call that may change something. */
  readonly onAsked?: (isAsked: boolean) => void;
  /** Stores the undo record before anything is changed. */
  readonly keep: (undo: Fields) => Promise<void>;
  readonly signal: AbortSignal;
}

/** The abort reason of an action that had not run before its departure was rolled back. */
export const rolledBack = "the departure is rolled back";

/** A task without the end of its attempt. */
export type OpenTask = Omit<ActionTask, "endsAt">;

/** The task of a departure's action, with its templates rendered for the current state. */
export function taskFor(
  action: Action,
  departure: Departure,
  about: { readonly policy: string; readonly addresses: ActionTarget["addresses"] },
): OpenTask {
  const { node, name, uid, status } = departure;
  const others = (status.actions ?? []).filter((one) => one.name !== action.name);
  const told = { ...departure, status: { ...status, actions: others } };
  return {
    name: action.name,
    how: renderAction(action.how, templateFacts(told, about.policy)),
    departure: name,
    key: `${uid}/${action.name}`,
    startedAt: status.actions?.find((one) => one.name === action.name)?.startedAt,
    earlier: others.flatMap(({ name: earlier, kind, reference }) =>
      reference === undefined ? [] : [{ name: earlier, kind, reference }],
    ),
    target: {
      node: node.name,
      nodeUid: node.uid,
      providerID: node.providerID,
      instanceId: instanceIdOf(node),
      addresses: about.addresses,
    },
  };
}

/**
 * Runs one action: prepares it, stores its undo record, and applies it, each within the action's
 * timeout, with retries after retryable errors, never past the deadline. `kept` is the record of an
 * earlier process. Rejects only with the signal's reason, and with `rolledBack` if nothing was
 * changed before the roll-back.
 */
export async function carryOut(
  action: Action,
  task: OpenTask,
  options: ActionAttemptOptions & { readonly kept?: Fields | undefined },
): Promise<ActionEnd> {
  let undo = options.kept;
  const keep = async (found: Fields) => {
    await options.keep(found);
    // Only now, because an action without a stored record must not be applied.
    undo = found;
  };
  return attempting(action, options, async ({ endsAt, within, before }) => {
    const whole = { ...task, endsAt };
    if (undo === undefined) {
      const found = await within((signal) => options.runner.prepare(whole, signal));
      if (found !== undefined) await keep(found);
    }
    if (options.isRolledBack?.() === true) throw before ?? rolledBack;
    const prepared: PreparedTask = { ...whole, undo, keep };
    options.onAsked?.(true);
    try {
      return await within((signal) => options.runner.apply(prepared, signal));
    } finally {
      options.onAsked?.(false);
    }
  });
}

/** Undoes what an action has changed, without a deadline. */
export async function takeBack(
  action: Pick<Action, "timeoutMs" | "retries">,
  task: OpenTask & { readonly undo: Fields },
  options: Omit<ActionAttemptOptions, "deadlineAt" | "keep" | "isRolledBack">,
): Promise<ActionEnd> {
  const unbounded = { ...options, deadlineAt: () => undefined };
  return attempting(action, unbounded, ({ endsAt, within }) =>
    within((signal) => options.runner.undo({ ...task, endsAt }, signal)),
  );
}

/** The first pause after an error of the receiver. */
const firstPauseMs: Millis = millis(500);

/** The first pause after throttling: chats accept one message a second. */
const firstBusyPauseMs: Millis = seconds(2);

/** The longest `Retry-After` that is honored: later, the action is useless. */
const longestAskedMs: Millis = minutes(1);

/**
 * For how long a receiver that asks to come back later does not use up the retries: in a burst of
 * departures, most messages to a chat are refused a few times, and none is to be lost for it.
 */
const busyMs: Millis = minutes(5);

interface Attempt {
  readonly endsAt: Instant;
  readonly within: <T>(work: (signal: AbortSignal) => Promise<T>) => Promise<T>;
  /** The result of the previous attempt. */
  readonly before: unknown;
}

async function attempting(
  { timeoutMs, retries }: Pick<Action, "timeoutMs" | "retries">,
  options: Pick<
    ActionAttemptOptions,
    "clock" | "rng" | "deadlineAt" | "whyOver" | "isRolledBack" | "signal"
  >,
  work: (attempt: Attempt) => Promise<ActionDone>,
): Promise<ActionEnd> {
  const { clock, rng, signal, deadlineAt, whyOver, isRolledBack } = options;
  const busyUntil = plus(clock.now(), busyMs);
  let fault: unknown;
  let used = 0;
  for (let attempts = 1; ; attempts += 1) {
    signal.throwIfAborted();
    const now = clock.now();
    if ((deadlineAt() ?? Number.POSITIVE_INFINITY) <= now) {
      return failed(deadlinePassed(fault, whyOver), attempts - 1);
    }
    const timeoutAt = plus(now, timeoutMs);
    // A notice may arrive, or its deadline move earlier, during an attempt.
    const limit: Limit = {
      ...{ clock, signal },
      endsAt: () => earlier(timeoutAt, deadlineAt() ?? timeoutAt),
      late: () => (clock.now() >= timeoutAt ? timedOut(timeoutMs) : deadlinePassed(fault, whyOver)),
    };
    try {
      const within: Attempt["within"] = (step) => withinLimit(step, limit);
      const done = await work({ endsAt: limit.endsAt(), within, before: fault });
      return { kind: "Done", done, attempts };
    } catch (error) {
      signal.throwIfAborted();
      if (error === rolledBack) throw error;
      if (error === fault) return failed(error, attempts - 1);
      used += isBusy(error) && clock.now() < busyUntil ? 0 : 1;
      const isOver = !isLastcallError(error) || !error.retryable || used > retries;
      if (isOver || isRolledBack?.() === true) return failed(error, attempts);
      fault = error;
    }
    const againAt = plus(clock.now(), pauseAfter(fault, attempts, rng));
    try {
      await untilLate({ clock, endsAt: () => earlier(againAt, deadlineAt() ?? againAt) }, signal);
    } catch (error) {
      // What an attempt has changed cannot be known: it has failed, and is not as if never run.
      if (isRolledBack?.() === true) return failed(fault, attempts);
      throw error;
    }
  }
}

function isBusy(error: unknown): boolean {
  return isLastcallError(error) && error.code === "ACTION_RATE_LIMITED";
}

/** The receiver's `Retry-After` plus a random backoff, so that many do not retry together. */
function pauseAfter(fault: unknown, attempts: number, rng: Rng): Millis {
  const { retryAfterMs = 0 } = isLastcallError(fault) ? fault : {};
  const firstMs = isBusy(fault) ? firstBusyPauseMs : firstPauseMs;
  const ownMs = backoffMs(attempts - 1, rng, { firstMs });
  return millis(Math.min(retryAfterMs, longestAskedMs) + ownMs);
}

/** The result of an action that failed for good. */
export function failed(error: unknown, attempts: number): ActionEnd {
  const code = isLastcallError(error) ? error.code : "UNEXPECTED";
  return { kind: "Failed", code, detail: messageOf(error), attempts };
}

/** The result of an action of a type that this version does not support. */
export function unsupported(how: ActionSpec): ActionEnd {
  const kind = how.kind === "unknown" ? how.field : how.kind;
  const detail = `Cannot carry out the action: this version does not support ${kind}, upgrade Lastcall or remove the action from the policy`;
  return { kind: "Failed", code: "ACTION_UNSUPPORTED", detail, attempts: 0 };
}

/** The result of an undo that takes an address or a Secret which only the policy had. */
export function lostWithPolicy({ kind, attempts }: ActionRecord): ActionEnd {
  const detail = `Cannot undo ${kind}: the policy no longer has it, with the address or the Secret that this takes, undo it by hand`;
  return { kind: "Failed", code: "ACTION_UNSUPPORTED", detail, attempts };
}

function timedOut(timeoutMs: number): LastcallError {
  const problem = `Cannot carry out the action: it did not end within its timeout of ${timeoutMs / 1000} s`;
  return new LastcallError("ACTION_TIMEOUT", problem);
}

/** The result of an action that ran out of time. `before` is the last error. */
function deadlinePassed(
  before: unknown,
  whyOver = "the deadline of the departure has passed",
): LastcallError {
  const after = before === undefined ? "" : `; before that: ${messageOf(before)}`;
  return new LastcallError("ACTION_DEADLINE", `Cannot carry out the action: ${whyOver}${after}`);
}

interface Limit {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** The current end. */
  readonly endsAt: () => Instant;
  readonly late: () => LastcallError;
}

/** How often the end of an attempt is evaluated, since a deadline may move earlier. */
const lookMs: Millis = seconds(1);

/** Runs a step within its limit, even if the runner ignores its signal. */
async function withinLimit<T>(step: (signal: AbortSignal) => Promise<T>, limit: Limit): Promise<T> {
  const { clock, endsAt, late, signal } = limit;
  signal.throwIfAborted();
  if (clock.now() >= endsAt()) throw late();
  const over = new AbortController();
  const done = new AbortController();
  const until = AbortSignal.any([signal, over.signal]);
  const ended = new Promise<never>((_, reject) => {
    until.addEventListener("abort", () => reject(until.reason), { once: true });
  });
  // After the race, a rejection would have no handler.
  ended.catch(() => undefined);
  untilLate(limit, done.signal).then(
    () => over.abort(late()),
    () => undefined,
  );
  try {
    const work = step(until);
    work.catch(() => undefined);
    return await Promise.race([work, ended]);
  } finally {
    done.abort();
  }
}

async function untilLate(
  { clock, endsAt }: Pick<Limit, "clock" | "endsAt">,
  signal: AbortSignal,
): Promise<void> {
  for (let now = clock.now(); now < endsAt(); now = clock.now()) {
    await clock.sleep(millis(Math.min(lookMs, between(now, endsAt()))), signal);
  }
}
