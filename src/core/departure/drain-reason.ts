/**
 * Every line of a drain plan and every pod of a running drain carries a reason from this list.
 * Each has a line in docs/drain.md and a sentence in explain-drain.ts; a test holds them in step.
 */
export const drainReasons = [
  // Why a pod is not touched.
  "DaemonSet",
  "Mirror",
  "Finished",
  "PolicySkip",
  "ComesBack",
  // Why a pod leaves as it does.
  "Evictable",
  "WillBeCut",
  "OwnController",
  "DaemonSetByRule",
  "DeleteRule",
  "NodeUnreachable",
  // What is lost when it leaves.
  "NoController",
  "DaemonSetGone",
  "EmptyDir",
  "HostPath",
  // What may happen to it afterwards.
  "NoCapacityElsewhere",
  // What must come first.
  "Terminating",
  "StuckTerminating",
  "NamespaceTerminating",
  "WaitCompleted",
  "RestartOwner",
  // What stands in the way.
  "DoNotDisturb",
  "DoNotDisrupt",
  "NotSafeToEvict",
  "BlockRule",
  "MultipleBudgets",
  "BudgetImpossible",
  "BudgetExhausted",
  "SingleReplica",
  // What stood in the way and gives way to a notice.
  "AnnotationOverruled",
  "BlockRuleOverruled",
  // What the API said while the drain ran.
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

/** Why a pod was deleted past the eviction API: the label of `lastcall_pods_forced_total`. */
export type ForceReason = Extract<
  DrainReason,
  "ForcedAtDeadline" | "ForcedAtTimeout" | "DeleteRule" | "NamespaceTerminating"
>;
