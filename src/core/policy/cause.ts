/** Why a node leaves: the plan, a person, or one of the ways in which a cloud says so. */
export const causes = [
  "Planned",
  "Manual",
  "SpotInterruption",
  "RebalanceRecommendation",
  "ScheduledMaintenance",
  "LifecycleHook",
  "Preempted",
  "NodeShutdown",
] as const;

export type Cause = (typeof causes)[number];
