import { type Clock, Wakeup } from "../contracts/clock.ts";
import type { NoticeSink, NoticeSource, NoticeSourceReading } from "../contracts/cloud.ts";
import type { Log, Metrics } from "../contracts/telemetry.ts";
import { backoffMs, type Rng } from "../core/chance/chance.ts";
import { isGraver } from "../core/departure/departure.ts";
import {
  activeNotice,
  emptyNoticeState,
  eventsToBegin,
  type MachineNotice,
  type NoticeState,
  nextChangeAt,
  readInto,
  withdrawAfterMs,
} from "../core/notice/notice.ts";
import {
  between,
  formatInstant,
  type Instant,
  later,
  type Millis,
  millis,
  minus,
  minutes,
  plus,
} from "../core/time/time.ts";
import { isLastcallError, type LastcallError, messageOf } from "../errors.ts";
import type { Acknowledger } from "./acknowledger.ts";
import { type AgentHealth, ErrorLog, type NoticeServer } from "./agent-status.ts";
import type { LateFallback } from "./late-fallback.ts";
import type { NoticeReporter, ReportedNotice } from "./notice-reporter.ts";

interface AgentOptions {
  /** Detects the cloud. Resolves when its metadata service responds. */
  readonly findSource: (signal: AbortSignal) => Promise<NoticeSource>;
  readonly reporter: Pick<NoticeReporter, "report" | "withdraw" | "receptionOf">;
  readonly health: AgentHealth;
  readonly clock: Clock;
  readonly rng: Rng;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "count">;
  /** Logs everything and writes nothing. */
  readonly dryRun: boolean;
  /** Absent: the agent does not act in place of a controller. */
  readonly acknowledger?: Pick<Acknowledger, "follow" | "run"> | undefined;
  readonly feed?: Pick<NoticeServer, "show"> | undefined;
  readonly fallback?: Pick<LateFallback, "handle" | "reported" | "withdrawn" | "run"> | undefined;
}

const firstRetryMs: Millis = millis(50);
/** Short, because the API server may be back at any moment while there is time left. */
const longestRetryMs: Millis = millis(1000);
const lateRetryMs: Millis = millis(10_000);
/** How often to check whether a departure that has to be given up has ended. */
const outlivedCheckMs: Millis = millis(2000);

/**
 * The agent of one node: watches the cloud's notices and reports them to the cluster. It reconciles
 * what it has reported with the active notices, and retries until that succeeds.
 */
export class Agent implements NoticeSink {
  readonly #options: AgentOptions;
  readonly #wakeup: Wakeup;
  readonly #troubles: ErrorLog;
  readonly #rebootRecheck: RebootRecheck;
  #notices: NoticeState = emptyNoticeState;
  #source: NoticeSource | undefined;
  /**
   * The notice that the cluster knows. `Unknown` until the agent has found what an earlier process
   * reported.
   */
  #reported: MachineNotice | "Nothing" | "Unknown" = "Unknown";
  /**
   * When to report the active notice again: its departure had an earlier deadline and is given up
   * then.
   */
  #reportAgainAt: Instant | undefined;
  #skewMs: Millis = millis(0);
  readonly #heard = new Set<string>();
  #allHeardMs: number | undefined;
  #failures = 0;

