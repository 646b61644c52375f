import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** What the whole suite has used of its rights is judged when all of it has run. */
class RightsLast extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLast = ({ moduleId }: TestSpecification) => moduleId.endsWith("/rights.e2e.test.ts");
    const sorted = await super.sort(files);
    return [...sorted.filter((one) => !isLast(one)), ...sorted.filter(isLast)];
  }
}

export default defineConfig({
  test: {
    include: ["test/e2e/**/*.e2e.test.ts"],
    globalSetup: ["test/support/bun-setup.ts", "test/support/used-rights.ts"],
    setupFiles: ["test/support/e2e-setup.ts"],
    sequence: { sequencer: RightsLast },
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 900_000,
  },
});
