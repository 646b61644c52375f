/**
 * A short sentence for each reason, to be read from a distance, in a browser and in a terminal; the
 * core's own sentence has the details. The page has them in other languages.
 */
import type { Reason } from "../core/reason/reason.ts";
import type { BoardRow } from "./stream.ts";

export type BriefReason = Reason | "HeldPastDeadline";

/** Why a node leaves when it does, or what holds it; a newer version may have other reasons. */
export function briefReason({ plannedBy, deadlineAt, hold, cause, reason }: BoardRow): BriefReason {
  const isBarred = plannedBy === "DeadlineBeatsWindow" && deadlineAt !== null;
  if (isBarred && (hold?.untilAt ?? 0) > deadlineAt) return "HeldPastDeadline";
  return plannedBy ?? (cause === "Manual" ? "Requested" : reason);
}

export const reasonWords: Readonly<Record<BriefReason, string>> = {
  Spaced: "Spaced from its neighbours",
  DeadlineBeatsWindow: "No time before its deadline",
  HeldPastDeadline: "On hold past its deadline",
  Missed: "Missed its time",
  Overdue: "Was past its deadline when planned",
  Requested: "Requested by a user",
  Noticed: "The cloud interrupts it",
  NoPolicy: "No policy selects it",
  NoLifetimeLimit: "Leaves on a notice only",
  NoProviderID: "No providerID",
  UnknownProvider: "Unknown cloud",
  NoLaunchTime: "Launch time unknown",
  OnHold: "On hold",
  MachineStayed: "Paused: its machine stayed",
  LeftToOthers: "Another tool is removing it",
  NodeTerminating: "Its Node is being deleted",
  PolicyPaused: "Its policy is paused",
  PolicyInvalid: "A policy cannot be read",
  NotYet: "Its time has not come",
  OutsideWindow: "Waits for a window",
  BudgetSpent: "Waits for the budget",
  WaveWait: "Waits for the previous wave",
  WaveHalted: "Waves are halted",
  Frozen: "Frozen",
  AlertsFiring: "Alerts are firing",
  AlertsNotAllowed: "Alertmanager is not in --action-hosts",
  AlertsUnknown: "Alertmanager does not respond",
  BlockingPod: "Waits for a blocking pod",
  GangWorkload: "part of a workload on several nodes",
  GangsUnknown: "workloads on several nodes unknown",
  BlockingPodsUnknown: "Blocking pods are unknown",
  FleetUnhealthy: "The fleet is unhealthy",
  HeldByPerson: "Held by a user",
  DeadlineFirst: "Its deadline comes first",
  CordonedByOthers: "Cordoned by somebody else",
  DrainImpossible: "Its drain would be rolled back",
  ReleaseImpossible: "Its machine could not be released",
  CloudUnreachable: "Its cloud does not respond",
  Started: "Started",
  DeadlineForces: "Its deadline forces it",
  BudgetImpossible: "A budget never allows it",
  NoCapacityElsewhere: "No room for its pods",
  StartLapsed: "Waits to be planned again",
  ConflictWait: "Waits for another drain",
  ReplacementWait: "Reserving capacity",
  ReplacementTimeout: "No capacity in time",
  ActionWait: "Waiting for actions",
  ActionFailed: "A required action failed",
  DrainRunning: "Pods are leaving",
  DrainBlocked: "The drain is blocked",
  DrainTimeout: "The drain timed out",
  DrainDone: "Drained",
  VolumeWait: "Waits for volumes",
  LoadBalancerWait: "Waits for load balancers",
  DeadlineReached: "Deadline reached",
  ReleaseRetried: "Release is being retried",
  ReleaseFailed: "Release failed",
  AwaitingMachine: "Waits for its termination",
  MachineNotTaken: "Its machine stayed",
  Released: "Released",
  NodeGone: "The node is gone",
  MachineReplaced: "Another machine has its name",
  MachineRebooted: "Rebooted",
  WrongMachine: "Not the intended machine",
  CancelledByPerson: "Cancelled by a user",
  NoticeWithdrawn: "The cloud withdrew its notice",
  NoticeOutlived: "Its machine outlived the notice",
  NoticeIgnored: "The policy ignores the notice",
  PlanChanged: "No longer planned",
  RequestRefused: "Request kept failing",
  RolledBackByRule: "Rolled back",
  OrphanedCordon: "Uncordoned: no departure",
  DryRun: "Dry run",
};
