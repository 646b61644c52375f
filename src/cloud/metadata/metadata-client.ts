import type { Clock } from "../../contracts/clock.ts";
import type { NoticeSink } from "../../contracts/cloud.ts";
import type { MetadataFetch, MetadataRequest } from "../../contracts/metadata.ts";
import { withinTime } from "../../contracts/time-limit.ts";
import { around, type Rng } from "../../core/chance/chance.ts";
import type { NoticeReading } from "../../core/notice/notice.ts";
import {
  between,
  clocksDisagree,
  cloudTime,
  type Instant,
  type Millis,
  parseHttpDate,
  seconds,
} from "../../core/time/time.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";

export interface MetadataAnswer {
  readonly status: number;
  readonly text: string;
  readonly header: (name: string) => string | null;
  /** When it arrived, in the cloud's time. */
  readonly at: Instant;
  /** The local clock minus the cloud's, if they disagree. */
  readonly skewMs?: number | undefined;
}

const defaultTimeoutMs = seconds(2);

/** The longest real answer is a list of a few events. Anything longer is something else. */
const longestBodyBytes = 65_536;

export interface MetadataClientOptions {
  /** For example `http://169.254.169.254`, without a trailing slash. */
  readonly baseUrl: string;
  readonly fetch: MetadataFetch;
  readonly clock: Clock;
}

/** Queries the machine's metadata service: one request, one bounded answer, one time limit. */
export class MetadataClient {
  readonly #options: MetadataClientOptions;
  readonly baseUrl: string;

  constructor(options: MetadataClientOptions) {
    this.#options = options;
    this.baseUrl = options.baseUrl.replace(/\/+$/, "");
  }

  /**
   * Returns any response, including refusals. Throws `LastcallError`: `CLOUD_UNREACHABLE` if there
   * is no response in time, `NOTICE_UNREADABLE` if it does not end. Rejects with the signal's
   * reason when it aborts.
   */
  async ask(request: MetadataRequest, signal: AbortSignal): Promise<MetadataAnswer> {
    const { path, timeoutMs: limitMs = defaultTimeoutMs } = request;
    const late = () => unreachable(path, `no response within ${limitMs} ms`);
    try {
      const work = (until: AbortSignal) => this.#exchange(request, until);
      return await withinTime(work, { clock: this.#options.clock, limitMs, late }, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw isLastcallError(error) ? error : unreachable(path, messageOf(error));
    }
  }

  async #exchange(request: MetadataRequest, signal: AbortSignal): Promise<MetadataAnswer> {
    const { clock } = this.#options;
    const { path, method = "GET", headers, body } = request;
    const init = { method, headers, signal, redirect: "manual" as const };
    const response = await this.#options.fetch(
      this.baseUrl + path,
      body === undefined ? init : { ...init, body },
    );
    const text = await boundedText(response, path);
    const receivedAt = clock.now();
    const dateAt = parseHttpDate(response.headers.get("date") ?? "");
    const times = { dateAt, receivedAt };
    return {
      status: response.status,
      text,
      header: (name) => response.headers.get(name),
      at: cloudTime(times),
      ...(dateAt !== undefined && clocksDisagree(times)
        ? { skewMs: between(dateAt, receivedAt) }
        : {}),
    };
  }
}

function unreachable(path: string, found: string): LastcallError {
  return new LastcallError(
    "CLOUD_UNREACHABLE",
    `Cannot ask the metadata service for ${path}: ${found}, expected a response`,
  );
}

async function boundedText(response: Response, path: string): Promise<string> {
  if (response.body === null) return "";
  const decoder = new TextDecoder();
  let text = "";
  let sizeBytes = 0;
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    sizeBytes += value.byteLength;
    if (sizeBytes > longestBodyBytes) {
      await reader.cancel().catch(() => undefined);
      throw new LastcallError(
        "NOTICE_UNREADABLE",
        `Cannot read ${path} of the metadata service: over ${longestBodyBytes} bytes, expected a short response`,
      );
    }
    text += decoder.decode(value, { stream: true });
  }
}

/** For an answer whose status says nothing about the machine, such as a 503. */
export function refusedError(channel: string, answer: MetadataAnswer): LastcallError {
  return new LastcallError(
    "CLOUD_UNREACHABLE",
    `Cannot ask ${channel}: the metadata service answered ${answer.status}, expected 200`,
  );
}

/** One parsed answer of a channel. */
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
  /** Sends one request and parses the answer; throws `LastcallError` if there is none. */
  readonly ask: (signal: AbortSignal) => Promise<ChannelAnswer>;
  /** The pause after each request, by its result; the caller adds jitter. */
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
    `Cannot read the value of ${channel}: ${problem}, expected the documented format`,
  );
}

function faultOf(channel: string, error: unknown): LastcallError {
  if (isLastcallError(error)) return error;
  return new LastcallError(
    "CLOUD_UNREACHABLE",
    `Cannot ask ${channel}: ${messageOf(error)}, expected a response`,
    { cause: error },
  );
}
