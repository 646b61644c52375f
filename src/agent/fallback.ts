import { type Clock, Wakeup } from "../contracts/clock.ts";
import type { NodeMarks, NodePods } from "../contracts/cluster.ts";
import type { ObservedLease } from "../contracts/leadership.ts";
import type { Log, Metrics } from "../contracts/telemetry.ts";
import type { Rng } from "../core/chance/chance.ts";
import type { NodeFacts, NodeIdentity } from "../core/cluster/node.ts";
import { departureName, isUnderWay, pressingFrom } from "../core/departure/departure.ts";
import { explainHeld } from "../core/drain/drain-step.ts";
import {
  bindingMs,
  drainDeadline,
  ruleUntil,
  TerminationMemory,
} from "../core/drain/drain-time.ts";
import { reactionTo } from "../core/notice/interruption.ts";
import type { MachineNotice } from "../core/notice/notice.ts";
import { defaultPolicy } from "../core/policy/policy.ts";
import { explain } from "../core/reason/reason.ts";
import {
  between,
  type Instant,
  type Millis,
  millis,
  minus,
  plus,
  seconds,
} from "../core/time/time.ts";
import { isLastcallError, messageOf } from "../errors.ts";
import { ErrorLog } from "./agent-status.ts";
import { type DrainActor, DrainDriver } from "./drain-driver.ts";
import { type DepartureView, isKnownTo } from "./notice-patch.ts";
import type { NoticeReporter, ReportedNotice } from "./notice-reporter.ts";

export interface FallbackOptions extends FallbackDrainOptions {
  readonly mode: "Cordon" | "Drain";
  readonly reporter: Pick<NoticeReporter, "look">;
  readonly identify: () => Promise<NodeIdentity>;
  readonly marks: Pick<NodeMarks, "read" | "cordon" | "uncordon">;
  /**
   * Undefined if there is no Lease: a controller that has started a departure is then assumed
   * alive.
   */
  readonly leader: () => Promise<ObservedLease | undefined>;
  /** Called when the node has no pods left. */
  readonly onDrained?: (() => void) | undefined;
}

/** How long a controller has to start a departure before the agent acts. */
const controllerLeadMs: Millis = seconds(3);

const retryMs: Millis = seconds(1);
/** How often to check that the controller of a departure is still alive. */
const watchMs: Millis = seconds(10);

/** `Nobody`: there is nothing to do, or a person or the policy prevents it. */
type Actor = "Agent" | "Controller" | "Nobody";

interface OpenNotice {
  notice: MachineNotice;
  readonly sinceMs: number;
  reported: ReportedNotice | undefined;
  /** The name of the Departure that the agent marked the node with. */
  markedFor: string | undefined;
  drain: FallbackDrain | undefined;
  actor: Actor | undefined;
  isOver: boolean;
}

/**
 * Cordons and drains the agent's own node if no controller does. Reads the Departure before each
 * step and stops as soon as a controller has started it. If both act for a moment, no harm is done:
 * they set the same marks, and evictions name the pod's uid.
 */
export class Fallback {
  readonly #options: FallbackOptions;
  readonly #wakeup: Wakeup;
  readonly #troubles: ErrorLog;
  #open: OpenNotice | undefined;
  #putBack: { readonly name: string; readonly sinceMs: number } | undefined;
  #leader: { readonly version: string; readonly sinceMs: number } | undefined;
  #skewMs: Millis = millis(0);

  constructor(options: FallbackOptions) {
    this.#options = options;
    this.#wakeup = new Wakeup(options.clock);
    this.#troubles = new ErrorLog(options);
  }

