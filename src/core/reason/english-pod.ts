const grace = "[ with {graceSeconds} s of grace]";
/** The same, with the grace that it wants if it gets less. */
const granted = `[, with its grace period truncated from {wantedGraceSeconds} s to {graceSeconds} s|${grace}]`;

/** How a pod leaves a node, or why not: a sentence for each reason, after the pod's name. */
export const englishPod = {
  DaemonSet: "is skipped, because its DaemonSet would recreate it on the node at once",
  Mirror: "is skipped, because it is the mirror of a static pod, which only the kubelet can end",
  Finished: "is skipped, because it has finished",
  PolicySkip: "is skipped, because a podRule of the policy says Skip",
  ComesBack:
    "is skipped, because it was placed on the node during the drain despite the cordon, and might come back again and again",
  Evictable: `is evicted${grace}`,
  WillBeCut:
    "is evicted with {graceSeconds=?} s of grace instead of {wantedGraceSeconds=?} s, because the deadline leaves no more",
  OwnController: `is evicted last, because it runs this drain${grace}`,
  DaemonSetByRule: `is evicted after the others, because a podRule names it${grace}`,
  DeleteRule: "is deleted regardless of its budgets, because a podRule of the policy says Delete",
  NodeUnreachable: "cannot be confirmed as terminated, because the node is unreachable",
  NoController: `is evicted${grace} and not recreated, because it has no controller`,
  DaemonSetGone: `is evicted${grace} and not recreated, because its DaemonSet {detail=?} no longer exists`,
  EmptyDir: `is evicted${grace} and loses the data of its emptyDir`,
  HostPath: `is evicted${grace} and leaves its hostPath data on the machine`,
  LocalVolume: `is evicted${grace}; its volume {detail=?} is on this machine, and its data is destroyed with it`,
  NoCapacityElsewhere: "may fit on no other node: {detail=unknown}",
  Terminating: "is waited for, because it is already terminating[, with its deadline at {detail}]",
  StuckTerminating:
    "is skipped, because it should have terminated long ago and has not[, with its deadline at {detail}]",
  NamespaceTerminating:
    "terminates with its namespace {detail=?}, which is being deleted and allows no evictions",
  WaitCompleted: "is waited for until it completes, because a podRule says WaitCompleted",
  RestartOwner:
    "is moved by a rollout restart of {detail=its owner}, because it is the only replica",
  DoNotDisturb: "is not evicted, because it has {detail=an annotation}",
  DoNotDisrupt: "is not evicted, because it has {detail=an annotation}",
  NotSafeToEvict: "is not evicted, because it has {detail=an annotation}",
  BlockRule: "is not evicted, because a podRule of the policy says Block",
  MultipleBudgets: "cannot be evicted, because more than one budget selects it: {detail=unknown}",
  BudgetImpossible: "cannot be evicted, because its budget can never allow it: {detail=unknown}",
  BudgetExhausted:
    "cannot be evicted now, because its budget allows no disruption: {detail=unknown}",
  SingleReplica:
    "cannot be evicted, because it is the only replica and its budget allows no disruption: {detail=unknown}",
  AnnotationOverruled:
    "is evicted although it has {detail=an annotation}, because the cloud interrupts the node",
  BlockRuleOverruled:
    "is evicted although a podRule says Block, because the cloud interrupts the node",
  BudgetHolds: "is blocked by its budget: {detail=unknown}",
  BudgetStale: "waits for its budget's status: {detail=unknown}",
  ApiOverloaded: "waits, because the API server is overloaded",
  EvictionRefused: "is refused eviction: {detail=unknown}",
  EvictionFailed: "could not be evicted: {detail=unknown}",
  RestartRefused:
    "waits for its budget, because the restart of its owner was refused: {detail=unknown}",
  AnswerLost: "may have been evicted, but the response was lost: {detail=unknown}",
  ForcedAtDeadline: `was deleted instead of evicted[ ({detail})], because the deadline left no more time to wait${granted}`,
  ForcedAtTimeout: `was deleted instead of evicted[ ({detail})], because the drain timed out and the policy says Proceed${granted}`,
} as const;

/** What is told of pods and of drains besides. */
export const englishDrain = {
  /** Of several pods, each with what holds it. */
  PodHeld: "{pod}: {detail}",
  MorePods: "and {more} more {more?pod|pods}",
  DeletedAfter:
    "it is deleted after {afterSeconds} s[, with its grace period truncated from {wantedGraceSeconds} s to {graceSeconds} s,|[ with {graceSeconds} s of grace,]] if it is still blocked",
  GraceCut: "grace period truncated from {wantedGraceSeconds} s to {graceSeconds} s",
  MarkUnreadable: '{mark}: {value}, which cannot be read ([{meant}? ]expected "true" or "2h")',
  NoPods: "no pods to evict",
  Account:
    "{pods} {pods?pod|pods} in {tookSeconds} s, planned within {plannedSeconds} s[, {cutAsPlanned} with a truncated grace period, as planned][, {cut} with a truncated grace period (planned: {plannedCut})][, none with a truncated grace period (planned: {missedCut})][, {forced} forced][, {left} left behind ({names})]",
  Gone: "{node} is gone",
  NoNode: "{node} has no Node object any more",
  HadNoPods: "it had no pods to drain",
  AllDrained: "{pods?its pod was|both pods were|all {pods} pods were} drained before",
  AllLeft: "{pods?its pod was|both pods were|all {pods} pods were} not drained before",
  AllKilled: "{pods?its pod was|both pods were|all {pods} pods were} killed",
  SomeLeft: "{left} of {pods} pods {left?was|were} not drained before",
  SomeKilled:
    "{killed} of {pods} pods {killed?was|were} killed, {drained?the other was|the other {drained} were} drained before",
  KilledAndLeft:
    "{killed} of {pods} pods {killed?was|were} killed and {left} {left?was|were} not drained before",
} as const;
