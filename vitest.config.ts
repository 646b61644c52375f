import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/**/*.e2e.test.ts", "**/node_modules/**"],
    testTimeout: 20_000,
    setupFiles: ["test/support/temporal-setup.ts"],
    // A golden file that is not there is a mistake, and is written by `--update` alone.
    update: "none",
    // By default a core is left idle, which is half of two.
    maxWorkers: "100%",
  },
});
