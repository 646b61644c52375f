/**
 * Files that load modules anew or replace them, and need a process of their own for it. All others
 * share a worker and its modules, which saves half of the suite's time: imports and warm-up.
 * `tools/check-style.ts` enforces that this list is complete.
 */
export const ownModules: readonly string[] = [
  "test/cli/action-docs.test.ts",
  ...["", "-events", "-region", "-tag"].map((part) => `test/cli/lambda/responder${part}.test.ts`),
  "test/cloud/fourth-cloud.test.ts",
];
