import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { isLongRun, longFiles } from "./test/support/long-run.ts";
import { LongestFirst } from "./test/support/longest-first.ts";
import { ownProcess } from "./test/support/own-process.ts";

const never = ["test/**/*.e2e.test.ts", "**/node_modules/**"];

export default defineConfig({
  test: {
    // Several times what the slowest takes: others may use the machine.
    testTimeout: 30_000,
    setupFiles: ["temporal", "process"].map((name) => `test/support/${name}-setup.ts`),
    // A missing golden file is an error; only `--update` writes it.
    update: "none",
    sequence: { sequencer: LongestFirst },
    // Many files wait for real servers and timers, for most of their time; the long runs do not.
    maxWorkers: availableParallelism() + (isLongRun ? 0 : 1),
    projects: [
      {
        extends: true,
        test: {
          name: "shared",
          include: isLongRun ? [...longFiles] : ["test/**/*.test.ts"],
          exclude: [...never, ...ownProcess],
          isolate: false,
          // Node itself loads the modules, as it does for users: what Vite makes of them is slower.
          experimental: { viteModuleRunner: false, nodeLoader: false },
        },
      },
      {
        extends: true,
        test: { name: "own-process", include: isLongRun ? [] : [...ownProcess] },
      },
    ],
  },
});
