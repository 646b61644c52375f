/** Why a node leaves: the plan, a person, or one of the ways in which a cloud says so. */
export type Cause =
  | "Planned"
  | "Manual"
  | "SpotInterruption"
  | "RebalanceRecommendation"
  | "ScheduledMaintenance"
  | "LifecycleHook"
  | "Preempted"
  | "NodeShutdown";
