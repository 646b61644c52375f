import type { HookEnd, LifecycleHooks } from "../../contracts/cloud.ts";
import type { Telemetry } from "../../contracts/telemetry.ts";
import type { LifecycleHook } from "../../core/notice/instance-notice.ts";
import { isLastcallError } from "../../errors.ts";

/** The metric label of each result. */
const hookResults: Readonly<Record<HookEnd, string>> = {
  ...{ Completed: "Done", Over: "Over", NotFound: "NotFound" },
};

const hookEvents = {
  CompleteHook: "hook-completed",
  AbandonHook: "hook-abandoned",
  ExtendHook: "hook-extended",
} as const;

interface HookCall {
  readonly action: keyof typeof hookEvents;
  readonly hook: LifecycleHook;
  readonly signal: AbortSignal;
}

/** Lifecycle hooks whose calls are counted and logged. */
export function countedHooks(hooks: LifecycleHooks, telemetry: Telemetry): LifecycleHooks {
  const { metrics, log } = telemetry;
  const counted = async (call: HookCall, send: () => Promise<HookEnd>): Promise<HookEnd> => {
    const { action, hook, signal } = call;
    try {
      const end = await send();
      metrics.count("lastcall_actions_total", { action, result: hookResults[end] });
      const { transition, machine, group, name } = hook;
      const level = end === "NotFound" ? "warn" : "info";
      log[level](hookEvents[action], { transition, machine, group, hook: name, end });
      return end;
    } catch (error) {
      signal.throwIfAborted();
      // A call that only the leader may make was not made.
      const isMade = !isLastcallError(error) || error.code !== "LEASE_LOST";
      if (isMade) metrics.count("lastcall_actions_total", { action, result: "Failed" });
      throw error;
    }
  };
  return {
    complete: (hook, result, signal) => {
      const action = result === "Continue" ? "CompleteHook" : "AbandonHook";
      return counted({ action, hook, signal }, () => hooks.complete(hook, result, signal));
    },
    extend: (hook, signal) =>
      counted({ action: "ExtendHook", hook, signal }, () => hooks.extend(hook, signal)),
    limits: (hook, signal) => hooks.limits(hook, signal),
  };
}
