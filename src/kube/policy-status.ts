import type { Clock } from "../contracts/clock.ts";
import type { PolicyStatusSink } from "../contracts/cluster.ts";
import type { KubeApi, KubeRequest } from "../contracts/kube-api.ts";
import {
  type Fields,
  fieldsOf,
  instantOf,
  listOf,
  oneOf,
  textOf,
} from "../core/json/json-field.ts";
import type { PolicyCondition, PolicyStatus } from "../core/plan/plan-status.ts";
import { formatInstant, type Instant } from "../core/time/time.ts";
import { apiError, isGone, objectError, policyPath } from "./object/api-call.ts";

interface ConditionState {
  readonly status: string;
  readonly since: Instant;
}

interface WrittenStatus {
  /** The uid of the policy. */
  readonly uid: string | undefined;
  readonly gist: string;
  readonly conditions: ReadonlyMap<string, ConditionState>;
}

/** Keeps `DeparturePolicy.status` up to date, with one request per change. */
export class KubePolicyStatus implements PolicyStatusSink {
  readonly #api: KubeApi;
  readonly #clock: Clock;
  readonly #written = new Map<string, WrittenStatus>();
  readonly #newest = new Map<string, PolicyStatus>();
  /** Conditions that are updated at their own pace, by policy and type. */
  readonly #added = new Map<string, ReadonlyMap<PolicyCondition["type"], PolicyCondition>>();
  /** The last write of each policy. Concurrent writes could leave an older status in place. */
  readonly #last = new Map<string, Promise<void>>();
  /** The write of each policy that has not been sent yet, which will include further changes. */
  readonly #waiting = new Map<string, Promise<void>>();
  /** The same for a write that replaces a single condition. */
  readonly #replacing = new Map<string, Promise<void>>();

  constructor(api: KubeApi, clock: Clock) {
    this.#api = api;
    this.#clock = clock;
  }

