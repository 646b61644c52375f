import type { NodeFacts } from "../core/cluster/node.ts";
import { isPressing } from "../core/departure/advice.ts";
import { type Departure, type DrainCounts, isNoticed } from "../core/departure/departure.ts";
import type { PhaseResult } from "../core/departure/ledger.ts";
import { drainRuleOf } from "../core/drain/drain-rule.ts";
import { awaitedUntil, givenUpAt, reactionTo, releaseTriedUntil } from "../core/notice/reaction.ts";
import type { Policy } from "../core/policy/policy.ts";
import { releaseModeOf } from "../core/policy/release-mode.ts";
import { formatDuration } from "../core/time/duration.ts";
import { between } from "../core/time/time.ts";
import { isCloudFault, isLastcallError, type LastcallError, messageOf } from "../errors.ts";
import { longestPause, retrying } from "./backoff.ts";
import { type CaseContext, isCloudsToTake } from "./case-context.ts";
import type { CaseTools } from "./case-tools.ts";
import type { DepartureTelemetry } from "./departure-telemetry.ts";
import { drainNode } from "./drain-work.ts";
import { LastLook } from "./last-look.ts";
import { machineLost } from "./machine-check.ts";
import { lookAhead, prepared, reserveCapacity } from "./preparation.ts";
import { releaseMachine } from "./release-work.ts";
import { clearReservation } from "./reservation-clearing.ts";
import type { StatusWriter } from "./status-writer.ts";

interface Order {
  readonly node: NodeFacts;
  readonly policy: Policy;
}

/** Under a notice a drain that begins so soon after the mark, which tests who the node is, does not look again. */
const testedForMs = 5000;

export interface PhaseWorkParts {
  readonly policy: Policy;
  readonly context: CaseContext;
  readonly tools: CaseTools;
  readonly telemetry: DepartureTelemetry;
  readonly ledger: StatusWriter;
}

/** What is done in each phase of a departure. */
export class PhaseWork {
  readonly #parts: PhaseWorkParts;
  /** What an interrupted drain of this case had counted. */
  #counted: DrainCounts | undefined;
  /** When the node was marked in this run, and who it is was tested; monotonic. */
  #markedAtMs = Number.NEGATIVE_INFINITY;

  constructor(parts: PhaseWorkParts) {
    this.#parts = parts;
  }

