import type { Clock } from "../contracts/clock.ts";
import type { Fleet, FleetView, NodePods } from "../contracts/cluster.ts";
import { backoffMs, type Rng } from "../core/chance/chance.ts";
import type { BudgetFacts, PodFacts } from "../core/cluster/pod.ts";
import {
  type ActionRecord,
  type Departure,
  isLive,
  isUnderWay,
  type TimelineEntry,
} from "../core/departure/departure.ts";
import { drainBeganAt } from "../core/departure/ledger.ts";
import { drainTermsOf } from "../core/drain/drain-time.ts";
import { type DrainQuestion, planDrain } from "../core/drain-plan/drain-plan.ts";
import { type DrainPlanReport, drainPlanReport } from "../core/drain-plan/drain-plan-report.ts";
import { defaultPolicy, selectPolicy } from "../core/policy/policy.ts";
import {
  between,
  type Instant,
  instant,
  type Millis,
  minutes,
  plus,
  seconds,
} from "../core/time/time.ts";
import { isLastcallError } from "../errors.ts";
import { pastDeparture } from "./outcome/ended-departures.ts";
import type { PastDeparture } from "./stream.ts";

/** The plan for a node's pods when its departure started, and what became of them. */
interface DrainRecord {
  readonly beganAt: Instant;
  readonly plan: DrainPlanReport;
  readonly pods: readonly PodRecord[];
}

export interface PodRecord {
  readonly uid: string;
  /** When its termination started; null if it did not. */
  readonly terminatingAt: Instant | null;
  /** When it was gone; null while it exists. */
  readonly goneAt: Instant | null;
}

export interface DrainLogOptions {
  readonly fleet: Fleet;
  readonly pods: Pick<NodePods, "follow" | "budgets">;
  /** For the pause between two attempts. */
  readonly clock: Pick<Clock, "sleep">;
  readonly rng: Rng;
  /** The cluster's. */
  readonly now: () => Instant;
}

/**
 * The most nodes whose pods are watched at a time: of a fleet that leaves at once, the first ones.
 */
const mostFollowed = 20;
/** A drain that takes longer is no longer watched. */
const lateMs = minutes(1);
/** The most drains that are remembered, newest first. */
const mostKept = 100;

/**
 * Watches the pods of departing nodes while the board is served, with one watch per node for a
 * limited time. The cluster does not remember them: a Departure only counts its pods.
 */
export class DrainLog {
  readonly #options: DrainLogOptions;
  readonly #records = new Map<string, DrainRecord>();
  readonly #followed = new Map<string, AbortController>();

  constructor(options: DrainLogOptions) {
    this.#options = options;
  }

  /** Undefined if the board has not seen the drain of this departure. */
  of(departure: string): DrainRecord | undefined {
    return this.#records.get(departure);
  }

  /** Watches the drains that start, until the signal aborts. */
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

  /** Retries after a fault that may pass. The page says elsewhere which permission is missing. */
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

  /** If a drain started long before the board saw it, some of its pods may be gone already. */
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
    const terms = drainTermsOf(departure, { rule, beganAt });
    const plan = planDrain({ node, pods: here, budgets, ...terms, now: beganAt });
    let record: DrainRecord = {
      beganAt,
      plan: drainPlanReport(plan),
      pods: plan.pods.map((pod) => ({ uid: pod.uid, terminatingAt: null, goneAt: null })),
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

/** The pod as the plan saw it, without a deletion that came after the drain started. */
function asBefore({ deletionAt, ...pod }: PodFacts, beganAt: Instant): PodFacts {
  if (deletionAt === undefined) return pod;
  return terminatingAt({ ...pod, deletionAt }) < beganAt ? { ...pod, deletionAt } : pod;
}

/**
 * When the pod's deletion was requested: its deletion timestamp is the end of the grace period. For
 * a pod that was given less than its own grace period, the result is too early.
 */
function terminatingAt({ deletionAt, graceSeconds }: PodFacts): Instant {
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
    if (pod === undefined)
      return { ...record, terminatingAt: record.terminatingAt ?? at, goneAt: at };
    return record.terminatingAt === null && pod.deletionAt !== undefined
      ? { ...record, terminatingAt: at }
      : record;
  });
}

/** One node in full: the response of `/api/node`. */
export interface NodePage {
  readonly node: string;
  readonly at: Instant;
  /** Without a notice, and with each length of notice; the current notice, if any, comes first. */
  readonly drains: readonly ShownDrain[];
  /** Why there are no drain plans; null if there are some. */
  readonly problem: string | null;
  /** Pods that are terminating, as `namespace/name`. */
  readonly terminating: readonly string[];
  readonly departures: readonly NodeDeparture[];
  /** Those of earlier machines of this name. */
  readonly earlier: readonly NodeDeparture[];
}

