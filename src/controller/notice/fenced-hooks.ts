import type { HookEnd, LifecycleHooks } from "../../contracts/cloud/instances.ts";
import type { Telemetry } from "../../contracts/telemetry.ts";
import type { LifecycleHook } from "../../core/notice/instance-notice.ts";

/** The metric label of each result. */
const results: Readonly<Record<HookEnd, string>> = {
  ...{ Completed: "Done", Over: "Over", NotFound: "NotFound" },
};

const events = {
  CompleteHook: "hook-completed",
  AbandonHook: "hook-abandoned",
  ExtendHook: "hook-extended",
} as const;

/** Wraps lifecycle hooks: checks before each call that it is allowed, and counts it. */
export function fencedHooks(
  hooks: LifecycleHooks,
  tools: { readonly telemetry: Telemetry; readonly assertMayAct: () => void },
): LifecycleHooks {
  const { metrics, log } = tools.telemetry;
  const act = async (
    action: keyof typeof events,
    { hook, signal }: { readonly hook: LifecycleHook; readonly signal: AbortSignal },
    send: () => Promise<HookEnd>,
  ): Promise<HookEnd> => {
    tools.assertMayAct();
    try {
      const end = await send();
      metrics.count("lastcall_actions_total", { action, result: results[end] });
      const { transition, machine, group, name } = hook;
      const level = end === "NotFound" ? "warn" : "info";
      log[level](events[action], { transition, machine, group, hook: name, end });
      return end;
    } catch (error) {
      signal.throwIfAborted();
      metrics.count("lastcall_actions_total", { action, result: "Failed" });
      throw error;
    }
  };
  return {
    complete: (hook, result, signal) => {
      const action = result === "Continue" ? "CompleteHook" : "AbandonHook";
      return act(action, { hook, signal }, () => hooks.complete(hook, result, signal));
    },
    extend: (hook, signal) => act("ExtendHook", { hook, signal }, () => hooks.extend(hook, signal)),
    limits: (hook, signal) => hooks.limits(hook, signal),
  };
}
