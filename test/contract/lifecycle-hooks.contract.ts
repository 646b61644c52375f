import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LifecycleHooks } from "../../src/contracts/lifecycle-hooks.ts";
import type { LifecycleHook } from "../../src/core/notice/lifecycle-hook.ts";
import { instant } from "../../src/core/time/time.ts";

/** Groups with the side of theirs that holds instances back. */
export interface HooksWorld {
  readonly hooks: LifecycleHooks;
  /** From now on the group waits to be told about this instance. */
  hold(hook: LifecycleHook): void;
  /** What each group was told, in that order: `CONTINUE i-0abc`. */
  told(): readonly string[];
  /** From now until `heal` nothing else is answered. */
  fail(fault: "Unreachable" | "RateLimited" | "RightMissing"): void;
  heal(): void;
  close(): Promise<void>;
}

const machine = "i-0123456789abcdef0";
const hook: LifecycleHook = {
  transition: "Terminating",
  machine,
  group: "spot-asg & others",
  name: "drain",
  token: "87654321-4321-4321-4321-210987654321",
  at: instant(Date.UTC(2026, 10, 20, 12)),
};

/** What every implementation of `LifecycleHooks` promises. */
export function lifecycleHooksContract(name: string, makeWorld: () => Promise<HooksWorld>): void {
  describe(`${name} as LifecycleHooks`, () => {
    let world: HooksWorld;

    beforeEach(async () => {
      world = await makeWorld();
    });
    afterEach(() => world.close());

    function complete(what: LifecycleHook, signal = new AbortController().signal) {
      return world.hooks.complete(what, signal);
    }

    it.each(["Launching", "Terminating"] as const)(
      "has the group go on: %s",
      async (transition) => {
        world.hold({ ...hook, transition });
        expect(await complete({ ...hook, transition })).toBe("Completed");
        expect(world.told()).toEqual([`CONTINUE ${machine}`]);
      },
    );

    it("finds the instance where no token is known", async () => {
      world.hold(hook);
      expect(await complete({ ...hook, token: undefined })).toBe("Completed");
    });

    it("says of one that waits no more that it is over", async () => {
      world.hold(hook);
      await complete(hook);
      expect(await complete(hook)).toBe("Over");
      expect(world.told()).toHaveLength(1);
    });

    it("says of a group that is gone, or another region's, that it is not found", async () => {
      expect(await complete({ ...hook, group: "no-such-group" })).toBe("NotFound");
    });

    it("tells nobody anything once its signal has aborted, and throws the reason", async () => {
      world.hold(hook);
      const reason = new Error("the lead is lost");
      await expect(complete(hook, AbortSignal.abort(reason))).rejects.toBe(reason);
      expect(world.told()).toEqual([]);
    });

    it.each([
      ["Unreachable", "CLOUD_UNREACHABLE", true],
      ["RateLimited", "CLOUD_RATE_LIMITED", true],
      ["RightMissing", "CLOUD_RIGHT_MISSING", false],
    ] as const)(
      "throws where it is %s, and goes on when that is over",
      async (fault, code, retryable) => {
        world.hold(hook);
        world.fail(fault);
        await expect(complete(hook)).rejects.toMatchObject({ code, retryable });
        expect(world.told()).toEqual([]);
        world.heal();
        expect(await complete(hook)).toBe("Completed");
      },
    );
  });
}
