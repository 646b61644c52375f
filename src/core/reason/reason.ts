import { providerIdForms } from "../../cloud/facts/cloud-marks.ts";
import { formatInstant, type Instant } from "../time/time.ts";
import { orList } from "./word-list.ts";

/**
 * Every decision has a reason from this list, including the decision to do nothing. Each has a line
 * in docs/glossary.md (a check keeps the two in step) and a sentence below.
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
  /** What was found: a budget's name, an alert, an error's message. */
  readonly detail?: string | undefined;
}

type Sentence = (facts: ReasonFacts) => string;

const sentences: Readonly<Record<Reason, Sentence>> = {
  Spaced: (f) => `leaves at ${time(f.at)}, as far from its neighbours as the plan allows`,
  DeadlineBeatsWindow: (f) =>
    `leaves at its deadline ${time(f.deadlineAt)}, because no earlier time is allowed`,
  Missed: (f) =>
    `missed its time, is past its deadline ${time(f.deadlineAt)} and leaves at ${time(f.at)}`,
  Overdue: (f) =>
    `was past its deadline ${time(f.deadlineAt)} when first planned and leaves at ${time(f.at)}`,
  Requested: () => "leaves as requested by a user",
  Noticed: (f) => `leaves because the cloud interrupts it${until(f)}${after(f)}`,
  NoPolicy: () => "has no planned departure, because no policy matches it",
  NoLifetimeLimit: (f) =>
    `has no planned departure, because policy ${f.policy ?? "?"} has no lifetime.max`,
  NoProviderID: () => "is not planned, because it has no providerID to identify its machine by",
  UnknownProvider: (f) =>
    `is not planned, because its providerID ${quoted(f)} is not ${orList(providerIdForms)}`,
  NoLaunchTime: () =>
    "is not planned, because neither its machine nor its Node object has a launch time",
  OnHold: (f) =>
    f.until === undefined
      ? `is not planned while it has the annotation ${f.detail ?? "lastcall.dev/hold"}`
      : `waits until its hold ends at ${time(f.until)}`,
  GangWorkload: (f) =>
    `does not leave on its own, because that would end a workload on several nodes: ${f.detail ?? "unknown"}`,
  MachineStayed: (f) =>
    `is not drained again until ${f.detail ?? "later"}, because its machine was not terminated after the last drain`,
  LeftToOthers: (f) =>
    `is skipped, because another tool is already disrupting it: ${f.detail ?? "unknown"}`,
  NodeTerminating: () => "is already being deleted",
  PolicyPaused: (f) => `waits, because policy ${f.policy ?? "?"} is paused`,
  PolicyInvalid: (f) => `is skipped, because a policy cannot be read: ${f.detail ?? "unknown"}`,
  // Its Departure has the instant, and may be moved after this is written.
  NotYet: (f) =>
    f.until === undefined ? "waits for its time" : `waits for its turn at ${time(f.until)}`,
  OutsideWindow: (f) =>
    `waits for a window${f.until === undefined ? "" : ` that opens at ${time(f.until)}`}`,
  // It stays in the record while the departure waits for its turn, and has to be true until then.
  BudgetSpent: (f) =>
    `waits${f.until === undefined ? "" : ` until ${time(f.until)} at least`}, because the policy's budget was used up when it was due: ${f.detail ?? "unknown"}`,
  WaveWait: (f) => `waits for the previous wave: ${f.detail ?? "unknown"}`,
  WaveHalted: (f) =>
    `waits, because an earlier departure did not succeed: ${f.detail ?? "unknown"}`,
  Frozen: (f) => `waits until the freeze ends at ${time(f.until)}`,
  AlertsFiring: (f) => `waits, because alerts are firing: ${f.detail ?? "unknown"}`,
  AlertsNotAllowed: (f) =>
    `waits, because --action-hosts does not name the host of gates.alerts.url${f.detail ? ` (${f.detail})` : ""}, and the gate fails closed`,
  AlertsUnknown: (f) =>
    `waits, because Alertmanager${f.detail ? ` at ${f.detail}` : ""} does not respond, and the gate fails closed`,
  BlockingPod: (f) => `waits for the blocking pod ${f.detail ?? "on it"}`,
  BlockingPodsUnknown: () => "waits, because the blocking pods could not be listed",
  GangsUnknown: () =>
    "waits, because the workloads on several nodes cannot be listed, and the gate fails closed",
  FleetUnhealthy: (f) => `waits, because the fleet is unhealthy${after(f)}`,
  HeldByPerson: () => "waits, because its Departure has spec.hold set",
  DeadlineFirst: (f) =>
    `leaves as planned before the requested time ${time(f.at)}, because that is past its deadline${after(f)}`,
  CordonedByOthers: () => "waits, because somebody else cordoned it",
  ReleaseImpossible: (f) =>
    `is not drained, because its machine could not be released afterwards${after(f)}`,
  DrainImpossible: (f) => `is not drained, because its drain would be rolled back${after(f)}`,
  CloudUnreachable: (f) =>
    `waits, because its cloud cannot be asked whether its machine can be released${after(f)}`,
  Started: () => "is leaving now",
  DeadlineForces: (f) =>
    `leaves now, because its deadline ${time(f.deadlineAt)} allows no later start`,
  BudgetImpossible: (f) => `has pods whose budgets can never allow an eviction${after(f)}`,
  NoCapacityElsewhere: (f) => `has pods that may fit on no other node${after(f)}`,
  StartLapsed: () => "waits to be planned again, because what allowed its start is out of date",
  ConflictWait: (f) => `waits, because its drain and another could block each other${after(f)}`,
  ReplacementWait: (f) => `waits for capacity for its pods on other nodes${after(f)}`,
  ReplacementTimeout: (f) => `found no capacity for its pods on other nodes in time${after(f)}`,
  ActionWait: (f) => `waits for its required actions: ${f.detail ?? "unknown"}`,
  ActionFailed: (f) => `is not drained, because a required action failed${after(f)}`,
  DrainRunning: (f) => `is draining${f.detail === undefined ? "" : `: ${f.detail}`}`,
  DrainBlocked: (f) => `is draining, blocked by ${f.detail ?? "a budget"}`,
  DrainTimeout: (f) => `was not drained within the drain timeout${after(f)}`,
  DrainDone: (f) => `is drained${after(f)}`,
  VolumeWait: (f) => `is drained, and waits for its volumes to be detached${after(f)}`,
  LoadBalancerWait: (f) =>
    `is drained, and is kept until ${f.detail ?? "later"} for load balancers that may still send traffic to it`,
  DeadlineReached: (f) => `reached its deadline ${time(f.deadlineAt)}${after(f)}`,
  ReleaseRetried: (f) => `is drained, and the release of its machine is being retried${after(f)}`,
  ReleaseFailed: (f) => `could not be released: ${f.detail ?? "unknown"}`,
  AwaitingMachine: () => "is drained, and waits for the cloud to terminate its machine",
  MachineNotTaken: (f) =>
    `was drained and is uncordoned, because nothing terminated its machine${after(f)}`,
  Released: (f) =>
    `is drained, and its machine is released${f.detail === undefined ? "" : `, but its Node is not deleted: ${f.detail}`}`,
  NodeGone: (f) =>
    `is gone: its Node object was deleted${f.detail === undefined ? "" : `, and ${f.detail}`}`,
  MachineReplaced: () => "is gone: another machine has its name now",
  MachineRebooted: () => "was rebooted, which ended its departure",
  WrongMachine: (f) =>
    `was skipped, because nothing shows its machine to be the one of its departure${after(f)}`,
  CancelledByPerson: (f) => `stays, because its departure was cancelled${after(f)}`,
  NoticeWithdrawn: () => "stays, because the cloud withdrew its notice",
  NoticeOutlived: () => "stays, because its machine still runs after its notice",
  NoticeIgnored: (f) => `stays, because policy ${f.policy ?? "?"} ignores such notices`,
  PlanChanged: (f) => `is no longer planned${after(f)}`,
  RequestRefused: (f) =>
    `stays, because a request that its departure needs kept failing${after(f)}`,
  RolledBackByRule: (f) => `stays, and was uncordoned${after(f)}`,
  OrphanedCordon: () => "was cordoned for a departure that no longer exists, and is uncordoned",
  DryRun: () => "would leave now, but this is a dry run",
};

/**
 * Explains a reason in one sentence, the same in log, Event, CLI and board: `n1 is drained.` The
 * subject is the node if given, otherwise "the node".
 */
export function explain(reason: Reason, facts: ReasonFacts = {}): string {
  return `${facts.node ?? "the node"} ${sentences[reason](facts)}.`;
}

function time(at: Instant | undefined): string {
  return at === undefined ? "an unknown time" : formatInstant(at);
}

function until(facts: ReasonFacts): string {
  return facts.deadlineAt === undefined ? "" : ` at ${time(facts.deadlineAt)}`;
}

function after(facts: ReasonFacts): string {
  return facts.detail === undefined ? "" : `: ${facts.detail}`;
}

function quoted(facts: ReasonFacts): string {
  return JSON.stringify(facts.detail ?? "");
}
