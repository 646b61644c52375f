import type { Fleet } from "../../contracts/cluster.ts";
import {
  type Departure,
  type DepartureStatus,
  isUnderWay,
} from "../../core/departure/departure.ts";
import type { RunningDrain } from "../../core/departure/drain-reason.ts";
import type { PhaseResult } from "../../core/departure/ledger.ts";
import { readBudgets } from "../../core/limits/budget.ts";
import { readFleetHealth } from "../../core/limits/fleet-health.ts";
import { nodesOut } from "../../core/limits/nodes-out.ts";
import { runKey } from "../../core/next/action-steps.ts";
import type { Said } from "../../core/next/evaluation.ts";
import { longestWriteMs } from "../../core/next/given-up.ts";
import { type Next, next } from "../../core/next/next.ts";
import { longestPause } from "../../core/next/retry-pause.ts";
import type { DepartureScene, FactName, LastLook } from "../../core/next/scene.ts";
import { policyFor } from "../../core/notice/interruption.ts";
import type { Policy } from "../../core/policy/policy.ts";
import { type Instant, type Millis, millis } from "../../core/time/time.ts";
import { ActionRuns } from "../action/action-runs.ts";
import { writeRetries } from "../action/write-retries.ts";
import { type DepartureOptions, noAddresses } from "./departure-options.ts";
import { DepartureTelemetry } from "./departure-telemetry.ts";
import { FactReader } from "./fact-reader.ts";
import { OpenState } from "./open-state.ts";
import { faultOf, Refusals } from "./refusals.ts";
import { RequestSender } from "./request-sender.ts";
import { RequestsInFlight } from "./requests-in-flight.ts";
import { StatusRecord } from "./status-record.ts";
import { StatusWriter } from "./status-writer.ts";

/**
 * Changes of pods and responses to evictions arrive in bursts, and each evaluation looks at every
 * pod: it waits this long for more of them. For a drain of 110 pods this halves the time.
 */
const batchMs: Millis = millis(20);

/** The log events of what could not be read. */
const readEvents: Partial<Record<FactName, string>> = {
  nodeNow: "node-not-read",
  isLive: "node-not-read",
  budgets: "retrying",
  machine: "retrying",
  releasable: "retrying",
  placements: "reservation-failed",
  placeholders: "reservation-failed",
};

type PhaseChanged = Extract<Said, { kind: "PhaseChanged" }>;

export interface OpenSubject {
  readonly departure: Departure;
  readonly policy: Policy;
  /** The event that opens it; undefined if it is resumed. */
  readonly first: PhaseResult | undefined;
  readonly signal: AbortSignal;
}

/** What an open departure asks of those beside it. */
export interface OpenHooks {
  readonly fleet: Pick<Fleet, "node">;
  readonly drainsBeside: (uid: string) => readonly RunningDrain[];
  readonly onClosed: (how: Closing) => void;
}

/** How a departure is closed. */
export interface Closing {
  /** Why it could not even start, or something unexpected. */
  readonly fault: unknown;
  /** The API server says that it does not exist. */
  readonly isGone: boolean;
}

/**
 * Keeps one departure going: evaluates it, sends what is missing, records the answers, and writes
 * the status. It decides nothing: `next` does.
 */
export class OpenDeparture {
  readonly #options: DepartureOptions;
  readonly #hooks: OpenHooks;
  readonly #signal: AbortSignal;
  readonly #over = new AbortController();
  readonly #telemetry: DepartureTelemetry;
  readonly #state: OpenState;
  readonly #actions: ActionRuns;
  readonly #reader: FactReader;
  readonly #requests: RequestsInFlight;
  readonly #record: StatusRecord;
  readonly #done = Promise.withResolvers<void>();
  /** Whether the node was known when the policy was selected. */
  #isNodeKnown: boolean;
  #isDeleted = false;
  #isGone = false;
  #isClosed = false;
  #isScheduled: "No" | "Batched" | "Now" = "No";
  /** The earliest of the times at which it wakes to write (monotonic). */
  #wakesAtMs: number | undefined;
  #alarm = new AbortController();
  #alarmAt: Instant | undefined;
  /** Phase changes that are told once they are written. */
  #toTell: PhaseChanged[] = [];

