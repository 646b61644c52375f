import type { Clock } from "../../contracts/clock.ts";
import type { Log } from "../../contracts/telemetry.ts";
import { backoffMs, type Rng } from "../../core/chance/chance.ts";
import { compareIdentity, type NodeFacts, type NodeIdentity } from "../../core/cluster/node.ts";
import type { PodFacts } from "../../core/cluster/pod.ts";
import { type Departure, isNoticed } from "../../core/departure/departure.ts";
import { type PhaseResult, wasDrained } from "../../core/departure/ledger.ts";
import { type PlannedPod, planDrain } from "../../core/drain-plan/drain-plan.ts";
import { replacement } from "../../core/notice/interruption.ts";
import { sharedMachine } from "../../core/policy/release-answer.ts";
import { LastcallError, messageOf } from "../../errors.ts";
import type { DepartureWriter } from "../departure-writer.ts";
import { longestPause, runSteps, type Step, type StepContext } from "./step.ts";

export interface MachineCheckPorts {
  readonly writer: Pick<DepartureWriter, "isLive">;
  readonly log: Pick<Log, "warn">;
  readonly readNode: (name: string) => Promise<NodeFacts | undefined>;
  readonly clock: Clock;
  readonly rng: Rng;
}

export interface MachineCheckOptions {
  readonly departure: Departure;
  /** The departing node, as of the last identity check. */
  readonly node: NodeIdentity;
  readonly tools: MachineCheckPorts;
  /** Called after a check: new pods may belong to the node now, or the machine is lost. */
  readonly onLooked: () => void;
  readonly signal: AbortSignal;
}

/**
 * Decides which pods belong to the departing machine. Pods are bound to a node by name only, and
 * the watch that would show a replaced node may have stalled. So pods that appear after the last
 * identity check count only after another read of the node and the Departure. While the node cannot
 * be read, they are not touched, even under a notice: they may be another machine's.
 */
export class MachineCheck {
  readonly #options: MachineCheckOptions;
  readonly #identity: NodeIdentity;
  readonly #own = new Set<string>();
  #isLooking = false;
  #lost: PhaseResult | undefined;

  constructor(options: MachineCheckOptions) {
    this.#options = options;
    this.#identity = wholeIdentity(options.departure.node, options.node);
  }

  /** The result that ends the departure if its machine is gone or replaced. */
  get lost(): PhaseResult | undefined {
    return this.#lost;
  }

  /** Accepts pods that were listed just after the identity check. */
  trust(pods: readonly PodFacts[]): void {
    for (const { uid } of pods) this.#own.add(uid);
  }

  /** Returns the pods known to belong to the node. Starts a check if there are others. */
  ownOf(pods: readonly PodFacts[]): readonly PodFacts[] {
    const own = pods.filter(({ uid }) => this.#own.has(uid));
    if (own.length < pods.length && !this.#isLooking && this.#lost === undefined) {
      this.#isLooking = true;
      void this.#look(pods);
    }
    return own;
  }

  async #look(pods: readonly PodFacts[]): Promise<void> {
    const { departure, tools, signal, onLooked } = this.#options;
    const mostMs = longestPause(departure);
    for (let attempt = 0; !signal.aborted; attempt += 1) {
      try {
        this.#lost = await this.#lostNow();
        if (this.#lost === undefined) this.trust(pods);
        this.#isLooking = false;
        onLooked();
        return;
      } catch (error) {
        tools.log.warn("node-not-read", {
          node: departure.node.name,
          error: messageOf(error),
        });
        await tools.clock
          .sleep(backoffMs(attempt, tools.rng, { mostMs }), signal)
          .catch(() => undefined);
      }
    }
  }

  async #lostNow(): Promise<PhaseResult | undefined> {
    const { departure, tools } = this.#options;
    const [node, isLive] = await Promise.all([
      tools.readNode(departure.node.name),
      tools.writer.isLive(departure),
    ]);
    if (!isLive) return departureDeleted;
    return machineLost(this.#identity, node);
  }
}

/** The result for a Departure that no longer exists. */
const departureDeleted: PhaseResult = {
  ...{ event: "Cancelled", reason: "CancelledByPerson" },
  detail: "the Departure was deleted",
};

/**
 * The result that ends a departure if a fresh read shows another machine; undefined if it is the
 * same.
 */
export function machineLost(
  then: NodeIdentity,
  now: NodeFacts | undefined,
): PhaseResult | undefined {
  if (now === undefined) return { event: "NodeGone", reason: "NodeGone" };
  const found = compareIdentity(then, now);
  return found === "Same" ? undefined : replacement(found, now);
}

/** Completes the identity of a hand-written Departure that names only the node's uid. */
function wholeIdentity(named: NodeIdentity, tested: NodeIdentity): NodeIdentity {
  if (named.uid !== tested.uid) return named;
  const { providerID = tested.providerID, bootID = tested.bootID } = named;
  return { ...named, providerID, bootID };
}

/**
 * Before the request, a deleted Departure gives up the release. The phase Releasing has no event to
 * cancel it, because a requested release cannot be cancelled.
 */
const deletedBefore: PhaseResult = { ...departureDeleted, event: "GaveUp" };

/** The ends of a drain after which the machine is released; it is kept after any other. */
const releasedAfter: ReadonlySet<PhaseResult["event"]> = new Set([
  "Drained",
  "CutShort",
  "NodeGone",
]);

/**
 * The final check before a machine is released. A scheduler that chose the node before its cordon
 * may bind a pod later, and a watch may show that pod later still. So the node and its pods are
 * read from the API server just before the release, and once more after it, because a pod can still
 * be bound between that read and the cloud's request. Also detects that a person has deleted the
 * Departure.
 */
export class LastLook {
  readonly #context: StepContext;
  /** The steps that drain late pods. */
  readonly #drainSteps: readonly Step[];
  /** The pods of drains that have ended, whatever the result. */
  readonly #drained = new Set<string>();
  /** The pods on the node when the machine was released. */
  #there: ReadonlySet<string> | undefined;

