import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { HookLimits, LifecycleHooks } from "../../src/contracts/cloud.ts";
import type { LifecycleHook } from "../../src/core/notice/instance-notice.ts";
import { hours, instant, seconds } from "../../src/core/time/time.ts";

/** Groups and their hooks, and control over them. */
export interface HooksWorld {
  readonly hooks: LifecycleHooks;
  /** From now on, the group waits for a completion of this instance's lifecycle action. */
  hold(hook: LifecycleHook): void;
  /** From now on, hooks wait this long. */
  wait(limits: HookLimits): void;
  /** The calls that the groups received, in order: `CONTINUE i-0abc`, `HEARTBEAT i-0abc`. */
  told(): readonly string[];
  /** Until `heal`, every request fails with this fault. */
  fail(fault: "Unreachable" | "RateLimited" | "RightMissing"): void;
  heal(): void;
  close(): Promise<void>;
}

const never = new AbortController().signal;
const machine = "i-0123456789abcdef0";
const hook: LifecycleHook = {
  transition: "Terminating",
  machine,
  group: "spot-asg & others",
  name: "drain",
  token: "87654321-4321-4321-4321-210987654321",
  at: instant(Date.UTC(2026, 10, 20, 12)),
};

/** What every implementation of `LifecycleHooks` guarantees. */
export function lifecycleHooksContract(name: string, makeWorld: () => Promise<HooksWorld>): void {
  describe(`${name} as LifecycleHooks`, () => {
    let world: HooksWorld;

    beforeEach(async () => {
      world = await makeWorld();
    });
    afterEach(() => world.close());

    function complete(what: LifecycleHook, signal = never) {
      return world.hooks.complete(what, "Continue", signal);
    }

    it.each(["Launching", "Terminating"] as const)(
      "makes the group continue: %s",
      async (transition) => {
        world.hold({ ...hook, transition });
        expect(await complete({ ...hook, transition })).toBe("Completed");
        expect(world.told()).toEqual([`CONTINUE ${machine}`]);
      },
    );

    it("finds the action by its instance if no token is known", async () => {
      world.hold(hook);
      expect(await complete({ ...hook, token: undefined })).toBe("Completed");
    });

    it("makes the group abandon the instance", async () => {
      world.hold(hook);
      expect(await world.hooks.complete(hook, "Abandon", never)).toBe("Completed");
      expect(world.told()).toEqual([`ABANDON ${machine}`]);
      expect(await complete(hook)).toBe("Over");
    });

    it("makes the group wait longer with each heartbeat", async () => {
      world.hold(hook);
      expect(await world.hooks.extend(hook, never)).toBe("Completed");
      expect(await world.hooks.extend({ ...hook, token: undefined }, never)).toBe("Completed");
      expect(world.told()).toEqual([`HEARTBEAT ${machine}`, `HEARTBEAT ${machine}`]);
      await complete(hook);
      expect(await world.hooks.extend(hook, never)).toBe("Over");
      expect(await world.hooks.extend({ ...hook, group: "none" }, never)).toBe("NotFound");
    });

    it("returns how long a hook waits, and nothing for a group that does not exist", async () => {
      world.hold(hook);
      world.wait({ heartbeatMs: seconds(90), longestMs: hours(2) });
      const limits = { heartbeatMs: 90_000, longestMs: 7_200_000 };
      expect(await world.hooks.limits(hook, never)).toEqual(limits);
      expect(await world.hooks.limits({ ...hook, group: "none" }, never)).toBeUndefined();
    });

    it("reports a hook that no longer waits as over", async () => {
      world.hold(hook);
      await complete(hook);
      expect(await complete(hook)).toBe("Over");
      expect(world.told()).toHaveLength(1);
    });

    it("reports a group that is gone, or of another region, as not found", async () => {
      expect(await complete({ ...hook, group: "no-such-group" })).toBe("NotFound");
    });

    it("calls nothing once its signal has aborted, and throws the reason", async () => {
      world.hold(hook);
      const reason = new Error("the lead is lost");
      await expect(complete(hook, AbortSignal.abort(reason))).rejects.toBe(reason);
      expect(world.told()).toEqual([]);
    });

    it.each([
      ["Unreachable", "CLOUD_UNREACHABLE", true],
      ["RateLimited", "CLOUD_RATE_LIMITED", true],
      ["RightMissing", "CLOUD_RIGHT_MISSING", false],
    ] as const)("throws on the fault %s, and recovers from it", async (fault, code, retryable) => {
      world.hold(hook);
      world.fail(fault);
      await expect(complete(hook)).rejects.toMatchObject({ code, retryable });
      await expect(world.hooks.extend(hook, never)).rejects.toMatchObject({ code, retryable });
      await expect(world.hooks.limits(hook, never)).rejects.toMatchObject({ code, retryable });
      expect(world.told()).toEqual([]);
      world.heal();
      expect(await complete(hook)).toBe("Completed");
    });
  });
}
