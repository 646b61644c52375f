import { describe, expect, it } from "vitest";
import type { ReleaseMode } from "../../../src/core/policy/policy.ts";
import { ownerProblem, releaseModeOf } from "../../../src/core/policy/release-answer.ts";

const karpenters = { labels: { "karpenter.sh/nodepool": "spot" } };
const groups = { labels: { "eks.amazonaws.com/nodegroup": "spot" } };

describe("the release mode of a node's machine", () => {
  it.each<[ReleaseMode, ReleaseMode, ReleaseMode]>([
    ["Recreate", "NodeClaim", "Recreate"],
    ["NodeClaim", "NodeClaim", "NodeClaim"],
    ["Delete", "Delete", "Delete"],
    ["DeleteInstance", "DeleteInstance", "DeleteInstance"],
    ["None", "None", "None"],
  ])("for %s is %s on a Karpenter node and %s on any other", (release, onKarpenter, elsewhere) => {
    expect(releaseModeOf(karpenters, { release })).toBe(onKarpenter);
    expect(releaseModeOf(groups, { release })).toBe(elsewhere);
  });

  it.each<[ReleaseMode, boolean]>([
    ["Recreate", false],
    ["NodeClaim", false],
    ["None", false],
    ["Delete", true],
    ["DeleteInstance", true],
  ])("%s on a Karpenter node is refused, naming NodeClaim: %s", (mode, isRefused) => {
    const told = isRefused
      ? expect.stringContaining("set instance.release to NodeClaim")
      : undefined;
    expect(ownerProblem(karpenters, mode)).toEqual(told);
    expect(ownerProblem(groups, mode)).toBeUndefined();
  });
});
