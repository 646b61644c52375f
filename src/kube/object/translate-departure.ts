import type { KubeObject } from "../../contracts/kube-api.ts";
import type { NodeIdentity } from "../../core/cluster/node.ts";
import type { NewDeparture } from "../../core/departure/decision.ts";
import type {
  ActionRecord,
  Departure,
  DepartureStatus,
  DrainCounts,
  MachineRecord,
  Phase,
  TimelineEntry,
} from "../../core/departure/departure.ts";
import { conditionsOf } from "../../core/departure/departure-conditions.ts";
import type { BudgetDemand } from "../../core/departure/drain-reason.ts";
import {
  type Fields,
  fieldsOf,
  instantOf,
  isFields,
  listOf,
  numberOf,
  textListOf,
  textOf,
} from "../../core/json/json-field.ts";
import type { Cause } from "../../core/policy/action.ts";
import type { Reason } from "../../core/reason/reason.ts";
import { formatInstant, type Instant } from "../../core/time/time.ts";
import { apiVersion } from "./api-call.ts";

/** A Departure as read. The CRD requires a node, but a reader has to handle any object. */
export interface ReadDeparture extends Omit<Departure, "node"> {
  readonly node: NodeIdentity | undefined;
}

/**
 * Reads a Departure object; undefined if it names no node. Total: invalid fields count as unset.
 */
export function translateDeparture(object: KubeObject): Departure | undefined {
  const { node, ...read } = readDeparture(object);
  return node === undefined ? undefined : { ...read, node };
}

export function readDeparture(object: KubeObject): ReadDeparture {
  const meta = fieldsOf(object.metadata);
  const spec = fieldsOf(object.spec);
  return {
    name: textOf(meta.name) ?? "",
    uid: textOf(meta.uid) ?? "",
    resourceVersion: textOf(meta.resourceVersion) ?? "",
    createdAt: instantOf(meta.creationTimestamp),
    deletionAt: instantOf(meta.deletionTimestamp),
    finalizers: textListOf(meta.finalizers),
    node: identityOf(fieldsOf(spec.node)),
    cause: (textOf(spec.cause) ?? "Manual") as Cause,
    departAt: instantOf(spec.departAt),
    deadlineAt: instantOf(spec.deadlineAt),
    launchedAt: instantOf(spec.launchedAt),
    noticedAt: instantOf(spec.noticedAt),
    withdrawnAt: instantOf(spec.withdrawnAt),
    source: textOf(spec.source),
    policy: textOf(spec.policy),
    hold: spec.hold === true,
    status: statusOf(fieldsOf(object.status)),
  };
}

/** The content of a new Departure. */
export interface DepartureBody extends Omit<NewDeparture, "reason" | "message"> {
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

/** The object from which a new Departure is created. Only the controller writes its status. */
export function departureObject(made: DepartureBody): KubeObject {
  const { name, annotations, node } = made;
  return {
    apiVersion,
    kind: "Departure",
    metadata: annotations === undefined ? { name } : { name, annotations },
    spec: { node: withoutGaps({ ...node }), ...departureSpec(made) },
  };
}

/**
 * The fields of a Departure's spec that may be written; undefined leaves one unchanged, null
 * removes it.
 */
export interface DepartureChange {
  readonly cause?: Cause | undefined;
  readonly departAt?: Instant | null | undefined;
  readonly deadlineAt?: Instant | null | undefined;
  readonly launchedAt?: Instant | undefined;
  readonly noticedAt?: Instant | undefined;
  readonly withdrawnAt?: Instant | undefined;
  readonly source?: string | undefined;
  readonly policy?: string | undefined;
}

/** The fields as written to the API: instants as text. */
export function departureSpec(change: DepartureChange): Fields {
  return withoutGaps({
    cause: change.cause,
    departAt: formatted(change.departAt),
    deadlineAt: formatted(change.deadlineAt),
    launchedAt: formatted(change.launchedAt),
    noticedAt: formatted(change.noticedAt),
    withdrawnAt: formatted(change.withdrawnAt),
    source: change.source,
    policy: change.policy,
  });
}

/**
 * The metadata that makes a write to a Departure fail if anybody has written since it was read. It
 * includes the uid, because a Departure that was deleted and recreated is another one.
 */
export function departureFence(read: Pick<Departure, "resourceVersion" | "uid">): {
  readonly resourceVersion: string;
  readonly uid: string;
} {
  return { resourceVersion: read.resourceVersion, uid: read.uid };
}

/**
 * The status as written to the API: instants as text, unset fields omitted. Adds the conditions,
 * which are for other readers.
 */
export function statusObject(status: DepartureStatus): Readonly<Record<string, unknown>> {
  return withoutGaps({
    ...status,
    startedAt: formatted(status.startedAt),
    endedAt: formatted(status.endedAt),
    nodeCreatedAt: formatted(status.nodeCreatedAt),
    actions: status.actions?.map((one) =>
      withoutGaps({ ...one, startedAt: formatted(one.startedAt) }),
    ),
    timeline: status.timeline.map((entry) => ({ ...entry, at: formatInstant(entry.at) })),
    conditions: conditionsOf(status).map((one) =>
      withoutGaps({ ...one, lastTransitionTime: formatted(one.lastTransitionTime) }),
    ),
  });
}

/** Only the controller writes it, so its values are not validated any further. */
function statusOf(raw: Fields): DepartureStatus {
  const { machine, drain, demands } = raw;
  return {
    phase: (textOf(raw.phase) ?? "Scheduled") as Phase,
    outcome: textOf(raw.outcome) as DepartureStatus["outcome"],
    reason: textOf(raw.reason) as Reason | undefined,
    message: textOf(raw.message),
    startedAt: instantOf(raw.startedAt),
    endedAt: instantOf(raw.endedAt),
    nodeCreatedAt: instantOf(raw.nodeCreatedAt),
    machine: isFields(machine) ? (machine as unknown as MachineRecord) : undefined,
    releasingSeconds: numberOf(raw.releasingSeconds),
    drain: isFields(drain) ? (drain as unknown as DrainCounts) : undefined,
    demands: Array.isArray(demands) ? (demands as readonly BudgetDemand[]) : undefined,
    policy: textOf(raw.policy),
    leftTo: textOf(raw.leftTo),
    actions: Array.isArray(raw.actions) ? raw.actions.flatMap(actionRecordOf) : undefined,
    timeline: listOf(raw.timeline).flatMap((entry) => {
      const fields = fieldsOf(entry);
      const at = instantOf(fields.at);
      return at === undefined ? [] : [{ ...(fields as unknown as TimelineEntry), at }];
    }),
  };
}

/** Skips a record without a name or a state. */
function actionRecordOf(raw: unknown): readonly ActionRecord[] {
  const fields = fieldsOf(raw);
  const { name, state } = fields;
  if (typeof name !== "string" || typeof state !== "string") return [];
  const record = { attempts: 0, ...fields, startedAt: instantOf(fields.startedAt) };
  return [record as unknown as ActionRecord];
}

function identityOf(raw: Fields): NodeIdentity | undefined {
  const [name, uid] = [textOf(raw.name), textOf(raw.uid)];
  if (name === undefined || uid === undefined) return undefined;
  return { name, uid, providerID: textOf(raw.providerID), bootID: textOf(raw.bootID) };
}

function formatted<Gap extends null | undefined>(at: Instant | Gap): string | Gap {
  return typeof at === "number" ? formatInstant(at) : (at as Gap);
}

function withoutGaps<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as Partial<T>;
}
