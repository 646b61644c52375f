import type { PodFacts } from "../cluster/pod.ts";
import type { PlannedPod } from "../drain-plan/drain-plan.ts";
import { untouchable } from "./drain-turn.ts";

/** Pods of a plan that leave and that somebody makes again elsewhere: what there must be room for. */
export function returningPods(
  planned: readonly PlannedPod[],
  pods: readonly PodFacts[],
): readonly PodFacts[] {
  const live = new Map(pods.map((pod) => [pod.uid, pod]));
  return planned.flatMap((one) => {
    const pod = live.get(one.uid);
    return pod !== undefined && comesBack(one) ? [pod] : [];
  });
}

/** One that terminates already has been recreated, and one that completes is not recreated at all. */
function comesBack(planned: PlannedPod): boolean {
  if (planned.owner === undefined || planned.owner.kind === "DaemonSet") return false;
  if (planned.action === "Wait") return planned.reason === "RestartOwner";
  return planned.action !== "Block" || !untouchable.has(planned.reason);
}
