import { excerpt } from "../../core/json/json-field.ts";
import type { Notice, NoticeReading } from "../../core/notice/notice.ts";
import { type Instant, type Millis, parseDuration, plus, seconds } from "../../core/time/time.ts";

/**
 * From `preempted` = TRUE to the power going off on a Spot machine (Compute Engine,
 * `scheduling.skipGuestOsShutdown`). The kubelet's own shutdown runs in the same time.
 */
export const defaultPreemptionNoticeMs: Millis = seconds(30);

/** Host maintenance is announced a minute ahead, on machines with GPUs an hour. */
const maintenanceNoticeMs = seconds(60);

/** A value of the Compute Engine metadata server, and when it came in the cloud's time. */
export interface MetadataValue {
  readonly text: string;
  readonly at: Instant;
}

/** `instance/preempted`: TRUE or FALSE. `noticeMs` is how long this machine has from TRUE on. */
export function readPreempted({ text, at }: MetadataValue, noticeMs: Millis): NoticeReading {
  const value = text.trim();
  if (value === "FALSE") return { kind: "Read", notices: [], ignored: [], problems: [] };
  if (value !== "TRUE") {
    return { kind: "Unreadable", problem: `${excerpt(text)} is neither TRUE nor FALSE` };
  }
  const notice: Notice = {
    cause: "SpotInterruption",
    deadlineAt: plus(at, noticeMs),
    isReckoned: true,
    noticedAt: at,
    source: "gcp/preempted",
    eventId: "preempted",
  };
  return { kind: "Read", notices: [notice], ignored: [], problems: [] };
}

/**
 * `instance/maintenance-event`: NONE, MIGRATE_ON_HOST_MAINTENANCE (live migration,
 * with all that runs on it) or TERMINATE_ON_HOST_MAINTENANCE.
 */
export function readMaintenanceEvent({ text, at }: MetadataValue): NoticeReading {
  const value = text.trim();
  const read = { kind: "Read", notices: [], ignored: [], problems: [] } as const;
  if (value === "NONE") return read;
  if (value === "MIGRATE_ON_HOST_MAINTENANCE") return { ...read, ignored: [value] };
  if (value !== "TERMINATE_ON_HOST_MAINTENANCE") {
    return { kind: "Unreadable", problem: `${excerpt(text)} is no maintenance event` };
  }
  const notice: Notice = {
    cause: "ScheduledMaintenance",
    deadlineAt: plus(at, maintenanceNoticeMs),
    isReckoned: true,
    noticedAt: at,
    source: "gcp/maintenance-event",
    eventId: "host-maintenance",
  };
  return { ...read, notices: [notice] };
}

/**
 * How long a machine has from TRUE on, as its owner wrote it into the metadata: `120s`. The
 * platform's own `preemptionNoticeDuration` is not served by the metadata server. Undefined:
 * unreadable.
 */
export function readNoticeDuration(text: string): Millis | undefined {
  const span = parseDuration(text.trim());
  return span === undefined || span < seconds(1) || span > seconds(600) ? undefined : span;
}
