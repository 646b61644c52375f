import type { Clock } from "../../../contracts/clock.ts";
import { untilAborted } from "../../../contracts/time-limit.ts";
import { backoffMs, type Rng } from "../../../core/chance/chance.ts";
import { type Millis, millis, minutes, seconds } from "../../../core/time/time.ts";
import { asFault } from "../aws-client.ts";

/**
 * A target group (ALB, NLB) or a classic load balancer.
 */
export interface TrafficGroup {
  readonly kind: "TargetGroup" | "Classic";
  /** The ARN of a target group, or the name of a classic load balancer. */
  readonly id: string;
  /** Whether targets are addresses instead of instances. */
  readonly byAddress: boolean;
  /** The VPC, outside of which addresses are ambiguous. */
  readonly vpc?: string | undefined;
  /**
   * Whether it is tagged `elbv2.k8s.aws/cluster`, so that aws-load-balancer-controller manages its
   * targets by the Nodes' labels. Undefined if the tags could not be read.
   */
  readonly isOwned: boolean | undefined;
}

/** A registration with all that is needed to repeat it. */
export interface Target {
  /** An instance id or an address. */
  readonly id: string;
  /** The registered port, one of possibly several. Undefined for classic load balancers. */
  readonly port?: number | undefined;
  /** Of an address: a zone, or `all`. Required for an address outside of the group's VPC. */
  readonly availabilityZone?: string | undefined;
  /** Required by groups with the protocol QUIC or TCP_QUIC, and refused by others. */
  readonly quicServerId?: string | undefined;
}

/** A target that still has connections, or is still registered. */
export interface RemainingTarget extends Target {
  /** It still gets new connections. A classic load balancer does not tell: then it is absent. */
  readonly isRegistered?: true;
}

/** A group with its registered targets, except draining ones. */
export interface Registered {
  readonly group: TrafficGroup;
  readonly targets: readonly Target[];
}

/** Decides what a reading does when it is throttled. */
export type OnBusy = (attempt: number) => Promise<"Again" | "Enough">;

/** Receives the progress of a reading. */
export interface ReadingListener {
  /**
   * Reports what could not be read while the rest continues: the targets of a group, or without a
   * group, the owners of those whose `isOwned` is undefined.
   */
  readonly onError: (group: TrafficGroup | undefined, error: unknown) => void;
  /** The number of groups to read, once known. */
  readonly onListed?: (count: number) => void;
  /** Called for each group as soon as it is read. */
  readonly onRead?: (one: Registered) => void;
  /** Default: throttling is an error. */
  readonly onBusy?: OnBusy | undefined;
}

/** `Gone`: the group or the instance no longer exists. */
export type RegisterEnd = "Registered" | "Gone";

/**
 * Elastic Load Balancing for one kind of group. Implemented by `target-group-client.ts` and
 * `classic-load-balancer-client.ts`; contract suite: `test/contract/traffic-groups.contract.ts`.
 * All methods throw `CLOUD_*` errors, or the signal's reason when it aborts. A deleted group has no
 * targets, and removing a missing target succeeds, also one whose machine no longer exists. Beside
 * other targets such a one may be `CLOUD_REFUSED`, with nothing done for any of them.
 */
export interface TrafficGroups {
  readonly kind: TrafficGroup["kind"];
  /** Reads every group of the region that contains instances or addresses. */
  read(listener: ReadingListener, signal: AbortSignal): Promise<readonly Registered[]>;
  deregister(id: string, targets: readonly Target[], signal: AbortSignal): Promise<void>;
  register(id: string, targets: readonly Target[], signal: AbortSignal): Promise<RegisterEnd>;
  /** Returns the targets that still have connections or are still registered. */
  remaining(
    id: string,
    targets: readonly Target[],
    signal: AbortSignal,
  ): Promise<readonly RemainingTarget[]>;
}

export function keyOfTarget({ id, port }: Target): string {
  return `${id}:${port ?? ""}`;
}

export interface GroupBatchesOptions<Answer> {
  /** Sends one request for targets of one group. */
  send(group: string, targets: readonly Target[], signal: AbortSignal): Promise<Answer>;
  readonly clock: Clock;
  /** How long the first caller waits for others. Default: not at all. */
  readonly lingerMs?: Millis;
  /**
   * Jitter with which throttled requests are retried while a caller waits. If not set, throttling
   * is an error for the callers.
   */
  readonly retryThrottled?: Rng;
}

/** A request in flight delays the next one for its group by at most this. */
const mostDelayMs: Millis = millis(100);

/**
 * AWS throttles changes of target groups per account, to four a second with bursts of twenty:
 * https://docs.aws.amazon.com/elasticloadbalancing/latest/userguide/elb-api-throttling.html.
 */
const throttledMs = { firstMs: seconds(1), mostMs: seconds(8) };

/** The longest `Retry-After` that is honored. */
const longestRetryAfterMs: Millis = minutes(1);

/** A caller that waits for a request about its targets. */
interface Waiter<Answer> {
  readonly targets: readonly Target[];
  readonly signal: AbortSignal;
  readonly answer: PromiseWithResolvers<Answer>;
}

/**
 * Looks up single machines with batched requests: the first call is sent alone, and the calls that
 * arrive while it is in flight are sent as one. `find` accepts any number of machines.
 */
