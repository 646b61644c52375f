import { boundedText } from "../../actions/alertmanager.ts";
import {
  type CountedOutcomes,
  type CountedSeries,
  countedOutcomes,
  outcomeQuestions,
  type RangeQuestion,
  seriesIn,
} from "../../board/outcome/counted-outcomes.ts";
import {
  EndedDepartures,
  historyLine,
  type KeptHistory,
  readHistory,
} from "../../board/outcome/ended-departures.ts";
import type { Clock } from "../../contracts/clock.ts";
import { parseJson } from "../../core/json/json-field.ts";
import { type Instant, seconds } from "../../core/time/time.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import type { CommandIo } from "../command-line/command.ts";

export interface BoardHistory {
  readonly ended: EndedDepartures;
  /** Resolves once everything that has ended so far is in the file. */
  written(): Promise<void>;
}

/**
 * Stores ended departures in a file, one JSON object per line: existing ones are read at the start,
 * and new ones are appended. Throws INPUT_UNREADABLE, INPUT_INVALID and OUTPUT_UNWRITABLE. Skipped
 * lines and later write failures are reported.
 */
export async function openHistory(
  path: string,
  io: Pick<CommandIo, "files" | "err">,
): Promise<BoardHistory> {
  const text = await readOrNothing(path, io);
  const history = readHistory(text);
  checkHistory(path, history);
  const left = history.cut + history.foreign;
  if (left > 0) {
    const lines = left === 1 ? "1 line" : `${left} lines`;
    io.err(
      `lastcall: ${lines} of ${path} cannot be read as a departure and ${left === 1 ? "is" : "are"} skipped\n`,
    );
  }
  // Ends a line that was cut off, and fails now if the file cannot be written.
  await io.files.appendText(path, text === "" || text.endsWith("\n") ? "" : "\n");
  let writing = Promise.resolve();
  let due = "";
  const write = async (): Promise<void> => {
    const lines = due;
    due = "";
    if (lines === "") return;
    await io.files
      .appendText(path, lines)
      .catch((error: unknown) => io.err(`lastcall: ${messageOf(error)}\n`));
  };
  const ended = new EndedDepartures(history.departures, (past) => {
    due += historyLine(past);
    writing = writing.then(write);
  });
  return { ended, written: () => writing };
}

/** Nothing is appended to a file of another kind. Throws INPUT_INVALID. */
function checkHistory(path: string, { departures, foreign }: KeptHistory): void {
  if (foreign === 0 || departures.length > 0) return;
  throw new LastcallError(
    "INPUT_INVALID",
    `Cannot keep departures in ${path}: it contains none, expected a file written by lastcall board --history, or no file`,
  );
}

async function readOrNothing(path: string, { files }: Pick<CommandIo, "files">): Promise<string> {
  try {
    return await files.readText(path);
  } catch (error) {
    const isNew = isLastcallError(error) && /does not exist/.test(error.message);
    if (isNew) return "";
    throw error;
  }
}

const timeoutMs = seconds(10);
/** How long an answer is reused. */
const keptMs = 60_000;

export interface PrometheusOptions {
  /** Such as `http://prometheus.monitoring:9090`; a path prefix before `/api` is kept. */
  readonly url: string;
  readonly fetch: typeof fetch;
  readonly clock: Clock;
}

/**
 * The outcomes that Prometheus has counted. Rejects with API_UNREACHABLE, which gives the reason.
 */
export class PrometheusOutcomes {
  readonly #options: PrometheusOptions;
  #asked: { readonly atMs: number; readonly answer: Promise<CountedOutcomes> } | undefined;

  constructor(options: PrometheusOptions) {
    this.#options = options;
  }

  /** Queried at most once a minute, however many pages are open. */
  ask(): Promise<CountedOutcomes> {
    const { clock } = this.#options;
    const nowMs = clock.monotonic();
    if (this.#asked !== undefined && nowMs - this.#asked.atMs < keptMs) return this.#asked.answer;
    const asked = { atMs: nowMs, answer: this.#ask(clock.now()) };
    this.#asked = asked;
    asked.answer.catch(() => {
      if (this.#asked === asked) this.#asked = undefined;
    });
    return asked.answer;
  }

  async #ask(now: Instant): Promise<CountedOutcomes> {
    const { clock, url } = this.#options;
    const late = new AbortController();
    const done = new AbortController();
    void clock
      .sleep(timeoutMs, done.signal)
      .then(() => late.abort(new Error(`no response within ${timeoutMs / 1000} s`)))
      .catch(() => undefined);
    try {
      const questions = outcomeQuestions(now).map(async (question) => {
        return { what: question.what, series: await this.#series(question, late.signal) };
      });
      return countedOutcomes(await Promise.all(questions));
    } catch (error) {
      const found = messageOf(late.signal.aborted ? late.signal.reason : error);
      throw new LastcallError(
        "API_UNREACHABLE",
        `Cannot ask Prometheus at ${shown(url)}: ${found}, expected its HTTP API`,
        { cause: error },
      );
    } finally {
      done.abort();
      late.abort();
    }
  }

  async #series(question: RangeQuestion, signal: AbortSignal): Promise<readonly CountedSeries[]> {
    const { url } = this.#options;
    // A redirect leads to a login page, not to Prometheus.
    const headers = { accept: "application/json", ...loginOf(url) };
    const answer = await this.#options.fetch(addressOf(url, question), {
      ...{ signal, headers, redirect: "manual" },
    });
    const text = await boundedText(answer);
    const { value } = parseJson(text) ?? {};
    const series = seriesIn(value);
    if (series !== undefined) return series;
    const { error } = (value ?? {}) as { readonly error?: unknown };
    const why = typeof error === "string" ? ` (${error.slice(0, 200)})` : "";
    if (answer.status !== 200) throw new Error(`it responded with ${answer.status}${why}`);
    throw new Error(`its response is not from Prometheus${why}`);
  }
}

function addressOf(url: string, { query, startAt, endAt, stepSeconds }: RangeQuestion): URL {
  const address = new URL(url);
  address.pathname = `${address.pathname.replace(/\/+$/, "")}/api/v1/query_range`;
  address.search = "";
  address.username = "";
  address.password = "";
  address.searchParams.set("query", query);
  address.searchParams.set("start", String(startAt / 1000));
  address.searchParams.set("end", String(endAt / 1000));
  address.searchParams.set("step", String(stepSeconds));
  return address;
}

/** `fetch` accepts no credentials in a URL. */
function loginOf(url: string): Readonly<Record<string, string>> {
  const { username, password } = new URL(url);
  if (username === "") return {};
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { authorization: `Basic ${Buffer.from(login).toString("base64")}` };
}

/** Without a password that the URL may contain. */
function shown(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname === "/" ? "" : pathname}`;
}
