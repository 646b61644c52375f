import { type Clock, nextChange, Wakeup } from "../../contracts/clock.ts";
import type { NoticeDelivery } from "../../contracts/cloud.ts";
import type { Fleet, FleetChange } from "../../contracts/cluster.ts";
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
import {
  type InstanceNotice,
  type MachineScene,
  type NoticeResolution,
  resolveNotice,
} from "../../core/notice/instance-notice.ts";
import { makesLeave, policyFor, reactionTo } from "../../core/notice/interruption.ts";
import { callsOfMarks, type NoticeCall } from "../../core/notice/node-notice.ts";
import type { Policy } from "../../core/policy/policy.ts";
import {
  formatInstant,
  type Instant,
  type Millis,
  millis,
  plus,
  seconds,
} from "../../core/time/time.ts";
import { LastcallError, messageOf } from "../../errors.ts";
import type { ActiveDepartures } from "../departure/active-departures.ts";
import type { Executor } from "../executor.ts";

export interface NoticeReconcilerOptions {
  readonly fleet: Fleet;
  readonly executor: Executor;
  readonly clock: Clock;
}

/** The write that a notice call leads to. `node` is the node's uid. */
interface Write {
  readonly key: string;
  readonly node: string;
  readonly write: () => Promise<void>;
}

/**
 * If the watch lags by more than this, the feed delivers the notice again instead of waiting.
 */
const watchLagMs: Millis = millis(2000);

/**
 * Creates or updates Departures for notices that no agent reports: the platform's taints and
 * conditions on nodes, and the notices of feeds. Writes once for each machine, however often its
 * notice is delivered.
 */
export class NoticeReconciler {
  readonly #options: NoticeReconcilerOptions;
  /** The writes that the watch does not show yet. */
  readonly #writes = new Map<string, { readonly node: string; readonly written: Promise<void> }>();
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor(options: NoticeReconcilerOptions) {
    this.#options = options;
  }

  /**
   * Handles the platform's marks on some nodes, or on all nodes. Failures are retried when all
   * nodes are handled again.
   */
  lookAtMarks(some?: readonly NodeFacts[]): void {
    const { fleet, executor } = this.#options;
    if (some === undefined) this.#forgetSeen();
    for (const call of callsOfMarks(some ?? fleet.view().nodes, this.#scene())) {
      this.#carryOut(call).catch((error: unknown) =>
        executor.telemetry.log.warn("act-failed", { error: messageOf(error) }),
      );
    }
  }

  /**
   * Implements `FeedListener.onNotice`. Notices for one machine are handled one after another,
   * because the second depends on the result of the first, such as a departure of a cause that the
   * policy ignores.
   */
  async handle(notice: InstanceNotice): Promise<NoticeDelivery> {
    const handled = (this.#queues.get(notice.machine) ?? Promise.resolve())
      .catch(() => undefined)
      .then(() => this.#writeUntilSeen(notice));
    this.#queues.set(notice.machine, handled);
    try {
      return await handled;
    } finally {
      if (this.#queues.get(notice.machine) === handled) this.#queues.delete(notice.machine);
    }
  }

  /** Writes until the watch shows the result: another node's departure may have had the name. */
  async #writeUntilSeen(notice: InstanceNotice): Promise<NoticeDelivery> {
    const { fleet, clock } = this.#options;
    let asked: string | undefined;
    for (let untilMs = 0; asked === undefined || clock.monotonic() < untilMs; ) {
      const resolution = this.#resolve(notice);
      if (resolution.kind === "Known") return "Taken";
      if (resolution.kind === "Undoing") throw rollingBack(notice);
      if (!isCall(resolution)) return resolution.kind;
      const { key } = this.#writeOf(resolution);
      if (key === asked) {
        await nextChange({ fleet, clock, mostMs: millis(untilMs - clock.monotonic()) });
        continue;
      }
      await this.#carryOut(resolution);
      if (asked === undefined && notice.notice.withdrawn !== true) this.#count(notice);
      asked = key;
      untilMs = clock.monotonic() + watchLagMs;
    }
    throw new LastcallError(
      "CONFLICT",
      `Cannot confirm the notice for ${notice.machine}: the watch shows no departure for it yet, retrying`,
    );
  }

  #resolve(notice: InstanceNotice): NoticeResolution {
    return resolveNotice(notice, this.#scene());
  }

  #scene(): MachineScene {
    const { fleet, clock } = this.#options;
    return {
      policies: fleet.policies(),
      at: clock.now(),
      nodeOf: (machine) => fleet.nodeOf(machine),
      departuresOf: (nodeUid) => fleet.departuresOf(nodeUid),
      departureNamed: (name) => fleet.departureNamed(name),
    };
  }

  /** A source starts with its cloud and path, such as `aws/queue/spot-interruption`. */
  #count({ notice }: InstanceNotice): void {
    const [cloud = "", source = ""] = notice.source.split("/");
    const labels = { cloud, kind: notice.cause, source };
    this.#options.executor.telemetry.metrics.count("lastcall_notices_total", labels);
  }

