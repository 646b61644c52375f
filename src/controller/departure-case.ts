import type { Clock } from "../contracts/clock.ts";
import type { ClusterRoom } from "../contracts/cluster-room.ts";
import type { FleetView } from "../contracts/fleet.ts";
import type { NodePods } from "../contracts/node-pods.ts";
import type { Placeholders } from "../contracts/placeholders.ts";
import type { VolumeAttachments } from "../contracts/volume-attachments.ts";
import {
  type Departure,
  type DrainCounts,
  isLive,
  isVoluntary,
  mayHoldBudgets,
} from "../core/departure.ts";
import { drainRuleOf } from "../core/drain-rule.ts";
import { type Interruption, interruptionOf } from "../core/interruption.ts";
import { type Happening, statusAfter } from "../core/ledger.ts";
import type { NodeFacts } from "../core/node.ts";
import type { Policy } from "../core/policy.ts";
import { reactionTo } from "../core/reaction.ts";
import type { Reason } from "../core/reason.ts";
import type { Rng } from "../core/rng.ts";
import { between, minutes, plus } from "../core/time.ts";
import { isLastcallError, messageOf } from "../errors.ts";
import { retrying } from "./backoff.ts";
import { type CaseContext, isPressed } from "./case-context.ts";
import { CaseVoice } from "./case-voice.ts";
import type { DrainTurns } from "./drain-turns.ts";
import { drainNode } from "./drain-work.ts";
import type { Executor } from "./executor.ts";
import { lookAhead, makeRoom, prepared } from "./preparation.ts";
import { ProgressLedger } from "./progress-ledger.ts";
import { releaseMachine } from "./release-work.ts";
import { clearRoom } from "./room-clearing.ts";

export interface CaseTools {
  readonly executor: Executor;
  readonly pods: NodePods;
  readonly placeholders: Placeholders;
  readonly room: ClusterRoom;
  readonly attachments: VolumeAttachments;
  /** The drains that run, over all cases. */
  readonly turns: DrainTurns;
  /** The watched fleet as it is now. */
  readonly view: () => FleetView;
  readonly clock: Clock;
  readonly rng: Rng;
  /** The uid of the pod that runs this controller, where it is one. */
  readonly self?: string | undefined;
  /** A fresh look at one node, past the watch. */
  readonly readNode: (name: string) => Promise<NodeFacts | undefined>;
}

/** A departure, the policy to carry it out by, and its node as the watch has shown it last. */
export interface CaseFacts {
  readonly departure: Departure;
  readonly policy: Policy;
  readonly node: NodeFacts | undefined;
}

type Work = Omit<Happening, "at">;

/** How long after its deadline a notice may still come true. */
const unfulfilledMs = minutes(10);

/**
 * One departure under way, from its beginning to its outcome. It keeps nothing that the Departure
 * does not say: a new leader makes a new case from the resource and goes on in the same phase.
 */
