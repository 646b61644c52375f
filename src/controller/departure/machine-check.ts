import type { Clock } from "../../contracts/clock.ts";
import { backoffMs } from "../../core/chance/backoff.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { compareIdentity, type NodeFacts, type NodeIdentity } from "../../core/cluster/node.ts";
import type { PodFacts } from "../../core/cluster/pod.ts";
import type { Departure } from "../../core/departure/departure.ts";
import type { PhaseResult } from "../../core/departure/ledger.ts";
import { messageOf } from "../../errors.ts";
import type { Executor } from "../executor.ts";
import { longestPause } from "./retry.ts";

export interface MachineCheckPorts {
  readonly executor: Pick<Executor, "isLive" | "telemetry">;
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
 * be read, they are left alone, even under a notice: they may be another machine's.
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
        tools.executor.telemetry.log.warn("node-not-read", {
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
      tools.executor.isLive(departure),
    ]);
    if (!isLive) return departureDeleted;
    return machineLost(this.#identity, node);
  }
}

/** The result for a Departure that no longer exists. */
export const departureDeleted: PhaseResult = {
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
  if (compareIdentity(then, now) === "Same") return undefined;
  return { event: "MachineReplaced", reason: "MachineReplaced" };
}

/** Completes the identity of a hand-written Departure that names only the node's uid. */
export function wholeIdentity(named: NodeIdentity, tested: NodeIdentity): NodeIdentity {
  if (named.uid !== tested.uid) return named;
  const { providerID = tested.providerID, bootID = tested.bootID } = named;
  return { ...named, providerID, bootID };
}
