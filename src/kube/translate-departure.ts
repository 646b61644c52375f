import type { KubeObject } from "../contracts/kube-api.ts";
import type { DepartureOrder } from "../core/decision.ts";
import type { Cause, Departure, DepartureStatus, DrainCounts, Phase } from "../core/departure.ts";
import type { BudgetDemand } from "../core/drain-conflict.ts";
import type { NodeIdentity } from "../core/identity.ts";
import type { Reason } from "../core/reason.ts";
import { formatInstant, type Instant, parseInstant } from "../core/time.ts";
import { apiVersion } from "./paths.ts";

interface RawSpec {
  readonly node?: Partial<Record<"name" | "uid" | "providerID" | "bootID", string>>;
  readonly cause?: string;
  readonly departAt?: string;
  readonly deadlineAt?: string;
  readonly noticedAt?: string;
  readonly withdrawnAt?: string;
  readonly source?: string;
  readonly policy?: string;
  readonly hold?: boolean;
}

interface RawStatus {
  readonly phase?: string;
  readonly outcome?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly startedAt?: string;
  readonly endedAt?: string;
  readonly machine?: { readonly id: string };
  readonly drain?: DrainCounts;
  readonly demands?: readonly BudgetDemand[];
  readonly timeline?: readonly { at: string; step: string; result: string }[];
}

/** Reads a Departure object; undefined where it names no node, which the CRD does not let in. */
export function translateDeparture(object: KubeObject): Departure | undefined {
  const spec = object.spec as RawSpec | undefined;
  const node = identityOf(spec?.node);
  if (spec === undefined || node === undefined) return undefined;
  return {
    name: object.metadata?.name ?? "",
    uid: object.metadata?.uid ?? "",
    resourceVersion: object.metadata?.resourceVersion ?? "",
    createdAt: instantOf(object.metadata?.creationTimestamp),
    deletionAt: instantOf(object.metadata?.deletionTimestamp),
    node,
    cause: (spec.cause ?? "Manual") as Cause,
    departAt: instantOf(spec.departAt),
    deadlineAt: instantOf(spec.deadlineAt),
    noticedAt: instantOf(spec.noticedAt),
    withdrawnAt: instantOf(spec.withdrawnAt),
    source: spec.source,
    policy: spec.policy,
    hold: spec.hold === true,
    status: statusOf((object.status as RawStatus | undefined) ?? {}),
  };
}

/** The object that a new Departure is created from. Its status is written by the controller alone. */
export function departureObject(order: Omit<DepartureOrder, "reason" | "message">): KubeObject {
  return {
    apiVersion,
    kind: "Departure",
    metadata: { name: order.name },
    spec: withoutGaps({
      node: withoutGaps({ ...order.node }),
      cause: order.cause,
      departAt: textOf(order.departAt),
      deadlineAt: textOf(order.deadlineAt),
      noticedAt: textOf(order.noticedAt),
      withdrawnAt: textOf(order.withdrawnAt),
      source: order.source,
      policy: order.policy,
    }),
  };
}

/** The status as it is written: instants as text, gaps left out. */
export function statusObject(status: DepartureStatus): Readonly<Record<string, unknown>> {
  return withoutGaps({
    ...status,
    startedAt: textOf(status.startedAt),
    endedAt: textOf(status.endedAt),
    timeline: status.timeline.map((entry) => ({ ...entry, at: formatInstant(entry.at) })),
  });
}

function statusOf(raw: RawStatus): DepartureStatus {
  return {
    phase: (raw.phase ?? "Scheduled") as Phase,
    outcome: raw.outcome as DepartureStatus["outcome"],
    reason: raw.reason as Reason | undefined,
    message: raw.message,
    startedAt: instantOf(raw.startedAt),
    endedAt: instantOf(raw.endedAt),
    machine: raw.machine,
    drain: raw.drain,
    demands: raw.demands,
    timeline: (raw.timeline ?? []).flatMap((entry) => {
      const at = parseInstant(entry.at);
      return at === undefined ? [] : [{ ...entry, at }];
    }),
  };
}

function identityOf(raw: RawSpec["node"]): NodeIdentity | undefined {
  if (raw?.name === undefined || raw.uid === undefined) return undefined;
  return { name: raw.name, uid: raw.uid, providerID: raw.providerID, bootID: raw.bootID };
}

function instantOf(text: string | undefined): Instant | undefined {
  return text === undefined ? undefined : parseInstant(text);
}

function textOf(at: Instant | undefined): string | undefined {
  return at === undefined ? undefined : formatInstant(at);
}

function withoutGaps<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as Partial<T>;
}
