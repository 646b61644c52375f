import type { MachineCloud } from "../../contracts/cloud.ts";

/**
 * A cloud whose code is loaded at the first request: most clouds' clients are large, and only one
 * cloud is in use.
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
    groupsOf: async (...asked) => (await (await cloud()).groupsOf?.(...asked)) ?? [],
  };
}
