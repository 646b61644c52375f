import { type Clock, Wakeup } from "../../contracts/clock.ts";
import type { Fleet, FleetChange } from "../../contracts/cluster.ts";
import type { Telemetry } from "../../contracts/telemetry.ts";
import { isBegunAhead, isToFinish } from "../../core/action/action-plan.ts";
import { compareIdentity, type NodeFacts } from "../../core/cluster/node.ts";
import {
  type Departure,
  type DepartureStatus,
  isLive,
  isNoticed,
  isWaitingAdvice,
} from "../../core/departure/departure.ts";
import { type PhaseChange, statusAfter } from "../../core/departure/ledger.ts";
import {
  makesLeave,
  policyFor,
  policyToRecord,
  reactionTo,
} from "../../core/notice/interruption.ts";
import type { Policy } from "../../core/policy/policy.ts";
import { inEnglish } from "../../core/reason/english.ts";
import { type Instant, type Millis, plus, seconds } from "../../core/time/time.ts";
import { messageOf } from "../../errors.ts";
import type { ActiveDepartures } from "../departure/active-departures.ts";
import type { DepartureWriter } from "../departure-writer.ts";
import type { NoticeReconciler } from "./notice-reconciler.ts";

interface InterruptionOptions {
  readonly fleet: Fleet;
  readonly activeDepartures: ActiveDepartures;
  readonly writer: DepartureWriter;
  readonly telemetry: Telemetry;
  readonly noticeReconciler: NoticeReconciler;
  readonly clock: Clock;
}

/**
 * After a change, all departures are evaluated once more after this time, which retries failures.
 */
const retryAfterMs: Millis = seconds(1);

/** Resync interval without changes. */
const quietMs: Millis = seconds(30);

/**
 * The fast path: starts the Departure of an interruption as soon as the watch shows it,
 * independently of the plan reconciler. The plan reconciler starts advisory departures, within
 * budgets, waves and gates; this one only ends them if the policy keeps the node running. Also
 * passes every change to the departures under way. Evaluates only what has changed, because in a
 * fleet of 65,000 nodes something always changes.
 */
export function followInterruptions(options: InterruptionOptions, signal: AbortSignal): () => void {
  const { fleet, clock } = options;
  const over = new AbortController();
  const until = AbortSignal.any([signal, over.signal]);
  const again = new Wakeup(clock);
  const stop = fleet.onChange((change) => {
    if (change.policies) lookAtAll(options, signal);
    else lookAtChanged(change, options, signal);
    again.wake();
  });
  const stopTaking = options.activeDepartures.onRecheck((uid) => {
    const departure = fleet.departure(uid);
    if (departure !== undefined && !until.aborted) lookAt(departure, options, signal);
  });
  lookAtAll(options, signal);
  lookAround(again, options, until).catch((error: unknown) => {
    if (!until.aborted) throw error;
  });
  return () => {
    stop();
    stopTaking();
    over.abort();
  };
}

async function lookAround(
  again: Wakeup,
  options: InterruptionOptions,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = options;
  for (;;) {
    const woken = await again.sleepUntil(plus(clock.now(), quietMs), signal);
    if (woken === "Woken") await clock.sleep(retryAfterMs, signal);
    lookAtAll(options, signal);
  }
}

function lookAtAll(options: InterruptionOptions, signal: AbortSignal): void {
  const { fleet, activeDepartures, noticeReconciler } = options;
  activeDepartures.observe();
  for (const departure of fleet.view().departures) lookAt(departure, options, signal);
  noticeReconciler.lookAtMarks();
}

function lookAtChanged(
  change: FleetChange,
  options: InterruptionOptions,
  signal: AbortSignal,
): void {
  const { fleet, activeDepartures, noticeReconciler } = options;
  activeDepartures.observeChanged(change);
  for (const uid of change.departures) {
    const departure = fleet.departure(uid);
    if (departure !== undefined) lookAt(departure, options, signal);
  }
  noticeReconciler.lookAtMarks([...change.nodes].flatMap((name) => fleet.node(name) ?? []));
}

