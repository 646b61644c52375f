import { Fallback, type FallbackOptions } from "../../agent/fallback.ts";
import type { NoticeReporter } from "../../agent/notice-reporter.ts";
import type { KubeSender } from "../../contracts/kube-api.ts";
import { readObservedLease } from "../../kube/lease/live-lease.ts";
import { deletePod, evictPod } from "../../kube/node/evict.ts";
import { KubeNodeMarks } from "../../kube/node/node-marks.ts";
import { listPodsOn } from "../../kube/node/node-pods.ts";

export interface AgentFallbackOptions
  extends Pick<FallbackOptions, "identify" | "log" | "metrics" | "onDrained"> {
  readonly api: KubeSender;
  readonly reporter: NoticeReporter;
}

interface FallbackInput
  extends AgentFallbackOptions,
    Pick<FallbackOptions, "mode" | "clock" | "rng"> {
  /** The namespace of the controllers' Lease. */
  readonly namespace: string;
}

/** The fallback, which acts on the cluster through the same ports as the controller. */
export function agentFallback({ api, namespace, ...options }: FallbackInput): Fallback {
  return new Fallback({
    ...options,
    marks: new KubeNodeMarks({ api, clock: options.clock }),
    pods: {
      list: (nodeName) => listPodsOn(api, nodeName),
      evict: (pod, options) => evictPod(api, pod, options),
      remove: (pod, options) => deletePod(api, pod, options),
    },
    leader: () => readObservedLease(api, { namespace, name: "lastcall" }),
  });
}
