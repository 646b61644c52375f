import type {
  ActionDone,
  ActionRunner,
  ActionTarget,
  ActionTask,
  PreparedTask,
} from "../../contracts/action-runner.ts";
import type { Clock } from "../../contracts/clock.ts";
import { templateFacts } from "../../core/action/facts.ts";
import { renderAction } from "../../core/action/render.ts";
import { backoffMs } from "../../core/chance/backoff.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { instanceIdOf } from "../../core/cluster/node.ts";
import type { Departure } from "../../core/departure/departure.ts";
import type { Fields } from "../../core/json/json-field.ts";
import type { Action } from "../../core/policy/action.ts";
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

/** What one action came to, after all its attempts. */
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
  /** Nothing is begun after it; asked before each attempt, since it may come nearer. */
  readonly deadlineAt: () => Instant | undefined;
  /** What has happened then, for people; absent: the deadline of the departure has passed. */
  readonly whyOver?: string | undefined;
  /**
   * Whether the departure is being rolled back, so that nothing else is to be changed for it.
   * Absent: nobody does that.
   */
  readonly isTakenBack?: () => boolean;
  /** Told before and after each call that may change something; absent: nobody asks. */
  readonly onAsked?: (isAsked: boolean) => void;
  /** Keeps what it takes to undo the action, before anything is changed. */
  readonly keep: (undo: Fields) => Promise<void>;
  readonly signal: AbortSignal;
}

/** Why an action ends that was not carried out before its departure was rolled back. */
export const rolledBack = "the departure is rolled back";

/** A task but for when its attempt ends. */
export type OpenTask = Omit<ActionTask, "endsAt">;

/** An action of a departure as it stands now, with its templates rendered. */
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
 * Carries out one action: prepares it, has its undo record kept, and applies it; each within the
 * action's timeout, and again after a fault that may pass, never past the deadline. `kept`: the
 * record of a process before this one. Rejects only with the reason of its signal, and with
 * `rolledBack` where nothing was changed before that.
 */
export async function carryOut(
  action: Action,
  task: OpenTask,
  options: ActionAttemptOptions & { readonly kept?: Fields | undefined },
): Promise<ActionEnd> {
  let undo = options.kept;
  const keep = async (found: Fields) => {
    await options.keep(found);
    // Only now: what could not be kept is not acted upon.
    undo = found;
  };
  return attempting(action, options, async ({ endsAt, within, before }) => {
    const whole = { ...task, endsAt };
    if (undo === undefined) {
      const found = await within((signal) => options.runner.prepare(whole, signal));
      if (found !== undefined) await keep(found);
    }
    if (options.isTakenBack?.() === true) throw before ?? rolledBack;
    const prepared: PreparedTask = { ...whole, undo, keep };
    options.onAsked?.(true);
    try {
      return await within((signal) => options.runner.apply(prepared, signal));
    } finally {
      options.onAsked?.(false);
    }
  });
}

/** Puts back what an action has changed. No deadline holds here. */
export async function takeBack(
  action: Pick<Action, "timeoutMs" | "retries">,
  task: OpenTask & { readonly undo: Fields },
  options: Omit<ActionAttemptOptions, "deadlineAt" | "keep" | "isTakenBack">,
): Promise<ActionEnd> {
  const unbounded = { ...options, deadlineAt: () => undefined };
  return attempting(action, unbounded, ({ endsAt, within }) =>
    within((signal) => options.runner.undo({ ...task, endsAt }, signal)),
  );
}

/** A receiver that has just failed is given so long before it is asked again. */
const firstPauseMs: Millis = millis(500);
/** And one that is asked too often: chats take a message a second. */
const firstBusyPauseMs: Millis = seconds(2);
/** A receiver that asks for more is asked after so long all the same: later nobody needs it. */
const longestAskedMs: Millis = minutes(1);

interface Attempt {
  readonly endsAt: Instant;
  readonly within: <T>(work: (signal: AbortSignal) => Promise<T>) => Promise<T>;
  /** What the attempt before it came to. */
  readonly before: unknown;
}

async function attempting(
  { timeoutMs, retries }: Pick<Action, "timeoutMs" | "retries">,
  options: Pick<
    ActionAttemptOptions,
    "clock" | "rng" | "deadlineAt" | "whyOver" | "isTakenBack" | "signal"
  >,
  work: (attempt: Attempt) => Promise<ActionDone>,
): Promise<ActionEnd> {
  const { clock, rng, signal, deadlineAt, whyOver, isTakenBack } = options;
  let fault: unknown;
  for (let attempts = 1; ; attempts += 1) {
    signal.throwIfAborted();
    const now = clock.now();
    if ((deadlineAt() ?? Number.POSITIVE_INFINITY) <= now) {
      return failed(deadlinePassed(fault, whyOver), attempts - 1);
    }
    const timeoutAt = plus(now, timeoutMs);
    // A notice may come, or its deadline come nearer, while an attempt goes on.
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
      const isOver = !isLastcallError(error) || !error.retryable || attempts > retries;
      if (isOver || isTakenBack?.() === true) return failed(error, attempts);
      fault = error;
    }
    const againAt = plus(clock.now(), pauseAfter(fault, attempts, rng));
    await untilLate({ clock, endsAt: () => earlier(againAt, deadlineAt() ?? againAt) }, signal);
  }
}

/** What the receiver has asked for, and on top of it what keeps many from returning together. */
function pauseAfter(fault: unknown, attempts: number, rng: Rng): Millis {
  const { code, retryAfterMs = 0 } = isLastcallError(fault) ? fault : {};
  const firstMs = code === "ACTION_RATE_LIMITED" ? firstBusyPauseMs : firstPauseMs;
  const ownMs = backoffMs(attempts - 1, rng, { firstMs });
  return millis(Math.min(retryAfterMs, longestAskedMs) + ownMs);
}

/** How an action ends by a fault that nobody tries again. */
export function failed(error: unknown, attempts: number): ActionEnd {
  const code = isLastcallError(error) ? error.code : "UNEXPECTED";
  return { kind: "Failed", code, detail: messageOf(error), attempts };
}

function timedOut(timeoutMs: number): LastcallError {
  const problem = `Cannot carry out the action: no end within its timeout of ${timeoutMs / 1000} s`;
  return new LastcallError("ACTION_TIMEOUT", problem);
}

/** `before`: what the attempt before came to, which is why it was not done in time. */
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
  /** As it is now. */
  readonly endsAt: () => Instant;
  readonly late: () => LastcallError;
}

/** How often the end of an attempt is looked at: a deadline may come nearer. */
const lookMs: Millis = seconds(1);

/** Even a runner that does not listen to its signal holds nothing up. */
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
  // Handled where the race is, and by nobody where the step was the first.
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

/** The same runner, each of whose acts asks first whether it may be done. */
export function fencedRunner(runner: ActionRunner, assertMayAct: () => void): ActionRunner {
  const fenced =
    <Task, Result>(act: (task: Task, signal: AbortSignal) => Promise<Result>) =>
    async (task: Task, signal: AbortSignal): Promise<Result> => {
      assertMayAct();
      return act(task, signal);
    };
  return {
    check: (how, signal) => runner.check(how, signal),
    prepare: fenced((task: ActionTask, signal) => runner.prepare(task, signal)),
    apply: fenced((task: PreparedTask, signal) => runner.apply(task, signal)),
    undo: fenced((task: PreparedTask, signal) => runner.undo(task, signal)),
  };
}
