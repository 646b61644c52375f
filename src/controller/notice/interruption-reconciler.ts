import type { Clock } from "../../contracts/clock.ts";
import type { Fleet, FleetChange } from "../../contracts/fleet.ts";
import { Wakeup } from "../../contracts/wakeup.ts";
import { isToFinish } from "../../core/action/action-plan.ts";
import type { NodeFacts } from "../../core/cluster/node.ts";
import {
  type Departure,
  type DepartureStatus,
  isLive,
  isNoticed,
  isWaitingAdvice,
} from "../../core/departure/departure.ts";
import { type PhaseChange, statusAfter } from "../../core/departure/ledger.ts";
import { makesLeave, policyFor, reactionTo } from "../../core/notice/reaction.ts";
import type { Policy } from "../../core/policy/policy.ts";
import { formatInstant, type Instant, type Millis, plus, seconds } from "../../core/time/time.ts";
import { messageOf } from "../../errors.ts";
import type { ActiveDepartures } from "../departure/active-departures.ts";
import type { Executor } from "../executor.ts";
import type { NoticeReconciler } from "./notice-reconciler.ts";

interface InterruptionOptions {
  readonly fleet: Fleet;
  readonly activeDepartures: ActiveDepartures;
  readonly executor: Executor;
  readonly noticeReconciler: NoticeReconciler;
  readonly clock: Clock;
}

/**
 * After a change all is looked at once more, so that what has failed is tried again; after this.
 */
const lookAgainMs: Millis = seconds(1);
/** Even without a change all is looked at this often. */
const quietMs: Millis = seconds(30);

/**
 * The fast side: a Departure that a notice has made begins at once, in the turn in which the watch
 * shows it, whatever the plan reconciler is doing. What the cloud only advises is that one's to
 * begin, within budgets, waves and gates; here it ends, where the policy leaves the node at work.
 * Runs under way hear of every change here. Only what has changed is looked at in that turn: in a
 * fleet of 65,000 nodes some change at any time.
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
  const stopTaking = options.activeDepartures.onRested((uid) => {
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
    if (woken === "Woken") await clock.sleep(lookAgainMs, signal);
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
  const { fleet, activeDepartures } = options;
  if (isToFinish(departure) && !activeDepartures.has(departure)) {
    const policy = policyFor(departure, undefined, fleet.policies());
    activeDepartures.open(departure, { policy, signal });
  }
  if (!isLive(departure) || !isNoticed(departure)) return;
  // It has begun, whatever the watch shows: the ledger follows on, and its end is the run's own.
  if (activeDepartures.has(departure)) return;
  const node = fleet.node(departure.node.name);
  const policy = policyFor(departure, node, fleet.policies());
  handle({ departure, node, policy }, options, signal);
}

function handle(
  notice: {
    readonly departure: Departure;
    readonly node: NodeFacts | undefined;
    readonly policy: Policy;
  },
  { activeDepartures, executor, clock }: InterruptionOptions,
  signal: AbortSignal,
): void {
  const { departure, policy } = notice;
  if (whyNot(departure, policy) === undefined) {
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
  executor
    .record(departure, (now) => {
      // Judged again where somebody wrote in between: it may be an interruption's by now.
      const why = whyNot(now, policy);
      left = why && statusAfter({ ...now, policy: policy.name }, { ...why, at });
      return left;
    })
    .then(() => {
      const isTold = reactionTo(departure, policy) === "Notify";
      const isLeft = left?.reason === "NoticeIgnored" || left?.reason === "DryRun";
      if (isTold && left !== undefined && isLeft) notify(departure, left, executor);
    })
    .catch((error: unknown) =>
      executor.telemetry.log.warn("act-failed", { error: messageOf(error) }),
    );
}

/** What `Notify` does beyond `Ignore`. */
function notify({ node, cause }: Departure, left: DepartureStatus, executor: Executor): void {
  executor.emit({
    type: "Warning",
    reason: "NoticeReceived",
    message: `The cloud has given notice (${cause}): ${left.message}`,
    about: { kind: "Node", name: node.name, uid: node.uid },
  });
}

/** What a notice overtakes stays in the ledger. */
function earlierPlan({ departAt }: Departure, now: Instant): string | undefined {
  const isAhead = departAt !== undefined && departAt > now;
  return isAhead ? `it was to leave at ${formatInstant(departAt)}` : undefined;
}

function isToBegin({ status }: Departure): boolean {
  return status.phase === "Scheduled" || status.phase === "Held";
}

/** Why a departure ends before it has begun; undefined where it begins, or has. */
function whyNot(departure: Departure, policy: Policy): Omit<PhaseChange, "at"> | undefined {
  if (!isToBegin(departure)) return undefined;
  if (departure.withdrawnAt !== undefined) {
    return { event: "Withdrawn", reason: "NoticeWithdrawn" };
  }
  const isLeft = !makesLeave(reactionTo(departure, policy));
  const reason = policy.dryRun ? "DryRun" : "NoticeIgnored";
  return isLeft ? { event: "Cancelled", reason } : undefined;
}
