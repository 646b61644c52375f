/**
 * Files that need a process of their own: those that load modules anew or replace them, and the one
 * that measures the heap. All others share a worker and its modules, which saves imports and
 * warm-up. `tools/check-style.ts` enforces that the list is complete.
 */
export const ownProcess: readonly string[] = [
  "test/cli/action-docs.test.ts",
  ...["", "-events", "-region", "-tag"].map((part) => `test/cli/lambda/responder${part}.test.ts`),
  "test/cloud/fourth-cloud.test.ts",
  "test/controller/bad-input-heap.test.ts",
];
