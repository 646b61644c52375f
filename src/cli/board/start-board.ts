import type { CommandPlace } from "../../board/act/act.ts";
import { OperatorActs } from "../../board/act/operator-acts.ts";
import type { BoardFeed } from "../../board/board-feed.ts";
import { type BoardRoutesOptions, boardRoutes } from "../../board/board-routes.ts";
import { DrainLog } from "../../board/node-page.ts";
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
import type { Fleet } from "../../contracts/cluster.ts";
import type {
  PageFile,
  PageRoute,
  PageRoutes,
  PageServer,
  PageText,
} from "../../contracts/http-route.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import { withinTime } from "../../contracts/time-limit.ts";
import type { Rng } from "../../core/chance/chance.ts";
import { parseJson } from "../../core/json/json-field.ts";
import { type Instant, seconds } from "../../core/time/time.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import { KubeDepartureStore, KubeOperatorWrites } from "../../kube/departure-store.ts";
import { KubeNodePods } from "../../kube/node/node-pods.ts";
import { policiesPath } from "../../kube/object/api-call.ts";
import { listAll } from "../../kube/watch/collection.ts";
import { servePage } from "../../server/page-server.ts";
import type { CommandFiles, CommandIo } from "../command-line/command.ts";
import { hasReleaser } from "../commands/plan.ts";

export interface BoardServerOptions {
  readonly address: string;
  /** How pages get their address; `PageServerOptions` has more. */
  readonly entry: PageText;
  readonly api: KubeApi;
  readonly fleet: Fleet;
  /** Its pictures, which the caller computes. */
  readonly feed: BoardFeed;
  /** The cluster's time, which in the demo is not wall-clock time. */
  readonly clusterClock: Clock;
  /** How a command copied from the board reaches the same cluster. */
  readonly place: CommandPlace;
  readonly rng: Rng;
  readonly io: Pick<CommandIo, "clock" | "files">;
  readonly counted?: BoardRoutesOptions["counted"];
  /** Called whenever a page requests something. */
  readonly onLook?: (() => void) | undefined;
  /** Further routes of this board. */
  readonly moreRoutes?: PageRoutes | undefined;
}

export interface ServedBoard {
  /** A one-time address that lets one browser in; replaced each time it has been used. */
  url(): string;
  close(): Promise<void>;
}

/** Serves the board for a fleet. Throws PORT_TAKEN, USAGE and INPUT_UNREADABLE. */
export async function startBoard(options: BoardServerOptions): Promise<ServedBoard> {
  const { address, entry, place, api, fleet, feed, clusterClock, rng, io } = options;
  const files = await pageFiles(io.files);
  const now = () => clusterClock.now();
  const pods = new KubeNodePods({ api, clock: clusterClock, rng });
  const acts = new OperatorActs({
    ...{ fleet, pods, now, place },
    store: new KubeDepartureStore(api),
    writes: new KubeOperatorWrites(api),
  });
  const policyObjects = () => listAll(api, policiesPath);
  const drainLog = new DrainLog({ fleet, pods, now, clock: io.clock, rng });
  const { get, post } = boardRoutes({
    ...{ feed, acts, fleet, pods, now, policyObjects, hasReleaser, drainLog },
    counted: options.counted,
  });
  const { moreRoutes, onLook } = options;
  const routes = {
    get: looking({ ...get, ...moreRoutes?.get }, onLook),
    post: looking({ ...post, ...moreRoutes?.post }, onLook),
  };
  const server: PageServer = await servePage({
    ...{ address, entry, routes, files },
    now: () => io.clock.now(),
  });
  const over = new AbortController();
  drainLog.follow(over.signal);
  return {
    url: () => server.url(),
    close: async () => {
      over.abort();
      await server.close();
    },
  };
}

function looking(routes: PageRoutes["get"], onLook: (() => void) | undefined): PageRoutes["get"] {
  if (onLook === undefined) return routes;
  const told = Object.entries(routes).map(([path, route]): [string, PageRoute] => [
    path,
    (request) => {
      onLook();
      return route(request);
    },
  ]);
  return Object.fromEntries(told);
}

/** The page's files, which tools/bundle.ts creates, by the path at which they are served. */
const served: Readonly<Record<string, readonly [name: string, type: string]>> = {
  "/": ["index.html", "text/html; charset=utf-8"],
  "/board.js": ["board.js", "text/javascript; charset=utf-8"],
  "/what-if.js": ["what-if.js", "text/javascript; charset=utf-8"],
  "/board.css": ["board.css", "text/css; charset=utf-8"],
  "/icon.svg": ["icon.svg", "image/svg+xml"],
};

/** Next to the bundle; sources use the page of the last bundle. Throws INPUT_UNREADABLE. */
async function pageFiles(
  files: Pick<CommandFiles, "readText">,
): Promise<ReadonlyMap<string, PageFile>> {
  const isSource = import.meta.url.endsWith(".ts");
  const folder = new URL(isSource ? "../../../dist/board/" : "./board/", import.meta.url);
  const read = Object.entries(served).map(async ([path, [name, type]]) => {
    const text = await readPart(files, new URL(name, folder).pathname);
    return [path, { type, bytes: new TextEncoder().encode(text) }] as const;
  });
  return new Map(await Promise.all(read));
}

async function readPart(files: Pick<CommandFiles, "readText">, path: string): Promise<string> {
  try {
    return await files.readText(decodeURIComponent(path));
  } catch (error) {
    throw new LastcallError(
      "INPUT_UNREADABLE",
      `Cannot serve the board: its page is not built (${messageOf(error)}); run npm run prepare`,
      { cause: error },
    );
  }
}

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

const queryTimeoutMs = seconds(10);

/** How long an answer is reused. */
const keptAnswerMs = 60_000;

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
    if (this.#asked !== undefined && nowMs - this.#asked.atMs < keptAnswerMs)
      return this.#asked.answer;
    const asked = { atMs: nowMs, answer: this.#ask(clock.now()) };
    this.#asked = asked;
    asked.answer.catch(() => {
      if (this.#asked === asked) this.#asked = undefined;
    });
    return asked.answer;
  }

  async #ask(now: Instant): Promise<CountedOutcomes> {
    const { clock, url } = this.#options;
    const late = () => new Error(`no response within ${queryTimeoutMs / 1000} s`);
    const ask = (signal: AbortSignal) =>
      Promise.all(
        outcomeQuestions(now).map(async (question) => {
          return { what: question.what, series: await this.#series(question, signal) };
        }),
      );
    try {
      return countedOutcomes(await withinTime(ask, { clock, limitMs: queryTimeoutMs, late }));
    } catch (error) {
      throw new LastcallError(
        "API_UNREACHABLE",
        `Cannot ask Prometheus at ${shown(url)}: ${messageOf(error)}, expected its HTTP API`,
        { cause: error },
      );
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

/** The size limit of a response. */
const mostBytes = 8 * 1024 * 1024;

/** Reads the text of a response up to a limit, so that an endless one does not fill memory. */
async function boundedText({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let bytes = 0;
  let text = "";
  for await (const part of body ?? []) {
    bytes += part.byteLength;
    if (bytes > mostBytes) throw new Error("its response is over 8 MiB");
    text += decoder.decode(part, { stream: true });
  }
  return text + decoder.decode();
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
