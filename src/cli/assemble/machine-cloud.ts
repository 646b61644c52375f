import type { InstanceReleaser } from "../../contracts/cloud/instance-releaser.ts";
import type { LaunchTimeReading, LaunchTimes } from "../../contracts/cloud/launch-times.ts";
import { type Machine, parseProviderId } from "../../core/cluster/node.ts";

/** What a cloud can do about its machines. */
export interface MachineCloud {
  readonly releaser: InstanceReleaser;
  readonly launchTimes: LaunchTimes;
  /**
   * The providerIDs of the machines that run in the same group now, at most 500, this one among
   * them, and of all that are known to be of the same cluster; none where it is in neither. Absent:
   * this cloud is not asked. Throws CLOUD_*.
   */
  readonly groupOf?: (providerID: string, signal: AbortSignal) => Promise<readonly string[]>;
}

/**
 * A cloud whose code is loaded when it is first asked: the clients of most are large, and one is in
 * use.
 */
export function loadedOnUse(load: () => Promise<MachineCloud>): MachineCloud {
  let loading: Promise<MachineCloud> | undefined;
  const cloud = () => {
    loading ??= load();
    return loading;
  };
  return {
    releaser: {
      describe: async (...asked) => (await cloud()).releaser.describe(...asked),
      check: async (...asked) => (await cloud()).releaser.check(...asked),
      release: async (...asked) => (await cloud()).releaser.release(...asked),
    },
    launchTimes: {
      launchTimesOf: async (...asked) => (await cloud()).launchTimes.launchTimesOf(...asked),
    },
    groupOf: async (...asked) => (await (await cloud()).groupOf?.(...asked)) ?? [],
  };
}

/**
 * Asks each cloud for the launch times of its own machines, and none of which no machine is asked
 * about.
 */
export function launchTimesOfAll(
  clouds: Partial<Readonly<Record<Machine["cloud"], Pick<MachineCloud, "launchTimes">>>>,
): LaunchTimes {
  return {
    async launchTimesOf(providerIDs, signal): Promise<LaunchTimeReading> {
      const byCloud = Map.groupBy(providerIDs, (id) => parseProviderId(id)?.cloud);
      const asking = [...byCloud].map(async ([name, ids]) => {
        const cloud = name === undefined ? undefined : clouds[name];
        return cloud?.launchTimes.launchTimesOf(ids, signal);
      });
      const readings = await Promise.all(asking);
      return {
        bornAt: new Map(readings.flatMap((one) => [...(one?.bornAt ?? [])])),
        faults: readings.flatMap((one) => one?.faults ?? []),
      };
    },
  };
}
