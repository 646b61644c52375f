import type { Clock } from "../contracts/clock.ts";
import type { NodePods } from "../contracts/cluster.ts";
import type { Fleet } from "../contracts/fleet.ts";
import { backoffMs } from "../core/chance/backoff.ts";
import type { Rng } from "../core/chance/rng.ts";
import type { PodFacts } from "../core/cluster/pod.ts";
import { cloudDeadline, type Departure, isLive, isUnderWay } from "../core/departure/departure.ts";
import { drainBeganAt } from "../core/departure/ledger.ts";
import { planDrain } from "../core/drain-plan/drain-plan.ts";
import { type DrainPlanReport, drainPlanReport } from "../core/drain-plan/drain-plan-report.ts";
import { defaultPolicy, selectPolicy } from "../core/policy/policy.ts";
import { between, type Instant, instant, minutes, seconds } from "../core/time/time.ts";
import { isLastcallError } from "../errors.ts";

/** What was planned for the pods of a node as it began to leave, and what came of it. */
export interface DrainRecord {
  readonly beganAt: Instant;
  readonly plan: DrainPlanReport;
  readonly pods: readonly PodRecord[];
}

export interface PodRecord {
  readonly uid: string;
  /** When it was told to end; null where it was not. */
  readonly toldAt: Instant | null;
  /** When it was gone; null while it is there. */
  readonly goneAt: Instant | null;
}

export interface DrainLogOptions {
  readonly fleet: Fleet;
  readonly pods: Pick<NodePods, "follow" | "budgets">;
  /** Between two attempts. */
  readonly clock: Pick<Clock, "sleep">;
  readonly rng: Rng;
  /** The cluster's. */
  readonly now: () => Instant;
}

/** So many nodes' pods are watched at a time: of a fleet that leaves at once the first ones. */
const mostFollowed = 20;
/** A drain that has gone on for longer is not followed any more. */
const lateMs = minutes(1);
/** Drains that are remembered, the newest so many. */
const mostKept = 100;

/**
 * Follows the pods of the nodes that leave while the board is served, one watch a node and only for
 * so long. Nothing in the cluster remembers them: a Departure counts its pods.
 */
export class DrainLog {
  readonly #options: DrainLogOptions;
  readonly #records = new Map<string, DrainRecord>();
  readonly #followed = new Map<string, AbortController>();

  constructor(options: DrainLogOptions) {
    this.#options = options;
  }

  /** Undefined where the board has not seen the drain of this departure. */
  of(departure: string): DrainRecord | undefined {
    return this.#records.get(departure);
  }

  /** Follows what begins until the signal aborts. */
  follow(signal: AbortSignal): void {
    const stop = this.#options.fleet.onChange(({ departures }) => {
      for (const uid of departures) this.#look(uid);
    });
    const end = (): void => {
      stop();
      for (const over of this.#followed.values()) over.abort();
    };
    signal.addEventListener("abort", end, { once: true });
  }

  #look(uid: string): void {
    const departure = this.#options.fleet.departure(uid);
    const over = this.#followed.get(uid);
    if (departure === undefined || !isLive(departure)) {
      over?.abort();
      this.#followed.delete(uid);
      return;
    }
    if (over !== undefined || !isUnderWay(departure) || !this.#isEarly(departure)) return;
    if (this.#followed.size >= mostFollowed || this.#records.has(uid)) return;
    const follow = new AbortController();
    this.#followed.set(uid, follow);
    void this.#followWhileEarly(uid, follow.signal);
  }

  /** Tries again after a fault that may pass. The page says elsewhere which right is missing. */
  async #followWhileEarly(uid: string, signal: AbortSignal): Promise<void> {
    const { fleet, clock, rng } = this.#options;
    for (let attempt = 0; !signal.aborted; attempt += 1) {
      const departure = fleet.departure(uid);
      if (departure === undefined || !isUnderWay(departure) || !this.#isEarly(departure)) return;
      const over = new AbortController();
      try {
        return await this.#follow(departure, AbortSignal.any([signal, over.signal]));
      } catch (error) {
        over.abort();
        if (!isLastcallError(error) || !error.retryable) return;
        await clock.sleep(backoffMs(attempt, rng), signal).catch(() => undefined);
      }
    }
  }

  /** A drain that had long begun when the board saw it may have lost pods already. */
  #isEarly({ status }: Departure): boolean {
    if (status.phase === "Preparing") return true;
    const beganAt = drainBeganAt(status);
    const isDraining = status.phase === "Draining" && beganAt !== undefined;
    return isDraining && between(beganAt, this.#options.now()) < lateMs;
  }

  async #follow(departure: Departure, signal: AbortSignal): Promise<void> {
    const { pods, fleet, now } = this.#options;
    const { node: identity, uid, status } = departure;
    const node = fleet.node(identity.name);
    if (node === undefined || node.uid !== identity.uid) return;
    const followed = pods.follow(node.name, { signal });
    const [budgets] = await Promise.all([pods.budgets(), followed.synced()]);
    const beganAt = status.startedAt ?? now();
    const here = followed.pods().map((pod) => asBefore(pod, beganAt));
    const rule = (selectPolicy(node, fleet.policies())?.policy ?? defaultPolicy).drain;
    const endsAt = cloudDeadline(departure);
    const notice = endsAt === undefined ? undefined : { leftMs: between(beganAt, endsAt) };
    const plan = planDrain({ node, pods: here, budgets, rule, notice, now: beganAt });
    let record: DrainRecord = {
      beganAt,
      plan: drainPlanReport(plan),
      pods: plan.pods.map((pod) => ({ uid: pod.uid, toldAt: null, goneAt: null })),
    };
    const look = (): void => {
      record = { ...record, pods: podsNow(record.pods, { here: followed.pods(), at: now() }) };
      this.#keep(uid, record);
    };
    look();
    followed.onChange(look);
  }

  #keep(uid: string, record: DrainRecord): void {
    this.#records.set(uid, record);
    const [oldest] = this.#records.keys();
    if (this.#records.size > mostKept && oldest !== undefined) this.#records.delete(oldest);
  }
}

/** The pod as the plan saw it: a deletion since the drain began was not there yet. */
function asBefore({ deletionAt, ...pod }: PodFacts, beganAt: Instant): PodFacts {
  if (deletionAt === undefined) return pod;
  return toldAt({ ...pod, deletionAt }) < beganAt ? { ...pod, deletionAt } : pod;
}

/** A deletion says by when it has to be over; a pod that is given less than its own grace later. */
function toldAt({ deletionAt, graceSeconds }: PodFacts): Instant {
  return instant((deletionAt ?? 0) - seconds(graceSeconds));
}

function podsNow(
  records: readonly PodRecord[],
  { here, at }: { readonly here: readonly PodFacts[]; readonly at: Instant },
): readonly PodRecord[] {
  const byUid = new Map(here.map((pod) => [pod.uid, pod]));
  return records.map((record) => {
    if (record.goneAt !== null) return record;
    const pod = byUid.get(record.uid);
    if (pod === undefined) return { ...record, toldAt: record.toldAt ?? at, goneAt: at };
    return record.toldAt === null && pod.deletionAt !== undefined
      ? { ...record, toldAt: at }
      : record;
  });
}
