import { BaseSequencer, type TestSpecification } from "vitest/node";
import { ownProcess } from "./own-process.ts";

/**
 * The files that take longest. Without the durations of an earlier run, as in CI, Vitest starts
 * large files first, and the longest of these are small: the last one would run alone for half a
 * minute.
 */
export const longest: readonly string[] = [
  "test/regression/regression.test.ts",
  "test/cli/setup-halfway.test.ts",
  "test/cli/simulate.test.ts",
  "test/cli/headless-demo.test.ts",
  "test/controller/crash.test.ts",
  "test/cloud/aws/notice-source.test.ts",
  "test/cli/board-command.test.ts",
];

/** Starts the longest files first, after those with a process of their own. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}

function rankOf({ moduleId }: TestSpecification): number {
  const isIn = (list: readonly string[]) => list.some((file) => moduleId.endsWith(`/${file}`));
  if (isIn(ownProcess)) return 0;
  return isIn(longest) ? 1 : 2;
}
