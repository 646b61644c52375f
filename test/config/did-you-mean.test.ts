import { expect, it } from "vitest";
import { didYouMean, nodeHint } from "../../src/config/problem.ts";

const fields = ["weight", "windows", "budgets", "drain", "dryRun", "paused", "--drain", "--runs"];

it.each([
  ["wieght", "weight"],
  ["Weight", "weight"],
  ["window", "windows"],
  ["budget", "budgets"],
  ["dryrun", "dryRun"],
  ["drian", "drain"],
  ["pasued", "paused"],
  ["x", undefined],
  // Dashes are no letters that two options share.
  ["--rain", "--drain"],
  ["--tune", undefined],
  ["lifetime", undefined],
])("for %s the suggestion is %s", (word, meant) => {
  expect(didYouMean(word, fields)).toBe(meant);
});

it("the suggestion is the first of two equally similar names", () => {
  expect(didYouMean("bat", ["cat", "hat"])).toBe("cat");
});

const nodes = ["gke-spot-1f2e-abcd", "gke-spot-1f2e-wxyz", "ip-10-0-0-1.ec2.internal", "n0", "n1"];

it.each([
  ["ip-10-0-0-1", " (did you mean ip-10-0-0-1.ec2.internal?)"],
  ["gke-spot-1f2e-abdc", " (did you mean gke-spot-1f2e-abcd?)"],
  ["GKE-Spot-1f2e-ABCD", " (did you mean gke-spot-1f2e-abcd?)"],
  // Two are as near.
  ["n2", ""],
  ["gke-spot-1f2e-mnop", ""],
])("for the node %s the hint is '%s'", (name, hint) => {
  expect(nodeHint(name, nodes)).toBe(hint);
});
