import type {
  BudgetScope,
  DrainRule,
  NoticeRule,
  PodRule,
  ReleaseMode,
  ReplacementRule,
} from "../../core/policy/policy.ts";
import type { WrittenRequirement } from "../schema/selector-schema.ts";
import type { WrittenWindow } from "../schema/window-schema.ts";
import type { WrittenAction } from "./action-from-spec.ts";

/** `DeparturePolicy.spec` as it is once the schema has passed it and filled in its defaults. */
export interface PolicySpec {
  readonly weight: number;
  readonly nodeSelector?: WrittenNodeSelector;
  readonly lifetime: WrittenLifetime;
  readonly spacing: { readonly mode: "Late" | "Even"; readonly min: string };
  readonly windows: readonly WrittenWindow[];
  readonly budgets: readonly WrittenBudget[];
  readonly waves?: WrittenWaves;
  readonly gates: WrittenGates;
  readonly replacement: Pick<ReplacementRule, "when" | "onTimeout"> & { readonly timeout: string };
  readonly drain: WrittenDrain;
  readonly onNotice: NoticeRule;
  readonly instance: {
    readonly release: ReleaseMode;
    readonly awaitMachine: string;
    readonly loadBalancerDelay: string;
  };
  readonly actions: readonly WrittenAction[];
  readonly paused: boolean;
  readonly dryRun: boolean;
}

export interface WrittenNodeSelector {
  readonly nodeSelectorTerms: readonly {
    readonly matchExpressions?: readonly WrittenRequirement[];
    readonly matchFields?: readonly WrittenRequirement[];
  }[];
}

export interface WrittenLabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly WrittenRequirement[];
}

export interface WrittenLifetime {
  readonly min: string;
  readonly max?: string;
  readonly reserve: string;
}

export interface WrittenBudget {
  readonly nodes?: number | string;
  readonly perHour?: number;
  readonly scope?: BudgetScope;
}

export interface WrittenWaves {
  readonly sizes: readonly (number | string)[];
  readonly restartedAt?: string;
}

export interface WrittenGates {
  readonly freezeUntil?: string;
  readonly alerts?: { readonly url: string; readonly matchers: readonly string[] };
  readonly blockingPods: readonly WrittenLabelSelector[];
}

export interface WrittenPodRule {
  readonly selector: WrittenLabelSelector;
  readonly namespaces?: readonly string[];
  readonly action: PodRule["action"];
  readonly timeout?: string;
}

export type WrittenDrain = Pick<DrainRule, "onTimeout" | "onSingleReplica"> & {
  readonly timeout: string;
  readonly budgetShare: string;
  readonly podRules: readonly WrittenPodRule[];
};