function lookAt(departure: Departure, options: InterruptionOptions, signal: AbortSignal): void {
  const { fleet, activeDepartures, noticeReconciler } = options;
  if (isToFinish(departure) && !activeDepartures.has(departure)) {
    const policy = policyFor(departure, undefined, fleet.policies());
    activeDepartures.open(departure, { policy, signal });
  }
  if (!isNoticed(departure)) return;
  if (!isLive(departure)) {
    noticeReconciler.lookAtNewObject(departure, fleet.node(departure.node.name));
    return;
  }
  // It has started, whatever the watch shows, and ends by itself.
  if (activeDepartures.has(departure)) return;
  const node = fleet.node(departure.node.name);
  const policy = policyFor(departure, node, fleet.policies());
  handle({ departure, node, policy }, options, signal);
}

function isOf(departure: Departure, node: NodeFacts | undefined): boolean {
  return node !== undefined && compareIdentity(departure.node, node) === "Same";
}

function handle(
  notice: {
    readonly departure: Departure;
    readonly node: NodeFacts | undefined;
    readonly policy: Policy;
  },
  { activeDepartures, writer, telemetry, clock }: InterruptionOptions,
  signal: AbortSignal,
): void {
  const { departure, node, policy } = notice;
  const notToStart = reasonNotToStart(departure, policy);
  // What became of a machine whose notice was withdrawn, each pass finds out.
  if (notToStart?.event === "Withdrawn" && !isOf(departure, node)) return;
  if (notToStart === undefined) {
    if (isWaitingAdvice(departure, clock.now())) return;
    const detail = earlierPlan(departure, clock.now());
    const first = { event: "Noticed", reason: "Noticed", detail } as const;
    activeDepartures.open(departure, {
      policy,
      signal,
      ...(isToBegin(departure) ? { first } : {}),
    });
    return;
  }
  const at = clock.now();
  let left: DepartureStatus | undefined;
  writer
    .record(departure, (now) => {
      // Evaluated again after a conflict: it may be an interruption by now.
      const why = reasonNotToStart(now, policy);
      left = why && endAfter(now, policy, { ...why, at });
      return left;
    })
    .then(() => tellIfLeft({ departure, policy, left }, telemetry))
    .catch((error: unknown) => telemetry.log.warn("act-failed", { error: messageOf(error) }));
}

/** The status of a departure that `policy` ends at `change`. */
export function endAfter(
  departure: Departure,
  policy: Policy,
  change: PhaseChange,
): DepartureStatus | undefined {
  const recorded = policyToRecord(departure, policy);
  return statusAfter({ ...departure, policy: policy.name }, { ...change, policy: recorded });
}

/** Emits the Event by which `Notify` and a dry run differ from `Ignore`. */
export function tellIfLeft(
  notice: {
    readonly departure: Departure;
    readonly policy: Policy;
    /** The status with which the departure ended. */
    readonly left: DepartureStatus | undefined;
  },
  { events }: Pick<Telemetry, "events">,
): void {
  const { departure, policy, left } = notice;
  const { node, cause } = departure;
  const isTold = policy.dryRun || reactionTo(departure, policy) === "Notify";
  const isLeft = left?.reason === "NoticeIgnored" || left?.reason === "DryRun";
  if (!isTold || left === undefined || !isLeft) return;
  events.emit({
    type: "Warning",
    reason: "NoticeReceived",
    message: `The cloud has given notice (${cause}): ${left.message}`,
    about: { kind: "Node", name: node.name, uid: node.uid },
  });
}

/** The superseded planned instant, kept in the timeline. */
function earlierPlan({ departAt }: Departure, now: Instant): string | undefined {
  const isAhead = departAt !== undefined && departAt > now;
  return isAhead ? inEnglish({ says: "detail.PlannedBefore", departAt }) : undefined;
}

function isToBegin({ status }: Departure): boolean {
  return status.phase === "Scheduled" || status.phase === "Held";
}

/** Why a departure ends without starting; undefined if it starts or has started. */
export function reasonNotToStart(
  departure: Departure,
  policy: Policy,
): Omit<PhaseChange, "at"> | undefined {
  // One that has acted already starts all the same, so that it is rolled back.
  if (!isToBegin(departure) || isBegunAhead(departure)) return undefined;
  if (departure.withdrawnAt !== undefined) {
    return { event: "Withdrawn", reason: "NoticeWithdrawn" };
  }
  // Also of a user's request, whose cause a notice without a time does not change.
  if (policy.dryRun) return { event: "Cancelled", reason: "DryRun" };
  const isLeft = !makesLeave(reactionTo(departure, policy));
  return isLeft ? { event: "Cancelled", reason: "NoticeIgnored" } : undefined;
}
