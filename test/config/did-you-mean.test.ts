import { expect, it } from "vitest";
import { didYouMean } from "../../src/config/problem.ts";

const fields = ["weight", "windows", "budgets", "drain", "dryRun", "paused"];

it.each([
  ["wieght", "weight"],
  ["Weight", "weight"],
  ["window", "windows"],
  ["budget", "budgets"],
  ["dryrun", "dryRun"],
  ["drian", "drain"],
  ["pasued", "paused"],
  ["x", undefined],
  ["lifetime", undefined],
])("for %s the suggestion is %s", (word, meant) => {
  expect(didYouMean(word, fields)).toBe(meant);
});

it("the suggestion is the first of two equally similar names", () => {
  expect(didYouMean("bat", ["cat", "hat"])).toBe("cat");
});