  #carryOut(call: NoticeCall): Promise<void> {
    const { key, node, write } = this.#writeOf(call);
    const asked = this.#writes.get(key);
    if (asked !== undefined && !this.#isSeen(key, node)) return asked.written;
    const written = write().catch((error: unknown) => {
      if (this.#writes.get(key)?.written === written) this.#writes.delete(key);
      throw error;
    });
    this.#writes.set(key, { node, written });
    return written;
  }

  /** The key is the name of a new departure, or the version of the one to change. */
  #writeOf(call: NoticeCall): Write {
    const { executor } = this.#options;
    if (call.kind === "Make") {
      const { name, node } = call.order;
      return { key: name, node: node.uid, write: () => executor.schedule(call.order) };
    }
    const { departure } = call;
    const about = { key: versionOf(departure), node: departure.node.uid };
    if (call.kind === "Withdraw") {
      return { ...about, write: () => executor.withdraw(departure, call.at) };
    }
    return { ...about, write: () => executor.notice(departure, call.update) };
  }

  #forgetSeen(): void {
    for (const [key, { node }] of this.#writes) {
      if (this.#isSeen(key, node)) this.#writes.delete(key);
    }
  }

  #isSeen(key: string, node: string): boolean {
    const there = this.#options.fleet.departuresOf(node);
    return key.includes("@")
      ? there.every((one) => versionOf(one) !== key)
      : there.some(({ name }) => name === key);
  }
}

/** The notice is delivered again; by then the departure has ended. */
function rollingBack({ machine }: InstanceNotice): LastcallError {
  return new LastcallError(
    "CONFLICT",
    `Cannot record the notice for ${machine}: the departure of its node is being rolled back, retrying once it has ended`,
  );
}

function isCall(resolution: NoticeResolution): resolution is NoticeCall {
  return (
    resolution.kind === "Make" || resolution.kind === "Force" || resolution.kind === "Withdraw"
  );
}

/** Unambiguous, because no name contains an `@`. */
function versionOf({ name, resourceVersion }: Departure): string {
  return `${name}@${resourceVersion}`;
}

interface InterruptionOptions {
  readonly fleet: Fleet;
  readonly activeDepartures: ActiveDepartures;
  readonly executor: Executor;
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
 * passes every change to the active runs. Evaluates only what has changed, because in a fleet of
 * 65,000 nodes something always changes.
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
  const { fleet, activeDepartures } = options;
  if (isToFinish(departure) && !activeDepartures.has(departure)) {
    const policy = policyFor(departure, undefined, fleet.policies());
    activeDepartures.open(departure, { policy, signal });
  }
  if (!isLive(departure) || !isNoticed(departure)) return;
  // It has started, whatever the watch shows, and its run ends it.
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
  if (reasonNotToStart(departure, policy) === undefined) {
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
      // Evaluated again after a conflict: it may be an interruption by now.
      const why = reasonNotToStart(now, policy);
      left = why && statusAfter({ ...now, policy: policy.name }, { ...why, at });
      return left;
    })
    .then(() => tellIfLeft({ departure, policy, left }, executor))
    .catch((error: unknown) =>
      executor.telemetry.log.warn("act-failed", { error: messageOf(error) }),
    );
}

/** Emits the Event by which `Notify` and a dry run differ from `Ignore`. */
export function tellIfLeft(
  notice: {
    readonly departure: Departure;
    readonly policy: Policy;
    /** The status with which the departure ended. */
    readonly left: DepartureStatus | undefined;
  },
  executor: Executor,
): void {
  const { departure, policy, left } = notice;
  const { node, cause } = departure;
  const isTold = policy.dryRun || reactionTo(departure, policy) === "Notify";
  const isLeft = left?.reason === "NoticeIgnored" || left?.reason === "DryRun";
  if (!isTold || left === undefined || !isLeft) return;
  executor.emit({
    type: "Warning",
    reason: "NoticeReceived",
    message: `The cloud has given notice (${cause}): ${left.message}`,
    about: { kind: "Node", name: node.name, uid: node.uid },
  });
}

/** The superseded planned instant, kept in the timeline. */
function earlierPlan({ departAt }: Departure, now: Instant): string | undefined {
  const isAhead = departAt !== undefined && departAt > now;
  return isAhead ? `previously planned for ${formatInstant(departAt)}` : undefined;
}

function isToBegin({ status }: Departure): boolean {
  return status.phase === "Scheduled" || status.phase === "Held";
}

/** Why a departure ends without starting; undefined if it starts or has started. */
export function reasonNotToStart(
  departure: Departure,
  policy: Policy,
): Omit<PhaseChange, "at"> | undefined {
  if (!isToBegin(departure)) return undefined;
  if (departure.withdrawnAt !== undefined) {
    return { event: "Withdrawn", reason: "NoticeWithdrawn" };
  }
  // Also of a user's request, whose cause a notice without a time does not change.
  if (policy.dryRun) return { event: "Cancelled", reason: "DryRun" };
  const isLeft = !makesLeave(reactionTo(departure, policy));
  return isLeft ? { event: "Cancelled", reason: "NoticeIgnored" } : undefined;
}