export function machineBatches<Found extends { readonly instanceId: string }>(
  find: (instanceIds: readonly string[], signal: AbortSignal) => Promise<readonly Found[]>,
  clock: Clock,
): (instanceId: string, signal: AbortSignal) => Promise<readonly Found[]> {
  const batches = new GroupBatches({
    send: (_, machines, signal) =>
      find(
        machines.map(({ id }) => id),
        signal,
      ),
    clock,
  });
  return async (instanceId, signal) => {
    const found = await batches.ask("", [{ id: instanceId }], signal);
    return found.filter((one) => one.instanceId === instanceId);
  };
}

/**
 * Batches requests by target group: concurrent calls for targets of one group become one request. A
 * whole zone may be interrupted at once, and the API throttles by request.
 */
export class GroupBatches<Answer> {
  readonly #options: GroupBatchesOptions<Answer>;
  /** The waiters for each group's next request. An entry exists while the group is served. */
  readonly #queues = new Map<string, Waiter<Answer>[]>();
  /** The requests in flight, including those that nobody waits for any more. */
  readonly #inFlight = new Map<string, Set<Promise<void>>>();
  /** Consecutive throttled requests of a group, and the last `Retry-After`. */
  readonly #throttled = new Map<
    string,
    { readonly times: number; readonly retryAfterMs: number }
  >();

  constructor(options: GroupBatchesOptions<Answer>) {
    this.#options = options;
  }

  /**
   * Sends a request for the targets, possibly together with those of other callers, who share the
   * answer. Rejects with the signal's reason when it aborts.
   */
  ask(group: string, targets: readonly Target[], signal: AbortSignal): Promise<Answer> {
    const answer = Promise.withResolvers<Answer>();
    this.#join(group, [{ targets, signal, answer }]);
    return untilAborted(answer.promise, signal);
  }

  #join(group: string, waiters: Waiter<Answer>[]): void {
    const queue = this.#queues.get(group);
    if (queue !== undefined) {
      queue.push(...waiters);
      return;
    }
    this.#queues.set(group, waiters);
    void this.#serve(group, waiters);
  }

  /**
   * Resolves when no request for the group is in flight: a request whose caller has given up may
   * still take effect. Rejects with the signal's reason when it aborts.
   */
  async settled(group: string, signal: AbortSignal): Promise<void> {
    await untilAborted(Promise.all(this.#inFlight.get(group) ?? []), signal);
  }

  async #serve(group: string, queue: Waiter<Answer>[]): Promise<void> {
    const { clock } = this.#options;
    while (queue.length > 0) {
      const restMs = this.#restMs(group);
      if (restMs !== undefined) await clock.sleep(restMs);
      // Nothing is sent for callers that have given up.
      const waiters = queue.splice(0).filter(({ signal }) => !signal.aborted);
      if (waiters.length === 0) {
        this.#throttled.delete(group);
        continue;
      }
      const sent = this.#follow(group, this.#send(group, waiters));
      // The sleep is not aborted: that costs more than the timer, thousands of times in a burst.
      await Promise.race([sent, clock.sleep(mostDelayMs)]);
    }
    this.#queues.delete(group);
  }

  #restMs(group: string): Millis | undefined {
    const { lingerMs, retryThrottled } = this.#options;
    const refused = this.#throttled.get(group);
    if (retryThrottled === undefined || refused === undefined) return lingerMs;
    const { times, retryAfterMs } = refused;
    return millis(
      Math.min(retryAfterMs, longestRetryAfterMs) +
        backoffMs(times - 1, retryThrottled, throttledMs),
    );
  }

  async #follow(group: string, sent: Promise<void>): Promise<void> {
    const all = this.#inFlight.get(group) ?? new Set();
    this.#inFlight.set(group, all.add(sent));
    await sent;
    all.delete(sent);
    if (all.size === 0) this.#inFlight.delete(group);
  }

  /** Never rejects. */
  async #send(group: string, waiters: readonly Waiter<Answer>[]): Promise<void> {
    const targets = new Map(
      waiters.flatMap((waiter) => waiter.targets.map((one) => [keyOfTarget(one), one] as const)),
    );
    try {
      const answer = await this.#options.send(
        group,
        [...targets.values()],
        new AbortController().signal,
      );
      this.#throttled.delete(group);
      for (const waiter of waiters) waiter.answer.resolve(answer);
    } catch (error) {
      const { code, retryAfterMs = 0 } = asFault(error);
      if (this.#options.retryThrottled && code === "CLOUD_RATE_LIMITED") {
        const { times = 0 } = this.#throttled.get(group) ?? {};
        this.#throttled.set(group, { times: times + 1, retryAfterMs });
        this.#join(group, [...waiters]);
        return;
      }
      this.#throttled.delete(group);
      // A refused target must not fail the others; a missing permission affects all of them.
      if (waiters.length > 1 && code === "CLOUD_REFUSED") {
        await Promise.all(waiters.map((waiter) => this.#send(group, [waiter])));
        return;
      }
      for (const waiter of waiters) waiter.answer.reject(error);
    }
  }
}

/** Runs the work for each item, at most `atOnce` concurrently. The first failure ends the rest. */
export async function eachOf<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items.values();
  let hasFailed = false;
  const worker = async (): Promise<void> => {
    for (const item of queue) {
      if (hasFailed) return;
      try {
        await work(item);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
}

/** A semaphore that serves its waiters in order. */
export class Turns {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(most: number) {
    this.#free = most;
  }

  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((begin) => this.#waiting.push(begin));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}
