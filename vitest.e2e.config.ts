import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Files that spend most of their time waiting: for instants of a plan, for leases and for timeouts.
 * They run two at a time, the longest first. The other files keep the processor busy, or measure
 * how fast something is.
 */
const waiting = [
  "queue",
  "release-elsewhere",
  "agent-fallback",
  "release-check",
  "leaderless",
  "long-faults",
  "article",
  "actions",
  "api-outage",
  "crash",
  "rotation",
  "two-controllers",
  "depart",
  "compute-engine",
  "advice",
  "crd-skew",
  "other-machine",
  // Late, because it needs Karpenter, which is built while the others run.
  "karpenter",
].map((name) => `test/e2e/${name}.e2e.test.ts`);

/**
 * Helmfile is built while the others run. The check of the permissions that the whole suite used
 * has to come last.
 */
const last = ["helmfile", "rights"].map((name) => `test/e2e/${name}.e2e.test.ts`);

class InOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}

function rankOf({ moduleId }: TestSpecification): number {
  const place = last.findIndex((file) => moduleId.endsWith(file));
  if (place >= 0) return waiting.length + 1 + place;
  const rank = waiting.findIndex((file) => moduleId.endsWith(file));
  return rank < 0 ? waiting.length : rank;
}

export default defineConfig({
  test: {
    globalSetup: ["test/support/bun-setup.ts", "test/support/used-rights.ts"],
    setupFiles: ["test/support/e2e-setup.ts"],
    sequence: { sequencer: InOrder },
    testTimeout: 300_000,
    hookTimeout: 900_000,
    projects: [
      { extends: true, test: { name: "waiting", include: waiting, maxWorkers: 2 } },
      {
        extends: true,
        test: {
          name: "working",
          include: ["test/e2e/**/*.e2e.test.ts"],
          exclude: waiting,
          fileParallelism: false,
        },
      },
    ],
  },
});