  /** The next thing that happens to the departure in its phase; undefined: look again. */
  run(signal: AbortSignal): Promise<PhaseResult | undefined> {
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

  async #prepare(signal: AbortSignal): Promise<PhaseResult> {
    // Where it presses nothing comes before the mark, not even a look at the node.
    if (this.#isToMarkAtOnce()) return this.#markAnd(() => Promise.resolve(prepared), signal);
    const order = await this.#order(signal);
    if ("event" in order) return order;
    await lookAhead(order, this.#parts, signal);
    return (await this.#unreleasable(order, signal)) ?? this.#mark(order, signal);
  }

  /** A node that keeps its pods needs no room for them. */
  #isToMarkAtOnce(): boolean {
    const { policy, tools } = this.#parts;
    if (isPressing(this.#departure, tools.clock.now())) return true;
    return reactionTo(this.#departure, policy) === "Cordon";
  }

  #mark(order: Order, signal: AbortSignal): Promise<PhaseResult> {
    return this.#markAnd(() => reserveCapacity(order, this.#parts, signal), signal);
  }

  /** The last look before the mark, which may have waited for other drains. A notice waits for nothing. */
  async #unreleasable(
    { node, policy }: Order,
    signal: AbortSignal,
  ): Promise<PhaseResult | undefined> {
    const mode = releaseModeOf(node, policy.instance);
    if (mode === "None" || isNoticed(this.#departure)) return undefined;
    const { context, tools } = this.#parts;
    const over = new AbortController();
    const stopObserving = context.onObserved(() => {
      if (isNoticed(this.#departure)) over.abort();
    });
    const until = AbortSignal.any([signal, over.signal]);
    try {
      const answer = await tools.askAboutRelease({ node, mode }, until);
      if (answer.kind === "Possible" || over.signal.aborted) return undefined;
      await this.#unmark(signal);
      return { event: "Blocked", reason: answer.reason, detail: answer.detail };
    } catch (error) {
      if (!over.signal.aborted || signal.aborted) throw error;
      return undefined;
    } finally {
      stopObserving();
    }
  }

  async #markAnd(next: () => Promise<PhaseResult>, signal: AbortSignal): Promise<PhaseResult> {
    const result = await this.#retry(
      () => this.#parts.tools.executor.cordon(this.#departure, this.#node),
      signal,
    );
    switch (result.kind) {
      case "Done":
        this.#markedAtMs = this.#parts.tools.clock.monotonic();
        this.#parts.telemetry.cordoned(this.#departure);
        return next();
      case "Gone":
        return { event: "NodeGone", reason: "NodeGone" };
      case "Mismatch":
        return { event: "MachineReplaced", reason: "WrongMachine", detail: result.found };
      case "NotOurs":
        return this.#yieldTo(result.departure, next, signal);
    }
  }

  /** A node leaves once. What the cloud has said is not lost with the departure that came second. */
  async #yieldTo(
    owner: string,
    next: () => Promise<PhaseResult>,
    signal: AbortSignal,
  ): Promise<PhaseResult> {
    const { executor } = this.#parts.tools;
    const { node } = this.#departure;
    if (isNoticed(this.#departure)) {
      const handed = await this.#retry(() => executor.handOver(this.#departure, owner), signal);
      if (handed === "Orphan") {
        await this.#retry(() => executor.uncordon({ node, departure: owner }), signal);
        return this.#markAnd(next, signal);
      }
    }
    return { event: "Cancelled", reason: "LeftToOthers", detail: owner };
  }

  async #drainNode(signal: AbortSignal): Promise<PhaseResult> {
    if (this.#isOnlyCordoned()) {
      await this.#parts.ledger.say(this.#departure, "AwaitingMachine");
      return this.#untilTaken(signal);
    }
    const order = await this.#order(signal);
    return "event" in order ? order : this.#drainPods(order, signal);
  }

  /** A drain that has begun goes on, whatever the cause is by now. */
  #isOnlyCordoned(): boolean {
    const hasBegun = (this.#counted ?? this.#departure.status.drain) !== undefined;
    return !hasBegun && reactionTo(this.#departure, this.#parts.policy) === "Cordon";
  }

  #drainPods(order: Order, signal: AbortSignal): Promise<PhaseResult> {
    const parts = {
      ...this.#parts,
      counted: this.#counted,
      onCounts: (counts: DrainCounts) => {
        this.#counted = counts;
      },
    };
    const { policy } = order;
    const drain = drainRuleOf(this.#departure, {
      rule: policy.drain,
      now: this.#parts.tools.clock.now(),
    });
    return drainNode({ ...order, policy: { ...policy, drain } }, parts, signal);
  }

  /** The node whose pods are to leave, tested a moment ago, or what ends the departure instead. */
  async #order(signal: AbortSignal): Promise<Order | PhaseResult> {
    const { policy, tools } = this.#parts;
    const seen = this.#node;
    const sinceMs = tools.clock.monotonic() - this.#markedAtMs;
    const isTested = isNoticed(this.#departure) && sinceMs <= testedForMs;
    if (isTested && seen !== undefined) return { node: seen, policy };
    const node = await this.#retry(() => tools.readNode(this.#departure.node.name), signal);
    if (node === undefined) return { event: "NodeGone", reason: "NodeGone" };
    return machineLost(this.#departure.node, node) ?? { node, policy };
  }

  async #release(signal: AbortSignal): Promise<PhaseResult> {
    await this.clearReservation();
    const labels = this.#node?.labels ?? {};
    const mode = releaseModeOf({ labels }, this.#parts.policy.instance);
    if (isCloudsToTake(this.#departure, this.#parts.policy) || mode === "None") {
      // That word is what the next leader goes by.
      const hasFailed = this.#departure.status.reason === "ReleaseFailed";
      if (!hasFailed) await this.#parts.ledger.say(this.#departure, "AwaitingMachine");
      return this.#untilTaken(signal);
    }
    const looks = new LastLook({
      ...this.#parts,
      drain: (node, until) => this.#drainPods({ node, policy: this.#parts.policy }, until),
    });
    const [lastLook, onGone] = [() => looks.before(signal), () => looks.after()];
    try {
      return await this.#retry(
        async () => {
          const parts = {
            ...this.#parts.tools,
            mode,
            ledger: this.#parts.ledger,
            lastLook,
            onGone,
          };
          const departure = withMachine(this.#departure, this.#node);
          return releaseMachine(departure, parts, signal).catch((error) => this.#tellFault(error));
        },
        signal,
        (error) => this.#isEnough(error),
      );
    } catch (error) {
      if (signal.aborted || !isLastcallError(error) || error.code === "LEASE_LOST") throw error;
      return this.#unreleased(error, signal);
    }
  }

  /** A cloud is asked for so long. Past its machine nothing is left but the Node, of which the cluster hears. */
  #isEnough(error: LastcallError): boolean {
    const { policy, tools } = this.#parts;
    const untilAt = releaseTriedUntil(this.#departure, policy);
    return isCloudFault(error) && untilAt !== undefined && untilAt <= tools.clock.now();
  }

  /** What is tried again may be so for long: people are to see why, and not each time. */
  async #tellFault(error: unknown): Promise<never> {
    const isNew = this.#departure.status.reason !== "ReleaseRetried";
    if (isNew && isLastcallError(error) && error.retryable) {
      await this.#parts.context.tell("ReleaseRetried", messageOf(error));
    }
    throw error;
  }

  /** A node that the cloud takes is not put back to work for that: the cloud is waited for. */
  async #unreleased(error: LastcallError, signal: AbortSignal): Promise<PhaseResult> {
    const { instance } = this.#parts.policy;
    const tried = `, tried again for ${formatDuration(instance.awaitMachineMs)} (instance.awaitMachine)`;
    const detail = `${messageOf(error)}${error.retryable ? tried : ""}`;
    this.#parts.telemetry.faulted("release-failed", this.#departure, error);
    if (!isNoticed(this.#departure)) return { event: "GaveUp", reason: "ReleaseFailed", detail };
    await this.#parts.context.tell("ReleaseFailed", detail);
    return this.#untilTaken(signal);
  }

  /**
   * The node's going ends this by interruption; so do `givenUpAt` and `awaitedUntil`, where it has not gone.
   */
  async #untilTaken(signal: AbortSignal): Promise<PhaseResult> {
    const { policy, tools } = this.#parts;
    const { clock } = tools;
    for (;;) {
      // Asked again after each wait: a recommendation may have come true meanwhile.
      const departure = this.#departure;
      const byCloud = isNoticed(departure);
      const untilAt = byCloud ? givenUpAt(departure) : awaitedUntil(departure, policy);
      if (untilAt === undefined) return never(signal);
      if (untilAt <= clock.now()) {
        return byCloud
          ? { event: "GaveUp", reason: "NoticeWithdrawn" }
          : { event: "GaveUp", reason: "MachineNotTaken", detail: notTaken(policy) };
      }
      await clock.sleep(between(clock.now(), untilAt), signal);
    }
  }

  async #rollBack(signal: AbortSignal): Promise<PhaseResult> {
    await this.clearReservation();
    await this.#unmark(signal);
    return { event: "RolledBack", reason: this.#departure.status.reason ?? "RolledBackByRule" };
  }

  /** A node that is not ours is left as it is. */
  async #unmark(signal: AbortSignal): Promise<void> {
    const { node, name } = this.#departure;
    await this.#retry(() => this.#parts.tools.executor.uncordon({ node, departure: name }), signal);
  }

  /** Past the drain nobody needs room any more. What fails here is swept by the rotation. */
  async clearReservation(): Promise<void> {
    await clearReservation(this.#departure, this.#parts.tools).catch((error: unknown) =>
      this.#parts.telemetry.faulted("room-not-cleared", this.#departure, error),
    );
  }

  get #departure(): Departure {
    return this.#parts.context.departure();
  }

  get #node(): NodeFacts | undefined {
    return this.#parts.context.node();
  }

  #retry<T>(
    work: () => Promise<T>,
    signal: AbortSignal,
    isEnough?: (error: LastcallError) => boolean,
  ): Promise<T> {
    return retrying(work, {
      clock: this.#parts.tools.clock,
      rng: this.#parts.tools.rng,
      signal,
      longestPause: () => longestPause(this.#departure),
      isEnough,
      onRetry: (error) => this.#parts.telemetry.faulted("retrying", this.#departure, error),
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

function notTaken({ instance, name }: Policy): string {
  const waited = formatDuration(instance.awaitMachineMs);
  return `within ${waited}, and instance.release of the policy ${name} is None: have something delete drained machines, or set another release`;
}

/** Nothing is left to do: the node's going ends the phase by interruption. */
function never(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
