import { type Fields, trimmedTextOf } from "../../core/json/json-field.ts";
import { excerpt } from "../../core/json/shown-value.ts";
import type { InstanceNotice } from "../../core/notice/instance-notice.ts";
import { type Instant, minutes, parseInstant, plus } from "../../core/time/time.ts";
import { findInstanceRef } from "./compute-instance.ts";
import { defaultPreemptionNoticeMs } from "./notice-payload.ts";

/** A zone of a project, where operations are listed. */
export interface ZoneRef {
  readonly project: string;
  readonly zone: string;
}

/** The type of the operation that Compute Engine writes down when it takes a Spot machine. */
export const preemptedType = "compute.instances.preempted";

export type OperationReading =
  | {
      readonly kind: "Preempted";
      readonly insertedAt: Instant;
      readonly instanceNotice: InstanceNotice;
    }
  /** An operation of another type. */
  | { readonly kind: "Other" }
  | { readonly kind: "Unreadable"; readonly problem: string };

/** No clock is off by this much that is to be trusted with deadlines. */
const farAheadMs = minutes(10);

const target = /\/zones\/([^/]+)\/instances\/([^/]+)$/;

/**
 * Reads an operation of a zone's list: which machine was taken, and when. Total. It is written in the
 * moment in which the machine is told to stop (`systemevent-…`, done at once), so that the power goes
 * half a minute later. Source: recorded operations of 2019 (test/data/gce).
 */
export function readPreemption(
  item: Fields,
  heard: ZoneRef & { readonly at: Instant },
): OperationReading {
  if (item.operationType !== preemptedType) return { kind: "Other" };
  const insertedAt = parseInstant(trimmedTextOf(item.insertTime) ?? "");
  if (insertedAt === undefined || insertedAt > plus(heard.at, farAheadMs)) {
    return unreadable(`the time ${excerpt(item.insertTime)}`);
  }
  const eventId = trimmedTextOf(item.name) ?? trimmedTextOf(item.id) ?? "";
  if (!/^[-A-Za-z0-9]{1,120}$/.test(eventId)) return unreadable(`the name ${excerpt(item.name)}`);
  const [, zone, name] = target.exec(trimmedTextOf(item.targetLink) ?? "") ?? [];
  const machine = `gce://${heard.project}/${zone}/${name}`;
  if (zone !== heard.zone || findInstanceRef(machine) === undefined) {
    return unreadable(`the target ${excerpt(item.targetLink)}`);
  }
  const notice = {
    cause: "Preempted",
    deadlineAt: plus(insertedAt, defaultPreemptionNoticeMs),
    noticedAt: insertedAt,
    source: "gcp/operations",
    eventId,
  } as const;
  return { kind: "Preempted", insertedAt, instanceNotice: { machine, notice } };
}

function unreadable(found: string): OperationReading {
  return { kind: "Unreadable", problem: `found ${found}, expected a preemption of this zone` };
}
