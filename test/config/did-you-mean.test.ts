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
])("for %s the nearest name is %s", (word, meant) => {
  expect(didYouMean(word, fields)).toBe(meant);
});

it("takes the first of two names that are equally near", () => {
  expect(didYouMean("bat", ["cat", "hat"])).toBe("cat");
});
