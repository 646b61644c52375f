import type { LeaveOptions, RestartOptions } from "../../contracts/cluster.ts";
import type { OwnerFacts, PodIdentity } from "../../core/cluster/pod.ts";
import type { ForceReason } from "../../core/departure/drain-reason.ts";
import type { EvictionAnswer } from "../../core/drain/drain-answer.ts";
import type { ErrorCode } from "../../errors.ts";
import type { DepartureOptions } from "./departure-options.ts";

type DrainActorOptions = Pick<DepartureOptions, "pods" | "log" | "metrics">;

/** The requests of a drain that make pods leave, counted, and logged where a person may act. */
export function drainActor({ pods, log, metrics }: DrainActorOptions) {
  return {
    async evict(pod: PodIdentity, options: LeaveOptions): Promise<EvictionAnswer> {
      const answer = await pods.evict(pod, options);
      metrics.count("lastcall_evictions_total", { result: answer.kind });
      return answer;
    },

    /** Deletes a pod regardless of its budget, which is always counted. */
    async remove(
      pod: PodIdentity,
      { reason, ...options }: LeaveOptions & { readonly reason: ForceReason },
    ): Promise<EvictionAnswer> {
      const { namespace, name } = pod;
      const problem = await pods.markDisrupted(pod, { reason, dueAt: options.dueAt });
      if (problem !== undefined) {
        log.warn("disruption-not-marked", { namespace, pod: name, error: problem });
      }
      const answer = await pods.remove(pod, options);
      metrics.count("lastcall_pods_forced_total", { reason });
      return answer;
    },

    async restartOwner(
      pod: PodIdentity,
      owner: OwnerFacts,
      options: RestartOptions,
    ): Promise<EvictionAnswer> {
      const answer = await pods.restartOwner(pod, owner, options);
      if (answer.kind === "Refused") restartRefused({ pod, owner, answer }, { log, metrics });
      return answer;
    },
  };
}

interface RefusedRestart {
  readonly pod: PodIdentity;
  readonly owner: OwnerFacts;
  readonly answer: Extract<EvictionAnswer, { kind: "Refused" }>;
}

/** Logs a refused restart, which is rare: each pod requests at most one per drain. */
function restartRefused(
  { pod, owner, answer }: RefusedRestart,
  { log, metrics }: Omit<DrainActorOptions, "pods">,
): void {
  const code: ErrorCode = answer.status === 403 ? "RIGHT_MISSING" : "API_REFUSED";
  metrics.count("lastcall_errors_total", { code });
  log.warn("restart-refused", {
    code,
    pod: `${pod.namespace}/${pod.name}`,
    owner: `${owner.kind} ${owner.name}`,
    error: answer.message,
    ...(code === "RIGHT_MISSING" && { wanted: "the role of deploy/restart-owner" }),
  });
}
