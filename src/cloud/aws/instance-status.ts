import { excerpt } from "../../core/json/shown-value.ts";
import type { InstanceNotice } from "../../core/notice/instance-notice.ts";
import { wordForId } from "../../core/notice/notice.ts";
import type { Instant } from "../../core/time/time.ts";
import type { ScheduledEvent } from "./ec2.ts";
import { instanceIdOf } from "./instance-id.ts";

export type EventReading =
  | { readonly kind: "Read"; readonly instanceNotice: InstanceNotice }
  /** It has come and stopped the machine: nothing is to be done for it, nor taken back. */
  | { readonly kind: "Over" }
  | { readonly kind: "Unreadable"; readonly problem: string };

/** Events that leave the machine at work. */
const livedThrough = new Set(["instance-reboot", "system-reboot", "system-maintenance"]);

/**
 * What EC2 has scheduled for an instance, as the cloud's word. What is over or called off stays
 * listed for a week, with a mark before its description. Source: EC2 API, InstanceStatusEvent.
 */
export function readScheduledEvent(event: ScheduledEvent, at: Instant): EventReading {
  const machine = instanceIdOf(event.instance);
  if (machine === undefined) return unreadable(`${excerpt(event.instance)} is no instance`);
  const { id, notBeforeAt: deadlineAt } = event;
  if (id === undefined || id === "" || deadlineAt === undefined) {
    return unreadable(`an event of ${machine} has no InstanceEventId or no NotBefore`);
  }
  const mark = /^\s*\[(completed|canceled)\]/i.exec(event.description ?? "")?.[1]?.toLowerCase();
  if (mark === "completed" && !livedThrough.has(event.code ?? "")) return { kind: "Over" };
  const instanceNotice: InstanceNotice = {
    machine,
    notice: {
      cause: "ScheduledMaintenance",
      deadlineAt,
      noticedAt: at,
      source: "aws/instance-status",
      eventId: wordForId(id),
      ...(mark === undefined ? {} : { withdrawn: true }),
    },
  };
  return { kind: "Read", instanceNotice };
}

function unreadable(problem: string): EventReading {
  return { kind: "Unreadable", problem };
}
