import type { LabelRequirement, LabelSelector, NodeSelector } from "../../core/cluster/pod.ts";
import {
  type Action,
  type ActionOf,
  type ActionSpec,
  actionKinds,
} from "../../core/policy/action.ts";
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
import type { WrittenAction, WrittenActionKinds } from "../schema/action-schema.ts";
import { platformLimit, spanOf } from "../schema/field-schema.ts";
import type { PolicySpec } from "../schema/policy-schema.ts";
import type { WrittenLabelSelector, WrittenNodeSelector } from "../schema/selector-schema.ts";

type SpecField<Field extends keyof PolicySpec> = NonNullable<PolicySpec[Field]>;

/** The object that the spec belongs to. */
export interface PolicyIdentity {
  readonly name: string;
  readonly generation?: number | undefined;
  readonly uid?: string | undefined;
}

/** Converts a spec that has passed the schema and its rules to what core reads. */
export function policyFromSpec(identity: PolicyIdentity, spec: PolicySpec): Policy {
  const { weight, lifetime, spacing, replacement, drain, onNotice, instance } = spec;
  const { nodeSelector } = spec;
  return {
    ...identity,
    weight,
    ...(nodeSelector && { nodeSelector: nodeSelectorOf(nodeSelector) }),
    lifetime: {
      minMs: spanOf(lifetime.min),
      ...(lifetime.max === platformLimit
        ? { isPlatforms: true }
        : lifetime.max !== undefined && { maxMs: spanOf(lifetime.max) }),
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
      expectForMs: spanOf(replacement.expectFor),
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

function windowOf(written: SpecField<"windows">[number], index: number): Window {
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
    // Midnight at the end of a window is the end of the day: minute 1440 in core.
    endMinute: minuteOf(written.end ?? "") || 1440,
  };
}

/** `22:30` as minutes after midnight. */
function minuteOf(time: string): number {
  const [hour, minute] = time.split(":");
  return Number(hour) * 60 + Number(minute);
}

function budgetOf({ nodes, perHour, scope = "Policy" }: SpecField<"budgets">[number]): Budget {
  if (nodes !== undefined) return { kind: "Nodes", scope, nodes: amountOf(nodes) };
  return { kind: "PerHour", perHour: perHour ?? 0 };
}

function amountOf(nodes: number | string): Amount {
  return typeof nodes === "number" ? { count: nodes } : { percent: Number.parseInt(nodes, 10) };
}

function wavesOf({ sizes, restartedAt }: SpecField<"waves">): Waves {
  return {
    sizes: sizes.map(amountOf),
    ...(restartedAt !== undefined && { restartedAt: parseInstant(restartedAt) }),
  };
}

function gatesOf(gates: SpecField<"gates">): Gates {
  const { freezeUntil, alerts, blockingPods, gangWorkloads, maxUnhealthy } = gates;
  return {
    ...(freezeUntil !== undefined && { freezeUntil: parseInstant(freezeUntil) }),
    ...(alerts && { alerts }),
    blockingPods: blockingPods.map(labelSelectorOf),
    gangWorkloads,
    maxUnhealthy: Number.parseInt(maxUnhealthy, 10) / 100,
  };
}

function podRuleOf({
  selector,
  namespaces,
  action,
  timeout,
}: SpecField<"drain">["podRules"][number]): PodRule {
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

/** A type of action in the schema and in core, as far as both have to agree. */
interface Pairs {
  readonly alertmanagerSilence: [
    Omit<WrittenActionKinds["alertmanagerSilence"], "duration">,
    Omit<ActionOf<"alertmanagerSilence">, "durationMs">,
  ];
  readonly datadogMute: [
    Omit<WrittenActionKinds["datadogMute"], "duration" | "apiKey" | "applicationKey">,
    Omit<ActionOf<"datadogMute">, "durationMs" | "apiKey" | "applicationKey">,
  ];
  readonly cloudEvents: [
    Omit<WrittenActionKinds["cloudEvents"], "type">,
    Omit<ActionOf<"cloudEvents">, "type" | "data">,
  ];
}
type PairOf<Kind extends keyof WrittenActionKinds> = Kind extends keyof Pairs
  ? Pairs[Kind]
  : [WrittenActionKinds[Kind], ActionOf<Kind>];

/** An optional field agrees whether or not it may be set to undefined. */
type Plain<T> = T extends readonly (infer Item)[]
  ? readonly Plain<Item>[]
  : T extends object
    ? { readonly [Name in keyof T]: Plain<Exclude<T[Name], undefined>> }
    : T;
type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/**
 * The types whose fields differ between core and the schema: it compiles only if there are none.
 */
type Drifted = {
  [Kind in keyof WrittenActionKinds]: Same<
    Plain<PairOf<Kind>[0]>,
    Plain<Omit<PairOf<Kind>[1], "kind">>
  > extends true
    ? never
    : Kind;
}[keyof WrittenActionKinds];
type UnlessDrifted<Kinds extends never, Spec> = [Kinds] extends [never] ? Spec : never;

function actionOf(written: WrittenAction): Action {
  const { name, at, causes, timeout, retries, required } = written;
  return {
    ...{ name, at, retries, required },
    ...(causes && { causes }),
    timeoutMs: spanOf(timeout),
    how: specOf(written),
  };
}

function specOf(written: WrittenAction): ActionSpec {
  const { alertmanagerSilence, datadogMute, cloudEvents } = written;
  if (alertmanagerSilence !== undefined) {
    const { duration, ...rest } = alertmanagerSilence;
    return { kind: "alertmanagerSilence", ...rest, durationMs: spanOf(duration) };
  }
  if (datadogMute !== undefined) {
    const { duration, apiKey, applicationKey, ...rest } = datadogMute;
    const keys = { apiKey: apiKey.secretRef, applicationKey: applicationKey.secretRef };
    return { kind: "datadogMute", ...rest, ...keys, durationMs: spanOf(duration) };
  }
  if (cloudEvents !== undefined) {
    return { kind: "cloudEvents", type: "dev.lastcall.departure", ...cloudEvents };
  }
  const kind = actionKinds.find((one) => written[one] !== undefined);
  if (kind === undefined) return { kind: "unknown", field: written.newerType ?? "" };
  // The remaining kinds have the same fields in the schema and in core.
  return { kind, ...written[kind] } as UnlessDrifted<Drifted, ActionSpec>;
}
