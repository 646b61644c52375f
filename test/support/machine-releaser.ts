import type { InstanceReleaser, LastLookResult } from "../../src/contracts/cloud.ts";
import type { Instant } from "../../src/core/time/time.ts";

/** A last check that always passes, for tests about other things. */
export const allClear = (): Promise<LastLookResult> => Promise.resolve("Clear");

export interface KnownMachine {
  readonly id: string;
  readonly bornAt: Instant;
}

/**
 * A cloud that consists only of machines by providerID; a released machine is gone immediately.
 */
export function machineReleaser(
  machines: Map<string, KnownMachine>,
  onReleased: (providerID: string, machineId: string) => void,
): InstanceReleaser {
  return {
    describe: (providerID) => {
      const found = machines.get(providerID);
      if (found === undefined) return Promise.resolve({ kind: "Absent" });
      const names = namesOf(providerID);
      return Promise.resolve({ kind: "Present", ...found, running: true, names });
    },
    check: ({ providerID }) => {
      const problem = `the test has no machine ${providerID}`;
      if (!machines.has(providerID)) return Promise.resolve({ kind: "Impossible", problem });
      const names = namesOf(providerID);
      return Promise.resolve({ kind: "Possible", permission: "Granted", names });
    },
    release: async ({ providerID, machineId, lastLook }) => {
      for (;;) {
        const now = machines.get(providerID)?.id;
        if (now === undefined) return { kind: "AlreadyGone" };
        if (now !== machineId) return { kind: "Replaced" };
        const look = await lastLook();
        if (look === "Keep") return { kind: "Kept" };
        if (look === "Clear") break;
      }
      machines.delete(providerID);
      onReleased(providerID, machineId);
      return { kind: "Released" };
    },
  };
}

/** As on Compute Engine: the last part of the providerID. */
function namesOf(providerID: string) {
  return { hosts: [providerID.slice(providerID.lastIndexOf("/") + 1)] };
}
