import type {
  LabelRequirement,
  LabelSelector,
  NodeSelector,
} from "../../core/cluster/label-selector.ts";
import type {
  Amount,
  Budget,
  Gates,
  PodRule,
  Policy,
  Waves,
  Window,
} from "../../core/policy/policy.ts";
import { parseInstant } from "../../core/time/time.ts";
import { spanOf } from "../schema/field-schema.ts";
import type { PolicySpec } from "../schema/policy-schema.ts";
import type { WrittenLabelSelector, WrittenNodeSelector } from "../schema/selector-schema.ts";
import { actionOf } from "./action-from-spec.ts";

type Written<Field extends keyof PolicySpec> = NonNullable<PolicySpec[Field]>;

/** Which object the spec belongs to. */
export interface PolicyIdentity {
  readonly name: string;
  readonly generation?: number | undefined;
  readonly uid?: string | undefined;
}

/** Turns a spec that has passed schema and rules into what core reads. */
export function policyFromSpec(identity: PolicyIdentity, spec: PolicySpec): Policy {
  const { weight, lifetime, spacing, replacement, drain, onNotice, instance } = spec;
  const { nodeSelector } = spec;
  return {
    ...identity,
    weight,
    ...(nodeSelector && { nodeSelector: nodeSelectorOf(nodeSelector) }),
    lifetime: {
      minMs: spanOf(lifetime.min),
      ...(lifetime.max !== undefined && { maxMs: spanOf(lifetime.max) }),
      reserveMs: spanOf(lifetime.reserve),
    },
    spacing: { mode: spacing.mode, minMs: spanOf(spacing.min) },
    windows: spec.windows.map(windowOf),
    budgets: spec.budgets.map(budgetOf),
    ...(spec.waves && { waves: wavesOf(spec.waves) }),
    gates: gatesOf(spec.gates),
    replacement: {
      when: replacement.when,
      timeoutMs: spanOf(replacement.timeout),
      onTimeout: replacement.onTimeout,
    },
    drain: {
      timeoutMs: spanOf(drain.timeout),
      onTimeout: drain.onTimeout,
      onSingleReplica: drain.onSingleReplica,
      budgetShare: Number.parseInt(drain.budgetShare, 10) / 100,
      podRules: drain.podRules.map(podRuleOf),
    },
    onNotice,
    instance: {
      release: instance.release,
      awaitMachineMs: spanOf(instance.awaitMachine),
      loadBalancerDelayMs: spanOf(instance.loadBalancerDelay),
      lifecycleHook: instance.lifecycleHook,
    },
    actions: spec.actions.map(actionOf),
    paused: spec.paused,
    dryRun: spec.dryRun,
  };
}

function windowOf(written: Written<"windows">[number], index: number): Window {
  const { type, timeZone } = written;
  const base = { name: written.name ?? `windows[${index}]`, type, timeZone };
  if (written.cron !== undefined) {
    const durationMs = spanOf(written.duration ?? "");
    return { ...base, kind: "Cron", cron: written.cron, durationMs };
  }
  return {
    ...base,
    kind: "Weekly",
    days: written.days ?? ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
    startMinute: minuteOf(written.start ?? ""),
    // Midnight at the end of a window is the end of the day, which core counts as minute 1440.
    endMinute: minuteOf(written.end ?? "") || 1440,
  };
}

/** `22:30` as minutes after midnight. */
function minuteOf(time: string): number {
  const [hour, minute] = time.split(":");
  return Number(hour) * 60 + Number(minute);
}

function budgetOf({ nodes, perHour, scope = "Policy" }: Written<"budgets">[number]): Budget {
  if (nodes !== undefined) return { kind: "Nodes", scope, nodes: amountOf(nodes) };
  return { kind: "PerHour", perHour: perHour ?? 0 };
}

function amountOf(nodes: number | string): Amount {
  return typeof nodes === "number" ? { count: nodes } : { percent: Number.parseInt(nodes, 10) };
}

function wavesOf({ sizes, restartedAt }: Written<"waves">): Waves {
  return {
    sizes: sizes.map(amountOf),
    ...(restartedAt !== undefined && { restartedAt: parseInstant(restartedAt) }),
  };
}

function gatesOf({ freezeUntil, alerts, blockingPods }: Written<"gates">): Gates {
  return {
    ...(freezeUntil !== undefined && { freezeUntil: parseInstant(freezeUntil) }),
    ...(alerts && { alerts }),
    blockingPods: blockingPods.map(labelSelectorOf),
  };
}

function podRuleOf({
  selector,
  namespaces,
  action,
  timeout,
}: Written<"drain">["podRules"][number]): PodRule {
  return {
    selector: labelSelectorOf(selector),
    ...(namespaces && { namespaces }),
    action,
    ...(timeout !== undefined && { timeoutMs: spanOf(timeout) }),
  };
}

function labelSelectorOf({ matchLabels, matchExpressions }: WrittenLabelSelector): LabelSelector {
  return {
    ...(matchLabels && { matchLabels }),
    ...(matchExpressions && { matchExpressions: matchExpressions.map(requirementOf) }),
  };
}

export function nodeSelectorOf({ nodeSelectorTerms }: WrittenNodeSelector): NodeSelector {
  return {
    nodeSelectorTerms: nodeSelectorTerms.map(({ matchExpressions = [], matchFields = [] }) => ({
      matchExpressions: matchExpressions.map(requirementOf),
      matchFields: matchFields.map(requirementOf),
    })),
  };
}

function requirementOf({
  key,
  operator,
  values = [],
}: Omit<LabelRequirement, "values"> & Partial<LabelRequirement>): LabelRequirement {
  return { key, operator, values };
}