  constructor(subject: OpenSubject, options: DepartureOptions, hooks: OpenHooks) {
    const { departure, first } = subject;
    const { clock } = options;
    this.#options = options;
    this.#hooks = hooks;
    const statusWriter = new StatusWriter(options);
    const state = new OpenState(subject, { clock, statusWriter });
    state.remember({ first });
    this.#state = state;
    this.#isNodeKnown = this.#node?.uid === departure.node.uid;
    this.#signal = AbortSignal.any([subject.signal, this.#over.signal]);
    this.#telemetry = new DepartureTelemetry(options, clock);
    const refusals = new Refusals(options, state, this.#telemetry);
    this.#actions = this.#actionsOf(statusWriter, first === undefined);
    this.#reader = new FactReader(options, {
      scene: () => this.#scene(undefined),
      memory: () => state.memory,
      onFact: (name) => this.#hasRead(name),
      onFault: (name, error) => this.#hasNotRead(name, error),
    });
    const onLeaseLost = () => this.#close(undefined);
    const sender = new RequestSender(options, {
      departure: () => state.effective,
      actions: this.#actions,
      isWanted: (key) => this.#requests.isWanted(key),
      graceAtTurn: (key, act) => this.#requests.graceAtTurn(key, act),
      isReleasedAfter: (look, key) => {
        this.#evaluate(look);
        return this.#requests.isWanted(key);
      },
    });
    this.#requests = new RequestsInFlight({
      ...{ options, state, sender, refusals, telemetry: this.#telemetry, onLeaseLost },
      onAnswer: (how) => this.wake(how),
    });
    this.#record = new StatusRecord({
      ...{ options, state, statusWriter, refusals, signal: this.#signal, onLeaseLost },
      onWritten: () => this.#hasWritten(),
      onDropped: () => {
        this.#toTell = [];
      },
      onLater: (span) => this.#wakeAfter(span),
      onGone: () => {
        this.#isDeleted = true;
        this.#isGone = true;
      },
      onUnstarted: (error) => this.#close(error),
    });
    const stop = () => this.#close(undefined);
    subject.signal.addEventListener("abort", stop, { once: true, signal: this.#over.signal });
  }

  #actionsOf(statusWriter: StatusWriter, isResumed: boolean): ActionRuns {
    const { clock, rng, actionPorts, cordons } = this.#options;
    const state = this.#state;
    const telemetry = this.#telemetry;
    return new ActionRuns({
      ...{ actionPorts, clock, rng, telemetry, cordons, statusWriter, isResumed },
      signal: this.#signal,
      underWay: (name) => state.memory.asked[runKey(name)]?.isInFlight === true,
      retry: writeRetries({
        ...{ clock, rng },
        mostMs: () => longestWriteMs(state.effective, state.policy),
        longestPause: () => longestPause(state.seen, clock.now()),
        onRetry: (error) => telemetry.faulted("retrying", state.seen, error),
      }),
      policy: () => state.policy,
      machineAddresses: actionPorts?.addresses ?? noAddresses,
      departure: () => state.effective,
      node: () => this.#node,
    });
  }

  /** Resolves when it is closed, and nothing of it is on its way any more. */
  get done(): Promise<void> {
    return this.#done.promise;
  }

  /**
   * The status to base decisions on: a start that is being written counts as written, and so does
   * what its drain holds of the budgets.
   */
  get newestStatus(): DepartureStatus {
    const { recorded, effective, newest } = this.#state;
    const status = isUnderWay(recorded) ? effective.status : newest;
    return { ...status, demands: newest.demands };
  }

  /** Passes what the watch shows; undefined if the Departure is gone. */
  observe(seen: Departure | undefined): void {
    if (seen === undefined) this.#isDeleted = true;
    else {
      const { resourceVersion, status } = this.#state.seen;
      this.#state.seen = { ...seen, resourceVersion, status };
    }
    this.wake();
  }

  /** Evaluates soon. */
  wake(how: "Now" | "Batched" = "Now"): void {
    if (this.#isClosed || this.#isScheduled === "Now" || this.#isScheduled === how) return;
    this.#isScheduled = how;
    if (how === "Now") {
      queueMicrotask(() => this.evaluate());
      return;
    }
    this.#options.clock.sleep(batchMs, this.#signal).then(
      () => {
        if (this.#isScheduled === "Batched") this.evaluate();
      },
      () => undefined,
    );
  }

  evaluate(): void {
    this.#isScheduled = "No";
    this.#evaluate(undefined);
  }

  #evaluate(look: LastLook | undefined): void {
    if (this.#isClosed) return;
    const state = this.#state;
    this.#record.seeOthers();
    const now = state.nextTime();
    let out: Next;
    try {
      out = next(this.#scene(look), state.memory, now);
    } catch (error) {
      this.#close(error);
      return;
    }
    state.memory = out.memory;
    for (const said of out.says) this.#say(said);
    if (out.memory.isUndoneWithoutRecord) this.#tellPhases(() => true);
    this.#requests.want(out.requests, look !== undefined);
    this.#reader.want(out.needs, now.number);
    if (!this.#isDeleted) this.#record.write();
    this.#setAlarm(out.lookAgainAt);
    if (out.isOver && !this.#record.isWriting) this.#close(undefined);
  }

  #scene(lastLook: LastLook | undefined): DepartureScene {
    const { view, unheard, terminations, self, clock } = this.#options;
    const departure = this.#state.recorded;
    const node = this.#node;
    if (!this.#isNodeKnown && node?.uid === departure.node.uid) {
      // A notice may arrive before the watch shows its new node. From now on its policy applies.
      this.#isNodeKnown = true;
      this.#state.policy = policyFor(departure, node, view().policies);
    }
    const { policy, heardMs } = this.#state;
    return {
      ...{ departure, isDeleted: this.#isDeleted, node, policy, heardMs, lastLook, self },
      drains: () => this.#hooks.drainsBeside(departure.uid),
      nodesOut: () => {
        const health = readFleetHealth({ ...view(), unheard: unheard() }, clock.now());
        return node && nodesOut(readBudgets(view(), clock.now(), health), { policy, node });
      },
      fleetHold: () =>
        readFleetHealth({ ...view(), unheard: unheard() }, clock.now()).get(policy.name)?.hold,
      newestPolicy: () => view().policies.find(({ name }) => name === policy.name) ?? policy,
      facts: this.#reader.facts,
      actions: this.#actions.records,
      terminations: terminations.records,
      unwritten: this.#record.unwritten,
    };
  }

  get #node() {
    return this.#hooks.fleet.node(this.#state.seen.node.name);
  }

  #hasRead(name: FactName): void {
    if (this.#reader.facts[name]?.kind === "Known") this.#state.hears();
    const isInBursts = name === "pods" && this.#state.memory.drain !== undefined;
    this.wake(isInBursts ? "Batched" : "Now");
  }

  #hasNotRead(name: FactName, error: unknown): void {
    if (faultOf(error).code === "LEASE_LOST") {
      this.#close(undefined);
      return;
    }
    const event = readEvents[name];
    if (event !== undefined) this.#telemetry.faulted(event, this.#state.seen, error);
  }

  #hasWritten(): void {
    const { timeline } = this.#state.recorded.status;
    const isWritten = ({ after }: PhaseChanged) => {
      const entered = after.status.timeline.at(-1);
      return timeline.some(({ at, step }) => at === entered?.at && step === entered.step);
    };
    this.#tellPhases(isWritten);
    this.wake();
  }

  #setAlarm(at: Instant | undefined): void {
    if (at === this.#alarmAt) return;
    this.#alarm.abort("moved");
    this.#alarmAt = at;
    if (at === undefined) return;
    this.#alarm = new AbortController();
    this.#options.clock.sleepUntil(at, this.#alarm.signal).then(
      () => {
        this.#alarmAt = undefined;
        this.wake();
      },
      () => undefined,
    );
  }

  /** Wakes after this time, once however often that is asked for meanwhile. */
  #wakeAfter(span: Millis): void {
    const { clock } = this.#options;
    const atMs = clock.monotonic() + span;
    if (this.#wakesAtMs !== undefined && this.#wakesAtMs <= atMs) return;
    this.#wakesAtMs = atMs;
    clock.sleep(span, this.#signal).then(
      () => {
        if (this.#wakesAtMs === atMs) this.#wakesAtMs = undefined;
        this.wake();
      },
      () => undefined,
    );
  }

  #close(fault: unknown): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#alarm.abort("closed");
    this.#reader.close();
    this.#requests.close();
    this.#over.abort("closed");
    this.#hooks.onClosed({ fault, isGone: this.#isGone });
    // What is on its way still arrives: nobody else may act before that.
    const onTheWay = [this.#requests.settled(), this.#record.settled()];
    void Promise.all(onTheWay).then(() => this.#done.resolve());
  }

  #tellPhases(isDue: (change: PhaseChanged) => boolean): void {
    for (const change of this.#toTell) {
      if (isDue(change)) this.#telemetry.phaseChanged(change.before, change.after);
    }
    this.#toTell = this.#toTell.filter((change) => !isDue(change));
  }

  #say(said: Said): void {
    if (said.kind === "PhaseChanged") {
      const { effective, newest } = this.#state;
      this.#toTell.push(said);
      if (effective.status === newest) this.#tellPhases(() => true);
      return;
    }
    if (said.kind === "DrainStepped") {
      for (const one of said.step.ended) this.#options.terminations.remember(one);
    }
    this.#telemetry.say({ ...this.#state.seen, status: this.#state.newest }, said);
  }
}