  async write(statuses: readonly PolicyStatus[]): Promise<void> {
    const fromCluster = statuses.filter(({ generation }) => generation !== undefined);
    await Promise.all(fromCluster.map((status) => this.#writeNext(status)));
  }

  async add(policy: string, condition: PolicyCondition): Promise<void> {
    this.#add(policy, condition);
    const status = this.#newest.get(policy);
    if (status !== undefined) await this.#writeNext(status);
  }

  async unplanned(policies: readonly string[], problem: string): Promise<void> {
    const message = `The plan cannot be made, so no planned departure starts: ${problem}`;
    const condition = {
      type: "Feasible",
      status: "Unknown",
      reason: "PlanFailed",
      message,
    } as const;
    await Promise.all(policies.map((name) => this.#replace(name, condition)));
  }

  /**
   * Replaces one condition, whoever wrote it. While such a write waits for its turn, as in an
   * outage, no other is queued.
   */
  #replace(name: string, condition: PolicyCondition): Promise<void> {
    const waiting = this.#replacing.get(name);
    if (waiting !== undefined) return waiting;
    const next = (this.#last.get(name) ?? Promise.resolve()).then(async () => {
      this.#replacing.delete(name);
      const { metadata, status } = await this.#read(name);
      const found = listOf(fieldsOf(status).conditions).map(fieldsOf);
      const { type, status: state, reason, message } = condition;
      const before = found.find((one) => one.type === type);
      if (before?.reason === reason && before.message === message) return;
      const kept = before?.status === state ? instantOf(before.lastTransitionTime) : undefined;
      const since = formatInstant(kept ?? this.#clock.now());
      const observedGeneration = fieldsOf(metadata).generation;
      const said = { ...condition, observedGeneration, lastTransitionTime: since };
      const conditions = [...found.filter((one) => one.type !== type), said];
      await this.#patch(name, { conditions });
      // The next status is written in full again.
      this.#written.delete(name);
    });
    this.#replacing.set(name, next);
    this.#last.set(
      name,
      next.catch(() => undefined),
    );
    return next;
  }

  /** Writes the status that is the newest once the previous write has its response. */
  #writeNext(status: PolicyStatus): Promise<void> {
    const { name } = status;
    this.#newest.set(name, status);
    const waiting = this.#waiting.get(name);
    if (waiting !== undefined) return waiting;
    const next = (this.#last.get(name) ?? Promise.resolve()).then(() => {
      this.#waiting.delete(name);
      return this.#writeOne(this.#newest.get(name) ?? status);
    });
    this.#waiting.set(name, next);
    this.#last.set(
      name,
      next.catch(() => undefined),
    );
    return next;
  }

  #add(policy: string, condition: PolicyCondition): void {
    const others = this.#added.get(policy) ?? [];
    this.#added.set(policy, new Map([...others, [condition.type, condition]]));
  }

  async #writeOne(status: PolicyStatus): Promise<void> {
    const known = this.#written.get(status.name);
    const isSame = known !== undefined && known.uid === status.uid;
    const written = isSame ? known : await this.#readWritten(status);
    const conditions = withAdded(status.conditions, [
      ...(this.#added.get(status.name)?.values() ?? []),
    ]);
    const whole = { ...status, conditions };
    const gist = gistOf(whole);
    if (written.gist === gist) return;
    const now = this.#clock.now();
    const since = new Map(
      conditions.map((one) => {
        const standing = written.conditions.get(one.type);
        const kept = standing?.status === one.status ? standing.since : now;
        return [one.type, { status: one.status, since: kept }] as const;
      }),
    );
    const result = await this.#patch(status.name, bodyOf(whole, since));
    const { uid } = status;
    if (result === "Done") this.#written.set(status.name, { uid, gist, conditions: since });
  }

  /** `Gone`: the policy was deleted meanwhile. Throws if the write is refused. */
  async #patch(
    policy: string,
    status: Readonly<Record<string, unknown>>,
  ): Promise<"Done" | "Gone"> {
    const request: KubeRequest = {
      method: "PATCH",
      path: `${policyPath(policy)}/status`,
      patchType: "application/merge-patch+json",
      body: { status },
    };
    const answer = await this.#api.send(request);
    if (isGone(answer)) return "Gone";
    if (answer.status >= 300) throw objectError(request, answer);
    return "Done";
  }

  /**
   * Reads what an earlier leader has written: the transition times of its conditions, and
   * `SpotReady`, which is updated at its own pace and which a write without it would remove.
   */
  async #readWritten({ name: policy, uid }: PolicyStatus): Promise<WrittenStatus> {
    const found = listOf(fieldsOf((await this.#read(policy)).status).conditions).map(fieldsOf);
    const earlier = found.find(({ type }) => type === "SpotReady");
    if (earlier !== undefined && !this.#added.get(policy)?.has("SpotReady")) {
      this.#add(policy, {
        type: "SpotReady",
        status: oneOf(["True", "False", "Unknown"] as const, earlier.status) ?? "Unknown",
        reason: textOf(earlier.reason) ?? "",
        message: textOf(earlier.message) ?? "",
      });
    }
    const standing = found.flatMap(({ type, status, lastTransitionTime }) => {
      const since = instantOf(lastTransitionTime);
      const isWhole = typeof type === "string" && typeof status === "string";
      return isWhole && since !== undefined ? [[type, { status, since }] as const] : [];
    });
    return { uid, gist: "", conditions: new Map(standing) };
  }

  /**
   * Throws for any other response. To treat it as a policy without conditions would overwrite them.
   */
  async #read(policy: string): Promise<Fields> {
    const request: KubeRequest = { method: "GET", path: policyPath(policy) };
    const answer = await this.#api.send(request);
    const found = fieldsOf(answer.body);
    if (answer.status !== 200 || found.kind !== "DeparturePolicy") throw apiError(request, answer);
    return found;
  }
}

/** Of two conditions of one type, the one that is not True takes precedence. */
function withAdded(
  planned: readonly PolicyCondition[],
  added: readonly PolicyCondition[],
): readonly PolicyCondition[] {
  const own = planned.map((one) => {
    const other = added.find(({ type }) => type === one.type);
    return one.status === "True" && other !== undefined && other.status !== "True" ? other : one;
  });
  return [...own, ...added.filter(({ type }) => planned.every((one) => one.type !== type))];
}

/** Conditions whose messages change only when they have something new to say. */
const spokenConditions: ReadonlySet<PolicyCondition["type"]> = new Set(["Ready", "SpotReady"]);

/**
 * What makes a status worth writing. The best gap shrinks all the time, and is written only with
 * another change: a write for every second of it would wake every watcher of the policy, including
 * this controller.
 */
function gistOf({ spacing: _spacing, forecast, conditions, ...rest }: PolicyStatus): string {
  const { feasible, late, widenBySeconds } = forecast;
  return JSON.stringify([
    rest,
    feasible,
    late,
    widenBySeconds,
    conditions.map(({ type, status, reason, message }) => [
      ...[status, reason],
      spokenConditions.has(type) ? message : "",
    ]),
  ]);
}

function bodyOf(status: PolicyStatus, since: WrittenStatus["conditions"]): Record<string, unknown> {
  const { name: _name, uid: _uid, generation, nextDepartureAt, conditions, ...rest } = status;
  return {
    ...rest,
    observedGeneration: generation,
    nextDepartureAt: nextDepartureAt === undefined ? null : formatInstant(nextDepartureAt),
    conditions: conditions.map((one) => ({
      ...one,
      observedGeneration: generation,
      lastTransitionTime: formatInstant(since.get(one.type)?.since as Instant),
    })),
  };
}
