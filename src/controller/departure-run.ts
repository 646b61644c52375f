import type { NodeFacts } from "../core/cluster/node.ts";
import { isPressing } from "../core/departure/advice.ts";
import {
  type Departure,
  type DepartureStatus,
  isLive,
  isNoticed,
  isUnderWay,
  isVoluntary,
  mayHoldBudgets,
} from "../core/departure/departure.ts";
import {
  type PhaseChange,
  type PhaseResult,
  statusAfter,
  statusNoticed,
} from "../core/departure/ledger.ts";
import { type Interruption, interruptionOf } from "../core/notice/interruption.ts";
import { reactionTo } from "../core/notice/reaction.ts";
import type { Policy } from "../core/policy/policy.ts";
import type { Reason } from "../core/reason/reason.ts";
import { type CaseContext, isCloudsToTake } from "./case-context.ts";
import type { CaseTools } from "./case-tools.ts";
import { CaseUpkeep } from "./case-upkeep.ts";
import { DepartureTelemetry } from "./departure-telemetry.ts";
import { PhaseWork } from "./phase-work.ts";
import { StatusWriter } from "./status-writer.ts";

/** A departure, the policy to carry it out by, and its node as the watch has shown it last. */
export interface CaseFacts {
  readonly departure: Departure;
  readonly policy: Policy;
  readonly node: NodeFacts | undefined;
}

/**
 * One departure under way, from its beginning to its outcome. It keeps nothing that the Departure
 * does not say: a new leader makes a new case from the resource and goes on in the same phase.
 */