  constructor(options: AgentOptions) {
    this.#options = options;
    this.#wakeup = new Wakeup(options.clock);
    this.#troubles = new ErrorLog(options);
    this.#rebootRecheck = new RebootRecheck(options);
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const source = await this.#options.findSource(signal);
    this.#source = source;
    this.#options.log.info("listening", { cloud: source.cloud });
    const { fallback, acknowledger } = this.#options;
    const events = () => eventsToBegin(this.#notices);
    await Promise.all([
      source.run(this, signal),
      this.#keepTold(signal),
      fallback?.run(signal),
      acknowledger?.run({ source, events }, signal),
    ]);
  }

  onReading({ channel, reading, at, skewMs }: NoticeSourceReading): void {
    this.#options.health.heard(channel);
    this.#heard.add(channel);
    if (this.#heard.size === this.#source?.channels.length) {
      this.#allHeardMs ??= this.#options.clock.monotonic();
    }
    this.#noteSkew(skewMs);
    const before = this.#notices;
    this.#notices = readInto(before, { channel, reading, at });
    this.#announceNew(before);
    // Immediately, because the loop may be waiting for an unreachable API server.
    this.#options.feed?.show(activeNotice(this.#notices, this.#cloudNow()), this.#skewMs);
    this.#wakeOnChange(before);
  }

  onError(channel: string, error: LastcallError): void {
    this.#troubles.report(channel, error);
  }

  onTurn(channel: string): void {
    this.#options.health.turned(channel);
  }

  async #keepTold(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      this.#options.health.turned("agent");
      const wanted = activeNotice(this.#notices, this.#cloudNow());
      this.#options.feed?.show(wanted, this.#skewMs);
      const isDue = this.#reportAgainAt !== undefined && this.#reportAgainAt <= this.#cloudNow();
      if (isDue || (await this.#rebootRecheck.isRefuted(signal))) this.#reported = "Unknown";
      const failed = this.#isReported(wanted) ? false : await this.#report(wanted, signal);
      if (!failed) this.#failures = 0;
      // The previous notice is withdrawn; the current one has to be reported as well.
      if (!failed && !this.#isReported(wanted)) continue;
      const lookAt = plus(clock.now(), this.#nextLookMs(wanted, failed ? "Failed" : "Told"));
      await this.#wakeup.sleepUntil(lookAt, signal).catch(() => undefined);
    }
  }

  #isReported(wanted: MachineNotice | undefined): boolean {
    if (wanted !== undefined) return JSON.stringify(wanted) === JSON.stringify(this.#reported);
    // The report of an earlier process is withdrawn only after the cloud has responded for a while.
    return (
      this.#reported === "Nothing" ||
      (this.#reported === "Unknown" && this.#quietMs() < withdrawAfterMs)
    );
  }

  /** Returns whether it failed and has to be retried. */
  async #report(wanted: MachineNotice | undefined, signal: AbortSignal): Promise<boolean> {
    const { log, dryRun } = this.#options;
    const told = isLess(wanted, this.#reported) ? undefined : wanted;
    try {
      if (dryRun)
        log.info("dry-run", {
          would: told === undefined ? "withdraw" : "tell",
          ...fieldsOf(told),
        });
      else await this.#write(told, signal);
      this.#reported = told ?? "Nothing";
      return false;
    } catch (error) {
      if (!signal.aborted) this.#troubles.report("cluster", faultOf(error));
      return true;
    }
  }

  async #write(wanted: MachineNotice | undefined, signal: AbortSignal): Promise<void> {
    const { reporter, log, fallback, acknowledger } = this.#options;
    fallback?.handle(wanted, this.#skewMs);
    this.#reportAgainAt = undefined;
    if (wanted === undefined) {
      acknowledger?.follow(undefined);
      this.#rebootRecheck.reported(undefined);
      const name = await reporter.withdraw(this.#cloudNow(), signal);
      if (name === undefined) return;
      fallback?.withdrawn(name);
      log.info("notice-withdrawn", { departure: name });
    } else {
      const reported = await reporter.report(wanted, signal);
      fallback?.reported(reported);
      this.#rebootRecheck.reported(reported.name);
      this.#noteOutlived(reported);
      acknowledger?.follow(reported.kind === "Closed" ? undefined : reported.name);
      log.info("notice-reported", {
        departure: reported.name,
        as: reported.kind,
        ...fieldsOf(wanted),
      });
    }
  }

  #noteOutlived(reported: ReportedNotice): void {
    if (!("outlivedAt" in reported) || reported.outlivedAt === undefined) return;
    this.#reportAgainAt = later(reported.outlivedAt, plus(this.#cloudNow(), outlivedCheckMs));
  }

  #nextLookMs(wanted: MachineNotice | undefined, last: "Told" | "Failed"): Millis {
    if (last === "Failed") return this.#backoffMs(wanted);
    const nowAt = this.#cloudNow();
    const changeAt = nextChangeAt(this.#notices, nowAt);
    const changes = [changeAt, this.#reportAgainAt].filter((at) => at !== undefined);
    const waits: number[] = changes.map((at) => between(nowAt, at));
    const lookMs = this.#rebootRecheck.waitMs();
    if (lookMs !== undefined) waits.push(lookMs);
    if (wanted === undefined && this.#reported === "Unknown" && this.#allHeardMs !== undefined) {
      waits.push(withdrawAfterMs - this.#quietMs());
    }
    // Wakes up periodically for the health check.
    return millis(Math.max(0, Math.min(60_000, ...waits)));
  }

  #backoffMs(wanted: MachineNotice | undefined): Millis {
    const { rng } = this.#options;
    const isLate = wanted?.deadlineAt !== undefined && wanted.deadlineAt < this.#cloudNow();
    const mostMs = wanted === undefined || isLate ? lateRetryMs : longestRetryMs;
    const pauseMs = backoffMs(this.#failures, rng, { firstMs: firstRetryMs, mostMs });
    this.#failures += 1;
    return pauseMs;
  }

  /** Wakes the loop only for a change, so that other readings do not shorten the backoff. */
  #wakeOnChange(before: NoticeState): void {
    const nowAt = this.#cloudNow();
    const isNews =
      JSON.stringify(activeNotice(before, nowAt)) !==
      JSON.stringify(activeNotice(this.#notices, nowAt));
    if (isNews || this.#reported === "Unknown") this.#wakeup.wake();
  }

  #announceNew(before: NoticeState): void {
    const { log, metrics } = this.#options;
    const known = new Set(before.held.map((one) => one.notice.eventId));
    for (const { notice } of this.#notices.held) {
      if (known.has(notice.eventId) || notice.withdrawn === true) continue;
      const cloud = this.#source?.cloud ?? "unknown";
      metrics.count("lastcall_notices_total", { cloud, kind: notice.cause, source: "agent" });
      const { cause, source, eventId, deadlineAt } = notice;
      log.warn("notice", { cause, source, eventId, deadlineAt: textOf(deadlineAt) });
    }
  }

  #noteSkew(skewMs: number | undefined): void {
    const disagreed = this.#skewMs !== 0;
    this.#skewMs = millis(skewMs ?? 0);
    if (skewMs === undefined || disagreed) return;
    this.#options.metrics.count("lastcall_errors_total", { code: "CLOCK_SKEW" });
    this.#options.log.warn("clock-skew", { skewMs });
  }

  #cloudNow(): Instant {
    return minus(this.#options.clock.now(), this.#skewMs);
  }

  /** How long all channels have been responding. */
  #quietMs(): number {
    return this.#allHeardMs === undefined ? 0 : this.#options.clock.monotonic() - this.#allHeardMs;
  }
}

/**
 * Whether the reported notice is gone and only a weaker one remains. It has to be withdrawn first:
 * a departure keeps its most severe cause, for which the node would be drained.
 */
function isLess(
  wanted: MachineNotice | undefined,
  reported: MachineNotice | "Nothing" | "Unknown",
): boolean {
  return (
    wanted !== undefined && typeof reported === "object" && isGraver(reported.cause, wanted.cause)
  );
}

function fieldsOf(notice: MachineNotice | undefined): Record<string, string | undefined> {
  if (notice === undefined) return {};
  return { cause: notice.cause, deadlineAt: textOf(notice.deadlineAt), source: notice.source };
}

function textOf(at: Instant | undefined): string | undefined {
  return at === undefined ? undefined : formatInstant(at);
}

/** Converts any error, so that a defect is reported and retried instead of ending the watch. */
function faultOf(error: unknown): LastcallError | Error {
  return isLastcallError(error) ? error : new Error(messageOf(error));
}

/** How long after a start to recheck; a kubelet reports a new boot within seconds. */
const recheckForMs = minutes(2);
const firstLookMs = 1000;
/** Rechecks after 1, 2, 4, 8 and 16 s, which is half a minute. */
const mostRechecks = 5;

/**
 * Rechecks reports after a reboot. Until the kubelet has reported, the Node shows the previous
 * boot, and a controller that sees a notice then closes the Departure as another machine's. So the
 * agent checks its report for a while.
 */
class RebootRecheck {
  readonly #reporter: Pick<NoticeReporter, "receptionOf">;
  readonly #clock: Clock;
  readonly #startedMs: number;
  #name: string | undefined;
  #looks = 0;
  #nextMs = 0;

  constructor(tools: {
    readonly reporter: Pick<NoticeReporter, "receptionOf">;
    readonly clock: Clock;
  }) {
    this.#reporter = tools.reporter;
    this.#clock = tools.clock;
    this.#startedMs = tools.clock.monotonic();
  }

  /** Called with the Departure of the reported notice; undefined if no notice is active. */
  reported(name: string | undefined): void {
    const nowMs = this.#clock.monotonic();
    const doubts = nowMs - this.#startedMs < recheckForMs || this.#looks > 0;
    this.#name = doubts && this.#looks < mostRechecks ? name : undefined;
    this.#nextMs = nowMs + firstLookMs * 2 ** this.#looks;
  }

  /** How long until the next check; undefined if there is none. */
  waitMs(): number | undefined {
    return this.#name === undefined ? undefined : this.#nextMs - this.#clock.monotonic();
  }

  /** Whether the notice has to be reported again. */
  async isRefuted(signal: AbortSignal): Promise<boolean> {
    const name = this.#name;
    if (name === undefined || this.#clock.monotonic() < this.#nextMs) return false;
    this.#looks += 1;
    this.reported(name);
    const reception = await this.#reporter.receptionOf(name, signal).catch(() => "Waiting");
    if (reception === "Settled") this.#name = undefined;
    return reception === "Mistaken";
  }
}
