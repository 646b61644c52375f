import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LaunchTimes } from "../../src/contracts/cloud.ts";
import type { ReleaserWorld } from "./instance-releaser.contract.ts";

/** A cloud that can list launch times and look up single machines. */
export interface LaunchTimeWorld
  extends Pick<
    ReleaserWorld,
    | "releaser"
    | "addMachine"
    | "replace"
    | "remove"
    | "unknownProviderID"
    | "fail"
    | "heal"
    | "pass"
    | "close"
  > {
  readonly launchTimes: LaunchTimes;
}

/** What every implementation of `LaunchTimes` guarantees. */
export function launchTimesContract(name: string, makeWorld: () => Promise<LaunchTimeWorld>): void {
  describe(`${name} as LaunchTimes`, () => {
    let world: LaunchTimeWorld;
    const never = new AbortController().signal;

    beforeEach(async () => {
      world = await makeWorld();
    });
    afterEach(() => world.close());

    function read(...providerIDs: readonly string[]) {
      return world.pass(world.launchTimes.launchTimesOf(providerIDs, never));
    }

    /** As the cloud reports it in a request for this machine alone. */
    async function bornAt(providerID: string): Promise<unknown> {
      const state = await world.pass(world.releaser.describe(providerID, never));
      return state.kind === "Present" ? state.bornAt : state.kind;
    }

    it("returns each existing machine's launch time, as a request for it alone does", async () => {
      const [first, second] = [world.addMachine("n1"), world.addMachine("n2")];
      const told = await read(first.providerID, second.providerID);
      expect(told.faults).toEqual([]);
      expect([...told.bornAt.keys()].toSorted()).toEqual(
        [first.providerID, second.providerID].toSorted(),
      );
      for (const { providerID } of [first, second]) {
        expect(told.bornAt.get(providerID)).toBe(await bornAt(providerID));
      }
    });

    it("omits machines that the cloud does not have, and those of other clouds", async () => {
      const { providerID } = world.addMachine("n1");
      const gone = world.addMachine("n2");
      await world.remove(gone.providerID);
      const others = ["aws:///eu-west-1a/i-0abc", "no providerID at all", ""];
      const told = await read(...[world.unknownProviderID, gone.providerID, providerID, ...others]);
      expect([...told.bornAt.keys()]).toEqual([providerID]);
      expect(told.faults).toEqual([]);
    });

    it("returns the launch time of the machine that has the place now", async () => {
      const { providerID } = world.addMachine("n1");
      const before = (await read(providerID)).bornAt.get(providerID);
      await world.replace(providerID);
      const after = (await read(providerID)).bornAt.get(providerID);
      expect(after).toBe(await bornAt(providerID));
      expect(after).toBeGreaterThanOrEqual(before ?? Number.POSITIVE_INFINITY);
    });

    it.each([
      ["Unreachable", "CLOUD_UNREACHABLE", true],
      ["RateLimited", "CLOUD_RATE_LIMITED", true],
      ["RightMissing", "CLOUD_RIGHT_MISSING", false],
    ] as const)(
      "%s: returns the fault, and the launch time once it is over",
      async (fault, code, retryable) => {
        const { providerID } = world.addMachine("n1");
        world.fail(fault);
        const told = await read(providerID);
        expect(told.bornAt.size).toBe(0);
        expect(told.faults).toMatchObject([{ code, retryable }]);
        world.heal();
        expect((await read(providerID)).bornAt.size).toBe(1);
      },
    );

    it("rejects with the signal's reason", async () => {
      const reason = new Error("the lead was lost");
      const { providerID } = world.addMachine("n1");
      const work = world.launchTimes.launchTimesOf([providerID], AbortSignal.abort(reason));
      await expect(work).rejects.toBe(reason);
    });
  });
}
