import type { Clock } from "../../../contracts/clock.ts";
import { backoffMs } from "../../../core/chance/backoff.ts";
import type { Rng } from "../../../core/chance/rng.ts";
import { type Millis, millis, minutes, seconds } from "../../../core/time/time.ts";
import { asFault } from "../aws-fault.ts";
import { untilAborted } from "./concurrent.ts";
import { keyOfTarget, type Target } from "./traffic-groups.ts";

export interface GroupBatchesOptions<Answer> {
  /** One request about targets of one group. */
  send(group: string, targets: readonly Target[], signal: AbortSignal): Promise<Answer>;
  readonly clock: Clock;
  /** How long the first waits for others; absent: not at all. */
  readonly lingerMs?: Millis;
  /**
   * What is asked too often is asked again, for as long as anybody waits for it. Absent: the askers
   * are told.
   */
  readonly patience?: Rng;
}

/** A request that is under way holds up the next one for its group no longer than this. */
const longestBehindMs: Millis = millis(100);

/**
 * Of target groups AWS lets an account change four in a second, and twenty at once:
 * https://docs.aws.amazon.com/elasticloadbalancing/latest/userguide/elb-api-throttling.html.
 */
const busyMs = { firstMs: seconds(1), mostMs: seconds(8) };
/** Who is asked to wait for longer asks again after so long all the same. */
const longestAskedMs: Millis = minutes(1);

interface Asker<Answer> {
  readonly targets: readonly Target[];
  readonly signal: AbortSignal;
  readonly answer: PromiseWithResolvers<Answer>;
}

/**
 * Gives what is known of one machine, where what is asked of many at a time is one request: the
 * first goes out alone, and those that come while it is under way together. `find` may be asked
 * about as many as there are.
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
 * Requests about groups, where what many machines want of one group at a time becomes one request:
 * a whole zone may be taken at once, and the API throttles by the request.
 */
export class GroupBatches<Answer> {
  readonly #options: GroupBatchesOptions<Answer>;
  /** Who waits for the next request about a group; there is an entry while one is under way. */
  readonly #lines = new Map<string, Asker<Answer>[]>();
  /** The requests that have gone out and are not answered, whoever still waits for them. */
  readonly #underWay = new Map<string, Set<Promise<void>>>();
  /** How often in a row a group was asked about too often, and for how long it wants none more. */
  readonly #refused = new Map<string, { readonly times: number; readonly askedMs: number }>();

  constructor(options: GroupBatchesOptions<Answer>) {
    this.#options = options;
  }

  /**
   * The answer may be about others' targets, too. Rejects with the signal's reason when it aborts.
   */
  ask(group: string, targets: readonly Target[], signal: AbortSignal): Promise<Answer> {
    const answer = Promise.withResolvers<Answer>();
    this.#join(group, [{ targets, signal, answer }]);
    return untilAborted(answer.promise, signal);
  }

  #join(group: string, askers: Asker<Answer>[]): void {
    const line = this.#lines.get(group);
    if (line !== undefined) {
      line.push(...askers);
      return;
    }
    this.#lines.set(group, askers);
    void this.#serve(group, askers);
  }

  /**
   * Resolves when no request about the group is under way: one whose asker has gone may still come
   * into effect. Rejects with the signal's reason when it aborts.
   */
  async settled(group: string, signal: AbortSignal): Promise<void> {
    await untilAborted(Promise.all(this.#underWay.get(group) ?? []), signal);
  }

  async #serve(group: string, line: Asker<Answer>[]): Promise<void> {
    const { clock } = this.#options;
    while (line.length > 0) {
      const restMs = this.#restMs(group);
      if (restMs !== undefined) await clock.sleep(restMs);
      // Whoever has gone meanwhile wants nothing sent any more.
      const askers = line.splice(0).filter(({ signal }) => !signal.aborted);
      if (askers.length === 0) {
        this.#refused.delete(group);
        continue;
      }
      const sent = this.#follow(group, this.#send(group, askers));
      // Nobody ends the sleep: an abort costs more than the timer, thousands of times in a burst.
      await Promise.race([sent, clock.sleep(longestBehindMs)]);
    }
    this.#lines.delete(group);
  }

  #restMs(group: string): Millis | undefined {
    const { lingerMs, patience } = this.#options;
    const refused = this.#refused.get(group);
    if (patience === undefined || refused === undefined) return lingerMs;
    const { times, askedMs } = refused;
    return millis(Math.min(askedMs, longestAskedMs) + backoffMs(times - 1, patience, busyMs));
  }

  async #follow(group: string, sent: Promise<void>): Promise<void> {
    const all = this.#underWay.get(group) ?? new Set();
    this.#underWay.set(group, all.add(sent));
    await sent;
    all.delete(sent);
    if (all.size === 0) this.#underWay.delete(group);
  }

  /** Never rejects. */
  async #send(group: string, askers: readonly Asker<Answer>[]): Promise<void> {
    const targets = new Map(
      askers.flatMap((asker) => asker.targets.map((one) => [keyOfTarget(one), one] as const)),
    );
    try {
      const answer = await this.#options.send(
        group,
        [...targets.values()],
        new AbortController().signal,
      );
      this.#refused.delete(group);
      for (const asker of askers) asker.answer.resolve(answer);
    } catch (error) {
      const { code, retryAfterMs: askedMs = 0 } = asFault(error);
      if (this.#options.patience && code === "CLOUD_RATE_LIMITED") {
        const { times = 0 } = this.#refused.get(group) ?? {};
        this.#refused.set(group, { times: times + 1, askedMs });
        this.#join(group, [...askers]);
        return;
      }
      this.#refused.delete(group);
      // A target that is refused must not hold up the others; a missing right is missing for all.
      if (askers.length > 1 && code === "CLOUD_REFUSED") {
        await Promise.all(askers.map((asker) => this.#send(group, [asker])));
        return;
      }
      for (const asker of askers) asker.answer.reject(error);
    }
  }
}
