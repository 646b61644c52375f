import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { isLongRun, longFiles } from "./test/support/long-run.ts";
import { sharedRooms } from "./test/support/shared-rooms.ts";

const shared = sharedRooms.map((room) => `test/${room}/**/*.test.ts`);
/** They wait for real servers and timers, for most of their time. */
const waiting = ["test/cloud/**/*.test.ts", "test/cli/lambda/*.test.ts"];
const never = ["test/**/*.e2e.test.ts", "**/node_modules/**"];
const longShared = longFiles.filter((file) => sharedRooms.includes(file.split("/")[1] ?? ""));

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
        extends: true,
        test: {
          name: "shared",
          include: isLongRun ? longShared : shared,
          exclude: never,
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: "apart",
          include: isLongRun ? [...longFiles] : ["test/**/*.test.ts"],
          exclude: [...never, ...shared, ...waiting],
        },
      },
      {
        extends: true,
        test: {
          name: "waiting",
          include: isLongRun ? [] : waiting,
          exclude: never,
          maxWorkers: 2 * availableParallelism(),
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
