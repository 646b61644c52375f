import type { NodeFacts } from "../cluster/node.ts";
import type { BadPolicy, Policy } from "../policy/policy.ts";
import type { ReleaseAnswers } from "../policy/release-answer.ts";
import type { Departure } from "./departure.ts";

/** The world as one decision sees it. */
export interface Snapshot {
  readonly nodes: readonly NodeFacts[];
  readonly policies: readonly Policy[];
  readonly departures: readonly Departure[];
  /** Policies that could not be read: nodes that they might own are left alone. */
  readonly badPolicies: readonly BadPolicy[];
  /** Gates whose answer comes from outside, per policy; absent: not asked, which counts as closed. */
  readonly gateAnswers: Readonly<Record<string, GateAnswer>>;
  /** What the clouds say of the machines; a node that is not in it is not made to leave by plan. */
  readonly releaseAnswers: ReleaseAnswers;
}

export interface GateAnswer {
  /** Firing alerts that the policy's matchers select; `Unknown` when Alertmanager did not answer. */
  readonly alerts: readonly string[] | "Unknown";
  /** A blocking pod as `namespace/name` by the node on which it runs; `Unknown` when the pods could not be listed. */
  readonly blockingPods: ReadonlyMap<string, string> | "Unknown";
}