export class DepartureCase {
  readonly #tools: CaseTools;
  readonly #policy: Policy;
  readonly #voice: CaseVoice;
  readonly #ledger: ProgressLedger;
  #departure: Departure;
  /** As the watch has shown it last. */
  #seen: Departure | undefined;
  #node: NodeFacts | undefined;
  #phaseWork = new AbortController();
  #pending: Interruption | undefined;
  #counted: DrainCounts | undefined;
  #forsaken = false;
  /** The cause is another, and the policy does something else at it. */
  #rethinks = false;
  readonly #observers = new Set<() => void>();
  readonly #context: CaseContext = {
    departure: () => this.#departure,
    tell: (reason, detail) => this.#tell(reason, detail),
    onObserved: (listener) => {
      this.#observers.add(listener);
      return () => this.#observers.delete(listener);
    },
  };
  /** The node was marked in this run: who it is has just been tested. */
  #marked = false;

  constructor(about: CaseFacts, tools: CaseTools) {
    this.#departure = about.departure;
    this.#node = about.node;
    this.#policy = about.policy;
    this.#tools = tools;
    this.#voice = new CaseVoice(tools.executor.voice, tools.clock);
    this.#ledger = new ProgressLedger(tools);
  }

  get departure(): Departure {
    return this.#departure;
  }

  /** Tells the case what the watch has seen last. */
  observe(departure: Departure, node: NodeFacts | undefined): void {
    this.#node = node;
    if (departure !== this.#seen) this.#take(departure);
    const found = interruptionOf(this.#departure, node);
    if (found === undefined || !this.#heeds(found)) return;
    this.#pending = found;
    this.#phaseWork.abort();
  }

  /** In a burst of notices each case hears every word about the others: only its own is news. */
  #take(departure: Departure): void {
    this.#seen = departure;
    const { resourceVersion, status } = this.#departure;
    const reaction = reactionTo(this.#departure, this.#policy);
    this.#departure = { ...departure, resourceVersion, status };
    // A node that was only cordoned for a recommendation is drained when its interruption comes.
    if (reactionTo(departure, this.#policy) !== reaction) {
      this.#rethinks = true;
      this.#phaseWork.abort();
    }
    for (const observer of this.#observers) observer();
  }

  /** The Departure was deleted: nothing more is done for it, its marks are cleared as strays. */
  forsake(): void {
    this.#forsaken = true;
    this.#phaseWork.abort();
  }

  /** Runs to the end; `first` is what set it going, absent when a case is taken up again. */
  async run(signal: AbortSignal, first?: Work): Promise<void> {
    let happening: Work | undefined = first;
    try {
      while (isLive(this.#departure) && !this.#forsaken) {
        happening ??= await this.#workOnPhase(signal);
        if (happening !== undefined && !(await this.#advance(happening))) return;
        happening = undefined;
      }
    } finally {
      // One that a fault has stopped in mid-drain holds its budgets until it is taken up again.
      const over = this.#forsaken || !mayHoldBudgets(this.#departure.status.phase);
      if (over) this.#tools.turns.leave(this.#departure);
      if (this.#forsaken || !isLive(this.#departure)) await this.#clearRoom();
    }
  }

  /** While a machine is being released by us, its node is meant to go: the release sees to it. */
  #heeds(found: Interruption): boolean {
    if (this.#departure.status.phase !== "Releasing") return true;
    if (!this.#waitsForCloud()) return false;
    const letGoByUs = this.#departure.status.machine !== undefined;
    return found.event === "NodeGone" || (found.event === "Withdrawn" && !letGoByUs);
  }

  #waitsForCloud(): boolean {
    return this.#isForced() || this.#policy.instance.release === "None";
  }

  #isForced(): boolean {
    return !isVoluntary(this.#departure.cause) || this.#departure.noticedAt !== undefined;
  }

  async #advance(work: Work): Promise<boolean> {
    const happening: Happening = { ...work, at: this.#tools.clock.now() };
    const before = this.#departure;
    const after = this.#isUrgent(work)
      ? this.#jot(happening)
      : await this.#ledger.write(before, (fresh) => statusAfter(fresh, happening));
    if (after === undefined) return false;
    this.#departure = after;
    if (after.status.phase !== before.status.phase) this.#voice.phaseChanged(before, after);
    return true;
  }

  async #tell(reason: Reason, detail: string | undefined): Promise<void> {
    const after = await this.#ledger.tell(this.#departure, { reason, detail });
    if (after === undefined) return;
    const { status } = after;
    this.#departure = { ...this.#departure, resourceVersion: after.resourceVersion, status };
    this.#voice.told(this.#departure);
  }

  /** Past the drain nobody needs room any more. What fails here is swept by the rotation. */
  async #clearRoom(): Promise<void> {
    await clearRoom(this.#departure, this.#tools).catch((error: unknown) =>
      this.#voice.faulted("room-not-cleared", this.#departure, error),
    );
  }

  /** Under a notice neither cordon nor first eviction waits for the ledger; it follows on. */
  #isUrgent({ event }: Work): boolean {
    return this.#isForced() && (event === "Noticed" || event === "Prepared");
  }

  #jot(happening: Happening): Departure {
    const status = statusAfter(this.#departure, happening);
    if (status === undefined) return this.#departure;
    this.#ledger.jot(this.#departure, happening);
    return { ...this.#departure, status };
  }

  /** The next thing that happens to the departure in its phase; undefined: look again. */
  async #workOnPhase(signal: AbortSignal): Promise<Work | undefined> {
    this.#phaseWork = new AbortController();
    this.#pending = undefined;
    this.#rethinks = false;
    const stop = AbortSignal.any([signal, this.#phaseWork.signal]);
    try {
      return await this.#workOf(stop);
    } catch (error) {
      if (this.#forsaken) return undefined;
      if (signal.aborted) throw error;
      if (this.#pending !== undefined) return this.#confirmed(this.#pending);
      if (this.#rethinks) return undefined;
      throw error;
    }
  }

  /** A watch may lag behind: that a node is gone or replaced is believed only after a fresh look. */
  async #confirmed(found: Interruption): Promise<Work | undefined> {
    if (found.event !== "NodeGone" && found.event !== "MachineReplaced") return found;
    const fresh = await this.#tools.readNode(this.#departure.node.name);
    const again = interruptionOf(this.#departure, fresh);
    return again?.event === found.event ? found : undefined;
  }

  #workOf(signal: AbortSignal): Promise<Work | undefined> {
    switch (this.#departure.status.phase) {
      case "Preparing":
        return this.#prepare(signal);
      case "Draining":
        return this.#drainNode(signal);
      case "Releasing":
        return this.#release(signal);
      case "RollingBack":
        return this.#rollBack(signal);
      default:
        // Scheduled and Held are the rotation's; a case begins with the event that ends them.
        return Promise.resolve(undefined);
    }
  }

  async #prepare(signal: AbortSignal): Promise<Work> {
    // Under a notice nothing comes before the mark, not even a look at the node.
    if (isPressed(this.#departure)) return this.#markAnd(() => Promise.resolve(prepared), signal);
    const order = await this.#order(signal);
    if (order === undefined) return { event: "NodeGone", reason: "NodeGone" };
    const parts = {
      context: this.#context,
      tools: this.#tools,
      voice: this.#voice,
      ledger: this.#ledger,
    };
    await lookAhead(order, parts, signal);
    return this.#markAnd(() => makeRoom(order, parts, signal), signal);
  }

  async #markAnd(next: () => Promise<Work>, signal: AbortSignal): Promise<Work> {
    const result = await this.#retry(
      () => this.#tools.executor.mark(this.#departure, this.#node),
      signal,
    );
    switch (result.kind) {
      case "Done":
        this.#marked = true;
        this.#voice.cordoned(this.#departure);
        return next();
      case "Gone":
        return { event: "NodeGone", reason: "NodeGone" };
      case "Mismatch":
        return { event: "MachineReplaced", reason: "WrongMachine", detail: result.found };
      case "NotOurs":
        return { event: "Cancelled", reason: "LeftToOthers", detail: "another Departure has it" };
    }
  }

  async #drainNode(signal: AbortSignal): Promise<Work> {
    if (reactionTo(this.#departure, this.#policy) === "Cordon") {
      await this.#ledger.say(this.#departure, "AwaitingMachine");
      return this.#untilTaken(signal);
    }
    const order = await this.#order(signal);
    if (order === undefined) return { event: "NodeGone", reason: "NodeGone" };
    const parts = {
      context: this.#context,
      voice: this.#voice,
      ledger: this.#ledger,
      tools: this.#tools,
      counted: this.#counted,
      onCounts: (counts: DrainCounts) => {
        this.#counted = counts;
      },
    };
    const { policy } = order;
    const drain = drainRuleOf(this.#departure, {
      rule: policy.drain,
      now: this.#tools.clock.now(),
    });
    return drainNode({ ...order, policy: { ...policy, drain } }, parts, signal);
  }

  /** The node as it is now; undefined where it is gone. */
  async #order(signal: AbortSignal): Promise<{ node: NodeFacts; policy: Policy } | undefined> {
    const node = await this.#nodeToDrain(signal);
    return node === undefined ? undefined : { node, policy: this.#policy };
  }

  /** A case that was taken up in mid-drain looks afresh at whose pods these are. */
  async #nodeToDrain(signal: AbortSignal): Promise<NodeFacts | undefined> {
    if (this.#marked && this.#node !== undefined) return this.#node;
    return this.#retry(() => this.#tools.readNode(this.#departure.node.name), signal);
  }

  async #release(signal: AbortSignal): Promise<Work> {
    await this.#clearRoom();
    const mode = this.#policy.instance.release;
    if (this.#waitsForCloud() || mode === "None") {
      await this.#ledger.say(this.#departure, "AwaitingMachine");
      return this.#untilTaken(signal);
    }
    try {
      await this.#retry(
        () =>
          releaseMachine(
            withMachine(this.#departure, this.#node),
            { ...this.#tools, mode, ledger: this.#ledger },
            signal,
          ),
        signal,
      );
    } catch (error) {
      if (signal.aborted || !isLastcallError(error) || error.code === "LEASE_LOST") throw error;
      this.#voice.faulted("release-failed", this.#departure, error);
      return { event: "GaveUp", reason: "ReleaseFailed", detail: messageOf(error) };
    }
    return { event: "Released", reason: "Released" };
  }

  /**
   * The node's going ends this by interruption. A machine that the cloud has still not taken well
   * after the instant it named will not be taken: its node goes back to work.
   */
  async #untilTaken(signal: AbortSignal): Promise<Work> {
    const { noticedAt, deadlineAt } = this.#departure;
    const noticed = noticedAt !== undefined || !isVoluntary(this.#departure.cause);
    if (deadlineAt === undefined || !noticed) return never(signal);
    const { clock } = this.#tools;
    await clock.sleep(between(clock.now(), plus(deadlineAt, unfulfilledMs)), signal);
    return { event: "GaveUp", reason: "NoticeWithdrawn" };
  }

  async #rollBack(signal: AbortSignal): Promise<Work> {
    await this.#clearRoom();
    const { node, name, status } = this.#departure;
    await this.#retry(() => this.#tools.executor.unmark({ node, departure: name }), signal);
    return { event: "RolledBack", reason: status.reason ?? "RolledBackByRule" };
  }

  #retry<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return retrying(work, {
      clock: this.#tools.clock,
      rng: this.#tools.rng,
      signal,
      onRetry: (error) => this.#voice.faulted("retrying", this.#departure, error),
    });
  }
}

/**
 * A person who writes a Departure by hand may name no machine. A Node object keeps its providerID for
 * life, so that the Node of the same uid tells it.
 */
function withMachine(departure: Departure, node: NodeFacts | undefined): Departure {
  const { providerID, uid } = departure.node;
  if (providerID !== undefined || node?.uid !== uid) return departure;
  return { ...departure, node: { ...departure.node, providerID: node.providerID } };
}

/** Nothing is left to do: the node's going ends the phase by interruption. */
function never(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
