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
  /** The node that leaves, as it was when its identity was tested last. */
  readonly node: NodeIdentity;
  readonly tools: MachineCheckPorts;
  /** Told when a look is over: pods may be the node's own now, or the machine is lost. */
  readonly onLooked: () => void;
  readonly signal: AbortSignal;
}

/**
 * Pods are bound to a node by its name alone, and a watch that says whose the name is may have
 * stalled. So those that were not there when the node was tested last count as its own only after a
 * fresh look at it, and at the Departure. While the node cannot be read they are left alone, under
 * a notice too: they may be another machine's.
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

  /** What ends the departure, where the machine is not the one that leaves any more. */
  get lost(): PhaseResult | undefined {
    return this.#lost;
  }

  /** Takes pods for the node's own that were listed just after it was tested. */
  trust(pods: readonly PodFacts[]): void {
    for (const { uid } of pods) this.#own.add(uid);
  }

  /** Those of the pods that are the node's own; where there are others, a look at it begins. */
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

/** What ends the run of a departure that a fresh look does not find any more. */
export const departureDeleted: PhaseResult = {
  ...{ event: "Cancelled", reason: "CancelledByPerson" },
  detail: "the Departure was deleted",
};

/**
 * What ends a departure whose node is read afresh and is not what it was; undefined where it is.
 */
export function machineLost(
  then: NodeIdentity,
  now: NodeFacts | undefined,
): PhaseResult | undefined {
  if (now === undefined) return { event: "NodeGone", reason: "NodeGone" };
  if (compareIdentity(then, now) === "Same") return undefined;
  return { event: "MachineReplaced", reason: "MachineReplaced" };
}

/** A person who writes a Departure by hand may name the node's uid alone. */
export function wholeIdentity(named: NodeIdentity, tested: NodeIdentity): NodeIdentity {
  if (named.uid !== tested.uid) return named;
  const { providerID = tested.providerID, bootID = tested.bootID } = named;
  return { ...named, providerID, bootID };
}