  /** Called with the active notice before it is reported to the cluster. */
  handle(notice: MachineNotice | undefined, skewMs: Millis): void {
    this.#skewMs = skewMs;
    if (notice === undefined) {
      if (this.#open?.markedFor !== undefined) this.withdrawn(this.#open.markedFor);
      this.#open = undefined;
    } else if (this.#open === undefined) {
      const sinceMs = this.#options.clock.monotonic();
      const nothing = {
        reported: undefined,
        markedFor: undefined,
        drain: undefined,
        actor: undefined,
      };
      this.#open = { notice, sinceMs, ...nothing, isOver: false };
      // A remaining notice that does not drain yet does not keep the cordon of a withdrawn one.
      const drains = reactionTo(notice, defaultPolicy) !== "Ignore" && this.#adviceMs(notice) <= 0;
      if (drains) this.#putBack = undefined;
    } else if (JSON.stringify(notice) !== JSON.stringify(this.#open.notice)) {
      this.#open.notice = notice;
      this.#open.isOver = false;
    } else return;
    this.#wakeup.wake();
  }

  /** Called when the cluster knows the notice. */
  reported(reported: ReportedNotice): void {
    if (this.#open === undefined) return;
    // A new Departure starts over: the first one was closed by mistake.
    if (this.#open.reported?.name !== reported.name) this.#open.isOver = false;
    this.#open.reported = reported;
    this.#wakeup.wake();
  }

  /**
   * Called when the notice of this Departure is withdrawn. An earlier process may have marked the
   * node for it.
   */
  withdrawn(name: string): void {
    this.#putBack = { name, sinceMs: this.#options.clock.monotonic() };
    this.#wakeup.wake();
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#wakeup.sleep(await this.#tryStep(signal), signal);
    }
  }

  async #tryStep(signal: AbortSignal): Promise<Millis | undefined> {
    try {
      return this.#putBack === undefined
        ? await this.#step(signal)
        : await this.#putNodeBack(this.#putBack, signal);
    } catch (error) {
      if (!signal.aborted) this.#troubles.report("fallback", faultOf(error));
      return retryMs;
    }
  }

  /** Returns how long to wait before the next step; undefined: until something changes. */
  async #step(signal: AbortSignal): Promise<Millis | undefined> {
    const open = this.#open;
    if (open === undefined || open.isOver) return undefined;
    const leadMs = this.#leadMs(open.sinceMs);
    if (leadMs > 0) return leadMs;
    const adviceMs = this.#adviceMs(open.notice);
    // A clock that is set meanwhile is noticed within this time.
    if (adviceMs > 0) return millis(Math.min(adviceMs, watchMs));
    const node = await this.#options.identify();
    const name = open.reported?.name ?? departureName(node);
    const actor = await this.#actorFor(open, name, signal);
    if (actor !== open.actor) this.#options.log.info("fallback-actor", { departure: name, actor });
    open.actor = actor;
    if (actor === "Controller") return watchMs;
    if (actor === "Agent" && !signal.aborted) {
      const restMs = await this.#act(open, { node, name });
      if (restMs !== "Ended") return restMs;
    }
    open.isOver = true;
    return undefined;
  }

  async #actorFor(open: OpenNotice, name: string, signal: AbortSignal): Promise<Actor> {
    if (open.reported?.kind === "Closed") return "Nobody";
    // An agent may not read policies, so their defaults decide.
    if (reactionTo(open.notice, defaultPolicy) === "Ignore") return "Nobody";
    const departure = await this.#look(open, name, signal);
    if (departure === undefined) return open.reported === undefined ? "Agent" : "Nobody";
    const isCancelled = departure.isBeingDeleted || departure.withdrawnAt !== undefined;
    // That of an earlier notice keeps this one from being reported.
    const isOfThis = open.reported !== undefined || isKnownTo(departure, open.notice);
    if (isCancelled && isOfThis) return "Nobody";
    switch (departure.status.phase) {
      case "Scheduled":
      case "Held":
        return "Agent";
      case "Preparing":
      case "Draining":
        if (departure.status.reason === "AwaitingMachine") return "Nobody";
        return (await this.#leaderIsGone()) ? "Agent" : "Controller";
      case "RollingBack":
        if (open.reported !== undefined) return "Nobody";
        // A live controller soon ends it, and the notice then gets a Departure of its own.
        if (this.#leadMs(open.sinceMs + watchMs) <= 0) return "Agent";
        return (await this.#leaderIsGone()) ? "Agent" : "Controller";
      default:
        return open.reported === undefined ? "Agent" : "Nobody";
    }
  }

  /**
   * How long the agent leaves advice to a controller: it is held by the policy, whose budgets,
   * windows and gates the agent does not know, until it becomes pressing.
   */
  #adviceMs(notice: MachineNotice): Millis {
    const fromAt = pressingFrom(notice);
    if (fromAt === undefined) return millis(0);
    return between(this.#now(), plus(fromAt, controllerLeadMs));
  }

  /** Reads the Departure. A cluster that cannot store one cannot return it either. */
  async #look(
    open: OpenNotice,
    name: string,
    signal: AbortSignal,
  ): Promise<DepartureView | undefined> {
    try {
      return await this.#options.reporter.look(name, signal);
    } catch (error) {
      const answered = isLastcallError(error) && error.code !== "API_UNREACHABLE";
      if (answered && open.reported === undefined && !signal.aborted) return undefined;
      throw error;
    }
  }

  /** Whether the Lease has expired, so that another replica would take it over. */
  async #leaderIsGone(): Promise<boolean> {
    const observed = await this.#options.leader();
    if (observed === undefined) return false;
    const nowMs = this.#options.clock.monotonic();
    if (this.#leader?.version !== observed.version) {
      this.#leader = { version: observed.version, sinceMs: nowMs };
    }
    const leftMs = observed.held ? observed.durationMs : controllerLeadMs;
    return nowMs - this.#leader.sinceMs >= leftMs;
  }

  async #act(
    open: OpenNotice,
    { node, name }: { readonly node: NodeIdentity; readonly name: string },
  ): Promise<Millis | "Ended"> {
    if (open.markedFor !== name) {
      const done = await this.#mark(open.notice, { node, name });
      if (done !== "Marked") return done;
      open.markedFor = name;
    }
    if (this.#options.mode === "Cordon") return "Ended";
    open.drain ??= await this.#beginDrain(node.name);
    if (open.drain === undefined) return "Ended";
    const next = await open.drain.step(open.notice.deadlineAt);
    if (next !== "Drained") return next;
    this.#options.onDrained?.();
    return "Ended";
  }

  async #mark(
    { cause, deadlineAt }: MachineNotice,
    { node, name }: { readonly node: NodeIdentity; readonly name: string },
  ): Promise<"Marked" | Millis | "Ended"> {
    const { marks, log } = this.#options;
    const message = explain("Noticed", { node: node.name, deadlineAt });
    const { kind } = await marks.cordon(node, { departure: name, cause, message });
    if (kind === "Done") {
      log.warn("fallback-cordoned", { node: node.name, departure: name, cause });
      return "Marked";
    }
    log.warn("fallback-not-cordoned", { node: node.name, departure: name, found: kind });
    // After a reboot, the Node shows the previous boot until the kubelet has reported.
    return kind === "Mismatch" ? retryMs : "Ended";
  }

