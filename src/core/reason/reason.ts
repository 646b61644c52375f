import type { Instant } from "../time/time.ts";
import { inEnglish, sentenceOf } from "./english.ts";

/**
 * Every decision has a reason from this list, including the decision to do nothing. Each has a line
 * in docs/glossary.md (a check keeps the two in step) and a sentence in `english-node.ts`.
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
  "NoLaunchTime",
  "OnHold",
  "GangWorkload",
  "MachineStayed",
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
  "AlertsNotAllowed",
  "AlertsUnknown",
  "BlockingPod",
  "BlockingPodsUnknown",
  "GangsUnknown",
  "FleetUnhealthy",
  "HeldByPerson",
  "DeadlineFirst",
  "CordonedByOthers",
  "ReleaseImpossible",
  "DrainImpossible",
  "CloudUnreachable",
  // What happens during a departure.
  "Started",
  "DeadlineForces",
  "BudgetImpossible",
  "NoCapacityElsewhere",
  "ConflictWait",
  "StartLapsed",
  "ReplacementWait",
  "ReplacementTimeout",
  "ActionWait",
  "ActionFailed",
  "DrainRunning",
  "DrainBlocked",
  "DrainTimeout",
  "DrainDone",
  "VolumeWait",
  "LoadBalancerWait",
  "DeadlineReached",
  "ReleaseRetried",
  "ReleaseFailed",
  "AwaitingMachine",
  "MachineNotTaken",
  // How it ended, or was rolled back.
  "Released",
  "NodeGone",
  "MachineReplaced",
  "MachineRebooted",
  "WrongMachine",
  "CancelledByPerson",
  "NoticeWithdrawn",
  "NoticeOutlived",
  "NoticeIgnored",
  "PlanChanged",
  "RequestRefused",
  "RolledBackByRule",
  "OrphanedCordon",
  "DryRun",
] as const;

export type Reason = (typeof reasons)[number];

/** The facts for a sentence. Each reason uses those that it needs. */
export interface ReasonFacts {
  readonly node?: string | undefined;
  readonly policy?: string | undefined;
  readonly at?: Instant | undefined;
  readonly deadlineAt?: Instant | undefined;
  /** When a hold ends; undefined if unknown. */
  readonly until?: Instant | undefined;
  /** How many pods the drain has left on the node; undefined for none. */
  readonly left?: number | undefined;
  /** What was found: a budget's name, an alert, an error's message. */
  readonly detail?: string | undefined;
}

/**
 * Explains a reason in one sentence, the same in log, Event, CLI and board: `n1 is drained.` The
 * subject is the node if given, otherwise "the node".
 */
export function explain(reason: Reason, facts: ReasonFacts = {}): string {
  const { node = "the node", detail = "" } = facts;
  const told = reason === "UnknownProvider" ? JSON.stringify(detail).slice(1, -1) : detail;
  return `${inEnglish(sentenceOf(`node.${reason}`, { ...facts, node, detail: told }))}.`;
}
