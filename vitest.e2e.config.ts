import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { atEachLanding, paired } from "./test/e2e/e2e-list.ts";

/** It judges the permissions that all the others used. */
const last = fileOf("rights");

function fileOf(name: string): string {
  return `test/e2e/${name}.e2e.test.ts`;
}

class InOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}

function rankOf({ moduleId }: TestSpecification): number {
  if (moduleId.endsWith(last)) return paired.length + 1;
  const rank = paired.findIndex((name) => moduleId.endsWith(`/${fileOf(name)}`));
  return rank < 0 ? paired.length : rank;
}

/** `npm run e2e` sets the variable; without it, every file may run. */
const onlyLanding = process.env.E2E_LANDING !== undefined;
const landing = Object.keys(atEachLanding);

export default defineConfig({
  test: {
    globalSetup: ["test/support/bun-setup.ts", "test/support/used-rights.ts"],
    setupFiles: ["test/support/e2e-setup.ts"],
    sequence: { sequencer: InOrder },
    testTimeout: 300_000,
    hookTimeout: 900_000,
    projects: [
      {
        extends: true,
        test: {
          name: "paired",
          include: paired.filter((name) => !onlyLanding || landing.includes(name)).map(fileOf),
          maxWorkers: 2,
        },
      },
      {
        extends: true,
        test: {
          name: "alone",
          include: onlyLanding ? landing.map(fileOf) : ["test/e2e/**/*.e2e.test.ts"],
          exclude: paired.map(fileOf),
          fileParallelism: false,
        },
      },
    ],
  },
});
