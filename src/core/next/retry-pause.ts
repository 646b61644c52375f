import { cloudDeadline, type Departure, isNoticed } from "../departure/departure.ts";
import { type Instant, type Millis, minutes, plus, seconds } from "../time/time.ts";

const longestPauseMs: Millis = seconds(10);

const longestUnderNoticeMs: Millis = seconds(1);

/**
 * A notice without a deadline may stand for hours, as that of a lifecycle hook does. What has
 * failed for longer than the machines of other notices live is asked less often.
 */
const urgentMs: Millis = minutes(10);
const longestUnderOldNoticeMs: Millis = seconds(4);

/** Whether every second counts: from its notice on, until the cloud may have taken the machine. */
export function isHurried(departure: Departure, now: Instant): boolean {
  const deadlineAt = cloudDeadline(departure);
  return isNoticed(departure) && (deadlineAt === undefined || now < deadlineAt);
}

/** The longest pause between two attempts. */
export function longestPause(departure: Departure, now: Instant): Millis {
  if (!isHurried(departure, now)) return longestPauseMs;
  const { noticedAt = now } = departure;
  const isOld = cloudDeadline(departure) === undefined && now > plus(noticedAt, urgentMs);
  return isOld ? longestUnderOldNoticeMs : longestUnderNoticeMs;
}

/** So long a record that fails is tried as often as what saves pods is. */
const urgentRecordMs: Millis = seconds(15);

/**
 * The same for the record of a departure, which has failed for a time. Nothing of a notice waits
 * for it, and it is refused for all departures at once: a burst would add hundreds of writes a
 * second to what ails the API server.
 */
export function longestRecordPause(
  departure: Departure,
  { now, failingMs }: { readonly now: Instant; readonly failingMs: number },
): Millis {
  const usualMs = longestPause(departure, now);
  if (failingMs < urgentRecordMs) return usualMs;
  return usualMs > longestUnderOldNoticeMs ? usualMs : longestUnderOldNoticeMs;
}
