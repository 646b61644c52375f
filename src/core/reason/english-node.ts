import { providerIdForms } from "../../cloud/facts/cloud-marks.ts";
import { orList } from "./word-list.ts";

/** Why a node leaves, waits or stays: a sentence for each reason. */
export const englishNode = {
  Spaced: "{node} leaves at {at}, as far from its neighbours as the plan allows",
  DeadlineBeatsWindow:
    "{node} leaves at its deadline {deadlineAt}, because no earlier time is allowed",
  Missed: "{node} missed its time, is past its deadline {deadlineAt} and leaves at {at}",
  Overdue: "{node} was past its deadline {deadlineAt} when first planned and leaves at {at}",
  Requested: "{node} leaves as requested by a user",
  Noticed: "{node} leaves because the cloud interrupts it[ at {deadlineAt}][: {detail}]",
  NoPolicy: "{node} has no planned departure, because no policy matches it",
  NoLifetimeLimit:
    "{node} has no planned departure[: {detail}|, because policy {policy=?} has no lifetime.max]",
  NoProviderID: "{node} is not planned, because it has no providerID to identify its machine by",
  UnknownProvider: `{node} is not planned, because its providerID "{detail=}" is not ${orList(providerIdForms)}`,
  NoLaunchTime:
    "{node} is not planned, because neither its machine nor its Node object has a launch time",
  OnHold:
    "{node} [waits until its hold ends at {until}|is not planned while it has the annotation {detail=lastcall.dev/hold}]",
  GangWorkload:
    "{node} does not leave on its own, because that would end a workload on several nodes: {detail=unknown}",
  MachineStayed:
    "{node} is not drained again until {detail=later}, because its machine was not terminated after the last drain",
  LeftToOthers:
    "{node} is skipped, because another tool is already disrupting it: {detail=unknown}",
  NodeTerminating: "{node} is already being deleted",
  PolicyPaused: "{node} waits, because policy {policy=?} is paused",
  PolicyInvalid: "{node} is skipped, because a policy cannot be read: {detail=unknown}",
  // Its Departure has the instant, and may be moved after this is written.
  NotYet: "{node} waits for its [turn at {until}|time]",
  OutsideWindow: "{node} waits for a window[ that opens at {until}]",
  // It stays in the record while the departure waits for its turn, and has to be true until then.
  BudgetSpent:
    "{node} waits[ until {until} at least], because the policy's budget was used up when it was due: {detail=unknown}",
  WaveWait: "{node} waits for the previous wave: {detail=unknown}",
  WaveHalted: "{node} waits, because an earlier departure did not succeed: {detail=unknown}",
  Frozen: "{node} waits until the freeze ends at {until}",
  AlertsFiring: "{node} waits, because alerts are firing: {detail=unknown}",
  AlertsNotAllowed:
    "{node} waits, because --action-hosts does not name the host of gates.alerts.url[ ({detail})], and the gate fails closed",
  AlertsUnknown:
    "{node} waits, because Alertmanager[ at {detail}] does not respond, and the gate fails closed",
  BlockingPod: "{node} waits for the blocking pod {detail=on it}",
  BlockingPodsUnknown: "{node} waits, because the blocking pods could not be listed",
  GangsUnknown:
    "{node} waits, because the workloads on several nodes cannot be listed, and the gate fails closed",
  FleetUnhealthy: "{node} waits, because the fleet is unhealthy[: {detail}]",
  HeldByPerson: "{node} waits, because its Departure has spec.hold set",
  DeadlineFirst:
    "{node} leaves as planned before the requested time {at}, because that is past its deadline[: {detail}]",
  CordonedByOthers: "{node} waits, because somebody else cordoned it",
  ReleaseImpossible:
    "{node} is not drained, because its machine could not be released afterwards[: {detail}]",
  DrainImpossible: "{node} is not drained, because its drain would be rolled back[: {detail}]",
  CloudUnreachable:
    "{node} waits, because its cloud cannot be asked whether its machine can be released[: {detail}]",
  Started: "{node} is leaving now",
  DeadlineForces: "{node} leaves now, because its deadline {deadlineAt} allows no later start",
  BudgetImpossible: "{node} has pods whose budgets can never allow an eviction[: {detail}]",
  NoCapacityElsewhere: "{node} has pods that may fit on no other node[: {detail}]",
  StartLapsed: "{node} waits to be planned again, because what allowed its start is out of date",
  ConflictWait: "{node} waits, because its drain and another could block each other[: {detail}]",
  ReplacementWait: "{node} waits for capacity for its pods on other nodes[: {detail}]",
  ReplacementTimeout: "{node} found no capacity for its pods on other nodes in time[: {detail}]",
  ActionWait: "{node} waits for its required actions: {detail=unknown}",
  ActionFailed: "{node} is not drained, because a required action failed[: {detail}]",
  DrainRunning: "{node} is draining[: {detail}]",
  DrainBlocked: "{node} is draining, blocked by {detail=a budget}",
  DrainTimeout: "{node} was not drained within the drain timeout[: {detail}]",
  DrainDone: "{node} [left {left?one pod|{left} pods} behind|is drained][: {detail}]",
  VolumeWait:
    "{node} [left {left?one pod|{left} pods} behind|is drained], and waits for its volumes to be detached[: {detail}]",
  LoadBalancerWait:
    "{node} [left {left?one pod|{left} pods} behind|is drained], and is kept until {detail=later} for load balancers that may still send traffic to it",
  DeadlineReached: "{node} reached its deadline {deadlineAt}[: {detail}]",
  ReleaseRetried:
    "{node} [left {left?one pod|{left} pods} behind|is drained], and the release of its machine is being retried[: {detail}]",
  ReleaseFailed: "{node} could not be released: {detail=unknown}",
  AwaitingMachine:
    "{node} [left {left?one pod|{left} pods} behind|is drained], and waits for the cloud to terminate its machine",
  MachineNotTaken:
    "{node} [left {left?one pod|{left} pods} behind|was drained] and is uncordoned, because nothing terminated its machine[: {detail}]",
  Released:
    "{node} [left {left?one pod|{left} pods} behind|is drained], and its machine is released[, but its Node is not deleted: {detail}]",
  NodeGone: "{node} is gone: its Node object was deleted[, and {detail}]",
  MachineReplaced: "{node} is gone: another machine has its name now",
  MachineRebooted: "{node} was rebooted, which ended its departure",
  WrongMachine:
    "{node} was skipped, because nothing shows its machine to be the one of its departure[: {detail}]",
  CancelledByPerson: "{node} stays, because its departure was cancelled[: {detail}]",
  NoticeWithdrawn: "{node} stays, because the cloud withdrew its notice",
  NoticeOutlived: "{node} stays, because its machine still runs after its notice",
  NoticeIgnored: "{node} stays, because policy {policy=?} ignores such notices",
  PlanChanged: "{node} is no longer planned[: {detail}]",
  RequestRefused:
    "{node} stays, because a request that its departure needs kept failing[: {detail}]",
  RolledBackByRule: "{node} stays, and was uncordoned[: {detail}]",
  OrphanedCordon: "{node} was cordoned for a departure that no longer exists, and is uncordoned",
  DryRun: "{node} would leave now, but this is a dry run",
} as const;
