/**
 * Files of which `npm test` runs a part, and `npm run test:long` everything: more seeds, more rows.
 * docs/testing.md says which part, and `long-run.test.ts` that this list is complete.
 */
export const longFiles: readonly string[] = [
  "test/cli/headless-demo.test.ts",
  "test/controller/crash.test.ts",
  "test/core/plan/plan-invariant.test.ts",
  "test/core/plan/plan-rest.test.ts",
  "test/core/plan/plan.test.ts",
  "test/core/plan/start-pace.test.ts",
  "test/explore/action-space.test.ts",
  "test/explore/budget-space.test.ts",
  "test/explore/departure-space.test.ts",
  "test/fault-machine/fault-durations.test.ts",
  "test/fault-machine/fault-machine.test.ts",
];

/** Whether this is `npm run test:long`. */
export const isLongRun: boolean = process.env.TEST_LONG !== undefined;
