import type {
  ActionDone,
  ActionRunner,
  ActionTask,
  PreparedTask,
} from "../../contracts/action-runner.ts";
import type { Clock } from "../../contracts/clock.ts";
import { backoffMs } from "../../core/chance/backoff.ts";
import type { Rng } from "../../core/chance/rng.ts";
import type { Fields } from "../../core/json/json-field.ts";
import type { Action } from "../../core/policy/action.ts";
import { between, earlier, type Instant, type Millis, millis, plus } from "../../core/time/time.ts";
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

export interface AttemptTools {
  readonly clock: Clock;
  readonly rng: Rng;
  readonly runner: ActionRunner;
  /** Nothing is begun after it; asked before each attempt, since it may come nearer. */
  readonly deadlineAt: () => Instant | undefined;
  /** Keeps what it takes to undo the action, before anything is changed. */
  readonly keep: (undo: Fields) => Promise<void>;
  readonly signal: AbortSignal;
}

/** A task but for when its attempt ends. */
export type OpenTask = Omit<ActionTask, "endsAt">;

/**
 * Carries out one action: prepares it, has its undo record kept, and applies it; each within the
 * action's timeout, and again after a fault that may pass, never past the deadline. `kept`: the
 * record of a process before this one. Rejects only with the reason of its signal.
 */
export async function carryOut(
  action: Action,
  task: OpenTask,
  tools: AttemptTools & { readonly kept?: Fields | undefined },
): Promise<ActionEnd> {
  let undo = tools.kept;
  return attempting(action, tools, async (endsAt, within) => {
    const whole = { ...task, endsAt };
    if (undo === undefined) {
      const found = await within((signal) => tools.runner.prepare(whole, signal));
      if (found !== undefined) await tools.keep(found);
      // Only now: one that could not be kept is not acted upon.
      undo = found;
    }
    const prepared: PreparedTask = { ...whole, undo };
    return within((signal) => tools.runner.apply(prepared, signal));
  });
}

/** Puts back what an action has changed. No deadline holds here. */
export async function takeBack(
  action: Pick<Action, "timeoutMs" | "retries">,
  task: OpenTask & { readonly undo: Fields },
  tools: Omit<AttemptTools, "deadlineAt" | "keep">,
): Promise<ActionEnd> {
  const unbounded = { ...tools, deadlineAt: () => undefined };
  return attempting(action, unbounded, (endsAt, within) =>
    within((signal) => tools.runner.undo({ ...task, endsAt }, signal)),
  );
}

/** A receiver that has just failed is given so long before it is asked again. */
const firstPauseMs: Millis = millis(500);

type Within = <T>(work: (signal: AbortSignal) => Promise<T>) => Promise<T>;

async function attempting(
  { timeoutMs, retries }: Pick<Action, "timeoutMs" | "retries">,
  tools: Pick<AttemptTools, "clock" | "rng" | "deadlineAt" | "signal">,
  work: (endsAt: Instant, within: Within) => Promise<ActionDone>,
): Promise<ActionEnd> {
  const { clock, rng, signal } = tools;
  for (let attempts = 1; ; attempts += 1) {
    signal.throwIfAborted();
    const now = clock.now();
    const deadlineAt = tools.deadlineAt();
    if (deadlineAt !== undefined && deadlineAt <= now) {
      return failed(deadlinePassed(), attempts - 1);
    }
    const timeoutAt = plus(now, timeoutMs);
    const endsAt = deadlineAt === undefined ? timeoutAt : earlier(timeoutAt, deadlineAt);
    const late = endsAt === timeoutAt ? timedOut(timeoutMs) : deadlinePassed();
    try {
      const limit = { clock, endsAt, late, signal };
      const done = await work(endsAt, (step) => withinLimit(step, limit));
      return { kind: "Done", done, attempts };
    } catch (error) {
      signal.throwIfAborted();
      const isOver = !isLastcallError(error) || !error.retryable || attempts > retries;
      if (isOver) return failed(error, attempts);
    }
    await clock.sleep(backoffMs(attempts - 1, rng, { firstMs: firstPauseMs }), signal);
  }
}

function failed(error: unknown, attempts: number): ActionEnd {
  const code = isLastcallError(error) ? error.code : "UNEXPECTED";
  return { kind: "Failed", code, detail: messageOf(error), attempts };
}

function timedOut(timeoutMs: number): LastcallError {
  const problem = `Cannot carry out the action: no end within its timeout of ${timeoutMs / 1000} s`;
  return new LastcallError("ACTION_TIMEOUT", problem);
}

function deadlinePassed(): LastcallError {
  const problem = "Cannot carry out the action: the deadline of the departure has passed";
  return new LastcallError("ACTION_DEADLINE", problem);
}

/** Even a runner that does not listen to its signal holds nothing up. */
async function withinLimit<T>(
  step: (signal: AbortSignal) => Promise<T>,
  limit: {
    readonly clock: Clock;
    readonly endsAt: Instant;
    readonly late: LastcallError;
    readonly signal: AbortSignal;
  },
): Promise<T> {
  const { clock, endsAt, late, signal } = limit;
  signal.throwIfAborted();
  if (clock.now() >= endsAt) throw late;
  const over = new AbortController();
  const done = new AbortController();
  const until = AbortSignal.any([signal, over.signal]);
  const ended = new Promise<never>((_, reject) => {
    until.addEventListener("abort", () => reject(until.reason), { once: true });
  });
  // Handled where the race is, and by nobody where the step was the first.
  ended.catch(() => undefined);
  clock.sleep(between(clock.now(), endsAt), done.signal).then(
    () => over.abort(late),
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