  constructor(context: StepContext, draining: readonly Step[]) {
    this.#context = context;
    this.#drainSteps = draining;
  }

  /**
   * Drains pods that have been bound since the drain, and checks the node's identity again. Rejects
   * with CLOUD_REFUSED if another Node names the same machine.
   */
  async before(signal: AbortSignal): Promise<"Clear" | "Waited" | PhaseResult> {
    const { writer, departure } = this.#context;
    const [node, isLive] = await Promise.all([this.#readNode(), writer.isLive(departure())]);
    if (!isLive) return deletedBefore;
    const lost = node && this.#lost(node);
    if (lost !== undefined) return lost;
    const shared = sharedMachine(node ?? departure().node, this.#context.view().nodes);
    if (shared !== undefined) {
      throw new LastcallError("CLOUD_REFUSED", `Cannot release the machine: ${shared}`);
    }
    // Without the Node there are no pods, and the machine's id identifies it.
    if (node === undefined) return "Clear";
    const { there, toLeave } = await this.#podsOn(node);
    if (toLeave.every(({ uid }) => this.#drained.has(uid))) {
      this.#there = there;
      return "Clear";
    }
    const { memory, clock } = this.#context;
    memory.target = node;
    // Pods that an earlier drain left behind have had their time.
    const known = new Set([...this.#drained, ...(memory.drained?.staying ?? []).map(uidOf)]);
    // An earlier leader may have drained it.
    const isDrained = memory.drained !== undefined || wasDrained(departure().status);
    const isLate = isDrained && toLeave.some(({ uid }) => !known.has(uid));
    if (isLate) memory.lateSinceAt = clock.now();
    const result = await runSteps(this.#drainSteps, this.#context, signal);
    if (result?.event === "Cancelled") return deletedBefore;
    if (result !== undefined && !releasedAfter.has(result.event)) return result;
    for (const { uid } of toLeave) this.#drained.add(uid);
    return "Waited";
  }

  /** Records pods that were bound after the final check and lost with the machine. */
  async after(): Promise<void> {
    const { telemetry, statusWriter } = this.#context;
    const before = this.#there;
    if (before === undefined) return;
    const departure = this.#context.departure();
    try {
      const node = (await this.#readNode()) ?? this.#context.node();
      if (node === undefined) return;
      const { toLeave } = await this.#podsOn(node);
      const late = toLeave.filter(({ uid }) => !before.has(uid));
      // The group may already have recreated the machine, with new pods under the same name.
      const now = late.length > 0 ? await this.#readNode() : undefined;
      if (late.length === 0 || (now !== undefined && this.#lost(now) !== undefined)) return;
      const { status } = await statusWriter.leftBehind(departure, late);
      telemetry.leftBehind(departure, status);
    } catch (error) {
      telemetry.faulted("late-pods-not-looked-for", departure, error);
    }
  }

  #lost(node: NodeFacts): PhaseResult | undefined {
    const { departure, node: seen } = this.#context;
    return machineLost(wholeIdentity(departure().node, seen() ?? node), node);
  }

  #readNode(): Promise<NodeFacts | undefined> {
    const { departure, readNode } = this.#context;
    return readNode(departure().node.name);
  }

  async #podsOn(node: NodeFacts): Promise<{
    readonly there: ReadonlySet<string>;
    readonly toLeave: readonly PlannedPod[];
  }> {
    const { pods, clock, self, policy, memory } = this.#context;
    const listed = await pods.list(node.name);
    const rule = policy.drain;
    const scene = { budgets: [], rule, now: clock.now(), self, beganWith: memory.beganWith };
    const noticed = isNoticed(this.#context.departure());
    const plan = planDrain({ node, pods: listed, ...scene, isNoticed: noticed });
    return { there: new Set(listed.map(({ uid }) => uid)), toLeave: plan.pods };
  }
}

function uidOf({ uid }: { readonly uid: string }): string {
  return uid;
}
