import type { ReleaseRequest } from "../../contracts/instance-releaser.ts";
import type { Ec2Machine, GroupSize } from "./ec2-machine.ts";

/** How an instance is released. */
export type ReleaseChoice =
  | {
      readonly kind: "InGroup";
      readonly group: string;
      readonly desired: "Kept" | "Decremented";
    }
  | { readonly kind: "Alone" }
  /** Its owner does not allow the mode; `problem` says what to write instead. */
  | { readonly kind: "Refused"; readonly problem: string };

/**
 * By whom an instance goes in a mode: by the group that owns it, or directly where it has no owner.
 */
export function releaseChoice(
  { instance, membership }: Ec2Machine,
  mode: ReleaseRequest["mode"],
): ReleaseChoice {
  const { instanceId, nodePool } = instance;
  if (nodePool !== undefined) {
    const owner = `the instance ${instanceId} is Karpenter's (its tag karpenter.sh/nodepool is ${nodePool})`;
    return refused(`${owner}, set instance.release to NodeClaim`);
  }
  if (membership === undefined) {
    if (mode === "DeleteInstance") return { kind: "Alone" };
    return refused(
      `the instance ${instanceId} is in no Auto Scaling group, set instance.release to DeleteInstance`,
    );
  }
  const { group } = membership;
  if (mode === "Recreate") return { kind: "InGroup", group, desired: "Kept" };
  if (mode === "Delete") return { kind: "InGroup", group, desired: "Decremented" };
  const owner = `the instance ${instanceId} is in the Auto Scaling group ${group}`;
  return refused(
    `${owner}, which would replace it when it finds it gone, set instance.release to Recreate or Delete`,
  );
}

/** What of a group's own settings stands in the way, as far as it can be seen before. */
export function groupProblem(
  { group, desired: how }: { readonly group: string; readonly desired: "Kept" | "Decremented" },
  size: GroupSize | undefined,
): string | undefined {
  if (size === undefined) return undefined;
  if (how === "Decremented" && size.desired <= size.min) {
    return `the Auto Scaling group ${group} is at its minimum of ${size.min}, lower that or set instance.release to Recreate`;
  }
  if (how === "Kept" && size.suspended.includes("Launch")) {
    return `the Auto Scaling group ${group} would make no new instance, its process Launch is suspended, resume it`;
  }
  return undefined;
}

function refused(problem: string): ReleaseChoice {
  return { kind: "Refused", problem };
}
