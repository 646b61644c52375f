import type { KubeObject } from "../../contracts/kube-api.ts";
import type { NodeIdentity } from "../../core/cluster/identity.ts";
import type { DepartureOrder } from "../../core/departure/decision.ts";
import type {
  Cause,
  Departure,
  DepartureStatus,
  DrainCounts,
  Phase,
  TimelineEntry,
} from "../../core/departure/departure.ts";
import type { BudgetDemand } from "../../core/departure/drain-conflict.ts";
import {
  type Fields,
  fieldsOf,
  instantOf,
  isFields,
  listOf,
  textOf,
} from "../../core/json/json-field.ts";
import type { Reason } from "../../core/reason/reason.ts";
import { formatInstant, type Instant } from "../../core/time/time.ts";
import { apiVersion } from "./paths.ts";

/**
 * Reads a Departure object; undefined where it names no node, which the CRD does not let in. Total: what
 * is odd is not there.
 */
export function translateDeparture(object: KubeObject): Departure | undefined {
  const meta = fieldsOf(object.metadata);
  const spec = fieldsOf(object.spec);
  const node = identityOf(fieldsOf(spec.node));
  if (node === undefined) return undefined;
  return {
    name: textOf(meta.name) ?? "",
    uid: textOf(meta.uid) ?? "",
    resourceVersion: textOf(meta.resourceVersion) ?? "",
    createdAt: instantOf(meta.creationTimestamp),
    deletionAt: instantOf(meta.deletionTimestamp),
    node,
    cause: (textOf(spec.cause) ?? "Manual") as Cause,
    departAt: instantOf(spec.departAt),
    deadlineAt: instantOf(spec.deadlineAt),
    noticedAt: instantOf(spec.noticedAt),
    withdrawnAt: instantOf(spec.withdrawnAt),
    source: textOf(spec.source),
    policy: textOf(spec.policy),
    hold: spec.hold === true,
    status: statusOf(fieldsOf(object.status)),
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
      departAt: formatted(order.departAt),
      deadlineAt: formatted(order.deadlineAt),
      noticedAt: formatted(order.noticedAt),
      withdrawnAt: formatted(order.withdrawnAt),
      source: order.source,
      policy: order.policy,
    }),
  };
}

/** The status as it is written: instants as text, gaps left out. */
export function statusObject(status: DepartureStatus): Readonly<Record<string, unknown>> {
  return withoutGaps({
    ...status,
    startedAt: formatted(status.startedAt),
    endedAt: formatted(status.endedAt),
    timeline: status.timeline.map((entry) => ({ ...entry, at: formatInstant(entry.at) })),
  });
}

/** Nobody but the controller writes it: what has its form is taken for what it says. */
function statusOf(raw: Fields): DepartureStatus {
  const { machine, drain, demands } = raw;
  return {
    phase: (textOf(raw.phase) ?? "Scheduled") as Phase,
    outcome: textOf(raw.outcome) as DepartureStatus["outcome"],
    reason: textOf(raw.reason) as Reason | undefined,
    message: textOf(raw.message),
    startedAt: instantOf(raw.startedAt),
    endedAt: instantOf(raw.endedAt),
    machine: isFields(machine) ? (machine as { readonly id: string }) : undefined,
    drain: isFields(drain) ? (drain as unknown as DrainCounts) : undefined,
    demands: Array.isArray(demands) ? (demands as readonly BudgetDemand[]) : undefined,
    timeline: listOf(raw.timeline).flatMap((entry) => {
      const fields = fieldsOf(entry);
      const at = instantOf(fields.at);
      return at === undefined ? [] : [{ ...(fields as unknown as TimelineEntry), at }];
    }),
  };
}

function identityOf(raw: Fields): NodeIdentity | undefined {
  const [name, uid] = [textOf(raw.name), textOf(raw.uid)];
  if (name === undefined || uid === undefined) return undefined;
  return { name, uid, providerID: textOf(raw.providerID), bootID: textOf(raw.bootID) };
}

function formatted(at: Instant | undefined): string | undefined {
  return at === undefined ? undefined : formatInstant(at);
}

function withoutGaps<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as Partial<T>;
}
