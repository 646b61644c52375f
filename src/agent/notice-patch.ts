import type { KubeObject, PatchOperation } from "../contracts/kube-api.ts";
import type { Departure, DepartureStatus } from "../core/departure/departure.ts";
import { type Fields, fieldsOf, numberOf, textMapOf } from "../core/json/json-field.ts";
import { type MachineNotice, type NoticeUpdate, noticeUpdate } from "../core/notice/notice.ts";
import { formatInstant, type Instant } from "../core/time/time.ts";
import { departureSpec, readDeparture } from "../kube/object/translate-departure.ts";

/** The comma-separated ids of the notices behind a Departure. */
export const noticeAnnotation = "lastcall.dev/notice";

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
  /** As the API server stores it. */
  readonly stored: KubeObject;
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
    stored: object,
  };
}

/** Whether a Departure contains every event of a notice. */
export function isKnownTo(
  { eventIds }: Pick<DepartureView, "eventIds">,
  notice: Pick<MachineNotice, "eventIds">,
): boolean {
  return notice.eventIds.every((id) => eventIds.includes(id));
}

/**
 * The patch that applies a notice to an existing Departure; undefined if nothing changes. It is
 * refused if anything has changed that it was decided from, and by no other write: a controller
 * that moves a planned departure in every pass of a storm must not keep the notice out.
 */
export function tightening(
  departure: DepartureView,
  notice: MachineNotice,
): readonly PatchOperation[] | undefined {
  const update = noticeUpdate(departure, { ...notice, source: `agent/${notice.source}` });
  if (update === undefined && isKnownTo(departure, notice)) return undefined;
  const { stored } = departure;
  const ids = [...new Set([...departure.eventIds, ...notice.eventIds])].toSorted().join(",");
  const annotations = { ...fieldsOf(stored.metadata?.annotations), [noticeAnnotation]: ids };
  const spec = update === undefined ? {} : changed(departure, update);
  return [
    ...decidedFrom(stored),
    { op: "add", path: "/metadata/annotations", value: annotations },
    ...Object.entries(spec).flatMap(([key, value]) => written(fieldsOf(stored.spec), key, value)),
  ];
}

/** The patch that withdraws the notice of a Departure; refused as that of `tightening` is. */
export function withdrawal({ stored }: DepartureView, at: Instant): readonly PatchOperation[] {
  const value = formatInstant(at);
  return [...decidedFrom(stored), { op: "add", path: "/spec/withdrawnAt", value }];
}

const decidingMetadata = ["uid", "deletionTimestamp", "annotations"];
const decidingSpec = ["cause", "deadlineAt", "noticedAt", "source", "withdrawnAt"];
const decidingStatus = ["phase", "reason"];

/** Tests everything that `noticeUpdate` and its callers look at. */
function decidedFrom({ metadata, spec, status }: KubeObject): readonly PatchOperation[] {
  return [
    ...tests("/metadata", fieldsOf(metadata), decidingMetadata),
    ...tests("/spec", fieldsOf(spec), decidingSpec),
    // A test below something that is absent fails. Source: json-patch v4, Patch.test.
    ...(status === undefined
      ? tests("", {}, ["status"])
      : tests("/status", fieldsOf(status), decidingStatus)),
  ];
}

function tests(parent: string, fields: Fields, keys: readonly string[]): readonly PatchOperation[] {
  return keys.map((key) => ({ op: "test", path: `${parent}/${key}`, value: fields[key] ?? null }));
}

function written(before: Fields, key: string, value: unknown): readonly PatchOperation[] {
  const path = `/spec/${key}`;
  if (value !== null) return [{ op: "add", path, value }];
  return before[key] === undefined ? [] : [{ op: "remove", path }];
}

function changed(departure: DepartureView, update: NoticeUpdate): Fields {
  const { noticedAt, deadlineAt, source, cause } = update;
  return departureSpec({
    ...{ source, cause },
    noticedAt: noticedAt === departure.noticedAt ? undefined : noticedAt,
    deadlineAt: deadlineAt === departure.deadlineAt ? undefined : (deadlineAt ?? null),
  });
}
