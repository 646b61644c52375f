import type { EvictionAnswer } from "../../core/drain/drain-answer.ts";
import { drainAnswered, drainSent } from "../../core/drain/drain-memory.ts";
import type { DrainAct } from "../../core/drain/drain-progress.ts";
import {
  type AskedRequest,
  type DepartureRequest,
  type RequestAnswer,
  writesNode,
} from "../../core/next/request.ts";
import { isAway, type RequestFault } from "../../core/next/scene.ts";
import { LastcallError } from "../../errors.ts";
import type { DepartureOptions } from "./departure-options.ts";
import type { DepartureTelemetry } from "./departure-telemetry.ts";
import type { OpenState } from "./open-state.ts";
import { failingSince, faultOf, type Refusals } from "./refusals.ts";
import type { RequestSender } from "./request-sender.ts";

/** The log events of faults that nothing waits for. */
const faultEvents: Partial<Record<DepartureRequest["kind"], string>> = {
  RenewMarks: "mark-not-renewed",
  DropInstant: "instant-not-dropped",
  Unreserve: "placeholders-not-removed",
  Reserve: "reservation-failed",
};

export interface InFlightOptions {
  readonly options: DepartureOptions;
  readonly state: OpenState;
  readonly sender: RequestSender;
  readonly refusals: Refusals;
  readonly telemetry: DepartureTelemetry;
  /** Something was answered; responses about pods arrive in bursts. */
  readonly onAnswer: (how: "Now" | "Batched") => void;
  /** Another replica may lead by now. */
  readonly onLeaseLost: () => void;
}

interface Flight {
  readonly stop: AbortController;
  readonly request: DepartureRequest;
}

/**
 * The requests of one departure: sends what the newest evaluation wants and is not on its way, and
 * records what comes of it.
 */
export class RequestsInFlight {
  readonly #options: InFlightOptions;
  readonly #flights = new Map<string, Flight>();
  readonly #landing = new Set<Promise<void>>();
  #wanted: ReadonlySet<string> = new Set();
  #isClosed = false;

  constructor(options: InFlightOptions) {
    this.#options = options;
  }

  /** `isLooking`: the last look answers the request that it belongs to, which is not aborted. */
  want(requests: readonly DepartureRequest[], isLooking: boolean): void {
    this.#wanted = new Set(requests.map(({ key }) => key));
    for (const request of requests) {
      if (!this.#flights.has(request.key)) this.#begin(request);
    }
    if (isLooking) return;
    const { sender } = this.#options;
    for (const [key, { stop, request }] of this.#flights) {
      if (!this.#wanted.has(key) && sender.mayStop(request)) stop.abort("no longer wanted");
    }
  }

  isWanted(key: string): boolean {
    return !this.#isClosed && this.#wanted.has(key);
  }

  close(): void {
    this.#isClosed = true;
    for (const { stop } of this.#flights.values()) stop.abort("closed");
  }

  /** Resolves when nothing is on its way any more. */
  async settled(): Promise<void> {
    await Promise.all(this.#landing);
  }

  #begin(request: DepartureRequest): void {
    const landing = this.#send(request).finally(() => this.#landing.delete(landing));
    this.#landing.add(landing);
  }

  /** The grace period for an act that is sent now. Throws if it is no longer wanted. */
  graceAtTurn(key: string, act: DrainAct): number | undefined {
    const { state, options, onAnswer } = this.#options;
    const { drain } = state.memory;
    const sent =
      drain !== undefined && this.isWanted(key)
        ? drainSent(drain.memory, act, options.clock.now())
        : "Over";
    if (sent === "Over" || drain === undefined) {
      const { namespace, name } = act.pod;
      const problem = "its drain has ended, expected a drain under way";
      throw new LastcallError("INTERRUPTED", `Cannot evict ${namespace}/${name}: ${problem}`);
    }
    state.remember({ drain: { ...drain, memory: sent.memory } });
    onAnswer("Batched");
    return sent.graceSeconds;
  }

  async #send(request: DepartureRequest): Promise<void> {
    const { state, sender, onAnswer } = this.#options;
    const { key } = request;
    const stop = new AbortController();
    this.#flights.set(key, { stop, request });
    if (request.kind === "Pod") {
      const answer = await sender.askPod(request);
      this.#flights.delete(key);
      if (!this.#isClosed) this.#podAnswered(request.act, answer);
      return;
    }
    state.setAsked(key, this.#askedAgain(request));
    let end: () => void;
    try {
      const answer = await sender.send(request, stop.signal);
      end = () => this.#answered(request, answer);
    } catch (error) {
      end = () => this.#refused(request, error);
    }
    this.#flights.delete(key);
    if (this.#isClosed) return;
    if (stop.signal.aborted) state.forgetAsked(key);
    else end();
    onAnswer("Now");
  }

  #askedAgain({ key, kind }: DepartureRequest): AskedRequest {
    const { state, options } = this.#options;
    const former = state.memory.asked[key];
    const { fault, answeredMs, answeredNumber, againMs, attempts = 0 } = former ?? {};
    const sinceMs = fault === undefined ? options.clock.monotonic() : (former?.sinceMs ?? 0);
    const before = { fault, answeredMs, answeredNumber, againMs };
    return { ...before, kind, attempts: attempts + 1, sinceMs, isInFlight: true };
  }

  #answered(request: DepartureRequest, answer: RequestAnswer): void {
    const { state } = this.#options;
    const { key } = request;
    if (writesNode(request)) state.hears();
    const asked = state.memory.asked[key] ?? this.#askedAgain(request);
    state.setAsked(key, { ...asked, ...this.#now(), answer, fault: undefined });
  }

  #refused(request: DepartureRequest, error: unknown): void {
    const { state, refusals, telemetry, onLeaseLost } = this.#options;
    const { key, kind } = request;
    const fault = faultOf(error);
    if (fault.code === "LEASE_LOST") {
      onLeaseLost();
      return;
    }
    if (fault.code.startsWith("API_") && !isAway(fault)) state.hears();
    const asked = state.memory.asked[key] ?? this.#askedAgain(request);
    const sinceMs = this.#failingSince(asked, fault);
    const event = faultEvents[kind];
    if (event === undefined) refusals.tell(error, sinceMs);
    else telemetry.faulted(event, state.seen, error);
    const ended = this.#now();
    const againMs = ended.answeredMs + refusals.pauseAfter(fault, asked.attempts);
    state.setAsked(key, { ...asked, ...ended, fault, sinceMs, againMs });
  }

  #failingSince({ fault: before, sinceMs }: AskedRequest, fault: RequestFault): number {
    if (before === undefined) return sinceMs;
    const nowMs = this.#options.options.clock.monotonic();
    return failingSince(fault, { before: { fault: before, sinceMs }, nowMs });
  }

  #now() {
    const { state, options } = this.#options;
    const answeredMs = options.clock.monotonic();
    return { isInFlight: false, answeredMs, answeredNumber: state.nextNumber };
  }

  #podAnswered(act: DrainAct, answer: EvictionAnswer): void {
    const { state, options, onAnswer } = this.#options;
    const { clock, rng } = options;
    if (answer.kind !== "NoAnswer") state.hears();
    const { drain } = state.memory;
    if (drain === undefined) return;
    const memory = drainAnswered(drain.memory, act, { answer, now: clock.now(), rng });
    state.remember({ drain: { ...drain, memory } });
    onAnswer("Batched");
  }
}
