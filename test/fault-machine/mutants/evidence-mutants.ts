import { edit, type Mutant } from "./mutant.ts";

/** Bugs in what counts as known: from silence, from refusals, and from records that are old. */
export const evidenceMutants: readonly Mutant[] = [
  {
    name: "pods that nobody could ask count as asked",
    edits: [
      edit(
        "core/drain/drain-step.ts",
        "if (!hasUnasked({ ...state, progress: about.progress, limit: limitNow(state) })) {",
        "if (hasUnasked !== undefined) {",
      ),
    ],
    kinds: ["refuse-eviction", "right-removed"],
  },
  {
    name: "a watch that has been silent for hours counts as up to date",
    edits: [edit("core/limits/stale-watch.ts", "oldest.ms > staleAfterMs ?", "oldest.ms > 1e12 ?")],
    kinds: ["watch-refused", "policy-frozen"],
  },
  {
    name: "overdue nodes keep no wider gap than others have reached",
    edits: [
      edit(
        "core/plan/overdue-plan.ts",
        "if (inTime.size === 0) return reached;",
        "if (inTime.size >= 0) return reached;",
      ),
    ],
    kinds: ["registered-again"],
  },
  {
    name: "a notice waits until nobody moves its plan",
    edits: [
      edit(
        "agent/notice-patch.ts",
        'const decidingMetadata = ["uid",',
        'const decidingMetadata = ["uid", "resourceVersion",',
      ),
    ],
    kinds: ["notice-storm"],
  },
  {
    name: "a notice is written to the plan for an earlier boot",
    edits: [
      edit(
        "core/departure/departure-of-notice.ts",
        "isLive(one) && isOfMachine(one)",
        "isLive(one) && isOfMachine !== undefined",
      ),
    ],
    kinds: ["reboot", "blackout", "notice-unfulfilled"],
  },
  {
    name: "a due departure starts by its record, wherever the plan has moved it",
    edits: [edit("core/plan/policy-plan.ts", "if (hasty.size === 0)", "if (hasty.size >= 0)")],
    kinds: ["right-removed", "watch-blind"],
  },
  {
    name: "the grace of a pod runs while its kubelet is cut off",
    edits: [
      edit(
        "core/next/pod-deadline.ts",
        "const isSilent = pod.deletionAt !== undefined && isUnreachable(scene.node);",
        "const isSilent = pod.deletionAt !== undefined && isUnreachable === undefined;",
      ),
      edit(
        "core/next/pod-deadline.ts",
        "graceMs === undefined || readySince === undefined",
        "graceMs === undefined || readySince !== 1",
      ),
    ],
    kinds: ["partition", "pods-stuck"],
  },
  {
    // A last look stands behind it, but only where a machine is released.
    name: "a pod that has been asked to leave counts as gone",
    edits: [
      edit(
        "core/drain/drain-progress.ts",
        'if (pod === undefined || pod.phase === "Succeeded"',
        'if (pod === undefined || pod.deletionAt !== undefined || pod.phase === "Succeeded"',
      ),
    ],
    kinds: ["pods-stuck"],
  },
];
