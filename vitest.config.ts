import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { isLongRun, longFiles } from "./test/support/long-run.ts";
import { ownModules } from "./test/support/own-modules.ts";

/** They wait for real servers and timers, for most of their time. */
const waiting = ["test/cloud/**/*.test.ts", "test/cli/lambda/*.test.ts"];
const never = ["test/**/*.e2e.test.ts", "**/node_modules/**"];

/** Node itself loads the modules, as it does for users: what Vite makes of them runs slower. */
const asInUse = {
  isolate: false,
  setupFiles: ["temporal", "process"].map((name) => `test/support/${name}-setup.ts`),
  experimental: { viteModuleRunner: false, nodeLoader: false },
};

export default defineConfig({
  test: {
    testTimeout: 20_000,
    setupFiles: ["test/support/temporal-setup.ts"],
    // A missing golden file is an error; only `--update` writes it.
    update: "none",
    // By default vitest leaves one core idle, which is half of two.
    maxWorkers: "100%",
    projects: [
      {
        test: {
          name: "busy",
          include: isLongRun ? [...longFiles] : ["test/**/*.test.ts"],
          exclude: [...never, ...waiting, ...ownModules],
          ...asInUse,
        },
      },
      {
        test: {
          name: "own-modules",
          include: isLongRun ? [] : [...ownModules],
          maxWorkers: 2 * availableParallelism(),
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "waiting",
          include: isLongRun ? [] : waiting,
          exclude: [...never, ...ownModules],
          maxWorkers: 2 * availableParallelism(),
          sequence: { groupOrder: 1 },
          ...asInUse,
        },
      },
    ],
  },
});
