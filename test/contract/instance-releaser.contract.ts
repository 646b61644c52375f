import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Clock } from "../../src/contracts/clock.ts";
import type {
  InstanceReleaser,
  LastLookResult,
  ReleaseRequest,
} from "../../src/contracts/cloud.ts";
import { type ErrorCode, LastcallError } from "../../src/errors.ts";
import { allClear } from "../support/machine-releaser.ts";

export type ReleaserFault = "Unreachable" | "RateLimited" | "RightMissing";

const cloudCodes = {
  Unreachable: "CLOUD_UNREACHABLE",
  RateLimited: "CLOUD_RATE_LIMITED",
  RightMissing: "CLOUD_RIGHT_MISSING",
} as const;

/** A cloud and the releaser under test; each test gets its own. */
export interface ReleaserWorld {
  readonly releaser: InstanceReleaser;
  /** The modes that this cloud supports. */
  readonly modes: readonly ReleaseRequest["mode"][];
  /**
   * Creates a running machine whose owner allows this mode; by default the first of `modes`, which
   * is that of a group that replaces its losses.
   */
  addMachine(
    name: string,
    mode?: ReleaseRequest["mode"],
  ): { readonly providerID: string; readonly id: string };
  /** The id of the machine that now has this place in the cloud, even if it is a replacement. */
  idOf(providerID: string): string | undefined;
  /**
   * Puts a new machine in the place of an old one, as a group does after a preemption; if the cloud
   * does not reuse places, restarts the old one. Returns the new id.
   */
  replace(providerID: string): Promise<string>;
  /** Removes a machine for good, without the releaser. */
  remove(providerID: string): Promise<void>;
  /** The providerID of a machine that never existed. */
  readonly unknownProviderID: string;
  /** Until `heal`, the cloud answers every request with this fault. */
  fail(fault: ReleaserFault): void;
  heal(): void;
  /** The error codes of these faults, if they differ from those of the clouds. */
  readonly faultCodes?: Readonly<Record<ReleaserFault, ErrorCode>>;
  /** The clock of the cloud, on which a machine is born when it is added. */
  readonly clock: Pick<Clock, "now">;
  /** The names of a machine by its cloud; undefined if it has none there. */
  namesOf(providerID: string): readonly string[] | undefined;
  /** Whether its answers carry the cloud's own time. */
  readonly tellsTime: boolean;
  /** How many requests to release a machine the cloud accepted. */
  asked(): number;
  /** How many machines have ever been in this place. */
  bornHere(providerID: string): number;
  /** Lets time pass until the promise settles. */
  pass<T>(work: Promise<T>): Promise<T>;
  /** Lets time pass until the condition is true. */
  passUntil(condition: () => boolean): Promise<void>;
  close(): Promise<void>;
}

const requestId = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";