export interface ShownDrain {
  readonly kind: "Planned" | "Notice" | "Running";
  readonly plan: DrainPlanReport;
}

export interface NodeDeparture {
  readonly name: string;
  readonly uid: string;
  readonly cause: string;
  readonly isLive: boolean;
  readonly steps: readonly TimelineEntry[];
  readonly actions: readonly ShownAction[];
  readonly past: PastDeparture | null;
  /** How its pods were planned to leave and how they did; null if the board did not see it. */
  readonly record: DrainRecord | null;
}

/** The departures of a node, newest first. */
export type NodeDepartures = Pick<NodePage, "departures" | "earlier">;

/** The actions of the departure; what is needed to undo them is not shown to anybody. */
export type ShownAction = Pick<
  ActionRecord,
  "name" | "kind" | "at" | "state" | "seconds" | "attempts" | "detail"
>;

export interface NodePageFacts {
  readonly view: FleetView;
  /** Absent: they may not be listed, which `problem` says. */
  readonly pods?: readonly PodFacts[] | undefined;
  readonly budgets?: readonly BudgetFacts[] | undefined;
  readonly problem?: string | undefined;
  /** By the uid of a departure. */
  readonly recordOf?: ((departure: string) => DrainRecord | undefined) | undefined;
  readonly now: Instant;
}

const noticesShown: readonly Millis[] = [seconds(120), seconds(30)];
const departuresShown = 6;

/** Undefined if there is and was no such node. */
export function nodePage(name: string, facts: NodePageFacts): NodePage | undefined {
  const { view, pods = [], problem = null, now } = facts;
  const node = view.nodes.find((one) => one.name === name);
  const named = view.departures.filter((one) => one.node.name === name).toSorted(newestFirst);
  if (node === undefined && named.length === 0) return undefined;
  // An earlier machine of the name has its own departures, which are not this one's steps.
  const uid = node?.uid ?? named[0]?.node.uid;
  const departures = named.filter((one) => one.node.uid === uid);
  const earlier = named.filter((one) => one.node.uid !== uid);
  const shown = (of: readonly Departure[]): readonly NodeDeparture[] =>
    of.slice(0, departuresShown).map((one) => nodeDeparture(one, facts));
  return {
    node: name,
    at: now,
    drains: node === undefined || problem !== null ? [] : drainsOf(node, departures, facts),
    problem,
    terminating: pods.flatMap(({ namespace, name: pod, deletionAt }) =>
      deletionAt === undefined ? [] : [`${namespace}/${pod}`],
    ),
    departures: shown(departures),
    earlier: shown(earlier),
  };
}

function drainsOf(
  node: FleetView["nodes"][number],
  departures: readonly Departure[],
  { view, pods = [], budgets = [], now }: NodePageFacts,
): readonly ShownDrain[] {
  const rule = (selectPolicy(node, view.policies)?.policy ?? defaultPolicy).drain;
  const planOf = (terms: Pick<DrainQuestion, "rule" | "deadlineAt" | "knownAt">): DrainPlanReport =>
    drainPlanReport(planDrain({ node, pods, budgets, ...terms, now }));
  const live = departures.find((one) => isLive(one) && one.noticedAt !== undefined);
  const terms = live && drainTermsOf(live, { rule, beganAt: drainBeganAt(live.status) ?? now });
  const running: readonly ShownDrain[] =
    terms?.deadlineAt === undefined ? [] : [{ kind: "Running", plan: planOf(terms) }];
  return [
    ...running,
    { kind: "Planned", plan: planOf({ rule }) },
    ...noticesShown.map((span): ShownDrain => {
      return { kind: "Notice", plan: planOf({ rule, deadlineAt: plus(now, span) }) };
    }),
  ];
}

function newestFirst(a: Departure, b: Departure): number {
  return Number(isLive(b)) - Number(isLive(a)) || (b.createdAt ?? 0) - (a.createdAt ?? 0);
}

function nodeDeparture(departure: Departure, { recordOf }: NodePageFacts): NodeDeparture {
  const { name, uid, cause, status } = departure;
  return {
    ...{ name, uid, cause, isLive: isLive(departure), steps: status.timeline },
    actions: (status.actions ?? []).map(shownAction),
    past: pastDeparture(departure) ?? null,
    record: recordOf?.(uid) ?? null,
  };
}

function shownAction(action: ActionRecord): ShownAction {
  const { name, kind, at, state, seconds: took, attempts, detail } = action;
  return { name, kind, at, state, seconds: took, attempts, detail };
}
