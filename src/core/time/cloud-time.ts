import { between, type Instant, type Millis, seconds } from "./time.ts";

/**
 * A Date header holds whole seconds and is as old as the answer was under way. Clocks that differ
 * by no more than this agree.
 */
const toleranceMs: Millis = seconds(2);

export interface AnswerTimes {
  /** The answer's Date header; undefined where it had none that can be read. */
  readonly dateAt: Instant | undefined;
  /** When it arrived, by our own clock. */
  readonly receivedAt: Instant;
}

/**
 * The cloud's time at the arrival of an answer. Where the clocks agree our own is taken, which is
 * finer; where they do not, the cloud's: a deadline that it names, or that is counted from its
 * word, must not move with the clock of one node.
 */
export function cloudTime({ dateAt, receivedAt }: AnswerTimes): Instant {
  if (dateAt === undefined || !clocksDisagree({ dateAt, receivedAt })) return receivedAt;
  return dateAt;
}

/** Whether our clock is off by more than a Date header can hide. */
export function clocksDisagree({ dateAt, receivedAt }: AnswerTimes): boolean {
  return dateAt !== undefined && Math.abs(between(dateAt, receivedAt)) > toleranceMs;
}
