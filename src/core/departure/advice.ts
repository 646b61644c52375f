import { hours, type Instant, type Millis, minus } from "../time/time.ts";
import { type Departure, isNoticed, isUnderWay, mayBeIgnored } from "./departure.ts";

/** So long before an advised machine goes nothing holds its departure any more: it is to be out by then. */
const pressingLeadMs: Millis = hours(1);

type Told = Pick<Departure, "cause" | "noticedAt" | "deadlineAt">;

/**
 * Whether the cloud only advises that the node leaves, or gives it hours: then its departure is a planned
 * one that was moved forward, and budgets, waves and gates hold it as they hold any. Maintenance that names
 * no time may begin at once.
 */
export function isAdvice({ cause, deadlineAt }: Told, now: Instant): boolean {
  if (!mayBeIgnored(cause)) return false;
  if (deadlineAt === undefined) return cause === "RebalanceRecommendation";
  return now < minus(deadlineAt, pressingLeadMs);
}

/** Whether the cloud takes the node, and every second counts. */
export function isPressing(departure: Told, now: Instant): boolean {
  return isNoticed(departure) && !isAdvice(departure, now);
}

/** From when on an advised departure is pressing; undefined: by time alone never. */
export function pressingFrom({ cause, deadlineAt }: Told): Instant | undefined {
  if (!mayBeIgnored(cause) || deadlineAt === undefined) return undefined;
  return minus(deadlineAt, pressingLeadMs);
}

/** One that waits makes nobody leave yet: its node is planned, and counted, as if it were not there. */
export function isWaitingAdvice(departure: Departure, now: Instant): boolean {
  return isAdvice(departure, now) && !isUnderWay(departure);
}
