/**
 * The reasons for lines of a drain plan and for pods of a running drain. Each has a line in
 * docs/drain.md and a sentence in drain-plan-report.ts; a test keeps them in step.
 */
export const drainReasons = [
  // Why a pod is skipped.
  "DaemonSet",
  "Mirror",
  "Finished",
  "PolicySkip",
  "ComesBack",
  // How a pod leaves.
  "Evictable",
  "WillBeCut",
  "OwnController",
  "DaemonSetByRule",
  "DeleteRule",
  "NodeUnreachable",
  // What is lost with the pod.
  "NoController",
  "DaemonSetGone",
  "EmptyDir",
  "HostPath",
  // What may happen to its replacement.
  "NoCapacityElsewhere",
  // What has to happen first.
  "Terminating",
  "StuckTerminating",
  "NamespaceTerminating",
  "WaitCompleted",
  "RestartOwner",
  // What blocks it.
  "DoNotDisturb",
  "DoNotDisrupt",
  "NotSafeToEvict",
  "BlockRule",
  "MultipleBudgets",
  "BudgetImpossible",
  "BudgetExhausted",
  "SingleReplica",
  // What blocked it and is overruled by a notice.
  "AnnotationOverruled",
  "BlockRuleOverruled",
  // What the API responded during the drain.
  "BudgetHolds",
  "BudgetStale",
  "ApiOverloaded",
  "EvictionRefused",
  "EvictionFailed",
  "RestartRefused",
  "AnswerLost",
  // Why a pod was deleted instead of evicted.
  "ForcedAtDeadline",
  "ForcedAtTimeout",
] as const;

export type DrainReason = (typeof drainReasons)[number];

/** Why a pod was deleted instead of evicted: the label of `lastcall_pods_forced_total`. */
export type ForceReason = Extract<
  DrainReason,
  "ForcedAtDeadline" | "ForcedAtTimeout" | "DeleteRule" | "NamespaceTerminating"
>;
