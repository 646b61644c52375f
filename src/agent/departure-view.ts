import type { KubeObject } from "../contracts/kube-api.ts";
import type { NodeIdentity } from "../core/cluster/node.ts";
import {
  cloudDeadline,
  type Departure,
  type DepartureStatus,
} from "../core/departure/departure.ts";
import { type Fields, fieldsOf, numberOf, textMapOf } from "../core/json/json-field.ts";
import { type MachineNotice, outlivedAt } from "../core/notice/notice.ts";
import { type NoticeUpdate, noticeUpdate } from "../core/notice/notice-state.ts";
import type { Instant } from "../core/time/time.ts";
import {
  departureFence,
  departureObject,
  departureSpec,
  readDeparture,
} from "../kube/object/translate-departure.ts";

/** The comma-separated ids of the notices behind a Departure. */
const noticeAnnotation = "lastcall.dev/notice";

/** The fields of a Departure that the agent reads. */
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

/** Builds the Departure of a notice. It omits the providerID, which the agent's token lacks. */
export function departureBody(
  name: string,
  { node, notice }: { readonly node: NodeIdentity; readonly notice: MachineNotice },
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
 * The merge patch that applies a notice to an existing Departure; undefined if nothing changes.
 */
export function tightening(departure: DepartureView, notice: MachineNotice): Fields | undefined {
  const update = noticeUpdate(departure, { ...notice, source: `agent/${notice.source}` });
  const knownIds = notice.eventIds.every((id) => departure.eventIds.includes(id));
  if (update === undefined && knownIds) return undefined;
  const ids = [...new Set([...departure.eventIds, ...notice.eventIds])].toSorted();
  return {
    metadata: {
      ...departureFence(departure),
      annotations: { [noticeAnnotation]: ids.join(",") },
    },
    spec: update === undefined ? {} : changed(departure, update),
  };
}

/** When a departure with a notice is given up, if that is before the notice's deadline. */
export function outlivedBefore(
  departure: DepartureView,
  notice: MachineNotice,
): Instant | undefined {
  const update = noticeUpdate(departure, notice);
  const { noticedAt, deadlineAt } = update ?? departure;
  const cause = update?.cause ?? departure.cause;
  const endAt = outlivedAt({ cause, deadlineAt: cloudDeadline({ cause, noticedAt, deadlineAt }) });
  return comesAfter(notice, { deadlineAt }) ? endAt : undefined;
}

/** Whether a notice's deadline is after a departure's, or unknown. */
export function comesAfter(
  notice: MachineNotice,
  { deadlineAt }: Pick<DepartureView, "deadlineAt">,
): boolean {
  return deadlineAt !== undefined && (notice.deadlineAt ?? Number.POSITIVE_INFINITY) > deadlineAt;
}

function changed(departure: DepartureView, update: NoticeUpdate): Fields {
  const { noticedAt, deadlineAt, source, cause } = update;
  return departureSpec({
    ...{ source, cause },
    noticedAt: noticedAt === departure.noticedAt ? undefined : noticedAt,
    deadlineAt: deadlineAt === departure.deadlineAt ? undefined : (deadlineAt ?? null),
  });
}
