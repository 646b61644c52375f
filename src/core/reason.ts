/**
 * Every decision carries a reason from this list, doing nothing too. Each has a line in
 * docs/glossary.md (a check holds the two in step) and a sentence in explain.ts.
 */
export const reasons = [
  // Why a node leaves when it does.
  "Spaced",
  "DeadlineBeatsWindow",
  "Missed",
  "Overdue",
  "Requested",
  "Noticed",
  // Why a node has no planned departure.
  "NoPolicy",
  "NoLifetimeLimit",
  "NoProviderID",
  "UnknownProvider",
  "NoBirth",
  "OnHold",
  "LeftToOthers",
  "NodeTerminating",
  "PolicyPaused",
  "PolicyInvalid",
  // Why a departure that is due does not start.
  "NotYet",
  "OutsideWindow",
  "BudgetSpent",
  "WaveWait",
  "WaveHalted",
  "Frozen",
  "AlertsFiring",
  "AlertsUnknown",
  "BlockingPod",
  "BlockingPodsUnknown",
  "HeldByPerson",
  "CordonedByOthers",
  // What goes on during a departure.
  "Started",
  "DeadlineForces",
  "BudgetImpossible",
  "NoRoomElsewhere",
  "ConflictWait",
  "ReplacementWait",
  "ReplacementTimeout",
  "DrainRunning",
  "DrainBlocked",
  "DrainTimeout",
  "DrainDone",
  "VolumeWait",
  "LoadBalancerWait",
  "DeadlineReached",
  "ReleaseFailed",
  "AwaitingMachine",
  // How it ended, or was undone.
  "Released",
  "NodeGone",
  "MachineReplaced",
  "WrongMachine",
  "CancelledByPerson",
  "NoticeWithdrawn",
  "NoticeIgnored",
  "PlanChanged",
  "RolledBackByRule",
  "StrayCordon",
  "DryRun",
] as const;

export type Reason = (typeof reasons)[number];
