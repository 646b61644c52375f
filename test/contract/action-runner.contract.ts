import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ActionRunner, ActionTask } from "../../src/contracts/action-runner.ts";
import type { ActionKind, ActionOf } from "../../src/core/policy/action.ts";
import { instant } from "../../src/core/time/time.ts";

/** A runner, and the receiver of its calls. */
export interface ActionWorld<Kind extends ActionKind> {
  readonly runner: ActionRunner<Kind>;
  /** The action, with its templates rendered. */
  readonly how: ActionOf<Kind>;
  /** `Message`: each call sends another one, and nothing can be undone. */
  readonly sort: "Undoable" | "Lasting" | "Message";
  /** The state of the receiver, in a form that can be compared. */
  state(): unknown;
  /** Until `heal`, the receiver answers every call with this fault. */
  fail(fault: "Unreachable" | "RightMissing"): void;
  heal(): void;
  /** Texts that no error message may contain. */
  readonly secrets: readonly string[];
  close(): Promise<void>;
}

const machine = "i-0123456789abcdef0";

export function aTask<Kind extends ActionKind>(
  how: ActionOf<Kind>,
  over: Partial<ActionTask<Kind>> = {},
): ActionTask<Kind> {
  return {
    name: "act",
    how,
    departure: "n1-2b9e5d3c",
    key: "2b9e5d3c-0000-4000-8000-000000000001/act",
    endsAt: instant(Date.UTC(2026, 10, 24, 12, 0, 30)),
    earlier: [],
    target: {
      node: "n1",
      nodeUid: "2b9e5d3c-0000-4000-8000-000000000000",
      providerID: `aws:///us-east-1a/${machine}`,
      instanceId: machine,
      addresses: async () => ({ node: ["10.0.1.5"], pods: ["10.0.1.17", "10.0.1.18"] }),
    },
    ...over,
  };
}

/** What every implementation of `ActionRunner` guarantees. */
export function actionRunnerContract<Kind extends ActionKind>(
  name: string,
  makeWorld: () => Promise<ActionWorld<Kind>>,
): void {
  describe(`${name} as ActionRunner`, () => {
    let world: ActionWorld<Kind>;
    let task: ActionTask<Kind>;
    const signal = new AbortController().signal;

    beforeEach(async () => {
      world = await makeWorld();
      task = aTask(world.how);
    });
    afterEach(() => world.close());

    const prepare = () => world.runner.prepare(task, signal);
    const apply = async () => world.runner.apply({ ...task, undo: await prepare() }, signal);

    it("finds no problem in a valid action, and changes nothing", async () => {
      const before = world.state();
      expect(await world.runner.check(world.how, signal)).toBeUndefined();
      expect(world.state()).toEqual(before);
    });

    it("changes nothing while it prepares", async () => {
      const before = world.state();
      await prepare();
      expect(world.state()).toEqual(before);
    });

    it("takes effect, and says briefly what was done", async () => {
      const before = world.state();
      const done = await apply();
      expect(done.detail).not.toBe("");
      expect(world.state()).not.toEqual(before);
    });

    it("has no further effect when applied again, unless it is a message", async () => {
      const undo = await prepare();
      await world.runner.apply({ ...task, undo }, signal);
      const after = world.state();
      await world.runner.apply({ ...task, undo }, signal);
      if (world.sort !== "Message") expect(world.state()).toEqual(after);
    });

    it("returns undo data before it changes anything, if it can be undone", async () => {
      const undo = await prepare();
      expect(undo !== undefined).toBe(world.sort === "Undoable");
      // A Departure's status stores it.
      if (undo !== undefined) expect(JSON.parse(JSON.stringify(undo))).toEqual(undo);
    });

    it("restores everything, also when undone twice", async () => {
      const before = world.state();
      const undo = await prepare();
      if (undo === undefined) return;
      await world.runner.apply({ ...task, undo }, signal);
      await world.runner.undo({ ...task, undo }, signal);
      expect(world.state()).toEqual(before);
      await world.runner.undo({ ...task, undo }, signal);
      expect(world.state()).toEqual(before);
    });

    it("leaves all as it was when undone without being applied, as after a crash", async () => {
      const before = world.state();
      const undo = await prepare();
      if (undo === undefined) return;
      await world.runner.undo({ ...task, undo }, signal);
      expect(world.state()).toEqual(before);
    });

    it("does nothing once its signal has aborted, and throws the reason", async () => {
      const reason = new Error("the lead is lost");
      const aborted = AbortSignal.abort(reason);
      const before = world.state();
      await expect(world.runner.apply({ ...task, undo: undefined }, aborted)).rejects.toBe(reason);
      await expect(world.runner.prepare(task, aborted)).rejects.toBe(reason);
      expect(world.state()).toEqual(before);
    });

    it.each([
      ["Unreachable", true],
      ["RightMissing", false],
    ] as const)(
      "throws on the fault %s without naming a secret, and recovers from it",
      async (fault, retryable) => {
        world.fail(fault);
        const fails = (error: { readonly message: string }) =>
          world.secrets.every((secret) => !error.message.includes(secret));
        const rejection = await apply().then(
          () => undefined,
          (error: unknown) => error,
        );
        expect(rejection).toMatchObject({ name: "LastcallError", retryable });
        expect(fails(rejection as Error)).toBe(true);
        world.heal();
        await apply();
      },
    );
  });
}
