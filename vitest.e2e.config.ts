import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Helmfile is built while the others run. What the whole suite has used of its rights is judged when
 * all of it has run.
 */
const last = ["/helmfile.e2e.test.ts", "/rights.e2e.test.ts"];

class SomeLast extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) =>
      last.findIndex((one) => moduleId.endsWith(one));
    return (await super.sort(files)).toSorted((one, other) => place(one) - place(other));
  }
}

export default defineConfig({
  test: {
    include: ["test/e2e/**/*.e2e.test.ts"],
    globalSetup: ["test/support/bun-setup.ts", "test/support/used-rights.ts"],
    setupFiles: ["test/support/e2e-setup.ts"],
    sequence: { sequencer: SomeLast },
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 900_000,
  },
});
