import type { Clock } from "../../contracts/clock.ts";
import type { NoticeSink } from "../../contracts/cloud/notices.ts";
import { around } from "../../core/chance/backoff.ts";
import type { Rng } from "../../core/chance/rng.ts";
import type { NoticeReading } from "../../core/notice/notice.ts";
import type { Instant, Millis } from "../../core/time/time.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";

/** One answer of a channel, read, and the wait before it is asked again. */
export interface ChannelAnswer {
  readonly reading: NoticeReading;
  readonly at: Instant;
  readonly skewMs?: number | undefined;
}

export interface PollChannelOptions {
  readonly sink: NoticeSink;
  readonly clock: Clock;
  readonly rng: Rng;
}

export interface Channel {
  readonly name: string;
  /** Asks once and reads the answer; throws `LastcallError` where there was none. */
  readonly ask: (signal: AbortSignal) => Promise<ChannelAnswer>;
  /** The rest after each turn, by what came of it; jitter is added here. */
  readonly restMs: (turn: "Answered" | "Failed") => Millis;
}

/**
 * Polls one channel until the signal aborts, whatever the answers are. A failed request does not
 * affect the next one.
 */
export async function followChannel(
  channel: Channel,
  { sink, clock, rng }: PollChannelOptions,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    sink.onTurn(channel.name);
    const turn = await takeTurn(channel, sink, signal);
    if (signal.aborted) return;
    await clock.sleep(around(channel.restMs(turn), rng), signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }
}

async function takeTurn(
  channel: Channel,
  sink: NoticeSink,
  signal: AbortSignal,
): Promise<"Answered" | "Failed"> {
  try {
    const { reading, at, skewMs } = await channel.ask(signal);
    if (reading.kind === "Unreadable") {
      sink.onError(channel.name, unreadable(channel.name, reading.problem));
      return "Failed";
    }
    for (const problem of reading.problems) {
      sink.onError(channel.name, unreadable(channel.name, problem));
    }
    sink.onReading({ channel: channel.name, reading, at, skewMs });
    return "Answered";
  } catch (error) {
    if (!signal.aborted) sink.onError(channel.name, faultOf(channel.name, error));
    return "Failed";
  }
}

function unreadable(channel: string, problem: string): LastcallError {
  return new LastcallError(
    "NOTICE_UNREADABLE",
    `Cannot read what ${channel} says: ${problem}, expected its documented form`,
  );
}

function faultOf(channel: string, error: unknown): LastcallError {
  if (isLastcallError(error)) return error;
  return new LastcallError(
    "CLOUD_UNREACHABLE",
    `Cannot ask ${channel}: ${messageOf(error)}, expected an answer`,
    { cause: error },
  );
}
