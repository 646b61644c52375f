import type { HookEnd, LifecycleHooks } from "../../src/contracts/lifecycle-hooks.ts";
import type { LifecycleHook } from "../../src/core/notice/lifecycle-hook.ts";
import { type ErrorCode, LastcallError } from "../../src/errors.ts";

/** Groups in memory. */
export class FakeHooks implements LifecycleHooks {
  readonly #held = new Set<string>();
  readonly #groups = new Set<string>();
  readonly told: string[] = [];
  /** Told when a group goes on, in that moment. */
  onTold: () => void = () => {};
  fault: ErrorCode | undefined;

  hold(hook: LifecycleHook): void {
    this.#groups.add(hook.group);
    this.#held.add(keyOf(hook));
  }

  async complete(hook: LifecycleHook, signal: AbortSignal): Promise<HookEnd> {
    signal.throwIfAborted();
    if (this.fault !== undefined) {
      throw new LastcallError(this.fault, "Cannot complete the hook: a test has it fail");
    }
    if (!this.#groups.has(hook.group)) return "NotFound";
    if (!this.#held.delete(keyOf(hook))) return "Over";
    this.told.push(`CONTINUE ${hook.machine}`);
    this.onTold();
    return "Completed";
  }
}

function keyOf({ group, name, machine }: LifecycleHook): string {
  return `${group}/${name}/${machine}`;
}
