import { defineConfig } from "vitest/config";
import { sharedRooms } from "./test/support/shared-rooms.ts";

const shared = sharedRooms.map((room) => `test/${room}/**/*.test.ts`);
const never = ["test/**/*.e2e.test.ts", "**/node_modules/**"];

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
        test: { name: "shared", include: shared, exclude: never, isolate: false },
      },
      {
        extends: true,
        test: { name: "apart", include: ["test/**/*.test.ts"], exclude: [...never, ...shared] },
      },
    ],
  },
});
