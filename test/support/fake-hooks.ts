import type { HookEnd, HookLimits, LifecycleHooks } from "../../src/contracts/cloud.ts";
import type { LifecycleHook } from "../../src/core/notice/instance-notice.ts";
import type { HookResult } from "../../src/core/policy/policy.ts";
import { hours } from "../../src/core/time/time.ts";
import { type ErrorCode, LastcallError } from "../../src/errors.ts";

/** Groups in memory. */
export class FakeHooks implements LifecycleHooks {
  readonly #held = new Set<string>();
  readonly #groups = new Set<string>();
  readonly told: string[] = [];
  /** Called at the moment when a group is told to continue. */
  onTold: () => void = () => {};
  fault: ErrorCode | undefined;
  waits: HookLimits = { heartbeatMs: hours(2), longestMs: hours(48) };

  hold(hook: LifecycleHook): void {
    this.#groups.add(hook.group);
    this.#held.add(keyOf(hook));
  }

  async complete(hook: LifecycleHook, result: HookResult, signal: AbortSignal): Promise<HookEnd> {
    const end = this.#look(hook, "complete", signal);
    if (end !== undefined) return end;
    this.#held.delete(keyOf(hook));
    this.told.push(`${result === "Continue" ? "CONTINUE" : "ABANDON"} ${hook.machine}`);
    this.onTold();
    return "Completed";
  }

  async extend(hook: LifecycleHook, signal: AbortSignal): Promise<HookEnd> {
    const end = this.#look(hook, "extend", signal);
    if (end !== undefined) return end;
    this.told.push(`HEARTBEAT ${hook.machine}`);
    this.onTold();
    return "Completed";
  }

  async limits({ group }: LifecycleHook, signal: AbortSignal): Promise<HookLimits | undefined> {
    signal.throwIfAborted();
    this.#failIfTold("look at");
    return this.#groups.has(group) ? this.waits : undefined;
  }

  #look(hook: LifecycleHook, action: string, signal: AbortSignal): HookEnd | undefined {
    signal.throwIfAborted();
    this.#failIfTold(action);
    if (!this.#groups.has(hook.group)) return "NotFound";
    return this.#held.has(keyOf(hook)) ? undefined : "Over";
  }

  #failIfTold(action: string): void {
    if (this.fault === undefined) return;
    throw new LastcallError(this.fault, `Cannot ${action} the hook: a test has it fail`);
  }
}

function keyOf({ group, name, machine }: LifecycleHook): string {
  return `${group}/${name}/${machine}`;
}
