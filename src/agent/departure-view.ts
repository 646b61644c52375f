import type { KubeObject } from "../contracts/kube-api.ts";
import type { NodeIdentity } from "../core/cluster/identity.ts";
import {
  type Departure,
  type DepartureStatus,
  isGraver,
  isVoluntary,
} from "../core/departure/departure.ts";
import { type Fields, fieldsOf, numberOf, textMapOf } from "../core/json/json-field.ts";
import { causeWith, deadlineWith, type NoticeCase } from "../core/notice/notice.ts";
import {
  departureFence,
  departureObject,
  departureSpec,
  readDeparture,
} from "../kube/object/translate-departure.ts";

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
  const { node, status, deletionAt, source = "", ...read } = readDeparture(object);
  const annotations = textMapOf(fieldsOf(object.metadata).annotations);
  return {
    ...read,
    source,
    nodeUid: node?.uid ?? "",
    bootID: node?.bootID,
    status: { phase: status.phase, reason: status.reason },
    podsLeft: numberOf(status.drain?.left),
    isBeingDeleted: deletionAt !== undefined,
    eventIds: (annotations[noticeAnnotation] ?? "").split(",").filter((id) => id !== ""),
  };
}

/** The Departure that a case makes. The node's own token names no machine for it. */
export function departureBody(
  name: string,
  { node, notice }: { readonly node: NodeIdentity; readonly notice: NoticeCase },
): KubeObject {
  const { cause, deadlineAt, noticedAt } = notice;
  return departureObject({
    name,
    annotations: { [noticeAnnotation]: notice.eventIds.join(",") },
    node: { name: node.name, uid: node.uid, bootID: node.bootID || undefined },
    ...{ cause, deadlineAt, noticedAt, source: `agent/${notice.source}` },
  });
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
      ...departureFence(departure),
      annotations: { [noticeAnnotation]: ids.join(",") },
    },
    spec: departureSpec({
      source: isNews ? `agent/${notice.source}` : undefined,
      noticedAt: isFirst ? notice.noticedAt : undefined,
      deadlineAt: moves ? (deadlineAt ?? null) : undefined,
      cause: takesCause ? notice.cause : undefined,
    }),
  };
}
