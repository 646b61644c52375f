import type { KubeObject } from "../contracts/kube-api.ts";
import type { NodeIdentity } from "../core/cluster/identity.ts";
import {
  type Cause,
  type Departure,
  type DepartureStatus,
  isGraver,
  isVoluntary,
  type Phase,
} from "../core/departure/departure.ts";
import { causeWith, deadlineWith, type NoticeCase } from "../core/notice/notice.ts";
import type { Reason } from "../core/reason/reason.ts";
import { formatInstant, type Instant, parseInstant } from "../core/time/time.ts";

/** The ids of the notices that a Departure was made from, with commas between. */
export const noticeAnnotation = "lastcall.dev/notice";

/** What the agent reads of a Departure. */
export interface DepartureView
  extends Pick<
    Departure,
    "name" | "uid" | "resourceVersion" | "cause" | "deadlineAt" | "noticedAt" | "withdrawnAt"
  > {
  readonly nodeUid: string;
  readonly bootID: string | undefined;
  readonly status: Pick<DepartureStatus, "phase" | "reason">;
  readonly podsLeft: number | undefined;
  readonly isBeingDeleted: boolean;
  readonly source: string;
  readonly eventIds: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;

export function viewDeparture(object: KubeObject): DepartureView {
  const spec = fields(object.spec);
  const node = fields(spec.node);
  const status = fields(object.status);
  const meta = fields(object.metadata);
  const left = fields(status.drain).left;
  return {
    name: text(meta.name) ?? "",
    uid: text(meta.uid) ?? "",
    resourceVersion: text(meta.resourceVersion) ?? "",
    nodeUid: text(node.uid) ?? "",
    bootID: text(node.bootID),
    cause: (text(spec.cause) ?? "Manual") as Cause,
    status: {
      phase: (text(status.phase) ?? "Scheduled") as Phase,
      reason: text(status.reason) as Reason | undefined,
    },
    podsLeft: typeof left === "number" ? left : undefined,
    deadlineAt: instantOf(spec.deadlineAt),
    noticedAt: instantOf(spec.noticedAt),
    withdrawnAt: instantOf(spec.withdrawnAt),
    isBeingDeleted: meta.deletionTimestamp !== undefined,
    source: text(spec.source) ?? "",
    eventIds: (text(fields(meta.annotations)[noticeAnnotation]) ?? "")
      .split(",")
      .filter((id) => id !== ""),
  };
}

/** The Departure that a case makes. */
export function departureBody(
  name: string,
  { node, notice }: { readonly node: NodeIdentity; readonly notice: NoticeCase },
): KubeObject {
  return {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name, annotations: { [noticeAnnotation]: notice.eventIds.join(",") } },
    spec: {
      node: { name: node.name, uid: node.uid, ...(node.bootID ? { bootID: node.bootID } : {}) },
      cause: notice.cause,
      ...(notice.deadlineAt === undefined ? {} : { deadlineAt: formatInstant(notice.deadlineAt) }),
      noticedAt: formatInstant(notice.noticedAt),
      source: `agent/${notice.source}`,
    },
  };
}

/**
 * What a case changes in a Departure that is there, as fields of a merge patch; undefined where it
 * says all of it already. The first notice turns a planned departure into a forced one: its deadline,
 * which was the plan's own, becomes the cloud's, and so does its cause. After that a deadline only moves earlier, and a cause
 * gives way to none that is less grave.
 */
export function tightening(departure: DepartureView, notice: NoticeCase): Fields | undefined {
  const isFirst = departure.noticedAt === undefined;
  const knownIds = notice.eventIds.every((id) => departure.eventIds.includes(id));
  const deadlineAt = deadlineWith(departure, notice);
  const moves = deadlineAt !== departure.deadlineAt;
  const isNews = isFirst || moves || causeWith(departure, notice) !== undefined;
  if (!isNews && knownIds) return undefined;
  const ids = [...new Set([...departure.eventIds, ...notice.eventIds])].toSorted();
  const isLighter = isGraver(departure.cause, notice.cause);
  const takesCause = isVoluntary(departure.cause)
    ? causeWith(departure, notice) !== undefined
    : isNews && !isLighter;
  return {
    metadata: {
      uid: departure.uid,
      resourceVersion: departure.resourceVersion,
      annotations: { [noticeAnnotation]: ids.join(",") },
    },
    spec: {
      ...(isNews ? { source: `agent/${notice.source}` } : {}),
      ...(isFirst ? { noticedAt: formatInstant(notice.noticedAt) } : {}),
      // null takes a field away.
      ...(moves ? { deadlineAt: deadlineAt === undefined ? null : formatInstant(deadlineAt) } : {}),
      ...(takesCause ? { cause: notice.cause } : {}),
    },
  };
}

function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Fields)
    : {};
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function instantOf(value: unknown): Instant | undefined {
  return typeof value === "string" ? parseInstant(value) : undefined;
}
