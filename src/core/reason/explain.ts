import { formatInstant, type Instant } from "../time/time.ts";
import type { Reason } from "./reason.ts";

/** What a sentence may speak of. A reason uses what it needs and leaves the rest. */
export interface ReasonFacts {
  readonly node?: string | undefined;
  readonly policy?: string | undefined;
  readonly at?: Instant | undefined;
  readonly deadlineAt?: Instant | undefined;
  /** When a hold ends; undefined where nobody knows. */
  readonly until?: Instant | undefined;
  /** What was found: a budget's name, an alert, an error's message. */
  readonly detail?: string | undefined;
}

type Sentence = (facts: ReasonFacts) => string;

const sentences: Readonly<Record<Reason, Sentence>> = {
  Spaced: (f) => `leaves at ${time(f.at)}, as far from its neighbours as the plan allows`,
  DeadlineBeatsWindow: (f) =>
    `leaves at its deadline ${time(f.deadlineAt)}, because no allowed instant lies before it`,
  Missed: (f) =>
    `missed its time, is past its deadline ${time(f.deadlineAt)} and leaves at ${time(f.at)}`,
  Overdue: (f) =>
    `was past its deadline ${time(f.deadlineAt)} when first planned and leaves at ${time(f.at)}`,
  Requested: () => "leaves because somebody asked for it",
  Noticed: (f) => `leaves because the cloud takes it${until(f)}${after(f)}`,
  NoPolicy: () => "has no planned departure, because no policy matches it",
  NoLifetimeLimit: (f) =>
    `has no planned departure, because policy ${f.policy ?? "?"} has no lifetime.max`,
  NoProviderID: () => "is not planned, because it has no providerID and so no machine is known",
  UnknownProvider: (f) =>
    `is not planned, because its providerID ${quoted(f)} is none of gce://, aws:///, azure:///`,
  NoLaunchTime: () =>
    "is not planned, because neither its machine nor its Node object has a launch time",
  OnHold: (f) =>
    f.until === undefined
      ? `is not planned while its hold annotation ${quoted(f)} stands`
      : `waits until its hold ends at ${time(f.until)}`,
  MachineStayed: (f) =>
    `is not drained again until ${f.detail ?? "later"}, because its machine stayed when it was drained`,
  LeftToOthers: (f) => `is left to others, who are already disrupting it: ${f.detail ?? "unknown"}`,
  NodeTerminating: () => "is being deleted already",
  PolicyPaused: (f) => `waits, because policy ${f.policy ?? "?"} is paused`,
  PolicyInvalid: (f) => `is left alone, because a policy cannot be read: ${f.detail ?? "unknown"}`,
  NotYet: (f) => `waits for its time ${time(f.at)}`,
  OutsideWindow: (f) =>
    `waits for a window${f.until === undefined ? "" : ` that opens at ${time(f.until)}`}`,
  BudgetSpent: (f) =>
    `waits${f.until === undefined ? "" : ` until ${time(f.until)}`}, because the budget is spent: ${f.detail ?? "unknown"}`,
  WaveWait: (f) => `waits for the wave before it: ${f.detail ?? "unknown"}`,
  WaveHalted: (f) => `waits, because a departure before it ended badly: ${f.detail ?? "unknown"}`,
  Frozen: (f) => `waits until the freeze ends at ${time(f.until)}`,
  AlertsFiring: (f) => `waits, because alerts fire: ${f.detail ?? "unknown"}`,
  AlertsUnknown: (f) =>
    `waits, because Alertmanager${f.detail ? ` at ${f.detail}` : ""} does not answer and a gate fails closed`,
  BlockingPod: (f) => `waits for the blocking pod ${f.detail ?? "on it"}`,
  BlockingPodsUnknown: () => "waits, because the blocking pods could not be listed",
  HeldByPerson: () => "waits, because its Departure has hold set",
  CordonedByOthers: () => "waits, because somebody else has cordoned it",
  ReleaseImpossible: (f) => `stays, because its machine could not be released${after(f)}`,
  CloudUnreachable: (f) => `waits until its cloud can be asked about its machine${after(f)}`,
  Started: () => "is leaving now",
  DeadlineForces: (f) =>
    `leaves now, because its deadline ${time(f.deadlineAt)} leaves no other way`,
  BudgetImpossible: (f) => `has pods that their budgets will not let go${after(f)}`,
  NoCapacityElsewhere: (f) => `has pods that may find no place elsewhere${after(f)}`,
  ConflictWait: (f) => `waits, because its drain and another could block each other${after(f)}`,
  ReplacementWait: (f) => `waits for room for its pods elsewhere${after(f)}`,
  ReplacementTimeout: (f) => `found no room for its pods elsewhere in time${after(f)}`,
  DrainRunning: (f) => `is draining${f.detail === undefined ? "" : `: ${f.detail}`}`,
  DrainBlocked: (f) => `is draining, held up by ${f.detail ?? "a budget"}`,
  DrainTimeout: (f) => `was not empty when the drain's time was up${after(f)}`,
  DrainDone: (f) => `is drained${after(f)}`,
  VolumeWait: (f) => `is empty, and waits for its volumes to be detached${after(f)}`,
  LoadBalancerWait: (f) =>
    `is kept until ${f.detail ?? "later"} for load balancers that may still send to it`,
  DeadlineReached: (f) => `reached its deadline ${time(f.deadlineAt)}${after(f)}`,
  ReleaseRetried: (f) => `is drained, and the release of its machine is tried again${after(f)}`,
  ReleaseFailed: (f) => `could not be released: ${f.detail ?? "unknown"}`,
  AwaitingMachine: () => "is drained, and the cloud has still to take its machine",
  MachineNotTaken: (f) =>
    `was drained and is put back to work, because nobody took its machine${after(f)}`,
  Released: () => "has left: drained, and its machine released",
  NodeGone: () => "is gone: its Node object disappeared",
  MachineReplaced: () =>
    "has another machine behind its name now; the one that was to leave is gone",
  WrongMachine: (f) => `was left alone, because it is not the machine that was meant${after(f)}`,
  CancelledByPerson: (f) => `stays, because somebody took the departure back${after(f)}`,
  NoticeWithdrawn: () => "stays, because the cloud withdrew its notice",
  NoticeIgnored: (f) => `stays, because policy ${f.policy ?? "?"} says not to act on such a notice`,
  PlanChanged: (f) => `is no longer planned${after(f)}`,
  RolledBackByRule: (f) => `stays, and was put back to work${after(f)}`,
  OrphanedCordon: () => "was cordoned for a departure that is no more, and is put back to work",
  DryRun: () => "would leave now, but this is a dry run",
};

/**
 * The one sentence of a reason, the same in log, Event, CLI and board: `n1 is drained.` The
 * subject is the node where one is given, else "the node".
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