export class DepartureRun {
  readonly #tools: CaseTools;
  readonly #policy: Policy;
  readonly #telemetry: DepartureTelemetry;
  readonly #ledger: StatusWriter;
  readonly #upkeep: CaseUpkeep;
  #departure: Departure;
  /** How it stands once the write of its beginning, which is under way, is through. */
  #beginning: DepartureStatus | undefined;
  /** As the watch has shown it last. */
  #seen: Departure | undefined;
  #node: NodeFacts | undefined;
  /** Ends the work of the phase that it is in. */
  #phase = new AbortController();
  #pending: Interruption | undefined;
  #abandoned = false;
  /** The cause is another, and the policy does something else at it. */
  #rethinks = false;
  readonly #observers = new Set<() => void>();
  readonly #work: PhaseWork;
  readonly #context: CaseContext = {
    departure: () => this.#departure,
    node: () => this.#node,
    tell: (reason, detail) => this.#tell(reason, detail),
    onObserved: (listener) => {
      this.#observers.add(listener);
      return () => this.#observers.delete(listener);
    },
  };

  constructor(about: CaseFacts, tools: CaseTools) {
    this.#departure = about.departure;
    this.#node = about.node;
    this.#policy = about.policy;
    this.#tools = tools;
    const telemetry = new DepartureTelemetry(tools.executor.telemetry, tools.clock);
    const ledger = new StatusWriter(tools);
    const { policy } = about;
    this.#telemetry = telemetry;
    this.#ledger = ledger;
    this.#upkeep = new CaseUpkeep(tools.executor, telemetry);
    this.#work = new PhaseWork({ policy, tools, telemetry, ledger, context: this.#context });
  }

  get departure(): Departure {
    return this.#departure;
  }

  /** The status to decide upon: a beginning that is being written counts as written. */
  get newestStatus(): DepartureStatus {
    return this.#beginning ?? this.#departure.status;
  }

  /** Tells the case what the watch has seen last. */
  observe(departure: Departure, node: NodeFacts | undefined): void {
    this.#node = node;
    if (departure !== this.#seen) this.#take(departure);
    this.#upkeep.look(this.#departure, departure, node);
    const found = interruptionOf(this.#departure, node);
    if (found === undefined || !this.#handles(found)) return;
    this.#pending = found;
    this.#phase.abort();
  }

  /** In a burst of notices each case hears every word about the others: only its own is news. */
  #take(departure: Departure): void {
    this.#seen = departure;
    const { resourceVersion, status, cause } = this.#departure;
    const reaction = reactionTo(this.#departure, this.#policy);
    this.#departure = { ...departure, resourceVersion, status };
    // A node that was only cordoned for a recommendation is drained when its interruption comes. One that leaves
    // by plan is being drained already.
    const isDraining = isVoluntary(cause);
    if (!isDraining && reactionTo(departure, this.#policy) !== reaction) {
      this.#rethinks = true;
      this.#phase.abort();
    }
    this.#noteNotice();
    for (const observer of this.#observers) observer();
  }

  /** A departure that has begun by the plan has the cloud's word in its timeline all the same. */
  #noteNotice(): void {
    const departure = this.#departure;
    if (!isNoticed(departure) || !isUnderWay(departure)) return;
    const at = this.#tools.clock.now();
    const status = statusNoticed(departure, at);
    if (status === undefined) return;
    this.#departure = { ...departure, status };
    this.#ledger
      .write(departure, (fresh) => statusNoticed({ ...departure, status: fresh.status }, at))
      .catch((error: unknown) => this.#telemetry.faulted("notice-not-noted", departure, error));
  }

  /** The Departure was deleted: nothing more is done for it, its marks are cleared as orphans. */
  abandon(): void {
    this.#abandoned = true;
    this.#phase.abort();
  }

  /** Runs to the end; `first` is what set it going, absent when a case is taken up again. */
  async run(signal: AbortSignal, first?: PhaseResult): Promise<void> {
    let happening: PhaseResult | undefined = first;
    if (first === undefined) this.#noteNotice();
    try {
      while (isLive(this.#departure) && !this.#abandoned) {
        happening ??= await this.#workOnPhase(signal);
        if (happening !== undefined && !(await this.#advance(happening))) return;
        happening = undefined;
        if (isUnderWay(this.#departure)) continue;
        // It is held after all; whoever decides about it begins it anew, but for a notice that came meanwhile.
        if (!isNoticed(this.#departure)) return;
        happening = { event: "Noticed", reason: "Noticed" };
      }
    } finally {
      // One that a fault has stopped in mid-drain holds its budgets until it is taken up again.
      const over = this.#abandoned || !mayHoldBudgets(this.#departure.status.phase);
      if (over) this.#tools.turns.leave(this.#departure);
      const isOn = isLive(this.#departure) && isUnderWay(this.#departure);
      if (this.#abandoned || !isOn) await this.#work.clearReservation();
    }
  }

  /**
   * While a machine is being released by us, its node is meant to go: the release sees to it. Where the
   * cloud is waited for, the node's going tells, or that another machine has taken it over.
   */
  #handles(found: Interruption): boolean {
    if (this.#departure.status.phase !== "Releasing") return true;
    if (!isCloudsToTake(this.#departure, this.#policy)) return false;
    const { machine, reason } = this.#departure.status;
    const letGoByUs = machine !== undefined && reason !== "ReleaseFailed";
    return found.event !== "Withdrawn" || !letGoByUs;
  }

  async #advance(work: PhaseResult): Promise<boolean> {
    const happening: PhaseChange = { ...work, at: this.#tools.clock.now() };
    const before = this.#departure;
    if (!isUnderWay(before)) this.#beginning = statusAfter(before, happening);
    const after = this.#isUrgent(work)
      ? this.#jot(happening)
      : await this.#ledger.write(before, (fresh) => statusAfter(fresh, happening));
    this.#beginning = undefined;
    if (after === undefined) return false;
    this.#departure = after;
    if (after.status.phase !== before.status.phase) this.#telemetry.phaseChanged(before, after);
    return true;
  }

  async #tell(reason: Reason, detail: string | undefined): Promise<void> {
    const after = await this.#ledger.tell(this.#departure, { reason, detail });
    if (after === undefined) return;
    const { status } = after;
    this.#departure = { ...this.#departure, resourceVersion: after.resourceVersion, status };
    this.#telemetry.told(this.#departure);
  }

  /** Under a notice neither cordon nor first eviction waits for the ledger; it follows on. */
  #isUrgent({ event }: PhaseResult): boolean {
    const isPressed = isPressing(this.#departure, this.#tools.clock.now());
    return isPressed && (event === "Noticed" || event === "Prepared");
  }

  #jot(happening: PhaseChange): Departure {
    const status = statusAfter(this.#departure, happening);
    if (status === undefined) return this.#departure;
    this.#ledger.jot(this.#departure, happening);
    return { ...this.#departure, status };
  }

  /** The next thing that happens to the departure in its phase; undefined: look again. */
  async #workOnPhase(signal: AbortSignal): Promise<PhaseResult | undefined> {
    this.#phase = new AbortController();
    this.#pending = undefined;
    this.#rethinks = false;
    const stop = AbortSignal.any([signal, this.#phase.signal]);
    try {
      return await this.#work.run(stop);
    } catch (error) {
      if (this.#abandoned) return undefined;
      if (signal.aborted) throw error;
      if (this.#pending !== undefined) return this.#confirmed(this.#pending);
      if (this.#rethinks) return undefined;
      throw error;
    }
  }

  /** A watch may lag behind: that a node is gone or replaced is believed only after a fresh look. */
  async #confirmed(found: Interruption): Promise<PhaseResult | undefined> {
    if (found.event !== "NodeGone" && found.event !== "MachineReplaced") return found;
    const fresh = await this.#tools.readNode(this.#departure.node.name);
    const again = interruptionOf(this.#departure, fresh);
    return again?.event === found.event ? found : undefined;
  }
}