/** What every implementation of `InstanceReleaser` guarantees. */
export function instanceReleaserContract(
  name: string,
  makeWorld: () => Promise<ReleaserWorld>,
): void {
  describe(`${name} as an InstanceReleaser`, () => {
    let world: ReleaserWorld;
    const never = new AbortController().signal;

    beforeEach(async () => {
      world = await makeWorld();
    });
    afterEach(() => world.close());

    function codeOf(fault: ReleaserFault): ErrorCode {
      return world.faultCodes?.[fault] ?? cloudCodes[fault];
    }

    function requestFor(machine: { providerID: string; id: string }): ReleaseRequest {
      const { providerID, id: machineId } = machine;
      return {
        providerID,
        machineId,
        mode: world.modes[0] ?? "Recreate",
        requestId,
        lastLook: allClear,
      };
    }

    async function namesOf(providerID: string) {
      const question = { providerID, mode: world.modes[0] ?? "Recreate" };
      const [state, found] = await world.pass(
        Promise.all([
          world.releaser.describe(providerID, never),
          world.releaser.check(question, never),
        ]),
      );
      if (state.kind === "Absent" || found.kind === "Impossible") return expect.unreachable();
      return { describe: state.names, check: found.names };
    }

    function release(request: ReleaseRequest, signal = never) {
      return world.pass(world.releaser.release(request, signal));
    }

    describe("describing a machine", () => {
      it("reports a machine as absent that the cloud does not have", async () => {
        const state = world.releaser.describe(world.unknownProviderID, never);
        expect(await world.pass(state)).toEqual({ kind: "Absent" });
      });

      it("reports the ID, the launch time and that it runs", async () => {
        const { providerID, id } = world.addMachine("n1");
        const state = await world.pass(world.releaser.describe(providerID, never));
        expect(state).toMatchObject({ kind: "Present", id, running: true });
        expect(state).toHaveProperty("bornAt", expect.any(Number));
      });

      it("reports the launch time together with the time by the same clock", async () => {
        const { providerID } = world.addMachine("n1");
        const state = await world.pass(world.releaser.describe(providerID, never));
        if (state.kind === "Absent") expect.unreachable();
        const { bornAt = Number.NaN, asOf = world.clock.now() } = state;
        expect(state.asOf !== undefined).toBe(world.tellsTime);
        // A `Date` header has whole seconds.
        expect(Math.abs(asOf - bornAt)).toBeLessThan(60_000);
      });

      it("reports the names that the machine's Node may have, if its cloud names it", async () => {
        const { providerID } = world.addMachine("n1");
        const { describe, check } = await namesOf(providerID);
        expect(describe).toEqual(check);
        expect(describe?.hosts).toEqual(world.namesOf(providerID));
      });

      it("reports another ID once a new machine has its place", async () => {
        const { providerID, id } = world.addMachine("n1");
        const newId = await world.replace(providerID);
        expect(newId).not.toBe(id);
        const state = await world.pass(world.releaser.describe(providerID, never));
        expect(state).toMatchObject({ kind: "Present", id: newId });
      });

      it("throws a retryable fault if the cloud does not respond", async () => {
        const { providerID } = world.addMachine("n1");
        world.fail("Unreachable");
        const fault = await faultOf(world.pass(world.releaser.describe(providerID, never)));
        expect(fault).toMatchObject({ code: codeOf("Unreachable"), retryable: true });
      });
    });

    describe("checking whether a machine could be released", () => {
      function check(machine: { providerID: string }, mode = world.modes[0] ?? "Recreate") {
        const { providerID } = machine;
        return world.pass(world.releaser.check({ providerID, mode }, never));
      }

      it("says yes for a running machine, in every mode, and changes nothing", async () => {
        for (const mode of world.modes) {
          const machine = world.addMachine(`n-${mode.toLowerCase()}`, mode);
          expect(await check(machine, mode)).toMatchObject({ kind: "Possible" });
          expect(world.idOf(machine.providerID)).toBe(machine.id);
        }
        expect(world.asked()).toBe(0);
      });

      it("says yes for a machine that is already leaving", async () => {
        const machine = world.addMachine("n1");
        const work = world.releaser.release(requestFor(machine), never);
        await world.passUntil(() => world.asked() === 1);
        expect(await check(machine)).toMatchObject({ kind: "Possible" });
        await world.pass(work);
      });

      it("names a machine that the cloud does not have", async () => {
        const found = await check({ providerID: world.unknownProviderID });
        const name = world.unknownProviderID.split("/").at(-1);
        const problem = expect.stringContaining(name ?? "");
        expect(found).toEqual({ kind: "Impossible", problem });
      });

      it.each([
        ["Unreachable", true],
        ["RateLimited", true],
        ["RightMissing", false],
      ] as const)(
        "%s: throws, says whether it is retryable, and recovers",
        async (fault, retryable) => {
          const machine = world.addMachine("n1");
          world.fail(fault);
          const code = codeOf(fault);
          expect(await faultOf(check(machine))).toMatchObject({ code, retryable });
          world.heal();
          expect(await check(machine)).toMatchObject({ kind: "Possible" });
        },
      );

      it("rejects with the signal's reason", async () => {
        const { providerID } = world.addMachine("n1");
        const reason = new Error("the lead was lost");
        const mode = world.modes[0] ?? "Recreate";
        const work = world.releaser.check({ providerID, mode }, AbortSignal.abort(reason));
        await expect(work).rejects.toBe(reason);
      });
    });

    describe("releasing a machine", () => {
      it("ends with the machine gone, in every mode", async () => {
        for (const mode of world.modes) {
          const machine = world.addMachine(`n-${mode.toLowerCase()}`, mode);
          expect(
            await release({ ...requestFor(machine), mode, requestId: crypto.randomUUID() }),
          ).toEqual({
            kind: "Released",
          });
          expect(world.idOf(machine.providerID), mode).not.toBe(machine.id);
        }
      });

      it("leaves the place empty after Delete and gets a new machine after Recreate", async () => {
        const shrunk = world.addMachine("n1", "Delete");
        const renewed = world.addMachine("n2", "Recreate");
        if (world.modes.includes("Delete")) {
          await release({ ...requestFor(shrunk), mode: "Delete" });
        }
        if (world.modes.includes("Recreate")) {
          const other = { mode: "Recreate", requestId: crypto.randomUUID() } as const;
          await release({ ...requestFor(renewed), ...other });
          await world.passUntil(() => world.bornHere(renewed.providerID) === 2);
          expect(world.idOf(renewed.providerID)).toBeDefined();
        }
        expect(world.bornHere(shrunk.providerID)).toBe(1);
      });

      it("counts a machine that is already gone as success, and requests nothing", async () => {
        const machine = world.addMachine("n1");
        await world.remove(machine.providerID);
        expect(await release(requestFor(machine))).toEqual({ kind: "AlreadyGone" });
        expect(world.asked()).toBe(0);
      });

      it("does not touch a machine with another ID", async () => {
        const machine = world.addMachine("n1");
        const newId = await world.replace(machine.providerID);
        expect(await release(requestFor(machine))).toEqual({ kind: "Replaced" });
        expect(world.asked()).toBe(0);
        expect(world.idOf(machine.providerID)).toBe(newId);
      });

      it("does nothing more if the same request is repeated afterwards", async () => {
        const machine = world.addMachine("n1");
        await release(requestFor(machine));
        const again = await release(requestFor(machine));
        expect(["AlreadyGone", "Replaced"]).toContain(again.kind);
        expect(world.asked()).toBe(1);
      });

      it("releases one machine if two replicas send the same request at once", async () => {
        const machine = world.addMachine("n1");
        const both = [requestFor(machine), requestFor(machine)];
        const results = await world.pass(
          Promise.all(both.map((one) => world.releaser.release(one, never))),
        );
        expect(results).toEqual([{ kind: "Released" }, { kind: "Released" }]);
        expect(world.bornHere(machine.providerID)).toBeLessThanOrEqual(2);
      });
    });

    describe("the last check of the node", () => {
      it("comes once, before the cloud is called", async () => {
        const machine = world.addMachine("n1");
        const askedThen: number[] = [];
        const looking = async () => {
          askedThen.push(world.asked());
          return "Clear" as const;
        };
        const result = await release({ ...requestFor(machine), lastLook: looking });
        expect(result).toEqual({ kind: "Released" });
        expect(askedThen).toEqual([0]);
      });

      it("keeps the machine if its result is Keep", async () => {
        const machine = world.addMachine("n1");
        const keep = async () => "Keep" as const;
        expect(await release({ ...requestFor(machine), lastLook: keep })).toEqual({ kind: "Kept" });
        expect(world.asked()).toBe(0);
        expect(world.idOf(machine.providerID)).toBe(machine.id);
      });

      it("prevents the release if it fails, with the same error", async () => {
        const machine = world.addMachine("n1");
        const fault = new LastcallError("API_UNREACHABLE", "Cannot list", { retryable: true });
        const failing = () => Promise.reject(fault);
        expect(await faultOf(release({ ...requestFor(machine), lastLook: failing }))).toBe(fault);
        expect(world.asked()).toBe(0);
      });

      it("is followed by another read of the machine if it waited", async () => {
        const machine = world.addMachine("n1");
        const looks: string[] = [];
        const { promise: waited, resolve: goOn } = Promise.withResolvers<LastLookResult>();
        const waiting = () => {
          looks.push("asked");
          return looks.length === 1 ? waited : allClear();
        };
        const work = world.releaser.release({ ...requestFor(machine), lastLook: waiting }, never);
        await world.passUntil(() => looks.length === 1);
        await world.replace(machine.providerID);
        goOn("Waited");
        expect(await world.pass(work)).toEqual({ kind: "Replaced" });
        expect(looks).toEqual(["asked"]);
        expect(world.asked()).toBe(0);
      });

      it("is not made for a machine that was replaced", async () => {
        const machine = world.addMachine("n1");
        await world.replace(machine.providerID);
        const unwanted = () => Promise.reject(new Error("nothing is left to look for"));
        const result = await release({ ...requestFor(machine), lastLook: unwanted });
        expect(result).toEqual({ kind: "Replaced" });
      });
    });

    describe("when the cloud has a fault", () => {
      it.each(["Unreachable", "RateLimited"] as const)(
        "%s: throws a retryable fault, and the retry succeeds",
        async (fault) => {
          const machine = world.addMachine("n1");
          world.fail(fault);
          expect(await faultOf(release(requestFor(machine)))).toMatchObject({
            code: codeOf(fault),
            retryable: true,
          });
          expect(world.idOf(machine.providerID)).toBe(machine.id);
          world.heal();
          expect(await release(requestFor(machine))).toEqual({ kind: "Released" });
        },
      );

      it("throws a permanent fault if a permission is missing", async () => {
        const machine = world.addMachine("n1");
        world.fail("RightMissing");
        const fault = await faultOf(release(requestFor(machine)));
        expect(fault).toMatchObject({ code: codeOf("RightMissing"), retryable: false });
        expect(world.idOf(machine.providerID)).toBe(machine.id);
      });
    });

    describe("when the caller has to stop", () => {
      it("requests nothing if the signal has already aborted", async () => {
        const machine = world.addMachine("n1");
        const reason = new Error("the lead was lost");
        const work = release(requestFor(machine), AbortSignal.abort(reason));
        await expect(work).rejects.toBe(reason);
        expect(world.asked()).toBe(0);
      });

      it("rejects with the signal's reason halfway, and the same request resumes it", async () => {
        const machine = world.addMachine("n1");
        const caller = new AbortController();
        const reason = new Error("the lead was lost");
        const work = world.releaser.release(requestFor(machine), caller.signal);
        const outcome = work.catch((error: unknown) => error);
        await world.passUntil(() => world.asked() === 1);
        caller.abort(reason);
        expect(await outcome).toBe(reason);
        const taken = await release(requestFor(machine));
        expect(["Released", "AlreadyGone", "Replaced"]).toContain(taken.kind);
        expect(world.idOf(machine.providerID)).not.toBe(machine.id);
        expect(world.bornHere(machine.providerID)).toBeLessThanOrEqual(2);
      });
    });
  });
}

async function faultOf(work: Promise<unknown>): Promise<LastcallError> {
  const error = await work.then(
    () => new Error("nothing was thrown"),
    (thrown: unknown) => thrown,
  );
  if (error instanceof LastcallError) return error;
  throw error;
}