  async #beginDrain(nodeName: string): Promise<FallbackDrain | undefined> {
    const facts = await this.#options.marks.read(nodeName);
    if (facts === undefined) return undefined;
    return new FallbackDrain(facts, this.#options, () => this.#now());
  }

  /** Uncordons the node unless a live controller has done so by then. */
  async #putNodeBack(
    order: { readonly name: string; readonly sinceMs: number },
    signal: AbortSignal,
  ): Promise<Millis | undefined> {
    const leadMs = this.#leadMs(order.sinceMs);
    if (leadMs > 0) return leadMs;
    const { reporter, marks, identify, log } = this.#options;
    const node = await identify();
    const departure = await reporter.look(order.name, signal).catch((error: unknown) => {
      if (isLastcallError(error) && error.code === "CRD_MISSING") return undefined;
      throw error;
    });
    const isTaken = departure !== undefined && isUnderWay(departure);
    if (!isTaken) {
      const { name, uid } = node;
      await marks.uncordon({ name, uid, departure: order.name });
      log.info("fallback-uncordoned", { node: name, departure: order.name });
    }
    if (this.#putBack === order) this.#putBack = undefined;
    return millis(0);
  }

  #leadMs(sinceMs: number): Millis {
    return millis(controllerLeadMs - (this.#options.clock.monotonic() - sinceMs));
  }

  #now(): Instant {
    return minus(this.#options.clock.now(), this.#skewMs);
  }
}

function faultOf(error: unknown): Error {
  return isLastcallError(error) ? error : new Error(messageOf(error));
}

interface FallbackDrainOptions {
  readonly pods: Pick<NodePods, "list" | "evict" | "remove">;
  readonly clock: Clock;
  readonly rng: Rng;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "count">;
}

/** How often the pods are listed, since there is no watch. */
const listEveryMs: Millis = seconds(1);

/**
 * The default drain rule, because the agent may not read policies. Without a deadline, blocked pods
 * are retried until the machine is gone, because nobody else would evict them.
 */
const policyRule = { ...defaultPolicy.drain, onTimeout: "Wait" } as const;

/**
 * Drains the node without a controller, by the same driver, on pods that are listed every second.
 * It does not read budgets, which saves a permission: the eviction API enforces them anyway.
 */
class FallbackDrain {
  readonly #node: NodeFacts;
  readonly #tools: FallbackDrainOptions;
  readonly #driver: DrainDriver;
  readonly #startedAt: Instant;
  readonly #startedAtMs: number;
  readonly #now: () => Instant;

  /** `now` is the cloud's time. */
  constructor(node: NodeFacts, tools: FallbackDrainOptions, now: () => Instant) {
    const { rng } = tools;
    const [terminations, actor] = [new TerminationMemory(), actorOf(tools)];
    this.#node = node;
    this.#tools = tools;
    this.#driver = new DrainDriver({ actor, now, rng, terminations });
    this.#startedAt = now();
    this.#startedAtMs = tools.clock.monotonic();
    this.#now = now;
  }

  /** Performs what is due. Returns how long to wait before the next step. */
  async step(namedAt: Instant | undefined): Promise<Millis | "Drained" | "Ended"> {
    const { pods, clock, log } = this.#tools;
    const livePods = await pods.list(this.#node.name);
    const startedAt = this.#startedAt;
    const deadlineAt = drainDeadline(namedAt, { beganAt: startedAt });
    const rule = ruleUntil(deadlineAt, { rule: policyRule, namedAt });
    const { step } = this.#driver.step({
      ...{ node: this.#node, livePods, ownPods: livePods, budgets: [] },
      ...{ rule, startedAt, deadlineAt, knownAt: startedAt, isNoticed: true },
    });
    if (step.verdict !== "Running") {
      const { total, left, evicted, forced, cut } = step.counts;
      const bindsMs = this.#startedAtMs + bindingMs - clock.monotonic();
      if (left === 0 && bindsMs > 0) return millis(Math.min(listEveryMs, bindsMs));
      const end = { verdict: step.verdict, held: explainHeld(step.blocked) };
      log.warn("fallback-drained", { ...end, total, left, evicted, forced, cut });
      return left === 0 ? "Drained" : "Ended";
    }
    for (const act of step.acts) void this.#driver.carryOut(act);
    const { askAgainAt } = step;
    const askMs = askAgainAt === undefined ? listEveryMs : between(this.#now(), askAgainAt);
    return millis(Math.min(listEveryMs, Math.max(0, askMs)));
  }
}

function actorOf({ pods, metrics }: FallbackDrainOptions): DrainActor {
  return {
    async evict(pod, options) {
      const answer = await pods.evict(pod, options);
      metrics.count("lastcall_evictions_total", { result: answer.kind });
      return answer;
    },
    remove(pod, { reason, ...options }) {
      metrics.count("lastcall_pods_forced_total", { reason });
      return pods.remove(pod, options);
    },
    // The default rule never restarts owners.
    async restartOwner() {
      return { kind: "Failed", retryable: false, message: "an agent does not restart workloads" };
    },
  };
}
