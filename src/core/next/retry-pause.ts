import { cloudDeadline, type Departure, isNoticed } from "../departure/departure.ts";
import { type Instant, type Millis, seconds } from "../time/time.ts";

const longestPauseMs: Millis = seconds(10);

const longestUnderNoticeMs: Millis = seconds(1);

/** Whether every second counts: from its notice on, until the cloud may have taken the machine. */
export function isHurried(departure: Departure, now: Instant): boolean {
  const deadlineAt = cloudDeadline(departure);
  return isNoticed(departure) && (deadlineAt === undefined || now < deadlineAt);
}

/** The longest pause between two attempts. */
export function longestPause(departure: Departure, now: Instant): Millis {
  return isHurried(departure, now) ? longestUnderNoticeMs : longestPauseMs;
}
