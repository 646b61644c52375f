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
import { type Fields, fieldsOf, instantOf, textOf } from "../core/json/json-field.ts";
import { causeWith, deadlineWith, type NoticeCase } from "../core/notice/notice.ts";
import type { Reason } from "../core/reason/reason.ts";
import { formatInstant } from "../core/time/time.ts";

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

export function viewDeparture(object: KubeObject): DepartureView {
  const spec = fieldsOf(object.spec);
  const node = fieldsOf(spec.node);
  const status = fieldsOf(object.status);
  const meta = fieldsOf(object.metadata);
  const left = fieldsOf(status.drain).left;
  return {
    name: textOf(meta.name) ?? "",
    uid: textOf(meta.uid) ?? "",
    resourceVersion: textOf(meta.resourceVersion) ?? "",
    nodeUid: textOf(node.uid) ?? "",
    bootID: textOf(node.bootID),
    cause: (textOf(spec.cause) ?? "Manual") as Cause,
    status: {
      phase: (textOf(status.phase) ?? "Scheduled") as Phase,
      reason: textOf(status.reason) as Reason | undefined,
    },
    podsLeft: typeof left === "number" ? left : undefined,
    deadlineAt: instantOf(spec.deadlineAt),
    noticedAt: instantOf(spec.noticedAt),
    withdrawnAt: instantOf(spec.withdrawnAt),
    isBeingDeleted: meta.deletionTimestamp !== undefined,
    source: textOf(spec.source) ?? "",
    eventIds: (textOf(fieldsOf(meta.annotations)[noticeAnnotation]) ?? "")
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
