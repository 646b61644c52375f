import type { Clock } from "../contracts/clock.ts";
import type { KubeApi } from "../contracts/kube-api.ts";
import type { PolicyStatusSink } from "../contracts/policy-status-sink.ts";
import type { PolicyStatus } from "../core/policy-status.ts";
import { formatInstant, type Instant } from "../core/time.ts";
import { policyPath } from "./paths.ts";

interface Written {
  readonly gist: string;
  readonly conditions: ReadonlyMap<string, { readonly status: string; readonly since: Instant }>;
}

/** Keeps `DeparturePolicy.status` in step, with one request for each change. */
export class KubePolicyStatus implements PolicyStatusSink {
  readonly #api: KubeApi;
  readonly #clock: Clock;
  readonly #written = new Map<string, Written>();

  constructor(api: KubeApi, clock: Clock) {
    this.#api = api;
    this.#clock = clock;
  }

  async write(statuses: readonly PolicyStatus[]): Promise<void> {
    const fromCluster = statuses.filter(({ generation }) => generation !== undefined);
    await Promise.all(fromCluster.map((status) => this.#writeOne(status)));
  }

  async #writeOne(status: PolicyStatus): Promise<void> {
    const gist = gistOf(status);
    const before = this.#written.get(status.name);
    if (before?.gist === gist) return;
    const now = this.#clock.now();
    const since = new Map(
      status.conditions.map((one) => {
        const known = before?.conditions.get(one.type);
        const kept = known?.status === one.status ? known.since : now;
        return [one.type, { status: one.status, since: kept }] as const;
      }),
    );
    const answer = await this.#api.send({
      method: "PATCH",
      path: `${policyPath(status.name)}/status`,
      patchType: "application/merge-patch+json",
      body: { status: bodyOf(status, since) },
    });
    if (answer.status < 300) this.#written.set(status.name, { gist, conditions: since });
  }
}

/**
 * What makes a status worth a write. The best gap shrinks as time goes by and is written along with
 * the next change: a write for each second of it would wake every watcher of the policy, us too.
 */
function gistOf({ spacing: _spacing, forecast, conditions, ...rest }: PolicyStatus): string {
  const { feasible, late, widenBySeconds } = forecast;
  return JSON.stringify([
    rest,
    feasible,
    late,
    widenBySeconds,
    conditions.map((one) => one.status),
  ]);
}

function bodyOf(status: PolicyStatus, since: Written["conditions"]): Record<string, unknown> {
  const { name: _name, generation, nextDepartureAt, conditions, ...rest } = status;
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
